#include "io/scaling_checks.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/text.h"
#include "io/feature_checks.h"
#include "io/pool_checks.h"
#include "servecast/workload_spec.h"
#include "serving/scaling/scaler.h"

namespace servecast {
namespace {

void CheckSchedule(const std::string& at, const ScalingSpec& scaling, Issues& issues) {
  const NumberTable& rows = scaling.schedule;
  const auto bad = [&](std::size_t row) {
    return rows[row][1] != std::floor(rows[row][1]) ||
           (row > 0 && rows[row][0] <= rows[row - 1][0]) || (row == 0 && rows[row][0] <= 0);
  };
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const double replicas = rows[row][1];
    if (replicas == std::floor(replicas) &&
        (replicas < static_cast<double>(scaling.min_replicas) ||
         replicas > static_cast<double>(scaling.max_replicas))) {
      AddOnce({Format("{}/schedule/{}", at, row),
               Format("found {} replicas, allowed {} to {}: min_replicas to max_replicas",
                      NumberText(replicas), scaling.min_replicas, scaling.max_replicas)},
              issues);
    }
  }
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (!bad(row)) continue;
    return AddOnce({Format("{}/schedule/{}", at, row),
                    "found %, allowed a later time than the row before (the first above 0), and "
                    "a whole number of replicas"},
                   issues);
  }
  if (rows.empty()) {
    AddOnce({at + "/schedule", "found none, allowed one row at least: [from_s, replicas]"}, issues);
  }
}

// How Dynamo's planner gets its decisions.
void CheckTarget(const ScalingSpec& scaling, const std::string& at, Issues& issues) {
  const bool sla = scaling.optimization_target == DynamoTarget::kSla;
  const std::string_view target =
      kDynamoTargetNames[static_cast<std::size_t>(scaling.optimization_target)];
  if (!sla && scaling.enable_throughput_scaling) {
    AddOnce({at + "/enable_throughput_scaling",
             Format("found true, allowed false with optimization_target \"{}\": only \"sla\" has "
                    "estimates to go by",
                    target)},
            issues);
  } else if (!scaling.enable_load_scaling && !scaling.enable_throughput_scaling) {
    AddOnce({at + "/enable_load_scaling",
             sla ? "found false, allowed true without enable_throughput_scaling: nothing would "
                   "scale"
                 : Format("found false, allowed true with optimization_target \"{}\": it goes by "
                          "load alone",
                          target)},
            issues);
  }
}

// Of target "load", which has no thresholds of its own.
void CheckThresholds(PoolRole role, const ScalingSpec& scaling, const std::string& at,
                     Issues& issues) {
  if (scaling.optimization_target != DynamoTarget::kLoad) return;
  const bool prefill = role == PoolRole::kPrefill;
  const std::string up = prefill ? "prefill_scale_up_queue_tokens" : "decode_scale_up_kv_rate";
  const std::string down =
      prefill ? "prefill_scale_down_queue_tokens" : "decode_scale_down_kv_rate";
  const double above = ParamOf(scaling, up), below = ParamOf(scaling, down);
  if (above > below) return;
  AddOnce({Format("{}/{}", at, up),
           Format("found {}, allowed above {} {}", NumberText(above), down, NumberText(below))},
          issues);
}

void CheckBudgets(const std::vector<const PoolSpec*>& pools, const ScalingSpec& scaling,
                  const std::string& at, Issues& issues) {
  const auto value = [&](const char* name) {
    return static_cast<std::int64_t>(ParamOf(scaling, name));
  };
  const std::int64_t most = value("max_gpu_budget"), each = value("min_endpoint");
  if (most < 0) return;
  std::int64_t least = 0, first = 0;
  for (const PoolSpec* pool : pools) {
    least += pool->GpusOfReplica() * each;
    first += pool->Gpus();
  }
  if (most < least) {
    AddOnce({at + "/max_gpu_budget",
             Format("found {}, allowed -1, or from {} up: the GPUs of min_endpoint {}", most, least,
                    each)},
            issues);
  }
  if (most >= least && most < first) {
    AddOnce({at + "/max_gpu_budget",
             Format("found {}, allowed -1, or from {} up: the GPUs of the replicas to begin with",
                    most, first)},
            issues);
  }
  if (value("min_gpu_budget") > most) {
    AddOnce({at + "/min_gpu_budget",
             Format("found {}, allowed up to max_gpu_budget {}", value("min_gpu_budget"), most)},
            issues);
  }
}

