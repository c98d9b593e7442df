// Latent attention (MLA; DeepSeek-V2, arXiv:2405.04434): the cache has one vector a token, which
// every GPU holds.
#pragma once

#include <vector>

#include "cost/layers/layer_kind.h"

namespace servecast {

inline std::string LatentLacks(const LayerInput& in) {
  const NamedSize sizes[] = {{"kv_lora_rank of the model", in.model.kv_lora_rank}};
  return FirstZero(sizes);
}

inline LayerWork LatentWork(const LayerInput& in) {
  const auto d = [](std::int64_t x) { return static_cast<double>(x); };
  const ModelSpec& m = in.model;
  const double hidden = d(m.hidden_size), heads = d(in.heads()), ranks = d(m.q_lora_rank);
  const double query = heads * d(m.qk_nope_head_dim + m.qk_rope_head_dim);
  const double value = d(m.v_head_dim > 0 ? m.v_head_dim : in.head_dim());
  LayerWork w;
  w.split = (m.q_lora_rank > 0 ? ranks : hidden) * query +
            d(m.kv_lora_rank) * heads * (d(m.qk_nope_head_dim) + value) + heads * value * hidden;
  w.whole = hidden * (ranks + d(m.kv_lora_rank + m.qk_rope_head_dim));
  const double own = heads / d(in.tensor_parallel);
  w.pair_flops = 2 * own * (d(m.qk_nope_head_dim + m.qk_rope_head_dim) + value);
  w.decode_pair_flops = 2 * own * d(2 * m.kv_lora_rank + m.qk_rope_head_dim);
  w.key_bytes = d((m.kv_lora_rank + m.qk_rope_head_dim) * in.kv_value_bytes);
  return w;
}

}  // namespace servecast
