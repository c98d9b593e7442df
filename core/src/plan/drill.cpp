#include "plan/drill.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "cost/all_reduce.h"
#include "experiment/advise.h"
#include "plan/line.h"

namespace servecast {
namespace {

Scenario WithSlowReplica(const Scenario& scenario, double share) {
  Scenario s = scenario;
  PoolSpec slow = s.cluster.pool();
  --s.cluster.pool().replicas;
  slow.replicas = 1;
  slow.name = "slow";
  HardwareSpec hardware = slow.hardware.value_or(s.hardware);
  const Interconnect kind = InterconnectOf(hardware);
  for (double* figure :
       {&hardware.memory_bandwidth_gb_s, &hardware.peak_fp32_tflops, &hardware.peak_bf16_tflops,
        &hardware.peak_fp8_tflops, &hardware.peak_fp4_tflops, &hardware.peak_int8_tops,
        &hardware.interconnect_gb_s}) {
    *figure *= share;
  }
  if (InterconnectOf(hardware) != kind) hardware.interconnect = kind;
  slow.hardware = hardware;
  s.cluster.pools.push_back(std::move(slow));
  return s;
}

// With as many requests as a steady load before and behind it has: among more it would not show.
Scenario WithSpike(const Scenario& scenario, const DrillOptions& options) {
  Scenario s = scenario;
  ArrivalSpec& arrivals = s.workload.arrivals;
  const double steady_s = 2 * options.spike_s;
  arrivals.spikes.push_back({steady_s, options.spike_s, options.spike});
  std::int64_t turns = s.workload.sessions.turns;
  for (const ClassSpec& c : s.workload.classes) turns = std::max(turns, c.turns.value_or(1));
  const double requests = TotalRate(s.workload) * static_cast<double>(turns) *
                          (2 * steady_s + options.spike * options.spike_s);
  s.workload.requests =
      std::clamp(static_cast<std::int64_t>(requests), std::int64_t{1}, kMaxRequests);
  return s;
}

}  // namespace

Issues IssuesOf(const DrillOptions& options) {
  Issues issues;
  if (!(options.spike >= 1 && options.spike <= 100)) {
    issues.push_back({"", Format("spike: found {}, allowed 1 to 100 times the load",
                                 NumberText(options.spike))});
  }
  if (!(options.spike_s >= 1 && options.spike_s <= 3600)) {
    issues.push_back(
        {"", Format("spike: found {} s, allowed 1 to 3600 s", NumberText(options.spike_s))});
  }
  return issues;
}

std::vector<Drill> DrillsOf(const Scenario& scenario, const DrillOptions& options) {
  std::vector<Drill> drills = {{"as it is", scenario}};
  const std::vector<PoolSpec>& pools = scenario.cluster.pools;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    const std::int64_t group = pools[i].attention_data_parallel;
    if (pools[i].replicas <= group) continue;
    Scenario fewer = scenario;
    fewer.cluster.pools[i].replicas -= group;
    drills.push_back(
        {(group == 1 ? "one replica fewer" : Format("{} replicas fewer", group)) + OfPool(pools, i),
         std::move(fewer)});
  }
  // Coefficients of step times are those of a GPU, whose figures they do not ask for.
  const std::string& backend = scenario.latency.backend;
  const bool by_figures = backend != "blackbox" && backend != "trained_physics";
  if (by_figures && pools.size() == 1 && scenario.cluster.pool().replicas > 1 &&
      scenario.cluster.pool().attention_data_parallel == 1) {
    drills.push_back(
        {Format("one replica at {} % of its speed", ShortNumber(100 * options.slow_share)),
         WithSlowReplica(scenario, options.slow_share)});
  }
  if (HasRate(scenario.workload.arrivals.process)) {
    drills.push_back({Format("{} times the load for {} s", ShortNumber(options.spike),
                             ShortNumber(options.spike_s)),
                      WithSpike(scenario, options)});
  }
  return drills;
}

}  // namespace servecast
