// What may happen to a deployment, as scenarios: each is run and judged like the one it is made
// from.
#pragma once

#include <string>
#include <vector>

#include "servecast/scenario.h"

namespace servecast {

struct DrillOptions {
  double spike = 2;         // times the load; 1 to 100
  double spike_s = 60;      // for so long; 1 to 3,600
  double slow_share = 0.7;  // of its GPUs' peaks and bandwidths, of the slow replica
};

struct Drill {
  std::string name;
  Scenario scenario;
  std::string not_run;  // why it cannot be tried; "": it can
};

// The first of them as a reason; "": there is none.
std::string ReasonOf(const Issues& issues);

// Those beyond their ranges.
Issues IssuesOf(const DrillOptions& options);

// As it is; with one replica fewer, of each pool that has several; with one slow replica; of a load
// with a rate with one that fails in the midst of the run, of each pool, or all of a node, with one
// that is slow for a while, with a rolling update by Kubernetes' defaults, and with a spike. Those
// that cannot be tried say why in `not_run`.
std::vector<Drill> DrillsOf(const Scenario& scenario, const DrillOptions& options);

}  // namespace servecast
