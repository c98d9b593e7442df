// What no system can beat: the replicas that a load keeps busy if every operation and every byte
// went at the peaks of the data sheet, and none waited for another.
#pragma once

#include <vector>

#include "servecast/result.h"
#include "servecast/scenario.h"
#include "servecast/trace.h"
#include "serving/cluster/deployment.h"
#include "workload/request_table.h"

namespace servecast {

struct LeastReplicas {
  double compute = 0, bandwidth = 0;  // by the one alone; fewer than the larger cannot serve it
};

// Of each pool, as if it alone did all of its role, for so many requests per second of the
// scenario's kind, of whose prompt tokens this share is cached. Weights are not counted: a larger
// batch reads them once for more. Issues: those of Simulation::Create.
Result<std::vector<LeastReplicas>> LeastReplicasFor(const Scenario& scenario, const Trace& trace,
                                                    double requests_per_s, double cached_share);

// The same of what is resolved and drawn already. Requires: a request.
std::vector<LeastReplicas> LeastReplicasOf(const Deployment& deployment,
                                           const RequestTable& requests, double requests_per_s,
                                           double cached_share);

}  // namespace servecast
