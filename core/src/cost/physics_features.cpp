// See physics_features.h. What the variants share is written once; where they differ stands
// `corrected ?`, and docs/physics-model.md has a row for each.
#include "cost/physics_features.h"

#include <algorithm>

#include "base/math.h"

namespace servecast {
namespace {

constexpr double kEpsilon = 1e-6;  // least denominator
constexpr double kClamp = 100;     // largest feature

double Over(double numerator, double denominator) {
  return numerator / std::max(kEpsilon, denominator);
}

// x to the power of a whole n >= 0, by multiplication: the same bits everywhere.
double Power(double x, double n) {
  double result = 1;
  for (auto left = static_cast<std::int64_t>(n); left > 0; left /= 2, x *= x) {
    if (left % 2 == 1) result *= x;
  }
  return result;
}

// Share of the experts that so many tokens touch, each taking top_k of them at random.
double Activation(const PhysicsConfig& c, double tokens) {
  return tokens > 0 ? 1 - Power(1 - c.top_k / c.experts, tokens) : 0;
}

// `times`: those that are seconds, by number; the corrected variant does not cut them off.
template <std::size_t n>
void Clamp(std::array<double, n>& features, bool corrected,
           std::initializer_list<std::size_t> times) {
  std::array<bool, n> open{};
  for (const std::size_t i : times) open[i - 1] = corrected;
  for (std::size_t i = 0; i < n; ++i) {
    features[i] = std::max(0.0, open[i] ? features[i] : std::min(kClamp, features[i]));
  }
}

}  // namespace

PhysicsConstants MakePhysicsConstants(const PhysicsConfig& k) {
  PhysicsConstants c;
  c.config = k;
  const bool corrected = k.corrected;
  const double h = k.hidden;
  const bool moe = k.experts > 0;
  // Widths of all query heads, and of all key or value heads, replicated where there are more GPUs.
  const double q_dim = corrected ? k.heads * k.head_dim : h;
  c.kv_dim = corrected ? std::max(k.kv_heads, k.tp) * k.head_dim : h * k.kv_heads / k.heads;
  const double router = corrected ? k.tp * h * k.experts : 0;  // on every GPU
  c.flops_attn_linear = 4 * h * (q_dim + c.kv_dim) + 2 * router;
  const double share = !moe ? 1 : corrected ? k.top_k : k.top_k / k.experts;
  c.flops_mlp = k.mlp_matrices * 2 * h * k.intermediate * share;
  c.flops_lm_head = 2 * h * k.vocab;
  c.flops_linear_per_token =
      k.layers * (c.flops_attn_linear + c.flops_mlp) + (corrected ? 0 : c.flops_lm_head);
  c.flops_per_prefill_pair = k.layers * (corrected ? 4 : 2) * q_dim;
  c.flops_per_decode_key = c.flops_per_prefill_pair;
  c.weight_bytes_attn = (2 * h * (q_dim + c.kv_dim) + router) * k.value_bytes;
  c.weight_bytes_mlp = k.mlp_matrices * h * k.intermediate * k.value_bytes;
  c.weight_bytes_lm_head = corrected ? h * k.vocab * k.value_bytes : 0;
  const double experts = !moe ? 1 : corrected ? k.experts : k.top_k;
  c.weight_bytes_total =
      k.layers * (c.weight_bytes_attn + c.weight_bytes_mlp * experts) + c.weight_bytes_lm_head;
  c.kv_bytes_per_token = (corrected ? 1 : 2) * k.layers * c.kv_dim * 2 * k.value_bytes;
  const double gpus = corrected ? k.tp : 1 / k.tp;
  c.hw_peak_flops = k.peak_tflops * 1e12 * gpus;
  c.hw_peak_bandwidth = k.bandwidth_gb_s * 1e9 * gpus;
  c.hw_pcie_bandwidth_eff = k.pcie_gb_s * 1e9 * k.pcie_efficiency * (corrected ? k.tp : 1);
  c.hw_interconnect_bw = k.interconnect_gb_s * 1e9 * (corrected ? 0.5 : 1);
  if (k.tp > 1) {
    c.comm_bytes_per_token = k.layers * 2 * h * k.value_bytes * 2 * (k.tp - 1) / k.tp;
    c.comm_latency_s = corrected ? 2 * k.layers * k.interconnect_latency_us * 1e-6 : 0;
  }
  const double tokens = k.max_num_batched_tokens;
  const double sampled = corrected ? std::min(tokens, k.max_num_seqs) : 0;
  c.roofline_step_time =
      std::max((tokens * c.flops_linear_per_token + sampled * c.flops_lm_head) / c.hw_peak_flops,
               c.weight_bytes_total / c.hw_peak_bandwidth);
  return c;
}

PhysicsConfig PhysicsConfigOf(const Scenario& s, double gpu_blocks) {
  const ModelSpec& m = s.model;
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  PhysicsConfig k;
  k.corrected = s.latency.variant != "seed";
  k.layers = number(m.num_hidden_layers);
  k.hidden = number(m.hidden_size);
  k.heads = number(m.num_attention_heads);
  k.kv_heads = number(m.num_key_value_heads);
  k.head_dim = number(m.head_dim);
  k.intermediate = number(m.intermediate_size) * number(m.mlp_matrices) / 3;  // it counts three
  k.vocab = number(m.vocab_size);
  k.value_bytes = number(BytesPerValue(m.torch_dtype));
  k.experts = number(m.num_local_experts);
  k.top_k = number(m.num_experts_per_tok);
  k.peak_tflops = s.hardware.peak_bf16_tflops;
  k.bandwidth_gb_s = s.hardware.memory_bandwidth_gb_s;
  const KvOffloadSpec& offload = s.engine.kv_offload;
  k.pcie_gb_s = offload.cpu_bandwidth_gb_s;
  k.pcie_efficiency = 1;  // that bandwidth is the effective one
  k.interconnect_gb_s = 2 * s.hardware.interconnect_gb_s;
  k.interconnect_latency_us = s.hardware.interconnect_latency_us;
  k.tp = number(s.cluster.pool().tensor_parallel);
  k.max_num_seqs = number(s.engine.max_num_seqs);
  k.max_num_batched_tokens = number(s.engine.max_num_batched_tokens);
  k.chunked_prefill = s.engine.enable_chunked_prefill;
  k.cpu_offload = offload.On();
  k.block_size = number(s.engine.block_size);
  k.gpu_blocks = gpu_blocks;
  // A block's true size: how many fit does not depend on the variant.
  PhysicsConfig sizes = k;
  sizes.corrected = true;
  k.cpu_blocks = offload.cpu_gib * 1024 * 1024 * 1024 / MakePhysicsConstants(sizes).BlockBytes();
  return k;
}

std::array<double, kAlphaFeatures> AlphaFeatures(const PhysicsConstants& c, const AlphaInput& in) {
  const PhysicsConfig& k = c.config;
  // Congestion: either seats or memory are taken, each within [0, 1].
  const double seats = std::min(1.0, Over(in.running_depth, k.max_num_seqs));
  const double memory = std::clamp(in.kv_usage_ratio, 0.0, 1.0);
  const double g = seats + memory - seats * memory;
  const double backlog = in.waiting_depth > 0 ? Log(1 + in.waiting_depth) : 0;
  const double lm_head = k.corrected ? c.flops_lm_head : 0;
  const double memory_ratio = Over(k.cpu_blocks * c.BlockBytes(), k.gpu_blocks * c.BlockBytes());
  std::array<double, kAlphaFeatures> f = {
      Over(in.running_depth, k.max_num_seqs),
      in.kv_usage_ratio,
      (in.prompt_tokens * c.flops_linear_per_token + lm_head) / c.hw_peak_flops,
      1,
      g * backlog * c.roofline_step_time,
      g * in.kv_usage_ratio * Over(in.waiting_depth, k.max_num_seqs),
      g * in.prefix_hit_ratio * Over(in.prompt_tokens, k.max_num_batched_tokens),
      g * Over(in.prompt_tokens * c.kv_bytes_per_token, in.kv_free_bytes),
      g * in.preemption_ema,
      k.cpu_offload ? g * memory_ratio : 0,
      g,
  };
  Clamp(f, k.corrected, {3, 5});
  return f;
}

std::array<double, kBetaFeatures> BetaFeatures(const PhysicsConstants& c, const BetaInput& in) {
  const PhysicsConfig& k = c.config;
  const bool corrected = k.corrected;
  const double flop_s = 1 / c.hw_peak_flops, byte_s = 1 / c.hw_peak_bandwidth;
  const double tokens = in.prefill_tokens + in.decode_tokens;
  const double activation = k.experts > 0 ? Activation(k, tokens) : 0;
  double weights =
      c.weight_bytes_attn + c.weight_bytes_mlp * (k.experts > 0 ? k.experts * activation : 1);
  weights *= k.layers;
  if (in.prefill_sampled + in.decode_tokens > 0) weights += c.weight_bytes_lm_head;
  double weight_s = in.decode_tokens > 0 ? weights * byte_s : 0;
  double prefill_flops = in.prefill_tokens * c.flops_linear_per_token;
  double pairs = in.prefill_attention_work, kv_bytes = in.decode_kv_blocks * c.BlockBytes();
  if (corrected) {
    const double decode_s =
        in.decode_tokens * (c.flops_linear_per_token + c.flops_lm_head) * flop_s;
    weight_s = tokens > 0 ? std::max(weights * byte_s, decode_s) : 0;
    prefill_flops += in.prefill_sampled * c.flops_lm_head;
    pairs = in.prefill_pairs;
    kv_bytes = (in.decode_context_tokens + in.prefill_keys) * c.kv_bytes_per_token;
  }
  const double pcie_s = k.cpu_offload ? c.BlockBytes() / c.hw_pcie_bandwidth_eff : 0;
  const bool mixed = in.prefill_requests > 0 && in.decode_requests > 0;
  std::array<double, kBetaFeatures> f = {
      prefill_flops * flop_s,
      pairs * c.flops_per_prefill_pair * flop_s,
      weight_s,
      in.decode_context_tokens * c.flops_per_decode_key * flop_s,
      kv_bytes * byte_s,
      Over(tokens, k.max_num_batched_tokens),
      Over(in.prefill_tokens, tokens),
      activation,
      k.tp > 1 && tokens > 0
          ? c.comm_bytes_per_token * tokens / c.hw_interconnect_bw + c.comm_latency_s
          : 0,
      k.kv_heads / k.heads,
      1 / std::max(1.0, tokens),
      in.preemption_ema,
      in.transfer_blocks * pcie_s,
      in.cpu_resident_read_blocks * pcie_s,
      k.chunked_prefill && mixed ? 1.0 : 0.0,
      1,
  };
  Clamp(f, corrected, {1, 2, 3, 4, 5, 9, 13, 14});
  return f;
}

}  // namespace servecast
