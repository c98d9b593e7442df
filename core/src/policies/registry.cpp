// Every policy of the project, one line each, in the order of menus. Tables rather than static
// registration: the order is fixed and the linker cannot drop an entry.
#include <algorithm>
#include <span>

#include "cost/layers/layer_kind.h"
#include "servecast/workload_spec.h"
#include "serving/cluster/router.h"
#include "serving/policy.h"
#include "serving/replica/scheduler_entry.h"
#include "serving/scaling/scaler.h"

// clang-format off: a new entry is one line, whatever its name's length. Each list ends with an empty one.
#define SERVECAST_LATENCY_MODELS(X) \
  X(latency_analytic)               \
  X(latency_operators)              \
  X(latency_blackbox)               \
  X(latency_roofline)               \
  X(latency_physics)                \
  X(latency_trained_physics)

#define SERVECAST_ORDERS(X) \
  X(order_fcfs)             \
  X(order_priority_fcfs)    \
  X(order_sjf)              \
  X(order_edf)              \
  X(order_reverse_priority) \
  X(order_length_bucket)

#define SERVECAST_PRIORITIES(X) \
  X(priority_class)             \
  X(priority_constant)          \
  X(priority_slo_based)         \
  X(priority_inverted_slo)

#define SERVECAST_ROUTERS(X)  \
  X(router_round_robin)       \
  X(router_random)            \
  X(router_least_outstanding) \
  X(router_power_of_two)      \
  X(router_session_affinity)  \
  X(router_prefix_affinity)   \
  X(router_kv_aware)          \
  X(router_cache_aware)       \
  X(router_prefix_aware)      \
  X(router_kv_lookup)         \
  X(router_vllm_dp)           \
  X(router_weighted)          \
  X(router_central_queue)     \
  X(router_epp)

#define SERVECAST_SCALERS(X) \
  X(scaler_none)             \
  X(scaler_hpa)              \
  X(scaler_keda)             \
  X(scaler_wva)              \
  X(scaler_dynamo)           \
  X(scaler_schedule)

#define SERVECAST_SCHEDULERS(X)   \
  X(scheduler_vllm)               \
  X(scheduler_vllm_v0)            \
  X(scheduler_sarathi)            \
  X(scheduler_orca)               \
  X(scheduler_lightllm)           \
  X(scheduler_faster_transformer) \
  X(scheduler_sglang)             \
  X(scheduler_trtllm)

// clang-format on

