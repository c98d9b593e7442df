// See model_bytes.h. Architecture: Llama-style decoder with an MLP of three matrices, or two
// without a gate, grouped-query or latent attention, RMSNorm; a mixture of experts, perhaps beside
// shared ones, in every layer but `num_dense_layers` when there are experts.
#include "cost/model_bytes.h"

#include <algorithm>
#include <vector>

#include "base/base.h"

namespace servecast {

LayerMlp MlpOf(const ModelSpec& m, const LayerSpec& layer, std::int64_t i) {
  if (layer.mlp != LayerMlp::kAuto) return layer.mlp;
  return m.num_local_experts > 0 && i >= m.num_dense_layers ? LayerMlp::kExperts : LayerMlp::kDense;
}

namespace {

// Of a model with a list of layers.
LayerParameters ParametersOfList(const ModelSpec& m, std::int64_t tp) {
  LayerParameters p;
  const double hidden = D(m.hidden_size), matrices = D(m.mlp_matrices);
  const double expert_width = D(m.expert_hidden_size > 0 ? m.expert_hidden_size : m.hidden_size);
  std::int64_t i = 0;
  for (const LayerSpec& layer : LayersOf(m)) {
    const LayerWork w = FindLayerKind(layer.kind).work(InputOf(m, layer, tp));
    p.split += w.split;
    p.whole += w.whole;
    p.norms += w.plain;
    const LayerMlp mlp = MlpOf(m, layer, i++);
    const bool mixes = layer.kind != "none";
    p.norms += hidden * ((mixes ? 1 : 0) + (mlp != LayerMlp::kNone ? 1 : 0));
    const auto width = [&](std::int64_t models) {
      return D(layer.intermediate_size > 0 ? layer.intermediate_size : models);
    };
    if (mlp == LayerMlp::kDense) {
      const bool experts = m.num_local_experts > 0 && m.dense_intermediate_size > 0;
      p.split +=
          matrices * hidden * width(experts ? m.dense_intermediate_size : m.intermediate_size);
    } else if (mlp == LayerMlp::kExperts) {
      p.split += matrices * hidden * D(m.shared_expert_intermediate_size);
      if (m.expert_hidden_size > 0) p.split += 2 * hidden * expert_width;
      p.router += hidden * D(m.num_local_experts);
      p.experts += matrices * expert_width * width(m.intermediate_size) * D(m.num_local_experts);
    }
  }
  return p;
}

// Of a weight, with its scales: of integers one of 16 bits for a group, and its zero point; one of
// 8 for 16 in NVFP4 and for 32 in MXFP4; one of 32 for 64 in NF4 (bitsandbytes' blocks). Scales by
// row count as nothing.
double QuantizedBytes(Quantization quantization, const ModelSpec& m) {
  const double plain = D(BytesPerValue(m.torch_dtype));
  const auto scaled = [&m](double bytes, std::int64_t otherwise) {
    const std::int64_t group =
        m.quantization_group_size > 0 ? m.quantization_group_size : otherwise;
    return group > 0 ? bytes + (2 + (m.quantization_zero_points ? bytes : 0)) / D(group) : bytes;
  };
  switch (quantization) {
    case Quantization::kNone:
      return plain;
    case Quantization::kFp8:
    case Quantization::kInt8:
      return 1;
    case Quantization::kInt4:
      return scaled(0.5, 128);
    case Quantization::kInt8W8A16:
      return scaled(1, 0);
    case Quantization::kNf4:
      return scaled(0.5, 32);
    case Quantization::kNvfp4:
      return 0.5625;
    case Quantization::kMxfp4:
    case Quantization::kMxfp4All:
      return 0.53125;
  }
  return plain;
}

}  // namespace

LayerParameters ParametersOf(const ModelSpec& m, std::int64_t tp) {
  if (!m.layers.empty()) return ParametersOfList(m, tp);
  const double kv_heads = D(std::max(m.num_key_value_heads, tp));
  const double hidden = D(m.hidden_size), layers = D(m.num_hidden_layers);
  const double expert_layers = D(ExpertLayers(m)), matrices = D(m.mlp_matrices);
  LayerParameters p;
  if (Latent(m)) {
    const double query = D(m.num_attention_heads * (m.qk_nope_head_dim + m.qk_rope_head_dim));
    const double ranks = D(m.q_lora_rank);
    p.split =
        layers * ((m.q_lora_rank > 0 ? ranks : hidden) * query +
                  D(m.kv_lora_rank * m.num_attention_heads * (m.qk_nope_head_dim + m.v_head_dim)) +
                  D(m.num_attention_heads * m.v_head_dim) * hidden);
    p.whole = layers * hidden * (ranks + D(m.kv_lora_rank + m.qk_rope_head_dim));
  } else {
    const double q_size = D(m.num_attention_heads * m.head_dim);
    const double kv_size = kv_heads * D(m.head_dim);
    p.split = layers *
              (hidden * (2 * q_size + 2 * kv_size) + (m.attention_bias ? q_size + 2 * kv_size : 0));
  }
  const double dense_width =
      D(m.num_local_experts > 0 ? m.dense_intermediate_size : m.intermediate_size);
  p.split += matrices * hidden *
             ((layers - expert_layers) * dense_width +
              expert_layers * D(m.shared_expert_intermediate_size));
  p.router = expert_layers * hidden * D(m.num_local_experts);
  p.experts = expert_layers * matrices * hidden * D(m.intermediate_size * m.num_local_experts);
  p.norms = layers * 2 * hidden;
  return p;
}

double DenseBytes(const ModelSpec& m) {
  return QuantizedBytes(
      m.quantization == Quantization::kMxfp4 ? Quantization::kNone : m.quantization, m);
}

Quantization ExpertQuantization(const ModelSpec& m) {
  return m.expert_quantization != Quantization::kNone ? m.expert_quantization : m.quantization;
}

double ExpertBytes(const ModelSpec& m) { return QuantizedBytes(ExpertQuantization(m), m); }

// What a step reads and writes for a weight. bitsandbytes writes NF4 out in 16 bits and reads that
// in a product of its own, whatever the rows but one (bitsandbytes' matmul_4bit, which vLLM's
// bitsandbytes.py calls): 4 bytes more. Others unpack in registers.
double MovedBytes(Quantization quantization, double stored) {
  return stored + (quantization == Quantization::kNf4 ? 4 : 0);
}

// Integers whose activations are not rounded are unpacked to 16 bits, and so is what the GPU has no
// products of.
MatrixType ComputedIn(Quantization quantization, const HardwareSpec& h) {
  const bool four = quantization == Quantization::kNvfp4 || quantization == Quantization::kMxfp4 ||
                    quantization == Quantization::kMxfp4All;
  if (four && h.peak_fp4_tflops > 0) return MatrixType::k4;
  if (quantization == Quantization::kInt8 && h.peak_int8_tops > 0) return MatrixType::kInt8;
  if (quantization == Quantization::kFp8 && h.peak_fp8_tflops > 0) return MatrixType::k8;
  return MatrixType::k16;
}

double ExpertShare(const ModelSpec& m, const EngineSpec& e, std::int64_t gpus) {
  if (!e.enable_expert_parallel || m.num_local_experts == 0) return 1 / D(gpus);
  return D(CeilDiv(m.num_local_experts, gpus)) / D(m.num_local_experts);
}

double WeightBytes(const ModelSpec& m, std::int64_t tp, int tables, double expert_share) {
  const double plain = D(BytesPerValue(m.torch_dtype));
  const LayerParameters p = ParametersOf(m, tp);
  const double table = D(m.vocab_size * m.hidden_size) / D(tp);
  return (p.split / D(tp) + p.whole) * DenseBytes(m) + p.experts * expert_share * ExpertBytes(m) +
         (p.router + p.norms + table * tables + D(m.hidden_size)) * plain;
}

double KvBytes(const ModelSpec& m, KvCacheDType dtype, std::int64_t tp, std::int64_t layers) {
  if (!m.layers.empty()) {  // of what grows with the tokens
    double bytes = 0;
    for (const LayerSpec& layer : LayersOf(m)) {
      for (const KvLayer& cache : FindLayerKind(layer.kind).caches(InputOf(m, layer, tp, dtype))) {
        const bool grows = cache.kind == KvKind::kFull || cache.kind == KvKind::kChunked;
        if (grows) bytes += D(cache.token_bytes) / D(cache.ratio);
      }
    }
    return bytes;
  }
  const std::int64_t bytes = dtype == KvCacheDType::kFp8 ? 1 : BytesPerValue(m.torch_dtype);
  if (Latent(m)) return D(layers * (m.kv_lora_rank + m.qk_rope_head_dim) * bytes);
  const std::int64_t heads_per_gpu = CeilDiv(std::max(m.num_key_value_heads, tp), tp);
  return 2.0 * D(layers * heads_per_gpu * m.head_dim * bytes);
}

double ActivationsPerToken(const ModelSpec& m, std::int64_t tp) {
  const double heads =
      D((m.num_attention_heads + 2 * std::max(m.num_key_value_heads, tp)) * m.head_dim);
  const double active = D(std::max<std::int64_t>(1, m.num_experts_per_tok));
  const double norms = 8 * D(m.hidden_size);  // two, each with the residual
  const double mlp = active * D(m.intermediate_size) + D(m.shared_expert_intermediate_size);
  return D(m.num_hidden_layers) * (norms + (2 * heads + D(m.mlp_matrices) * mlp) / D(tp));
}

bool Divides(const ModelSpec& m, std::int64_t tp) {
  const auto divided = [tp](std::int64_t count) { return count == 0 || count % tp == 0; };
  for (const LayerSpec& layer : m.layers) {
    const bool kv = layer.num_key_value_heads >= tp
                        ? layer.num_key_value_heads % tp == 0
                        : layer.num_key_value_heads == 0 || tp % layer.num_key_value_heads == 0;
    if (!kv || !divided(layer.num_attention_heads) || !divided(layer.state_heads) ||
        !divided(layer.inner_size)) {
      return false;
    }
  }
  const bool kv = m.num_key_value_heads >= tp ? m.num_key_value_heads % tp == 0
                                              : tp % m.num_key_value_heads == 0;
  return m.num_attention_heads % tp == 0 && kv;
}

VisionParameters VisionParametersOf(const ModelSpec& m) {
  const VisionSpec& v = m.vision;
  if (!v.On()) return {};
  const double width = D(v.hidden_size), merged = D(v.merge_size * v.merge_size) * width;
  return {D(v.num_hidden_layers) *
              (4 * width * width + D(v.mlp_matrices * v.intermediate_size) * width),
          D(v.num_mergers) * (merged * merged + merged * D(m.hidden_size))};
}

std::int64_t EmbedBytes(const ModelSpec& m) {
  return m.hidden_size * std::max<std::int64_t>(m.vision.num_mergers, 1) *
         BytesPerValue(m.torch_dtype);
}

// Values of one LoRA adapter on a GPU: of each matrix n x m of a layer A (rank x n) and B (m x
// rank). As vLLM shards them without fully_sharded_loras: q, k, v, gate and up have all of A and a
// slice of B, o and down a slice of A and all of B. None of embedding and LM head.
double AdapterValues(const ModelSpec& m, std::int64_t rank, std::int64_t tp) {
  const double hidden = D(m.hidden_size), group = D(tp);
  const double q = D(m.num_attention_heads * m.head_dim) / group;
  const double kv = D(std::max(m.num_key_value_heads, tp) * m.head_dim) / group;
  const double mlp = D(m.intermediate_size) / group;
  const double attention = 2 * (hidden + q) + 2 * (hidden + kv);
  return D(m.num_hidden_layers * rank) * (attention + D(m.mlp_matrices) * (hidden + mlp));
}

}  // namespace servecast
