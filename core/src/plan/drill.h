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
};

// Those beyond their ranges.
Issues IssuesOf(const DrillOptions& options);

// As it is; with one replica fewer, of each pool that has several; with one slow replica, of a
// single pool that has several; of a load with a rate with one that fails in the midst of the run,
// or all of a node, and with a rolling update by Kubernetes' defaults, where the rest of it can be
// combined with these; with a spike. The slow one
// needs step times that go by the GPU's figures.
std::vector<Drill> DrillsOf(const Scenario& scenario, const DrillOptions& options);

}  // namespace servecast
