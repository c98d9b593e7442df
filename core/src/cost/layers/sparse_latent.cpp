// DeepSeek sparse attention (DSA; DeepSeek-V3.2-Exp, deepseek-ai/DeepSeek-V3.2-Exp,
// inference/model.py): an indexer with keys of its own scores all tokens, and latent attention sees
// the best of them.
#include "cost/layers/latent.h"

namespace servecast::layer_sparse_latent {
namespace {

// A key of the indexer is in 8 bits, with a scale of 32 (rule A1).
std::int64_t IndexBytes(const LayerInput& in) { return in.layer.index_head_dim + 4; }

// In 8 bits: 512 values, a scale of 32 bits for each 128 of them, and the rotated part in 16 bits
// (vLLM's fp8_ds_mla, 656 bytes).
std::int64_t LatentBytes(const LayerInput& in) {
  const ModelSpec& m = in.model;
  if (in.kv_value_bytes > 1) return (m.kv_lora_rank + m.qk_rope_head_dim) * in.kv_value_bytes;
  return m.kv_lora_rank + m.kv_lora_rank / 128 * 4 + m.qk_rope_head_dim * 2;
}

std::string Lacks(const LayerInput& in) {
  const NamedSize sizes[] = {{"index_n_heads", in.layer.index_n_heads},
                             {"index_head_dim", in.layer.index_head_dim},
                             {"index_topk", in.layer.index_topk},
                             {"kv_lora_rank of the model", in.model.kv_lora_rank},
                             {"q_lora_rank of the model", in.model.q_lora_rank}};
  return FirstZero(sizes);
}

LayerWork Work(const LayerInput& in) {
  const auto d = [](std::int64_t x) { return static_cast<double>(x); };
  LayerWork w = LatentWork(in);
  const double dim = d(in.layer.index_head_dim), heads = d(in.layer.index_n_heads);
  // wq_b, wk with its norm, weights_proj: each GPU has all heads.
  w.whole += d(in.model.q_lora_rank) * heads * dim + d(in.model.hidden_size) * (dim + heads);
  w.plain += 2 * dim;
  w.index_pair_flops = 2 * heads * dim;
  w.index_key_bytes = d(IndexBytes(in));
  w.chosen = d(in.layer.index_topk);
  w.key_bytes = d(LatentBytes(in));
  w.pair_flops = w.decode_pair_flops;  // the chosen keys of a prompt are latents, too
  return w;
}

}  // namespace

extern const LayerKindEntry kEntry = {
    .name = "sparse_latent",
    .help = "latent attention to index_topk tokens that an indexer chooses (DSA)",
    .lacks = OfWholeEngine(Lacks),
    .caches = OfWholeEngine(+[](const LayerInput& in) -> std::vector<KvLayer> {
      return {{.token_bytes = IndexBytes(in), .block_size = 0},
              {.token_bytes = LatentBytes(in), .block_size = 0}};
    }),
    .work = OfWholeEngine(Work),
    .least_block = 64,
};

}  // namespace servecast::layer_sparse_latent
