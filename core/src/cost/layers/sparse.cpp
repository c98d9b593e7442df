// Attention to what an indexer chooses, over plain keys and values (MSA; MiniMax-M3's config.json,
// sparse_attention_config). The config says heads and width of the indexer; that its key is one for
// all its heads, in 16 bits, is taken over from DSA.
#include "cost/layers/attention.h"

namespace servecast::layer_sparse {
namespace {

std::int64_t IndexBytes(const LayerInput& in) { return 2 * in.layer.index_head_dim; }

std::string Lacks(const LayerInput& in) {
  const NamedSize sizes[] = {{"index_n_heads", in.layer.index_n_heads},
                             {"index_head_dim", in.layer.index_head_dim},
                             {"index_topk", in.layer.index_topk}};
  return FirstZero(sizes);
}

LayerWork Work(const LayerInput& in) {
  const auto d = [](std::int64_t x) { return static_cast<double>(x); };
  LayerWork w = AttentionWork(in);
  const double dim = d(in.layer.index_head_dim), heads = d(in.layer.index_n_heads);
  w.whole += d(in.model.hidden_size) * dim * (heads + 1);
  w.index_pair_flops = 2 * heads * dim;
  w.index_key_bytes = d(IndexBytes(in));
  w.chosen = d(in.layer.index_topk);
  return w;
}

}  // namespace

extern const LayerKindEntry kEntry = {
    .name = "sparse",
    .help = "attention to index_topk tokens that an indexer chooses (MSA)",
    .lacks = OfWholeEngine(Lacks),
    .caches = OfWholeEngine(+[](const LayerInput& in) -> std::vector<KvLayer> {
      return {{.token_bytes = IndexBytes(in), .block_size = 0},
              {.token_bytes = KvTokenBytes(in), .block_size = 0}};
    }),
    .work = OfWholeEngine(Work),
};

}  // namespace servecast::layer_sparse
