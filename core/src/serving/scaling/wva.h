// llm-d's Workload Variant Autoscaler: replicas of the variants (deployments that differ in
// accelerator and cost) of one model, from the KV usage and the queue of each replica.
//
// A tick of a model: an analyzer (V1: percentages of KV and queue; V2: tokens against a capacity
// that is learnt) and its optimizer set targets, and an enforcer takes them to zero or keeps one.
// Then a limiter shares the GPUs among all models (V1 only).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace servecast {

// What a deployment's arguments say; only variants whose arguments are equal share a capacity.
struct WvaArguments {
  std::optional<std::int64_t> max_num_batched_tokens, max_num_seqs, num_gpu_blocks_override;
  std::int64_t tensor_parallel = 1;
  std::string gpu_memory_utilization, block_size, kv_cache_dtype;  // "" : the server's default
};

struct WvaVariant {
  std::string name, accelerator;
  double cost = 0;
  std::int64_t gpus_per_replica = 1;
  WvaArguments arguments;
};

struct WvaSpec {
  bool tokens = false;  // V2
  double kv_threshold = 0.8, queue_threshold = 5;
  double kv_spare = 0.1, queue_spare = 3;             // V1
  double scale_up = 0.85, scale_down_boundary = 0.7;  // V2
  bool scale_to_zero = false;
};

// What a tick sees of a variant: `current` replicas of its deployment, of which `pending` are not
// ready; `desired`, the decision before (0: none).
struct WvaDeployment {
  std::int64_t current = 0, desired = 0, pending = 0;
};

// What one replica reports. V1 reads usage and queue only. 0: not known.
struct WvaReplica {
  std::size_t variant = 0;
  double kv_usage = 0;
  std::int64_t queue = 0;
  std::int64_t kv_tokens = 0, tokens_in_use = 0;
  double mean_input = 0, mean_output = 0, prefix_hit_rate = 0;
};

// Requests that wait before all replicas; V2.
struct WvaSchedulerQueue {
  std::int64_t requests = 0, bytes = 0;
};

struct WvaView {
  std::span<const WvaDeployment> deployments;  // one a variant, in order
  std::span<const WvaReplica> replicas;
  std::optional<WvaSchedulerQueue> scheduler_queue;
  std::int64_t requests_in_retention = -1;  // -1: the query failed
};

// What an analyzer found of a variant. V1: spare_kv, spare_queue of the `open` (not saturated) of
// `replicas`. V2: `replicas` are ready, and capacity per replica, demand, cost.
struct WvaAnalysis {
  std::size_t variant = 0;
  std::int64_t replicas = 0, open = 0;
  double spare_kv = 0, spare_queue = 0;
  std::int64_t pending = 0, capacity = 0;
  double demand = 0, cost = 0;
};

struct WvaTarget {
  std::size_t variant = 0;
  std::int64_t replicas = 0;
};

// Empty targets: no replica reported, the decision before stays.
struct WvaDecision {
  std::vector<WvaAnalysis> variants;
  // V1
  std::int64_t open = 0;
  double spare_kv = 0, spare_queue = 0;
  bool scale_up = false, scale_down_safe = false;
  // V2
  double supply = 0, demand = 0, utilization = 0, required = 0, spare = 0;
  std::vector<WvaTarget> targets, enforced;
};

// Of one model.
class Wva {
 public:
  Wva(WvaSpec spec, std::vector<WvaVariant> variants);

  // One tick. REQUIRES: view.deployments has an entry for each variant.
  WvaDecision Tick(const WvaView& view);

  const std::vector<WvaVariant>& variants() const { return variants_; }

 private:
  WvaDecision Percentages(const WvaView& view) const;
  void SetTargets(const WvaView& view, WvaDecision& decision) const;

  WvaDecision Tokens(const WvaView& view);
  std::int64_t EffectiveCapacity(const WvaReplica& replica);
  std::int64_t CapacityWithoutReports(std::size_t variant, double input, double output) const;
  void AddUp(WvaDecision& decision) const;
  void TakeDown(WvaDecision& decision) const;

  void Enforce(const WvaView& view, WvaDecision& decision) const;

  WvaSpec spec_;
  std::vector<WvaVariant> variants_;
  // V2: what saturated replicas held, by accelerator and bucket of output lengths.
  std::map<std::tuple<std::string, int>, std::deque<std::int64_t>> held_;
  std::vector<std::optional<std::int64_t>> last_capacity_;  // by variant
};

// What a limiter is asked for: one entry a decision, of all models.
struct WvaClaim {
  std::string accelerator;
  std::int64_t gpus_per_replica = 1, current = 0, target = 0;
  double spare_kv = 0, cost = 0;
};

// Reduces targets above `current` to what `pool` (GPUs by accelerator) has free: the scarcest
// variant first. GPUs that a claim of the tick frees are not counted.
void LimitGpus(const std::map<std::string, std::int64_t>& pool, std::vector<WvaClaim>& claims);

}  // namespace servecast
