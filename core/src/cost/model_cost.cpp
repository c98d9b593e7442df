// See model_cost.h. Architecture: Llama-style decoder with gated MLP (three matrices),
// grouped-query attention, RMSNorm; mixture of experts in every layer when there are experts.
#include "cost/model_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/base.h"
#include "base/text.h"

namespace servecast {
namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

// Memory that vLLM keeps beside weights and KV cache, per GPU. Three terms, set so that the block
// counts which vLLM logs at start (gpu_memory_utilization 0.9, max_num_seqs 128) come out within
// 2 %: Llama-2-7B, Qwen2.5-7B, Mistral-Nemo (TP 1 and 2), Yi-34B, CodeLlama-34B, Mixtral-8x7B,
// Llama-3.1-70B on H100, Llama-3.1-8B on A100-PCIe-40GB. docs/model.md lists the residuals.
constexpr double kRuntimeGib = 0.45;          // CUDA context, graphs, forward activations
constexpr double kCollectiveGib = 0.4;        // NCCL buffers when there is a tensor-parallel group
constexpr double kSamplerBytesPerLogit = 30;  // the profile run samples max_num_seqs rows of logits

struct LayerParameters {
  double attention = 0;  // q, k, v, o
  double dense_mlp = 0;  // 0 when there are experts
  double router = 0;
  double expert = 0;  // one expert
  double norms = 0;
};

LayerParameters LayerOf(const ModelSpec& m, double kv_heads) {
  const auto hidden = static_cast<double>(m.hidden_size);
  const double q_size = static_cast<double>(m.num_attention_heads * m.head_dim);
  const double kv_size = kv_heads * static_cast<double>(m.head_dim);
  LayerParameters p;
  p.attention = hidden * (2 * q_size + 2 * kv_size) + (m.attention_bias ? q_size + 2 * kv_size : 0);
  const double mlp = 3 * hidden * static_cast<double>(m.intermediate_size);
  if (m.num_local_experts > 0) {
    p.expert = mlp;
    p.router = hidden * static_cast<double>(m.num_local_experts);
  } else {
    p.dense_mlp = mlp;
  }
  p.norms = 2 * hidden;
  return p;
}

double GraphsGib(const EngineSpec& e) {
  if (e.cuda_graphs != CudaGraphs::kCaptured) return 0;
  std::int64_t graphs = 0;
  for (std::int64_t n = 1; n <= e.cuda_graph_max_bs; ++n) graphs += CaptureSize(n) == n ? 1 : 0;
  return static_cast<double>(graphs) * e.cuda_graph_mib / 1024;
}

double OverheadGib(const Scenario& s, std::int64_t tp) {
  const auto logits = static_cast<double>(s.engine.max_num_seqs * s.model.vocab_size);
  return kRuntimeGib + (tp > 1 ? kCollectiveGib : 0) + kSamplerBytesPerLogit * logits / kGib +
         GraphsGib(s.engine);
}

// Weights of one GPU: matrices are split over the group, norms and router are on each.
double WeightBytes(const ModelSpec& m, std::int64_t tp) {
  const auto group = static_cast<double>(tp);
  const double kv_heads = static_cast<double>(std::max(m.num_key_value_heads, tp));
  const LayerParameters p = LayerOf(m, kv_heads);
  const double layer =
      (p.attention + p.dense_mlp + p.expert * static_cast<double>(m.num_local_experts)) / group +
      p.router + p.norms;
  const double embedding = static_cast<double>(m.vocab_size * m.hidden_size) / group;
  const double tables = embedding * (m.tie_word_embeddings ? 1 : 2);
  return (static_cast<double>(m.num_hidden_layers) * layer + tables +
          static_cast<double>(m.hidden_size)) *
         static_cast<double>(BytesPerValue(m.torch_dtype));
}

double KvBytesPerToken(const ModelSpec& m, std::int64_t tp) {
  const std::int64_t heads_per_gpu = CeilDiv(std::max(m.num_key_value_heads, tp), tp);
  return 2.0 * static_cast<double>(m.num_hidden_layers * heads_per_gpu * m.head_dim *
                                   BytesPerValue(m.torch_dtype));
}

// Values that a token reads and writes in a layer between the matrix products.
double ActivationsPerToken(const ModelSpec& m, std::int64_t tp) {
  const auto group = static_cast<double>(tp);
  const auto heads =
      static_cast<double>(m.num_attention_heads + 2 * std::max(m.num_key_value_heads, tp));
  const double active = static_cast<double>(std::max<std::int64_t>(1, m.num_experts_per_tok));
  const double norms = 8 * static_cast<double>(m.hidden_size);  // two, each with the residual
  const double attention = 2 * heads * static_cast<double>(m.head_dim) / group;
  return norms + attention + 3 * active * static_cast<double>(m.intermediate_size) / group;
}

bool Divides(const ModelSpec& m, std::int64_t tp) {
  const bool kv = m.num_key_value_heads >= tp ? m.num_key_value_heads % tp == 0
                                              : tp % m.num_key_value_heads == 0;
  return m.num_attention_heads % tp == 0 && kv;
}

double KvGib(const Scenario& s, std::int64_t tp) {
  return s.hardware.memory_gib * s.engine.gpu_memory_utilization - WeightBytes(s.model, tp) / kGib -
         OverheadGib(s, tp);
}

Issue DoesNotFit(const Scenario& s, std::int64_t tp) {
  const double weights = WeightBytes(s.model, tp) / kGib;
  std::string enough;
  for (std::int64_t more = tp * 2; more <= 64; more *= 2) {
    if (!Divides(s.model, more)) continue;
    if (KvGib(s, more) * kGib < KvBytesPerToken(s.model, more) * 1024) continue;
    enough = fmt::format("; tensor_parallel {} would fit", more);
    break;
  }
  return {
      "/model",
      fmt::format("{} does not fit on {} x {}: weights {} GiB and {} GiB of engine overhead per "
                  "GPU, but {} GiB usable ({} GiB x gpu_memory_utilization {}){}",
                  s.model.name.empty() ? "the model" : s.model.name, tp,
                  s.hardware.name.empty() ? "the GPU" : s.hardware.name, ShortNumber(weights),
                  ShortNumber(OverheadGib(s, tp)),
                  ShortNumber(s.hardware.memory_gib * s.engine.gpu_memory_utilization),
                  NumberText(s.hardware.memory_gib), NumberText(s.engine.gpu_memory_utilization),
                  enough),
      "does_not_fit"};
}

}  // namespace

