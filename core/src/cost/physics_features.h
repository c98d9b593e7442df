// The features of the physics-normalized latency model: 11 of what a request finds as it arrives
// (alpha), 16 of a step (beta). Delay and step time are their dot products with coefficients.
// Numbered as in docs/physics-model.md, which has the formulas and where the variants differ.
//
// Pure functions of numbers; seconds and ratios. Checked against
// tests/golden/physics_features.json.
#pragma once

#include <array>
#include <cstddef>

#include "servecast/scenario.h"

namespace servecast {

inline constexpr std::size_t kAlphaFeatures = 11;
inline constexpr std::size_t kBetaFeatures = 16;

// What features need of a model, a GPU and an engine. All counts are whole numbers.
struct PhysicsConfig {
  bool corrected = true;  // false: as the specification of the model has them, errors included
  double layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, intermediate = 0, vocab = 0;
  double mlp_matrices = 3;  // 2: without a gate
  double value_bytes = 2;
  double experts = 0, top_k = 0;  // 0: dense
  double peak_tflops = 0, bandwidth_gb_s = 0;
  double pcie_gb_s = 0, pcie_efficiency = 0.75;
  double interconnect_gb_s = 0;  // both directions together, as data sheets have it
  double interconnect_latency_us = 0;
  double tp = 1;
  double max_num_seqs = 0, max_num_batched_tokens = 0;
  bool chunked_prefill = true, cpu_offload = false;
  double block_size = 16, gpu_blocks = 0, cpu_blocks = 0;
};

// What follows from the configuration alone.
struct PhysicsConstants {
  double kv_dim = 0;
  double flops_attn_linear = 0, flops_mlp = 0;  // of a layer, a token
  double flops_lm_head = 0, flops_linear_per_token = 0;
  double flops_per_prefill_pair = 0, flops_per_decode_key = 0;  // of all layers
  double weight_bytes_attn = 0, weight_bytes_mlp = 0;           // of a layer; of one expert
  double weight_bytes_lm_head = 0, weight_bytes_total = 0;
  double kv_bytes_per_token = 0;
  double hw_peak_flops = 0, hw_peak_bandwidth = 0, hw_pcie_bandwidth_eff = 0;
  double hw_interconnect_bw = 0;
  double comm_bytes_per_token = 0, comm_latency_s = 0;
  double roofline_step_time = 0;  // of a full step, s
  PhysicsConfig config;

  double BlockBytes() const { return config.block_size * kv_bytes_per_token; }
};

PhysicsConstants MakePhysicsConstants(const PhysicsConfig& config);

// As the scenario has it; `gpu_blocks` are those of its KV cache.
PhysicsConfig PhysicsConfigOf(const Scenario& scenario, double gpu_blocks);

struct AlphaInput {
  double running_depth = 0, waiting_depth = 0;  // requests
  double kv_usage_ratio = 0;
  double prompt_tokens = 0;
  double prefix_hit_ratio = 0;  // of the prompt
  double kv_free_bytes = 0;
  double preemption_ema = 0;
};

struct BetaInput {
  double prefill_tokens = 0, decode_tokens = 0;
  double prefill_requests = 0, decode_requests = 0;
  double prefill_sampled = 0;  // prompts that end in this step
  // Of chunks of n tokens after c before them: sum (c + n) n; sum n c + n (n + 1) / 2; sum c + n.
  double prefill_attention_work = 0, prefill_pairs = 0, prefill_keys = 0;
  double decode_context_tokens = 0;  // keys that the decodes read, their own among them
  double decode_kv_blocks = 0;
  double preemption_ema = 0;
  double transfer_blocks = 0, cpu_resident_read_blocks = 0;
};

std::array<double, kAlphaFeatures> AlphaFeatures(const PhysicsConstants& c, const AlphaInput& in);
std::array<double, kBetaFeatures> BetaFeatures(const PhysicsConstants& c, const BetaInput& in);

}  // namespace servecast
