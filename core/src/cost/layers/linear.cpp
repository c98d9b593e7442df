// Linear attention with a fixed decay (lightning attention, Qin et al. 2024, arXiv:2401.04658;
// MiniMax-Text-01): a square matrix for each head.
#include "cost/layers/layer_kind.h"

namespace servecast::layer_linear {
namespace {

std::int64_t StateBytes(const LayerInput& in) {
  const LayerSpec& l = in.layer;
  return l.state_heads / in.tensor_parallel * l.state_key_dim * l.state_key_dim * 2;
}

std::string Lacks(const LayerInput& in) {
  const NamedSize sizes[] = {{"state_heads", in.layer.state_heads},
                             {"state_key_dim", in.layer.state_key_dim}};
  return FirstZero(sizes);
}

LayerWork Work(const LayerInput& in) {
  const auto d = [](std::int64_t x) { return static_cast<double>(x); };
  const LayerSpec& l = in.layer;
  const double hidden = d(in.model.hidden_size), width = d(l.state_heads * l.state_key_dim);
  LayerWork w;
  w.split = 5 * hidden * width;  // q, k, v, the gate, the output
  w.plain = width;
  w.state_bytes = 2 * d(StateBytes(in));
  w.token_flops = 5 * width * d(l.state_key_dim) / d(in.tensor_parallel);
  return w;
}

}  // namespace

extern const LayerKindEntry kEntry = {
    .name = "linear",
    .help = "linear attention with a fixed decay: a square matrix for each head",
    .lacks = OfWholeEngine(Lacks),
    .caches = OfWholeEngine(+[](const LayerInput& in) -> std::vector<KvLayer> {
      return {{.kind = KvKind::kState, .token_bytes = StateBytes(in), .block_size = 0}};
    }),
    .work = OfWholeEngine(Work),
};

}  // namespace servecast::layer_linear