std::int64_t BytesPerValue(DType dtype) {
  switch (dtype) {
    case DType::kBfloat16:
    case DType::kFloat16:
      return 2;
  }
  return 2;
}

double ParameterCount(const ModelSpec& m) {
  return WeightBytes(m, 1) / static_cast<double>(BytesPerValue(m.torch_dtype));
}

Result<ModelCost> ComputeModelCost(const Scenario& s) {
  const ModelSpec& m = s.model;
  const std::int64_t tp = s.cluster.pools[0].tensor_parallel;
  if (!Divides(m, tp)) {
    return Issue{"/cluster/pools/0/tensor_parallel",
                 fmt::format("found {}, allowed a divisor of the model's {} attention heads that "
                             "divides, or is a multiple of, its {} KV heads",
                             tp, m.num_attention_heads, m.num_key_value_heads)};
  }
  ModelCost c;
  c.tensor_parallel = tp;
  c.layers = m.num_hidden_layers;
  c.experts = m.num_local_experts;
  c.experts_per_token = m.num_experts_per_tok;
  const auto group = static_cast<double>(tp);
  const auto layers = static_cast<double>(m.num_hidden_layers);
  const auto bytes = static_cast<double>(BytesPerValue(m.torch_dtype));
  const LayerParameters p = LayerOf(m, static_cast<double>(std::max(m.num_key_value_heads, tp)));
  const double active_experts = static_cast<double>(m.num_experts_per_tok) * p.expert;
  const double dense = layers * ((p.attention + p.dense_mlp) / group + p.router);
  c.dense_bytes = dense * bytes;
  c.dense_flops_per_token = 2 * dense;
  c.expert_bytes = layers * p.expert * static_cast<double>(m.num_local_experts) / group * bytes;
  c.expert_flops_per_token = 2 * layers * active_experts / group;
  const double lm_head = static_cast<double>(m.vocab_size * m.hidden_size) / group;
  c.lm_head_bytes = lm_head * bytes;
  c.lm_head_flops_per_token = 2 * lm_head;
  c.attention_flops_per_pair =
      4 * layers * static_cast<double>(m.num_attention_heads * m.head_dim) / group;
  const auto hidden = static_cast<double>(m.hidden_size);
  c.collective_bytes_per_token = hidden * bytes;
  c.activation_bytes_per_token = layers * bytes * ActivationsPerToken(m, tp);
  c.weight_bytes = WeightBytes(m, tp);
  c.kv_bytes_per_token = KvBytesPerToken(m, tp);

  c.total_gib = s.hardware.memory_gib;
  c.usable_gib = s.hardware.memory_gib * s.engine.gpu_memory_utilization;
  c.weights_gib = c.weight_bytes / kGib;
  c.overhead_gib = OverheadGib(s, tp);
  c.kv_gib = KvGib(s, tp);
  const double block_bytes = c.kv_bytes_per_token * static_cast<double>(s.engine.block_size);
  if (s.engine.num_gpu_blocks_override) {
    c.pool_blocks = *s.engine.num_gpu_blocks_override;
    c.kv_gib = static_cast<double>(c.pool_blocks) * block_bytes / kGib;
    // The override replaces the profile run's answer, not the memory that is there.
    if (c.weights_gib > c.usable_gib) return DoesNotFit(s, tp);
  } else {
    // At least the reserved block and one to use.
    if (c.kv_gib * kGib < 2 * block_bytes) return DoesNotFit(s, tp);
    c.pool_blocks = static_cast<std::int64_t>(c.kv_gib * kGib / block_bytes);
  }
  c.usable_blocks = c.pool_blocks - (s.engine.compat == Compat::kNone ? 1 : 0);
  return c;
}

}  // namespace servecast