// It knows one pool of a role, and one scaler for both roles if they share it.
void CheckPlanner(const ClusterSpec& cluster, std::size_t number, const std::string& at,
                  Issues& issues) {
  const std::vector<PoolSpec>& pools = cluster.pools;
  const ScalingSpec& scaling = cluster.ScalingOf(pools[number]);
  const bool apart =
      pools.size() == 2 && cluster.Has(PoolRole::kPrefill) && cluster.Has(PoolRole::kDecode);
  if (pools.size() > 1 && !apart) {
    AddOnce({at + "/policy",
             Format("found \"{}\", allowed with one pool, or with one of role \"prefill\" and one "
                    "of role \"decode\": the planner knows no other",
                    scaling.policy)},
            issues);
  }
  CheckTarget(scaling, at, issues);
  CheckThresholds(pools[number].role, scaling, at, issues);
  std::vector<const PoolSpec*> planned;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    const bool shares = !pools[i].scaling && !pools[number].scaling;
    if (i == number || shares) planned.push_back(&pools[i]);
  }
  CheckBudgets(planned, scaling, at, issues);
}

void CheckScaling(const ClusterSpec& cluster, std::size_t number, Issues& issues) {
  const PoolSpec& pool = cluster.pools[number];
  const ScalingSpec& scaling = cluster.ScalingOf(pool);
  const std::string at =
      pool.scaling ? Format("/cluster/pools/{}/scaling", number) : "/cluster/scaling";
  const auto add = [&](const char* field, std::string message) {
    AddOnce({Format("{}/{}", at, field), std::move(message)}, issues);
  };
  const std::int64_t least = scaling.min_replicas, most = scaling.max_replicas;
  if (least > most) add("min_replicas", Format("found %, allowed up to max_replicas {}", most));
  const std::int64_t first = pool.replicas;
  if (least <= most && (first < least || first > most)) {
    issues.push_back({Format("/cluster/pools/{}/replicas", number),
                      Format("found {}, allowed {} to {}, the limits of {}", first, least, most,
                             pool.scaling ? "its scaling" : "cluster.scaling")});
  }
  const bool held =
      scaling.metric == ScalingMetric::kWaiting || scaling.metric == ScalingMetric::kOutstanding;
  if (least == 0 && !FindScaler(scaling.policy).from_zero) {
    add("min_replicas", Format("found %, allowed from 1 up: \"{}\" starts no replica where none is",
                               scaling.policy));
  } else if (least == 0 && scaling.policy == "keda" && !held) {
    add("metric",
        "found %, allowed waiting and outstanding with min_replicas 0: without a replica no other "
        "metric says that requests are held");
  }
  if (scaling.warm_replicas > 0 && !scaling.wake_s) {
    add("wake_s", Format("found none, allowed a number of seconds with warm_replicas {}: how fast "
                         "an engine wakes depends on where its weights are",
                         scaling.warm_replicas));
  }
  if (scaling.policy == "schedule") CheckSchedule(at, scaling, issues);
  if (FindScaler(scaling.policy).plans) CheckPlanner(cluster, number, at, issues);
}

void CheckDecodeRouter(const ClusterSpec& cluster, const char* with, Issues& issues) {
  if (!cluster.Has(PoolRole::kDecode) || !WeighsLoad(cluster.decode_router)) return;
  AddOnce({"/cluster/decode_router/policy",
           Format("found \"{}\", allowed round_robin, random and least_outstanding beside {}: that "
                  "router knows a fixed number of replicas",
                  cluster.decode_router, with)},
          issues);
}

}  // namespace

double ParamOf(const ScalingSpec& scaling, std::string_view name) {
  const auto found = scaling.params.find(name);
  return found == scaling.params.end() ? 0 : found->second;
}

void CheckScaling(const ClusterSpec& cluster, Issues& issues) {
  for (std::size_t i = 0; i < cluster.pools.size(); ++i) {
    if (cluster.ScalingOf(cluster.pools[i]).On()) CheckScaling(cluster, i, issues);
  }
  CheckDecodeRouter(cluster, "a scaler", issues);
}

