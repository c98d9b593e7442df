// A cluster of replicas, run on a random case behind any router, and what the run left behind.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "serving/hooks.h"
#include "testing/random_cases.h"
#include "testing/router_choice.h"
#include "workload/request_table.h"

namespace servecast::testing {

struct ClusterRun {
  RequestTable requests;  // with the arrivals of later turns
  RequestResults results;
  std::vector<std::vector<StepRecord>> steps;  // by replica, as they began
  std::vector<ReplicaReport> reports;          // by replica
  std::int64_t step_count = 0, completed = 0, timed_out = 0, queued = 0;
  __int128 waiting_ns = 0;  // requests in queues, that of the gateway too
  TimeNs now = 0;
  ScalingReport scaling;
  std::int64_t lost = 0;
};

// With a scaling, `replicas` are there first; the steps are of all that ever were.
struct ClusterScaling {
  ScalingSpec spec;
  TimeNs cold_start = 0;
  std::int64_t fixed = 0;  // of the first ones, that are a pool of their own without a scaler
};
ClusterRun RunCluster(const RandomCase& random_case, std::int64_t replicas,
                      const RouterChoice& router, std::int64_t slice = INT64_MAX,
                      const ClusterScaling* scaling = nullptr,
                      const FailureSpec* failures = nullptr,
                      const RollingUpdateSpec* rolling_update = nullptr);

// Turns of conversations, or sessions of a closed loop, that wait for answers.
bool AnswersBringRequests(const RandomCase& random_case);

}  // namespace servecast::testing
