// See matrix_operators.h.
#include "cost/matrix_operators.h"

#include <algorithm>

#include "base/base.h"

namespace servecast {
namespace {

void AddAttention(const ModelSpec& m, std::int64_t tp, const MatrixOperator& like,
                  std::vector<MatrixOperator>& out) {
  const auto add = [&](const char* name, std::int64_t n, std::int64_t k) {
    if (n > 0 && k > 0) out.push_back({name, n, k, like.layers, like.weight_bytes, like.type});
  };
  const std::int64_t heads = m.num_attention_heads / tp, hidden = m.hidden_size;
  if (!Latent(m)) {
    add("qkv_proj", (heads + 2 * KvHeads(m, tp)) * m.head_dim, hidden);
    add("o_proj", hidden, heads * m.head_dim);
    return;
  }
  add("latents", m.q_lora_rank + m.kv_lora_rank + m.qk_rope_head_dim, hidden);
  add("q_b_proj", heads * (m.qk_nope_head_dim + m.qk_rope_head_dim),
      m.q_lora_rank > 0 ? m.q_lora_rank : hidden);
  add("kv_b_proj", heads * (m.qk_nope_head_dim + m.v_head_dim), m.kv_lora_rank);
  add("o_proj", hidden, heads * m.v_head_dim);
}

// Bytes of a weight of the matrices outside experts, from what the cost model adds up.
double DenseWeightBytes(const ModelSpec& m, const ModelCost& c) {
  const double router = Real(ExpertLayers(m)) * Real(m.hidden_size * m.num_local_experts);
  return (c.dense_bytes - router * Real(BytesPerValue(m.torch_dtype))) /
         (c.dense_flops_per_token / 2 - router);
}

}  // namespace

std::int64_t KvHeads(const ModelSpec& m, std::int64_t tp) {
  return CeilDiv(std::max(m.num_key_value_heads, tp), tp);
}

std::vector<MatrixOperator> MatrixOperatorsOf(const ModelSpec& m, const ModelCost& c) {
  const std::int64_t tp = c.tensor_parallel, hidden = m.hidden_size;
  const double plain = Real(BytesPerValue(m.torch_dtype)), bytes = DenseWeightBytes(m, c);
  const double layers = Real(m.num_hidden_layers), with_experts = Real(ExpertLayers(m));
  std::vector<MatrixOperator> out;
  AddAttention(m, tp, {"", 0, 0, layers, bytes, c.dense_type}, out);
  const auto mlp = [&](std::int64_t width, double of_layers) {
    if (width == 0 || of_layers == 0) return;
    out.push_back({"gate_up_proj", CeilDiv((m.mlp_matrices - 1) * width, tp), hidden, of_layers,
                   bytes, c.dense_type});
    out.push_back({"down_proj", hidden, CeilDiv(width, tp), of_layers, bytes, c.dense_type});
  };
  mlp(m.num_local_experts > 0 ? m.dense_intermediate_size : m.intermediate_size,
      layers - with_experts);
  mlp(m.shared_expert_intermediate_size, with_experts);
  if (with_experts > 0) {
    out.push_back({"router", m.num_local_experts, hidden, with_experts, plain, MatrixType::k16});
  }
  out.push_back({"lm_head", CeilDiv(m.vocab_size, tp), hidden, 1, plain, MatrixType::k16});
  return out;
}

}  // namespace servecast