namespace {

// A run with more failures than that is none of serving, and would take minutes.
constexpr double kMostFailures = 1e6;

// How long clients think between requests, at most by any class.
double ThinkS(const WorkloadSpec& workload) {
  double think_s = std::max(workload.arrivals.think_time_s, workload.sessions.think_time_s);
  for (const ClassSpec& each : workload.classes) {
    think_s = std::max(think_s, each.think_time_s.value_or(0));
  }
  return think_s;
}

// Of a run, without the time that servers take: to the horizon, else of its arrivals. Of a trace
// once it is known, `trace_s`.
double SpanS(const Scenario& scenario, double trace_s) {
  if (scenario.measure.horizon_s) return *scenario.measure.horizon_s;
  const WorkloadSpec& workload = *scenario.workload;
  const ArrivalSpec& arrivals = workload.arrivals;
  const auto requests = static_cast<double>(workload.requests);
  const double think_s = ThinkS(workload);
  if (arrivals.process == ArrivalProcess::kClosedLoop) {
    return requests / static_cast<double>(arrivals.concurrency) * think_s;
  }
  const double turns_s = static_cast<double>(workload.sessions.turns - 1) * think_s;
  return turns_s + (HasRate(arrivals.process) ? requests / arrivals.rate_per_s : trace_s);
}

// One a replica in each `every_s`, where a run's time has room for too many of them.
void CheckCount(const Scenario& scenario, double span_s, double every_s, const char* path,
                const char* what, Issues& issues) {
  const ClusterSpec& cluster = scenario.cluster;
  const double count = static_cast<double>(cluster.MostReplicas()) * span_s / every_s;
  if (count <= kMostFailures) return;
  issues.push_back(
      {path, Format("found %, allowed where replicas {} up to 1,000,000 times in a run, "
                    "here some {}",
                    what, ShortNumber(count))});
}

// Periods by chance.
void CheckSlowCount(const Scenario& scenario, double span_s, Issues& issues) {
  const SlowdownSpec& slow = scenario.cluster.slowdowns;
  if (!slow.mean_gap_s || !slow.for_s) return;
  CheckCount(scenario, span_s, *slow.mean_gap_s + *slow.for_s, "/cluster/slowdowns/mean_gap_s",
             "are slow", issues);
}

void CheckFailureCount(const Scenario& scenario, double span_s, Issues& issues) {
  const FailureSpec& failures = scenario.cluster.failures;
  if (!failures.mtbf_s) return;
  CheckCount(scenario, span_s, *failures.mtbf_s + failures.restart_s, "/cluster/failures/mtbf_s",
             "fail", issues);
}

// Rows [at_s, replica].
void CheckReplicas(const NumberTable& rows, std::int64_t replicas, const char* path,
                   Issues& issues) {
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const double replica = rows[row][1];
    if (replica == std::floor(replica) && replica < static_cast<double>(replicas)) continue;
    issues.push_back(
        {Format("{}/{}", path, row), Format("found replica {}, allowed whole numbers from 0 to {}",
                                            NumberText(replica), replicas - 1)});
  }
}

}  // namespace

void CheckSlowdowns(const Scenario& scenario, Issues& issues) {
  const ClusterSpec& cluster = scenario.cluster;
  const SlowdownSpec& slow = cluster.slowdowns;
  CheckSlowCount(scenario, SpanS(scenario, 0), issues);
  CheckReplicas(slow.schedule, cluster.Replicas(), "/cluster/slowdowns/schedule", issues);
}

Issues CheckChanceOver(const Scenario& scenario, const Trace& trace) {
  Issues issues;
  const ArrivalSpec& arrivals = scenario.workload->arrivals;
  if (arrivals.process != ArrivalProcess::kTrace || trace.rows.empty()) return issues;
  std::int64_t last = 0;
  for (const TraceRow& row : trace.rows) last = std::max(last, row.arrival_ns);
  const double requests = static_cast<double>(scenario.workload->requests);
  const double times = arrivals.repeat > 0
                           ? static_cast<double>(arrivals.repeat)
                           : std::ceil(requests / static_cast<double>(trace.rows.size()));
  const double span_s =
      SpanS(scenario, static_cast<double>(last) / 1e9 / arrivals.rate_scale * times);
  CheckSlowCount(scenario, span_s, issues);
  CheckFailureCount(scenario, span_s, issues);
  return issues;
}

void CheckFailures(const Scenario& scenario, Issues& issues) {
  const ClusterSpec& cluster = scenario.cluster;
  CheckDecodeRouter(cluster, "cluster.failures", issues);
  CheckFailureCount(scenario, SpanS(scenario, 0), issues);
  if (cluster.failures.mtbf_s && cluster.failures.domain_replicas > 1 &&
      (cluster.Scales() || cluster.rolling_update.On())) {
    issues.push_back({"/cluster/failures/domain_replicas",
                      "found %, allowed 1 with mtbf_s and replicas that come and go: which of them "
                      "share a node is not known"});
  }
  CheckReplicas(cluster.failures.schedule, cluster.Replicas(), "/cluster/failures/schedule",
                issues);
  const ArrivalSpec& arrivals = scenario.workload->arrivals;
  const bool loop = arrivals.process == ArrivalProcess::kClosedLoop;
  if (scenario.cluster.failures.detect_s > 0 && (loop || CapsClients(arrivals))) {
    issues.push_back({"/cluster/failures/detect_s",
                      Format("found %, allowed 0 {}: a client whose request is refused would "
                             "ask again at once",
                             loop ? "in a closed loop" : "with max_concurrency")});
  }
}

void CheckRollingUpdate(const ClusterSpec& cluster, Issues& issues) {
  const RollingUpdateSpec& update = cluster.rolling_update;
  if (cluster.pools.size() > 1) {
    issues.push_back(
        {"/cluster/rolling_update",
         Format("found %, allowed none with {} pools: an update has one", cluster.pools.size())});
  }
  const std::int64_t replicas = cluster.pool().replicas;
  const std::int64_t down = update.Unavailable(replicas);
  if (down > replicas) {
    issues.push_back({"/cluster/rolling_update/max_unavailable",
                      Format("found %, allowed up to the replicas, {}", replicas)});
  } else if (down == 0 && update.Surge(replicas) == 0) {
    issues.push_back({"/cluster/rolling_update/max_unavailable",
                      "found %, allowed from 1 up with max_surge 0: no replica could be replaced"});
  }
}

}  // namespace servecast