namespace servecast {
namespace {

template <class Entry>
const Entry& Find(std::span<const Entry> entries, std::string_view name) {
  std::size_t i = 0;
  while (i < entries.size() && entries[i].name != name) ++i;
  SERVECAST_CHECK(i < entries.size(), "a policy is registered");
  return entries[i];
}

}  // namespace

#define SERVECAST_DECLARE_LATENCY(policy) \
  namespace policy {                      \
  extern const LatencyEntry kEntry;       \
  }
#define SERVECAST_DECLARE_ORDER(policy) \
  namespace policy {                    \
  extern const OrderEntry kEntry;       \
  }
#define SERVECAST_DECLARE_PRIORITY(policy) \
  namespace policy {                       \
  extern const PriorityEntry kEntry;       \
  }
#define SERVECAST_DECLARE_ROUTER(policy) \
  namespace policy {                     \
  extern const RouterEntry kEntry;       \
  }
#define SERVECAST_DECLARE_FORMER(policy) \
  namespace policy {                     \
  extern const SchedulerEntry kEntry;    \
  }
#define SERVECAST_DECLARE_SCALER(policy) \
  namespace policy {                     \
  extern const ScalerEntry kEntry;       \
  }
#define SERVECAST_LIST(policy) policy::kEntry,
SERVECAST_LATENCY_MODELS(SERVECAST_DECLARE_LATENCY)
SERVECAST_ORDERS(SERVECAST_DECLARE_ORDER)
SERVECAST_PRIORITIES(SERVECAST_DECLARE_PRIORITY)
SERVECAST_ROUTERS(SERVECAST_DECLARE_ROUTER)
SERVECAST_SCHEDULERS(SERVECAST_DECLARE_FORMER)
SERVECAST_SCALERS(SERVECAST_DECLARE_SCALER)

std::span<const LatencyEntry> LatencyModels() {
  static const LatencyEntry kTable[] = {SERVECAST_LATENCY_MODELS(SERVECAST_LIST)};
  return kTable;
}

std::span<const OrderEntry> Orders() {
  static const OrderEntry kTable[] = {SERVECAST_ORDERS(SERVECAST_LIST)};
  return kTable;
}

std::span<const PriorityEntry> Priorities() {
  static const PriorityEntry kTable[] = {SERVECAST_PRIORITIES(SERVECAST_LIST)};
  return kTable;
}

std::span<const RouterEntry> Routers() {
  static const RouterEntry kTable[] = {SERVECAST_ROUTERS(SERVECAST_LIST)};
  return kTable;
}

std::span<const SchedulerEntry> Schedulers() {
  static const SchedulerEntry kTable[] = {SERVECAST_SCHEDULERS(SERVECAST_LIST)};
  return kTable;
}

std::span<const ScalerEntry> Scalers() {
  static const ScalerEntry kTable[] = {SERVECAST_SCALERS(SERVECAST_LIST)};
  return kTable;
}

const LatencyEntry& FindLatencyModel(std::string_view name) { return Find(LatencyModels(), name); }

namespace {

// The first module has no more than one replica by vLLM's rules without drafts, adapters and queue
// caps, the analytic model, and no word on a carried calibration.
bool NeedsWholeEngine(const EngineSpec& engine, const HardwareSpec& hardware,
                      const SchedulerSpec& scheduler) {
  return hardware.auto_backend != "analytic" || engine.speculative.On() || engine.max_loras > 0 ||
         engine.max_num_queued_reqs || engine.max_num_queued_tokens || IsBlis(engine.compat) ||
         scheduler.policy != "vllm";
}

bool NeedsWholeEngine(const Scenario& s) {
  const bool automatic = s.latency.backend == "auto";
  const bool maybe_queue = s.cluster.router == "epp" && s.cluster.epp.profile == kOwnEppProfile;
  return s.calibration.On() || s.workload->retries.On() || s.workload->retries.Hedges() ||
         s.cluster.slowdowns.On() || s.workload->HasImages() || HasCluster(s) ||
         s.cluster.Has(PoolRole::kEncode) || maybe_queue || HasLayerKinds(s.model) ||
         NeedsWholeEngine(s.engine, s.hardware, s.scheduler) ||
         (!automatic && FindLatencyModel(s.latency.backend).make == nullptr) ||
         std::any_of(s.cluster.pools.begin(), s.cluster.pools.end(), [&](const PoolSpec& pool) {
           return NeedsWholeEngine(pool.engine.value_or(s.engine),
                                   pool.hardware.value_or(s.hardware),
                                   pool.scheduler.value_or(s.scheduler));
         });
}

}  // namespace

bool HasCluster(const Scenario& s) {
  return s.cluster.Replicas() > 1 || s.cluster.Scales() || s.cluster.failures.On() ||
         s.cluster.rolling_update.On() || s.workload->retries.Hedges() ||
         FindRouter(s.cluster.router).holds || s.cluster.ControlsFlow();
}

Issues MissingModule(const Scenario& s) {
  if (IsWholeEngine() || !NeedsWholeEngine(s)) return {};
  return {{std::string(kWholeEngine), "is needed, and not here", "missing_file"}};
}

Issues MissingFiles(const Scenario& s) {
  for (const LatencyEntry& entry : LatencyModels()) {
    std::string file = entry.missing == nullptr ? "" : entry.missing(s);
    if (!file.empty()) return {{std::move(file), "is needed, and not here", "missing_file"}};
  }
  return {};
}
const LatencyEntry& ChosenLatencyModel(const Scenario& s) {
  if (s.latency.backend != "auto") return FindLatencyModel(s.latency.backend);
  for (const LatencyEntry& entry : LatencyModels()) {
    if (entry.best != nullptr && entry.best(s)) return entry;
  }
  return LatencyModels()[0];
}
const OrderEntry& FindOrder(std::string_view name) { return Find(Orders(), name); }
const PriorityEntry& FindPriority(std::string_view name) { return Find(Priorities(), name); }
const RouterEntry& FindRouter(std::string_view name) { return Find(Routers(), name); }
const ScalerEntry& FindScaler(std::string_view name) { return Find(Scalers(), name); }
const SchedulerEntry& FindScheduler(std::string_view name) { return Find(Schedulers(), name); }

std::vector<double> ParamValues(std::span<const ParamSpec> specs, const ParamMap& chosen) {
  std::vector<double> values;
  for (const ParamSpec& spec : specs) {
    const auto value = chosen.find(std::string_view(spec.name));
    values.push_back(value == chosen.end() ? spec.fallback : value->second);
  }
  return values;
}

}  // namespace servecast
