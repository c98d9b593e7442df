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

PeakUse UseOf(const Work& work, std::int64_t output_tokens, double seconds, const ModelCost& cost,
              const HardwareSpec& hardware) {
  const double full = 1 - cost.window_share;  // layers with a window count as doing nothing
  const auto flops =
      static_cast<double>(work.tokens) *
          (cost.dense_flops_per_token + cost.expert_flops_per_token) +
      static_cast<double>(output_tokens) * cost.lm_head_flops_per_token +
      full * (static_cast<double>(work.decode_keys) * cost.decode_flops_per_pair +
              static_cast<double>(work.prefill_pairs) * cost.attention_flops_per_pair);
  const auto unit = static_cast<double>(kStepUnit);
  const double experts =
      cost.experts > 0 ? cost.expert_bytes / static_cast<double>(cost.experts) : 0;
  const double bytes =
      static_cast<double>(work.steps) / unit * cost.dense_bytes +
      static_cast<double>(work.steps - work.without_head) / unit * cost.lm_head_bytes +
      static_cast<double>(work.experts) / unit * experts +
      static_cast<double>(work.decode_keys + work.prefill_keys) * full *
          cost.kv_read_bytes_per_token;
  return {flops / (PeakTflops(hardware, cost.dense_type) * 1e12 * seconds),
          bytes / (hardware.memory_bandwidth_gb_s * 1e9 * seconds)};
}

}  // namespace servecast
