// Pools of replicas, their router, scaling and failures as a scenario has them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "servecast/engine_spec.h"
#include "servecast/epp.h"
#include "servecast/hardware_spec.h"
#include "servecast/number_table.h"

namespace servecast {

// What a replica serves: whole requests, their prefill, their decode, or the encoding of their
// images.
enum class PoolRole { kMixed, kPrefill, kDecode, kEncode };
inline constexpr std::array<const char*, 4> kRoleNames = {"mixed", "prefill", "decode", "encode"};
inline const char* RoleName(PoolRole role) { return kRoleNames[static_cast<std::size_t>(role)]; }

// What a scaler goes by, summed over the replicas of its pool. Waiting and outstanding have what
// the gateway before them holds.
enum class ScalingMetric { kWaiting, kRunning, kOutstanding, kKvUsage };

// What Dynamo's planner scales by: thresholds of queue and KV usage, of its own for throughput and
// for latency or the user's, or its estimates of TTFT and ITL against limits.
enum class DynamoTarget : std::uint8_t { kThroughput, kLatency, kLoad, kSla };

// Replicas that come and go (serving/cluster/membership.h). A cold start is the sum of its parts. A
// start of vLLM beside its weights: torch.compile 45.8 s, graph capture 37 s, 90.8 s in all
// (start-up log in runai-model-streamer #67); weights at 0.9 GB/s (kaito #2325: 51.75 GiB in 62 s).
struct ScalingSpec {
  std::string policy = "none";
  ParamMap params;  // of the chosen scaler
  std::int64_t min_replicas = 1, max_replicas = 8;
  ScalingMetric metric = ScalingMetric::kWaiting;
  // Of the planner of Dynamo: whether it adds and removes a replica by load, and whether it goes by
  // the requests of an interval; the latter by estimates only.
  DynamoTarget optimization_target = DynamoTarget::kSla;
  bool enable_load_scaling = true, enable_throughput_scaling = false;
  NumberTable schedule;  // [from_s, replicas]
  double scrape_period_s = 15, scrape_delay_s = 0;
  double node_s = 0, image_s = 0, engine_s = 91;
  double weights_gb_s = 0.9;
  // Replicas beside the scaler's that are started and asleep: one that is needed serves `wake_s`
  // later, and another one starts for it. A number of the user's own: what wakes an engine depends
  // on where its weights are. A warm one counts `warm_gpu_share` of its GPUs' time.
  std::int64_t warm_replicas = 0;
  std::optional<double> wake_s;  // must be stated with warm replicas
  double warm_gpu_share = 1;
  // How long a replica drains at most; none: until its last request has left.
  std::optional<double> termination_grace_period_s;

  bool On() const { return policy != "none"; }
  friend bool operator==(const ScalingSpec&, const ScalingSpec&) = default;
};

struct PoolSpec {
  std::string name;
  PoolRole role = PoolRole::kMixed;
  std::int64_t replicas = 1;
  std::int64_t tensor_parallel = 1;
  std::int64_t pipeline_parallel = 1;
  // So many replicas share one set of experts, spread over the GPUs of all of them.
  std::int64_t attention_data_parallel = 1;
  // Where they are other than the scenario's.
  std::optional<HardwareSpec> hardware;
  std::optional<EngineSpec> engine;
  std::optional<SchedulerSpec> scheduler;
  std::optional<ScalingSpec> scaling;

  std::int64_t GpusOfReplica() const { return tensor_parallel * pipeline_parallel; }
  std::int64_t Gpus() const { return replicas * GpusOfReplica(); }
};

// Prefill and decode on different replicas, between which KV blocks travel over one shared link;
// likewise an encoder apart, whose results travel over one of their own that is as fast.
// The link is as Vidur's profiles measured send and receive between two DGX H100: 34 GB/s, and up
// to 50 us beside; other GPUs' bandwidth by their own links between nodes (cost/nodes.h).
struct DisaggregationSpec {
  bool first_token_from_decode = false;
  std::int64_t above_tokens = 0;  // prompts up to this length are served whole
  double base_latency_us = 50;
  std::optional<double> bandwidth_gb_s;

  friend bool operator==(const DisaggregationSpec&, const DisaggregationSpec&) = default;
};

// From the start of a container to serving, on a node that has the image: 62 s for weights of 51.75
// GiB and 91 s for vLLM's start, as in ScalingSpec.
inline constexpr double kContainerStartS = 153;

// Replicas that fail (serving/cluster/failures.h): by schedule, after exponential lifetimes of mean
// `mtbf_s`, or both.
struct FailureSpec {
  NumberTable schedule;  // [at_s, replica]
  std::optional<double> mtbf_s;
  double restart_s = kContainerStartS;
  double detect_s = 0;  // until the router knows
  // Those of a node, a rack or a zone fail together: replicas 0 to n - 1, n to 2n - 1, ...
  std::int64_t domain_replicas = 1;

