// The line that a plan walks: a scenario of which one quantity grows.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "servecast/plan.h"
#include "servecast/result.h"
#include "servecast/scenario.h"

namespace servecast {

struct Line {
  double own = 1;  // where the scenario itself stands
  double least = 0, most = 0;
  double step = 0;        // multiples of it only; 0: any number
  bool relieves = false;  // more of it is better for the targets
  std::string_view unit;
};

// Of a process with a rate: conversations, or requests, per second of all classes together.
double TotalRate(const WorkloadSpec& workload);
// As many requests, all turns among them, as come in so many seconds at that rate; up to
// kMaxRequests.
std::int64_t RequestsIn(const WorkloadSpec& workload, double seconds);

// nullopt: the scenario has no such quantity (requests that all come at once have no rate).
std::optional<Line> LineOf(const Scenario& scenario, const PlanOptions& options);

// A plan goes by a fixed number of replicas, and by what all that is sent waits for: the issues of
// a scenario with a scaler, or with clients that hold back.
void CheckCanPlan(const Scenario& scenario, Issues& issues);
void CheckIsNotScaled(const Scenario& scenario, Issues& issues);  // of these
void CheckIsNotCapped(const Scenario& scenario, Issues& issues);

// A plan that asks for the number of replicas: the issues of rows that name one.
void CheckNamesNoReplica(const Scenario& scenario, Issues& issues);

// The scenario with so much of it. Requires: LineOf, and `at` within its ends.
Scenario ScenarioAt(const Scenario& scenario, const PlanOptions& options, double at);

// A count that is walked as a number.
inline std::int64_t Whole(double at) { return static_cast<std::int64_t>(std::nearbyint(at)); }

}  // namespace servecast
