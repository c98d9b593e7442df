#include "plan/drill.h"

#include <algorithm>
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

// So many replicas from that number on fail at once, with as long a time before and behind.
// Several only from the first on.
Scenario WithFailure(const Scenario& scenario, std::int64_t first, std::int64_t replicas) {
  constexpr double kLeastSteady = 60;
  Scenario s = scenario;
  FailureSpec& failures = s.cluster.failures;
  const double steady_s = std::max(failures.restart_s, kLeastSteady);
  failures.schedule = {{s.measure.warmup_s + steady_s, static_cast<double>(first)}};
  failures.domain_replicas = replicas;
  s.workload->requests =
      RequestsIn(*s.workload, s.measure.warmup_s + 2 * steady_s + failures.restart_s);
  s.measure.horizon_s.reset();
  return s;
}

// The replica of that number is slow for as long as one that fails is down.
Scenario WithSlowdown(const Scenario& scenario, std::int64_t replica) {
  constexpr double kTwice = 2, kLeastS = 60;
  Scenario s = scenario;
  SlowdownSpec& slow = s.cluster.slowdowns;
  slow.for_s = std::max(s.cluster.failures.restart_s, kLeastS);
  slow.factor = kTwice;
  slow.schedule = {{s.measure.warmup_s + *slow.for_s, static_cast<double>(replica)}};
  s.workload->requests = RequestsIn(*s.workload, s.measure.warmup_s + 3 * *slow.for_s);
  s.measure.horizon_s.reset();
  return s;
}

// With as long a time before and behind as its new replicas take.
Scenario WithRollingUpdate(const Scenario& scenario) {
  Scenario s = scenario;
  RollingUpdateSpec& update = s.cluster.rolling_update;
  const std::int64_t replicas = s.cluster.pool().replicas;
  const std::int64_t at_once = update.Surge(replicas) + update.Unavailable(replicas);
  const double rounds = static_cast<double>(CeilDiv(replicas, at_once));
  update.at_s = s.measure.warmup_s + update.start_s;
  s.workload->requests =
      RequestsIn(*s.workload, s.measure.warmup_s + (2 + rounds) * update.start_s);
  s.measure.horizon_s.reset();
  return s;
}

// Of one that lies on several nodes, or has a node of its own: 1.
std::int64_t ReplicasOfANode(const Scenario& scenario) {
  const PoolSpec& pool = scenario.cluster.pool();
  const HardwareSpec& hardware = pool.hardware ? *pool.hardware : scenario.hardware;
  const std::int64_t gpus = pool.tensor_parallel * pool.pipeline_parallel;
  return std::max<std::int64_t>(1, hardware.gpus_per_node / gpus);
}

// Why a drill cannot be tried; "": it can.
std::string WhyNoRate(const Scenario& scenario) {
  if (HasRate(scenario.workload->arrivals.process)) return "";
  return "the load has no rate, so how long a run of it lasts is not known";
}

std::string WhyNoFailure(const FailureSpec& failures) {
  if (failures.On()) return "the scenario has failures of its own";
  return failures.restart_s == 0 ? "a replica is back at once: cluster.failures.restart_s is 0"
                                 : "";
}

// Coefficients of step times are those of a GPU, whose figures they do not ask for.
std::string WhyNoSlowReplica(const Scenario& scenario) {
  const std::string& backend = scenario.latency.backend;
  if (backend == "blackbox" || backend == "trained_physics") {
    return Format("latency.backend \"{}\" takes no step time from the GPU's figures", backend);
  }
  if (scenario.cluster.pools.size() > 1) return "there are several pools";
  return scenario.cluster.pool().attention_data_parallel > 1
             ? "replicas with attention_data_parallel share their steps"
             : "";
}

}  // namespace

std::string ReasonOf(const Issues& issues) {
  if (issues.empty()) return "";
  const Issue& first = issues[0];
  return first.path.empty() ? first.message : first.path + ": " + first.message;
}

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
  std::vector<Drill> drills = {{"as it is", scenario, ""}};
  const auto add = [&drills](std::string name, Scenario changed, std::string reason) {
    if (reason.empty()) reason = ReasonOf(IssuesTogether(changed));
    drills.push_back({std::move(name), std::move(changed), std::move(reason)});
  };
  const ClusterSpec& cluster = scenario.cluster;
  const std::vector<PoolSpec>& pools = cluster.pools;
  const bool several = cluster.Replicas() > static_cast<std::int64_t>(pools.size());
  for (std::size_t i = 0; i < pools.size(); ++i) {
    const std::int64_t group = pools[i].attention_data_parallel, replicas = pools[i].replicas;
    if (replicas == 1) {
      add("one replica fewer, failing or slow" + OfPool(pools, i), scenario, "it is the only one");
      continue;
    }
    Scenario fewer = scenario;
    fewer.cluster.pools[i].replicas -= group;
    add((group == 1 ? "one replica fewer" : Format("{} replicas fewer", group)) + OfPool(pools, i),
        std::move(fewer), replicas == group ? "there are no others" : "");
  }
  if (several) {
    add(Format("one replica at {} % of its speed", ShortNumber(100 * options.slow_share)),
        WithSlowReplica(scenario, options.slow_share), WhyNoSlowReplica(scenario));
  }
  const std::string no_rate = WhyNoRate(scenario);
  const std::string no_failure = no_rate.empty() ? WhyNoFailure(cluster.failures) : no_rate;
  const std::string for_s = Format(" fails for {} s", ShortNumber(cluster.failures.restart_s));
  std::int64_t first = 0;  // of the pool
  for (std::size_t i = 0; i < pools.size(); first += pools[i++].replicas) {
    if (pools[i].replicas == 1) continue;
    add("one replica" + OfPool(pools, i) + for_s, WithFailure(scenario, first, 1), no_failure);
  }
  const std::int64_t node = ReplicasOfANode(scenario);
  if (node > 1 && several) {
    const std::string no_node = pools.size() > 1 ? "which pools share a node is not known"
                                : node >= cluster.Replicas() ? "it has all replicas"
                                                             : no_failure;
    add(Format("a node of {} replicas", node) + for_s, WithFailure(scenario, 0, node), no_node);
  }
  first = 0;
  for (std::size_t i = 0; i < pools.size(); first += pools[i++].replicas) {
    if (pools[i].replicas == 1) continue;
    Scenario slowed = WithSlowdown(scenario, first);
    const std::string name = Format("one replica{} twice as slow for {} s", OfPool(pools, i),
                                    ShortNumber(*slowed.cluster.slowdowns.for_s));
    add(name, std::move(slowed),
        cluster.slowdowns.On() ? "the scenario has slow replicas of its own" : no_rate);
  }
  const RollingUpdateSpec& update = cluster.rolling_update;
  const std::int64_t replicas = cluster.pool().replicas;
  add(Format("a rolling update, {} more and {} down at a time", update.Surge(replicas),
             update.Unavailable(replicas)),
      WithRollingUpdate(scenario),
      pools.size() > 1 ? "an update is of one pool, and there are several" : no_rate);
  add(Format("{} times the load for {} s", ShortNumber(options.spike),
             ShortNumber(options.spike_s)),
      WithSpike(scenario, options), no_rate);
  return drills;
}

}  // namespace servecast
