// See line.h.
#include "plan/line.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "io/pool_checks.h"
#include "servecast/workload_spec.h"

namespace servecast {
namespace {

// A plan goes so far from the scenario's own load, and no further.
constexpr double kFarthest = 1 << 20;

}  // namespace

double TotalRate(const WorkloadSpec& w) {
  double rate = 0;
  bool shared = w.classes.empty();
  for (const ClassSpec& c : w.classes) {
    rate += c.rate_per_s.value_or(0);
    shared = shared || !c.rate_per_s;
  }
  return rate + (shared ? w.arrivals.rate_per_s : 0);
}

std::int64_t RequestsIn(const WorkloadSpec& workload, double seconds) {
  std::int64_t turns = workload.sessions.turns;
  for (const ClassSpec& c : workload.classes) turns = std::max(turns, c.turns.value_or(1));
  const double requests = TotalRate(workload) * static_cast<double>(turns) * seconds;
  return std::clamp(static_cast<std::int64_t>(requests), std::int64_t{1}, kMaxRequests);
}

void CheckIsNotScaled(const Scenario& scenario, Issues& issues) {
  const std::vector<PoolSpec>& pools = scenario.cluster.pools;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    if (!scenario.cluster.ScalingOf(pools[i]).On()) continue;
    AddOnce({PathIn(pools[i], i, "/cluster/scaling/policy"),
             Format("found \"{}\", allowed \"none\" in a plan: a plan goes by a fixed number "
                    "of replicas",
                    scenario.cluster.ScalingOf(pools[i]).policy)},
            issues);
  }
}

void CheckCanPlan(const Scenario& scenario, Issues& issues) {
  CheckIsNotScaled(scenario, issues);
  if (scenario.cluster.rolling_update.On()) {
    issues.push_back({"/cluster/rolling_update",
                      "found one, allowed none in a plan: whether a run comes to it depends on how "
                      "long it is; plan drill runs one by the defaults"});
  }
  for (std::size_t i = 0; i < scenario.slo.size(); ++i) {
    const SloSpec& slo = scenario.slo[i];
    if (slo.metric == SloMetric::kAttainment || slo.percentile < 100) continue;
    issues.push_back({Format("/slo/{}/percentile", i),
                      "found 100, allowed below in a plan: the longest of more requests is longer, "
                      "and a plan's runs are of different lengths"});
  }
  CheckIsNotCapped(scenario, issues);
}

void CheckIsNotCapped(const Scenario& scenario, Issues& issues) {
  const ArrivalSpec& arrivals = scenario.workload->arrivals;
  if (!CapsClients(arrivals)) return;
  issues.push_back({"/workload/arrivals/max_concurrency",
                    Format("found {}, allowed none in a plan: requests beyond it wait at their "
                           "clients, and no target counts that",
                           *arrivals.max_concurrency)});
}

void CheckNamesNoReplica(const Scenario& scenario, Issues& issues) {
  constexpr const char* kNamed =
      "found rows that name replicas, allowed none where their number is asked for: ";
  const ClusterSpec& cluster = scenario.cluster;
  if (!cluster.failures.schedule.empty()) {
    issues.push_back(
        {"/cluster/failures/schedule", std::string(kNamed) + "mtbf_s fails them by chance"});
  }
  if (!cluster.slowdowns.schedule.empty()) {
    issues.push_back({"/cluster/slowdowns/schedule",
                      std::string(kNamed) + "mean_gap_s makes them slow by chance"});
  }
}

std::optional<Line> LineOf(const Scenario& scenario, const PlanOptions& options) {
  const auto from = [](double own, std::string_view unit) {
    return Line{own, own / kFarthest, own * kFarthest, 0, false, unit};
  };
  if (options.line == PlanLine::kReplicas) {
    const PoolSpec& pool = scenario.cluster.pools[options.pool];
    const auto step = static_cast<double>(pool.attention_data_parallel);
    const auto own = static_cast<double>(pool.replicas);
    if (options.fixed) return Line{own, own, own, step, true, "replicas"};
    const std::int64_t beside = scenario.cluster.Replicas() - pool.replicas;
    const std::int64_t asked = options.most_replicas > 0 ? options.most_replicas : kMostReplicas;
    const auto most = static_cast<double>(std::min(asked, kMostReplicas - beside));
    return Line{own, step, std::max(own, most), step, true, "replicas"};
  }
  const ArrivalSpec& a = scenario.workload->arrivals;
  if (a.process == ArrivalProcess::kTrace) return from(a.rate_scale, "times the trace's rate");
  if (a.process == ArrivalProcess::kClosedLoop) {
    const auto own = static_cast<double>(a.concurrency);
    return Line{own, 1, static_cast<double>(kMaxRequests), 1, false, "clients"};
  }
  if (!HasRate(a.process)) return std::nullopt;
  return from(TotalRate(*scenario.workload),
              scenario.workload->HasTurns() ? "conversations/s" : "requests/s");
}

Scenario ScenarioAt(const Scenario& scenario, const PlanOptions& options, double at) {
  Scenario s = scenario;
  if (options.line == PlanLine::kReplicas) {
    s.cluster.pools[options.pool].replicas = Whole(at);
    return s;
  }
  ArrivalSpec& a = s.workload->arrivals;
  if (a.process == ArrivalProcess::kTrace) {
    a.rate_scale = at;
  } else if (a.process == ArrivalProcess::kClosedLoop) {
    a.concurrency = Whole(at);
  } else {
    const double times = at / TotalRate(*scenario.workload);
    a.rate_per_s *= times;
    for (ClassSpec& c : s.workload->classes) {
      if (c.rate_per_s) *c.rate_per_s *= times;
    }
  }
  return s;
}

}  // namespace servecast
