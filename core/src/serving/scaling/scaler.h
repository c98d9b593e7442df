// How many replicas a pool should have. A scaler is one file in policies/ and one line in the
// registry; the rules of real ones are beside this file, and take what a tick sees (scaling/hpa.h
// and its neighbours).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/base.h"
#include "servecast/scenario.h"
#include "serving/policy.h"

namespace servecast {

// What waits on a replica and is in no step: requests to prefill, and those to decode, which were
// preempted or whose KV is to come; with their prompts' tokens.
struct QueuedWork {
  std::int64_t prefill_requests = 0, prefill_tokens = 0;
  std::int64_t decode_requests = 0, decode_tokens = 0;
};

// A replica that starts or is up, as it was last scraped.
struct ScaledReplica {
  bool up = false;  // it was up at the scrape; else it reports nothing yet, all figures are 0
  std::int64_t waiting = 0, running = 0;
  double kv_usage = 0;  // 0 to 1
  // For a planner.
  LastStep step;
  QueuedWork queued;
  bool serves = false;  // it is up now
};

// What all clients have had by a scrape: answers, and drafts of the steps that verified them.
struct ServedTotals {
  std::int64_t requests = 0, prompt_tokens = 0, output_tokens = 0;
  std::int64_t cached_tokens = 0;  // of the prompts, found in prefix caches
  std::int64_t verified_steps = 0, accepted_tokens = 0;
};

// What a scaler sees. Replicas that drain are not in it.
struct ScalerView {
  TimeNs now = 0;
  std::int64_t wanted = 0;  // what it decided last
  std::span<const ScaledReplica> replicas;
  std::int64_t held = 0;  // requests at the gateway
  bool scraped = false;   // false: no scrape is old enough yet, all figures are 0
  bool drains = false;    // some replica does
  ServedTotals served;    // for a planner
};

// The sum over replicas of what the metric says, with requests that the gateway holds for `waiting`
// and `outstanding`.
double MetricOf(ScalingMetric metric, const ScalerView& view);

class Scaler {
 public:
  virtual ~Scaler() = default;
  // When it decides next; kNever. Later than the last decision.
  virtual TimeNs Next() const = 0;
  // REQUIRES: view.now is Next(). The replicas that it wants, before the pool's limits.
  virtual std::int64_t Decide(const ScalerView& view) = 0;
  // Likewise of each of a planner's pools, in the order in which it was given them.
  virtual std::vector<std::int64_t> DecideEach(std::span<const ScalerView> views) {
    return {Decide(views.front())};
  }
};

// What a planner knows of a pool. The pointers outlive the scaler.
struct PlannedPool {
  PoolRole role = PoolRole::kMixed;
  // Of a replica; `max_kv_tokens` are those of its KV cache.
  std::int64_t gpus = 1, max_num_batched_tokens = 1, max_num_seqs = 1, max_kv_tokens = 1,
               max_model_len = 1, block_size = 1, speculative_tokens = 0;
  const LatencyModel* latency = nullptr;
  const std::vector<PipelineStage>* stages = nullptr;  // nullptr: one
};

struct ScalerInput {
  const ScalingSpec& spec;                  // outlives the scaler
  Params params;                            // of its entry, in their order; to be copied
  std::span<const PlannedPool> pools = {};  // a planner's; to be copied
};

struct ScalerEntry {
  std::string_view name, help;
  std::unique_ptr<Scaler> (*make)(const ScalerInput&);
  std::span<const ParamSpec> params = {};
  bool from_zero = false;  // may start the first replica when none is there
  bool ends = false;       // after some time it decides no more
  // It sees steps and what was served, scraped whenever it decides, and decides for all pools that
  // share its spec at once.
  bool plans = false;
};

// The registered ones, in the order of menus.
std::span<const ScalerEntry> Scalers();
const ScalerEntry& FindScaler(std::string_view name);  // requires: a registered name

// In files of their own, which the page's first module leaves out.
std::unique_ptr<Scaler> MakeHpaScaler(const ScalerInput& input);
std::unique_ptr<Scaler> MakeKedaScaler(const ScalerInput& input);
std::unique_ptr<Scaler> MakeWvaScaler(const ScalerInput& input);
std::unique_ptr<Scaler> MakeDynamoScaler(const ScalerInput& input);
std::unique_ptr<Scaler> MakeScheduledScaler(const ScalerInput& input);

}  // namespace servecast
