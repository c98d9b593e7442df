// Softmax attention over keys and values: what full, sliding and chunked layers share.
#pragma once

#include <string>
#include <vector>

#include "cost/layers/layer_kind.h"

namespace servecast {

// Rule A1: per token, keys and values of the heads of this GPU.
inline std::int64_t KvTokenBytes(const LayerInput& in) {
  return in.kv_heads_of_gpu() * (in.head_dim() + in.v_head_dim()) * in.kv_value_bytes;
}

inline std::vector<KvLayer> AttentionCache(const LayerInput& in, KvKind kind,
                                           std::int64_t block_size) {
  if (in.layer.shares_kv) return {};
  return {{.kind = kind,
           .token_bytes = KvTokenBytes(in),
           .block_size = block_size,
           .window = kind == KvKind::kFull ? 0 : in.layer.window}};
}

// Projections q (with its gate), k, v and o; 2 FLOPs a multiply-add for q k^T and for p v.
inline LayerWork AttentionWork(const LayerInput& in) {
  const auto d = [](std::int64_t x) { return static_cast<double>(x); };
  const double hidden = d(in.model.hidden_size), heads = d(in.heads());
  const double kv = d(std::max(in.kv_heads(), in.tensor_parallel));
  const double query = heads * d(in.head_dim()), output = heads * d(in.v_head_dim());
  const double value = in.layer.k_eq_v ? 0 : d(in.v_head_dim());
  LayerWork w;
  w.split = hidden * (query + output + (in.layer.gated ? output : 0));
  if (!in.layer.shares_kv) w.split += hidden * kv * (d(in.head_dim()) + value);
  if (in.model.attention_bias) w.split += query + kv * (d(in.head_dim()) + value);
  w.pair_flops = 2 * heads / d(in.tensor_parallel) * d(in.head_dim() + in.v_head_dim());
  w.decode_pair_flops = w.pair_flops;
  w.key_bytes = d(KvTokenBytes(in));
  return w;
}

inline std::string AttentionLacks(const LayerInput& in, bool window) {
  const NamedSize sizes[] = {{"window", window ? in.layer.window : 1}};
  return FirstZero(sizes);
}

}  // namespace servecast