  bool On() const { return mtbf_s || !schedule.empty(); }
};

// Replicas that are slow for a while (serving/replica/slow_periods.h): by schedule, after
// exponential times of mean `mean_gap_s`, or both. The factor is a choice, not a measurement.
struct SlowdownSpec {
  NumberTable schedule;  // [at_s, replica]
  std::optional<double> mean_gap_s;
  std::optional<double> for_s;  // none: to the end of the run
  double factor = 2;            // steps that begin then last so many times as long

  bool On() const { return mean_gap_s || !schedule.empty(); }
};

// All replicas are replaced by new ones, whose caches are empty, as a Deployment of Kubernetes does
// (serving/cluster/membership.h). The default shares are Kubernetes': 25 % of the replicas, of
// `max_surge` rounded up, of `max_unavailable` down.
struct RollingUpdateSpec {
  std::optional<double> at_s;                   // none: there is no update
  std::optional<std::int64_t> max_surge;        // replicas that may be there beside those wanted
  std::optional<std::int64_t> max_unavailable;  // of those wanted, that may not be up
  double start_s = kContainerStartS;            // of a new one, until it is up
  std::optional<double> termination_grace_period_s;  // as a scaler's

  bool On() const { return at_s.has_value(); }
  std::int64_t Surge(std::int64_t replicas) const { return max_surge.value_or((replicas + 3) / 4); }
  // Where both would be 0 by the defaults, 1, as in Kubernetes.
  std::int64_t Unavailable(std::int64_t replicas) const {
    const bool none = replicas / 4 == 0 && Surge(replicas) == 0;
    return max_unavailable.value_or(none ? 1 : replicas / 4);
  }
};

inline constexpr std::int64_t kMostReplicas = 1024;  // of all pools together

struct ClusterSpec {
  std::vector<PoolSpec> pools = std::vector<PoolSpec>(1);
  std::string router = "round_robin";
  ParamMap router_params;  // of the chosen router
  EppSpec epp;             // of the router "epp"
  std::string decode_router = "least_outstanding";
  ParamMap decode_router_params;
  std::string encode_router = "least_outstanding";
  ParamMap encode_router_params;
  DisaggregationSpec disaggregation;
  ScalingSpec scaling;  // of each pool that has none of its own
  FailureSpec failures;
  SlowdownSpec slowdowns;
  RollingUpdateSpec rolling_update;

  // Requests wait at the router by rules of its own, and it may turn them away.
  bool ControlsFlow() const { return router == "epp" && epp.ControlsFlow(); }
  const ScalingSpec& ScalingOf(const PoolSpec& pool) const {
    return pool.scaling ? *pool.scaling : scaling;
  }
  bool Scales() const {
    for (const PoolSpec& pool : pools) {
      if (ScalingOf(pool).On()) return true;
    }
    return false;
  }
  // How long a replica that a scaler or an update ends drains at most; none: as long as it takes.
  std::optional<double> TerminationGraceS(const PoolSpec& pool) const {
    if (ScalingOf(pool).On()) return ScalingOf(pool).termination_grace_period_s;
    return rolling_update.On() ? rolling_update.termination_grace_period_s : std::nullopt;
  }
  // The only pool: of a scenario for one pool alone (Scenario::UsePool), or of one that has no
  // more.
  const PoolSpec& pool() const { return pools.front(); }
  PoolSpec& pool() { return pools.front(); }
  bool Has(PoolRole role) const {
    for (const PoolSpec& pool : pools) {
      if (pool.role == role) return true;
    }
    return false;
  }
  std::int64_t Replicas() const {
    std::int64_t sum = 0;
    for (const PoolSpec& pool : pools) sum += pool.replicas;
    return sum;
  }
  // With scalers as many as they may have.
  std::int64_t MostReplicas(const PoolSpec& pool) const {
    return ScalingOf(pool).On() ? ScalingOf(pool).max_replicas : pool.replicas;
  }
  std::int64_t MostReplicas() const {
    std::int64_t sum = 0;
    for (const PoolSpec& pool : pools) sum += MostReplicas(pool);
    return sum;
  }
  std::int64_t Gpus() const {
    std::int64_t sum = 0;
    for (const PoolSpec& pool : pools) sum += pool.Gpus();
    return sum;
  }
};

}  // namespace servecast
