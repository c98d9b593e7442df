// V2 of the Workload Variant Autoscaler: demand and capacity in tokens.
#include <algorithm>

#include "base/base.h"
#include "serving/scaling/whole.h"
#include "serving/scaling/wva.h"

namespace servecast {
namespace {

constexpr std::size_t kHistory = 10;  // observations of saturated replicas that are kept
constexpr std::int64_t kBatchedTokens = 8192, kSeqs = 256;  // where arguments do not say
constexpr std::int64_t kBlock = 16;

int Bucket(double output) { return output < 100 ? 0 : output < 500 ? 1 : 2; }

std::int64_t BatchedTokens(const WvaArguments& arguments) {
  return arguments.max_num_batched_tokens.value_or(kBatchedTokens);
}

// Tokens that the batch of a replica would hold by its limits; nothing without output lengths.
std::optional<std::int64_t> ByLimits(const WvaArguments& arguments, double input, double output) {
  if (output <= 0) return std::nullopt;
  const double n = std::min(Real(BatchedTokens(arguments)) * output / (input + output),
                            Real(arguments.max_num_seqs.value_or(kSeqs)));
  return Truncated(n * (input + output / 2));
}

bool Alike(const WvaVariant& a, const WvaVariant& b) {
  const auto key = [](const WvaVariant& v) {
    const WvaArguments& own = v.arguments;
    return std::tuple(v.accelerator, v.gpus_per_replica, own.gpu_memory_utilization, own.block_size,
                      own.kv_cache_dtype, own.tensor_parallel, own.num_gpu_blocks_override,
                      BatchedTokens(own));
  };
  return key(a) == key(b);
}

// An even count: the whole part of the mean of the middle two.
std::int64_t Median(std::vector<std::int64_t> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return (values[middle - 1] + values[middle]) / 2;
}

// Means over the replicas that know a length.
struct Lengths {
  double input = 0, output = 0, hit_rate = 0;
};

Lengths MeanLengths(std::span<const WvaReplica> replicas) {
  Lengths mean;
  std::int64_t known = 0;
  for (const WvaReplica& replica : replicas) {
    if (replica.mean_input <= 0 && replica.mean_output <= 0) continue;
    ++known;
    mean.input += replica.mean_input;
    mean.output += replica.mean_output;
    mean.hit_rate += replica.prefix_hit_rate;
  }
  if (known == 0) return mean;
  return {mean.input / Real(known), mean.output / Real(known), mean.hit_rate / Real(known)};
}

double DemandOf(const WvaSchedulerQueue& queue, const Lengths& mean) {
  const double prompts = std::max(Real(queue.bytes) / 4, Real(queue.requests) * mean.input);
  return prompts * (1 - mean.hit_rate) + Real(queue.requests) * mean.output;
}

}  // namespace

// What a saturated replica holds is its limit by compute; others take the mean of what was seen.
std::int64_t Wva::EffectiveCapacity(const WvaReplica& replica) {
  const WvaVariant& variant = variants_[replica.variant];
  const std::int64_t by_memory = Truncated(Real(replica.kv_tokens) * spec_.kv_threshold);
  std::deque<std::int64_t>& held = held_[{variant.accelerator, Bucket(replica.mean_output)}];
  std::int64_t by_compute = by_memory;
  if (replica.queue >= Truncated(spec_.queue_threshold) && replica.tokens_in_use > 0) {
    by_compute = replica.tokens_in_use;
    held.push_back(by_compute);
    if (held.size() > kHistory) held.pop_front();
  } else if (!held.empty()) {
    double sum = 0;
    for (const std::int64_t one : held) sum += Real(one);
    by_compute = Truncated(sum / Real(static_cast<std::int64_t>(held.size())));
  } else {
    by_compute =
        ByLimits(variant.arguments, replica.mean_input, replica.mean_output).value_or(by_memory);
  }
  return std::min(by_memory, by_compute);
}

std::int64_t Wva::CapacityWithoutReports(std::size_t variant, double input, double output) const {
  if (last_capacity_[variant]) return *last_capacity_[variant];
  const WvaVariant& own = variants_[variant];
  const std::optional<std::int64_t> derived = ByLimits(own.arguments, input, output);
  if (!derived) return BatchedTokens(own.arguments);
  std::int64_t capacity = *derived;
  if (own.arguments.num_gpu_blocks_override) {
    capacity = std::min(capacity, Truncated(Real(*own.arguments.num_gpu_blocks_override * kBlock) *
                                            spec_.kv_threshold));
  }
  for (std::size_t other = 0; other < variants_.size(); ++other) {
    if (other == variant || !last_capacity_[other] || !Alike(own, variants_[other])) continue;
    return std::min(capacity, *last_capacity_[other]);
  }
  return capacity;
}

WvaDecision Wva::Tokens(const WvaView& view) {
  WvaDecision decision;
  const Lengths mean = MeanLengths(view.replicas);
  std::vector<std::vector<std::int64_t>> capacities(variants_.size());
  for (std::size_t v = 0; v < variants_.size(); ++v) decision.variants.push_back({.variant = v});
  for (const WvaReplica& replica : view.replicas) {
    WvaAnalysis& one = decision.variants[replica.variant];
    one.cost = variants_[replica.variant].cost;
    if (replica.kv_tokens <= 0) continue;
    const std::int64_t capacity = EffectiveCapacity(replica);
    capacities[replica.variant].push_back(capacity);
    last_capacity_[replica.variant] = capacity;
    one.demand += Real(replica.tokens_in_use + replica.queue * Truncated(replica.mean_input));
  }
  double anticipated = 0;
  for (WvaAnalysis& one : decision.variants) {
    const WvaDeployment& deployment = view.deployments[one.variant];
    one.pending = deployment.pending;
    one.replicas = deployment.current - deployment.pending;
    one.capacity = capacities[one.variant].empty()
                       ? CapacityWithoutReports(one.variant, mean.input, mean.output)
                       : Median(capacities[one.variant]);
    decision.supply += Real(one.replicas * one.capacity);
    anticipated += Real((one.replicas + one.pending) * one.capacity);
    decision.demand += one.demand;
  }
  if (view.scheduler_queue) decision.demand += DemandOf(*view.scheduler_queue, mean);
  if (decision.supply > 0) decision.utilization = decision.demand / decision.supply;
  decision.required = std::max(0.0, decision.demand / spec_.scale_up - anticipated);
  decision.spare = std::max(0.0, decision.supply - decision.demand / spec_.scale_down_boundary);
  for (const WvaAnalysis& one : decision.variants) {
    decision.targets.push_back({one.variant, view.deployments[one.variant].current});
  }
  if (decision.required > 0) {
    AddUp(decision);
  } else if (decision.spare > 0) {
    TakeDown(decision);
  }
  return decision;
}

// The variant that costs least a token takes all of it.
void Wva::AddUp(WvaDecision& decision) const {
  const WvaAnalysis* best = nullptr;
  for (const WvaAnalysis& one : decision.variants) {
    if (one.capacity <= 0) continue;
    if (best == nullptr || one.cost / Real(one.capacity) < best->cost / Real(best->capacity)) {
      best = &one;
    }
  }
  if (best == nullptr) return;
  decision.targets[best->variant].replicas += RoundUp(decision.required / Real(best->capacity));
}

void Wva::TakeDown(WvaDecision& decision) const {
  std::vector<const WvaAnalysis*> dearest;
  for (const WvaAnalysis& one : decision.variants) dearest.push_back(&one);
  std::stable_sort(dearest.begin(), dearest.end(),
                   [](const WvaAnalysis* a, const WvaAnalysis* b) { return a->cost > b->cost; });
  const WvaAnalysis& cheapest =
      *std::min_element(decision.variants.begin(), decision.variants.end(),
                        [](const auto& a, const auto& b) { return a.cost < b.cost; });
  double remaining = decision.spare;
  for (const WvaAnalysis* one : dearest) {
    if (one->capacity <= 0) continue;
    const bool others = std::any_of(
        decision.targets.begin(), decision.targets.end(),
        [&](const WvaTarget& t) { return t.variant != one->variant && t.replicas > 0; });
    const std::int64_t least = one->variant == cheapest.variant && !others ? 1 : 0;
    std::int64_t& target = decision.targets[one->variant].replicas;
    const std::int64_t removed = std::max<std::int64_t>(
        0, std::min(RoundDown(remaining / Real(one->capacity)), target - least));
    target -= removed;
    remaining -= Real(removed * one->capacity);
  }
}

}  // namespace servecast
