#include "metrics/work.h"

#include <cmath>

namespace servecast {

std::vector<std::int64_t> ExpertsRead(const ModelCost& cost, std::int64_t most_tokens) {
  std::vector<std::int64_t> read;
  if (cost.experts == 0) return read;
  const auto experts = static_cast<double>(cost.experts);
  const double missed = 1 - static_cast<double>(cost.experts_per_token) / experts;
  double kept = 1;  // by one token of each replica that shares them
  for (std::int64_t i = 0; i < cost.expert_replicas; ++i) kept *= missed;
  double untouched = 1;
  for (std::int64_t tokens = 0; tokens <= most_tokens; ++tokens, untouched *= kept) {
    const double units = experts * (1 - untouched) * static_cast<double>(kStepUnit);
    read.push_back(static_cast<std::int64_t>(std::nearbyint(units)));
    if (read.back() == cost.experts << kStepBits) break;
  }
  return read;
}

namespace {

// Read of a key that every layer sees: those that see a part count as reading nothing.
double BytesOfKey(const ModelCost& cost) {
  if (cost.mixers.empty()) return (1 - cost.window_share) * cost.kv_bytes_per_token;
  double bytes = 0;
  for (const LayerWork& w : cost.mixers) {
    bytes += w.index_key_bytes + (w.reach == 0 && w.chosen == 0 ? w.key_bytes : 0);
  }
  return bytes;
}

}  // namespace

PeakUse UseOf(const Work& work, std::int64_t output_tokens, double seconds, const ModelCost& cost,
              const HardwareSpec& hardware) {
  const auto number = [](WideInt n) { return static_cast<double>(n); };
  const double full = 1 - cost.window_share;  // layers with a window count as doing nothing
  // Of what falls to the GPU with the most whole experts, what falls to each GPU by share.
  const std::int64_t most = CeilDiv(cost.experts, cost.expert_parallel) * cost.expert_parallel;
  const double share = most > 0 ? number(cost.experts) / number(most) : 1;
  const double expert_flops = number(work.tokens) * cost.expert_flops_per_token * share;
  const double flops = number(work.tokens) * cost.dense_flops_per_token +
                       number(output_tokens) * cost.lm_head_flops_per_token +
                       full * (number(work.decode_keys) * cost.decode_flops_per_pair +
                               number(work.prefill_pairs) * cost.attention_flops_per_pair);
  const double peak = 1e12 * seconds;
  const double unit = number(kStepUnit);
  const double expert = cost.experts > 0 ? cost.expert_bytes * share / number(cost.experts) : 0;
  const double bytes = number(work.steps) / unit * cost.dense_bytes +
                       number(work.steps - work.without_head) / unit * cost.lm_head_bytes +
                       number(work.experts) / unit * expert +
                       number(work.decode_keys + work.prefill_keys) * BytesOfKey(cost);
  return {flops / (PeakTflops(hardware, cost.dense_type) * peak) +
              expert_flops / (PeakTflops(hardware, cost.expert_type) * peak),
          bytes / (hardware.memory_bandwidth_gb_s * 1e9 * seconds)};
}

}  // namespace servecast
