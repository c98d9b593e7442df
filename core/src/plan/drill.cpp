#include "plan/drill.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/base.h"
#include "base/text.h"
#include "cost/all_reduce.h"
#include "experiment/advise.h"
#include "io/pool_checks.h"
#include "plan/line.h"
#include "servecast/workload_spec.h"

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
  const double steady_s = 2 * options.spike_s, warmup_s = s.measure.warmup_s;
  s.workload->requests =
      RequestsIn(*s.workload, warmup_s + 2 * steady_s + options.spike * options.spike_s);
  s.workload->arrivals.spikes.push_back({warmup_s + steady_s, options.spike_s, options.spike});
  s.measure.horizon_s.reset();  // it would end before, or hide what follows
  return s;
}

// So many replicas from that number on fail at once, with as long a time before and behind;
// nullopt: what the scenario has cannot be combined with failures. Several only from the first on.
std::optional<Scenario> WithFailure(const Scenario& scenario, std::int64_t first,
                                    std::int64_t replicas) {
  constexpr double kLeastSteady = 60;
  Scenario s = scenario;
  FailureSpec& failures = s.cluster.failures;
  if (failures.On() || failures.restart_s == 0) return std::nullopt;
  const double steady_s = std::max(failures.restart_s, kLeastSteady);
  failures.schedule = {{s.measure.warmup_s + steady_s, static_cast<double>(first)}};
  failures.domain_replicas = replicas;
  s.workload->requests =
      RequestsIn(*s.workload, s.measure.warmup_s + 2 * steady_s + failures.restart_s);
  s.measure.horizon_s.reset();
  return IssuesTogether(s).empty() ? std::optional(std::move(s)) : std::nullopt;
}

// One replica is slow for as long as one that fails is down; nullopt: likewise.
std::optional<Scenario> WithSlowdown(const Scenario& scenario) {
  constexpr double kTwice = 2, kLeastS = 60;
  Scenario s = scenario;
  SlowdownSpec& slow = s.cluster.slowdowns;
  if (slow.On()) return std::nullopt;
  slow.for_s = std::max(s.cluster.failures.restart_s, kLeastS);
  slow.factor = kTwice;
  slow.schedule = {{s.measure.warmup_s + *slow.for_s, 0}};
  s.workload->requests = RequestsIn(*s.workload, s.measure.warmup_s + 3 * *slow.for_s);
  s.measure.horizon_s.reset();
  return IssuesTogether(s).empty() ? std::optional(std::move(s)) : std::nullopt;
}

// With as long a time before and behind as its new replicas take; nullopt: what the scenario has
// cannot be combined with an update.
std::optional<Scenario> WithRollingUpdate(const Scenario& scenario) {
  Scenario s = scenario;
  RollingUpdateSpec& update = s.cluster.rolling_update;
  if (update.On()) return std::nullopt;
  const std::int64_t replicas = s.cluster.pool().replicas;
  const std::int64_t at_once = update.Surge(replicas) + update.Unavailable(replicas);
  const double rounds = static_cast<double>(CeilDiv(replicas, at_once));
  update.at_s = s.measure.warmup_s + update.start_s;
  s.workload->requests =
      RequestsIn(*s.workload, s.measure.warmup_s + (2 + rounds) * update.start_s);
  s.measure.horizon_s.reset();
  return IssuesTogether(s).empty() ? std::optional(std::move(s)) : std::nullopt;
}

// Of one that lies on several nodes, or has a node of its own: 1.
std::int64_t ReplicasOfANode(const Scenario& scenario) {
  const PoolSpec& pool = scenario.cluster.pool();
  const HardwareSpec& hardware = pool.hardware ? *pool.hardware : scenario.hardware;
  const std::int64_t gpus = pool.tensor_parallel * pool.pipeline_parallel;
  return std::max<std::int64_t>(1, hardware.gpus_per_node / gpus);
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
  const bool has_rate = HasRate(scenario.workload->arrivals.process);
  std::int64_t first = 0;  // of the pool
  for (std::size_t i = 0; i < pools.size() && has_rate; first += pools[i++].replicas) {
    std::vector<std::int64_t> together = {1};
    const std::int64_t node = pools.size() == 1 ? ReplicasOfANode(scenario) : 1;
    if (node > 1) together.push_back(node);
    for (const std::int64_t replicas : together) {
      if (pools[i].replicas <= replicas) continue;
      std::optional<Scenario> failed = WithFailure(scenario, first, replicas);
      if (!failed) continue;
      const std::string who = replicas == 1 ? "one replica" + OfPool(pools, i)
                                            : Format("a node of {} replicas", replicas);
      const double restart_s = failed->cluster.failures.restart_s;
      drills.push_back(
          {Format("{} fails for {} s", who, ShortNumber(restart_s)), std::move(*failed)});
    }
  }
  if (has_rate && pools.size() == 1 && pools[0].replicas > 1) {
    if (std::optional<Scenario> slowed = WithSlowdown(scenario)) {
      const double for_s = *slowed->cluster.slowdowns.for_s;
      drills.push_back(
          {Format("one replica twice as slow for {} s", ShortNumber(for_s)), std::move(*slowed)});
    }
  }
  if (has_rate && pools.size() == 1) {
    if (std::optional<Scenario> updated = WithRollingUpdate(scenario)) {
      const RollingUpdateSpec& update = updated->cluster.rolling_update;
      const std::int64_t replicas = pools[0].replicas;
      drills.push_back({Format("a rolling update, {} more and {} down at a time",
                               update.Surge(replicas), update.Unavailable(replicas)),
                        std::move(*updated)});
    }
  }
  if (has_rate) {
    drills.push_back({Format("{} times the load for {} s", ShortNumber(options.spike),
                             ShortNumber(options.spike_s)),
                      WithSpike(scenario, options)});
  }
  return drills;
}

}  // namespace servecast
