// What a plan of autoscaling tries: numbers of replicas that are fixed, replicas by a schedule that
// knows the load, and scalers from bold to safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "servecast/scenario.h"

namespace servecast {

enum class AutoscaleKind { kFixed, kSchedule, kScaler };

struct AutoscalePolicy {
  AutoscaleKind kind = AutoscaleKind::kScaler;
  std::string name;           // of its own: "HPA outstanding 40, down 300 s"
  std::int64_t replicas = 1;  // that are there at 0; kFixed: throughout
  ScalingSpec scaling;
};

// From the one that keeps the fewest replicas to the one that keeps most.
using AutoscaleFamily = std::vector<AutoscalePolicy>;

// The scenario under it.
Scenario ScenarioUnder(const Scenario& scenario, const AutoscalePolicy& policy);

AutoscalePolicy FixedReplicas(std::int64_t replicas);

// What a run with the fewest fixed replicas that keep the targets says of the load.
struct AutoscaleLoad {
  std::int64_t fixed = 1;  // these replicas
  double bin_s = 0;
  std::vector<double> per_s;  // requests by bin of arrival
  double mean_e2e_s = 0, mean_kv_usage = 0;
  double mean_in_system = 0;  // requests, on all of them

  double Peak() const;
  double Least() const;
  double Mean() const;
  // It comes so near to none that a replica idles.
  bool NearZero() const;
  // Of a load per second, at the peak's load for each replica.
  std::int64_t ReplicasFor(double load) const;
};

// Replicas for the load of each bin, there when it begins, as they start `cold_start_s` before it:
// with less headroom first.
AutoscaleFamily Schedules(const ScalingSpec& like, const AutoscaleLoad& load, double cold_start_s);

// HPA on requests that wait or run, with several windows and floors, and on the use of KV blocks:
// targets are shares of what a replica has at the peak. HPA on those that wait, by a few targets;
// WVA by a few thresholds; KEDA from zero, where the load comes near it. `own`: the scenario's
// scaler, first; its limits, cold start and scrapes are those of all.
std::vector<AutoscaleFamily> Scalers(const ScalingSpec& own, std::int64_t own_replicas,
                                     const AutoscaleLoad& load);

}  // namespace servecast
