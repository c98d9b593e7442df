// What is known of a design without a run: the least that any scheduling needs, and where to begin
// to look for what this one needs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "servecast/scenario.h"
#include "serving/cluster/deployment.h"
#include "workload/request_table.h"

namespace servecast {

struct BeforeRuns {
  // By pool: replicas that the load keeps busy at the data sheet's peaks, in whole groups of those
  // that share experts; one at least. Of a load without a known rate, one.
  std::vector<double> least;
  // By target: its strain if every request were alone, less a twentieth. 0 where the rules are not
  // vLLM's, or a step may end before its time.
  std::vector<double> strains;
  // By pool: replicas that should be enough by the closed form.
  std::vector<std::int64_t> start;
  // J that `least` GPUs take while idle, per output token; 0 of a load without a known rate. None:
  // the power of a GPU is not known.
  std::optional<double> j_per_output_token;
};

// Requires: a deployment and a table of that scenario, a request at least.
BeforeRuns KnownBeforeRuns(const Scenario& scenario, const Deployment& deployment,
                           const RequestTable& requests);

}  // namespace servecast
