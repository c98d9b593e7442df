// Compressed attention (DeepSeek-V4: CSA with ratio 4, HCA with ratio 128): the last 128 tokens as
// they are, and before them one entry for `compress_ratio` tokens; with ratio 4 an indexer chooses
// among these. Rule A13 has what is cached: 8-bit entries with scales, and the compressors' states
// in 32 bits, which are kept as windows.
#include "cost/layers/latent.h"

namespace servecast::layer_compressed {
namespace {

constexpr std::int64_t kPageUnit = 576, kWindowBlock = 64, kRotated = 64, kOverlapRatio = 4;

// Values of 8 bits, the rotated ones of 16, eight bytes of scales.
std::int64_t EntryBytes(const LayerInput& in) { return in.head_dim() + kRotated + 8; }

// Keys and scores of the tokens that the next entry is made of, with ratio 4 of the one before,
// too.
std::int64_t StateBytes(std::int64_t width, std::int64_t ratio) {
  return 2 * (ratio == kOverlapRatio ? 2 : 1) * width * 4;
}

KvLayer StateOf(std::int64_t width, std::int64_t ratio) {
  const bool overlaps = ratio == kOverlapRatio;
  return {.kind = KvKind::kSliding,
          .token_bytes = StateBytes(width, ratio),
          .block_size = overlaps ? 4 : 8,
          .window = overlaps ? 2 * ratio : ratio,
          .page_unit = kPageUnit};
}

std::vector<KvLayer> Caches(const LayerInput& in) {
  const std::int64_t ratio = in.layer.compress_ratio;
  const KvLayer window = {.kind = KvKind::kSliding,
                          .token_bytes = EntryBytes(in),
                          .block_size = kWindowBlock,
                          .window = in.layer.window,
                          .page_unit = kPageUnit};
  if (ratio == 0) return {window};
  const auto entries = [&](std::int64_t bytes) {
    return KvLayer{.token_bytes = bytes, .block_size = 0, .ratio = ratio, .page_unit = kPageUnit};
  };
  std::vector<KvLayer> all;
  if (ratio == kOverlapRatio) {
    all.push_back(entries(in.layer.index_head_dim + 4));
    all.push_back(StateOf(in.layer.index_head_dim, ratio));
  }
  all.push_back(window);
  all.push_back(entries(EntryBytes(in)));
  all.push_back(StateOf(in.head_dim(), ratio));
  return all;
}

std::string Lacks(const LayerInput& in) {
  const bool indexed = in.layer.compress_ratio == kOverlapRatio;
  const NamedSize sizes[] = {{"window", in.layer.window},
                             {"index_n_heads", indexed ? in.layer.index_n_heads : 1},
                             {"index_head_dim", indexed ? in.layer.index_head_dim : 1},
                             {"index_topk", indexed ? in.layer.index_topk : 1},
                             {"q_lora_rank of the model", in.model.q_lora_rank}};
  return FirstZero(sizes);
}

LayerWork Work(const LayerInput& in) {
  const auto d = [](std::int64_t x) { return static_cast<double>(x); };
  const double hidden = d(in.model.hidden_size), rank = d(in.model.q_lora_rank);
  const double heads = d(in.heads()), dim = d(in.head_dim());
  const std::int64_t ratio = in.layer.compress_ratio;
  LayerWork w;
  // wq_b and wo_a by heads; wo_b from 8 groups of latents as wide as the query's; wq_a and wkv.
  constexpr double kOutputGroups = 8;
  w.split = rank * heads * dim + heads * dim * rank + kOutputGroups * rank * hidden;
  w.whole = hidden * (rank + dim);
  w.plain = heads + rank + dim;
  w.pair_flops = w.decode_pair_flops = 4 * heads / d(in.tensor_parallel) * dim;
  w.key_bytes = d(EntryBytes(in));
  w.reach = d(in.layer.window);
  if (ratio == 0) return w;
  const bool overlaps = ratio == kOverlapRatio;
  const double copies = overlaps ? 2 : 1;
  const auto compressor = [&](double width) {
    w.whole += 2 * hidden * copies * width;
    w.plain += d(ratio) * copies * width + width;
  };
  compressor(dim);
  w.tokens_of_key = d(ratio);
  w.state_bytes = 2 * d(StateBytes(in.head_dim(), ratio));
  if (!overlaps) return w;
  const double index_dim = d(in.layer.index_head_dim), index_heads = d(in.layer.index_n_heads);
  compressor(index_dim);
  w.whole += rank * index_heads * index_dim + hidden * index_heads;
  w.index_pair_flops = 2 * index_heads * index_dim / d(ratio);
  w.index_key_bytes = d(in.layer.index_head_dim + 4) / d(ratio);
  w.chosen = d(in.layer.index_topk);
  return w;
}

}  // namespace

extern const LayerKindEntry kEntry = {
    .name = "compressed",
    .help =
        "attention to the last `window` tokens and to entries for compress_ratio tokens each "
        "(CSA, HCA)",
    .lacks = OfWholeEngine(Lacks),
    .caches = OfWholeEngine(Caches),
    .work = OfWholeEngine(Work),
    .least_block = 256,
};

}  // namespace servecast::layer_compressed
