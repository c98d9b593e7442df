// Kimi delta attention (Kimi Linear, arXiv:2510.26692; moonshotai/Kimi-Linear-48B-A3B,
// modeling_kimi.py): a gated delta net whose decay is by channel; its state is in 32 bits.
#include "cost/layers/layer_kind.h"

namespace servecast::layer_kimi_delta {
namespace {

std::int64_t StateBytes(const LayerInput& in) {
  const LayerSpec& l = in.layer;
  const std::int64_t tp = in.tensor_parallel, width = l.state_heads * l.state_key_dim;
  return (l.conv_kernel - 1) * (3 * width / tp) * 2 +
         l.state_heads / tp * l.state_key_dim * l.state_key_dim * 4;
}

std::string Lacks(const LayerInput& in) {
  const LayerSpec& l = in.layer;
  const NamedSize sizes[] = {{"state_heads", l.state_heads},
                             {"state_key_dim", l.state_key_dim},
                             {"conv_kernel", l.conv_kernel}};
  return FirstZero(sizes);
}

LayerWork Work(const LayerInput& in) {
  const auto d = [](std::int64_t x) { return static_cast<double>(x); };
  const LayerSpec& l = in.layer;
  const double hidden = d(in.model.hidden_size), dim = d(l.state_key_dim);
  const double width = d(l.state_heads) * dim;
  LayerWork w;
  // q, k, v and the output; beta; decay and output gate through a head's width.
  w.split = 4 * hidden * width + hidden * d(l.state_heads) + 2 * dim * width;
  w.whole = 2 * hidden * dim;
  w.plain = 3 * width * d(l.conv_kernel) + width + d(l.state_heads) + dim;
  w.state_bytes = 2 * d(StateBytes(in));
  w.token_flops = (7 * width * dim + 6 * width * d(l.conv_kernel)) / d(in.tensor_parallel);
  return w;
}

}  // namespace

extern const LayerKindEntry kEntry = {
    .name = "kimi_delta",
    .help = "Kimi delta attention: a gated delta net with a decay for each channel",
    .lacks = OfWholeEngine(Lacks),
    .caches = OfWholeEngine(+[](const LayerInput& in) -> std::vector<KvLayer> {
      return {{.kind = KvKind::kState, .token_bytes = StateBytes(in), .block_size = 0}};
    }),
    .work = OfWholeEngine(Work),
};

}  // namespace servecast::layer_kimi_delta
