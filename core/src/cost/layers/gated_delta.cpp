// Gated delta net (Yang et al. 2024, arXiv:2412.06464; Qwen3-Next, transformers,
// modeling_qwen3_next.py): a matrix of state_key_dim x state_value_dim for each of state_heads.
#include "cost/layers/layer_kind.h"

namespace servecast::layer_gated_delta {
namespace {

std::int64_t ConvWidth(const LayerSpec& l) {
  return 2 * l.state_key_heads * l.state_key_dim + l.state_heads * l.state_value_dim;
}

std::int64_t StateBytes(const LayerInput& in) {
  const LayerSpec& l = in.layer;
  const std::int64_t tp = in.tensor_parallel;
  return (l.conv_kernel - 1) * (ConvWidth(l) / tp) * 2 +
         l.state_heads / tp * l.state_value_dim * l.state_key_dim * in.state_value_bytes();
}

std::string Lacks(const LayerInput& in) {
  const LayerSpec& l = in.layer;
  const NamedSize sizes[] = {{"state_heads", l.state_heads},
                             {"state_key_heads", l.state_key_heads},
                             {"state_key_dim", l.state_key_dim},
                             {"state_value_dim", l.state_value_dim},
                             {"conv_kernel", l.conv_kernel}};
  return FirstZero(sizes);
}

LayerWork Work(const LayerInput& in) {
  const auto d = [](std::int64_t x) { return static_cast<double>(x); };
  const LayerSpec& l = in.layer;
  const double hidden = d(in.model.hidden_size), value = d(l.state_heads * l.state_value_dim);
  LayerWork w;
  // q, k, v, z; b and a; the output.
  w.split = hidden * (d(ConvWidth(l)) + value + 2 * d(l.state_heads)) + value * hidden;
  w.plain = d(ConvWidth(l) * l.conv_kernel + 2 * l.state_heads + l.state_value_dim);
  w.state_bytes = 2 * d(StateBytes(in));
  // Decay, S k, the outer product added, S q: 7 FLOPs an entry; the convolution.
  w.token_flops = (7 * value * d(l.state_key_dim) + 2 * d(ConvWidth(l) * l.conv_kernel)) /
                  d(in.tensor_parallel);
  return w;
}

}  // namespace

extern const LayerKindEntry kEntry = {
    .name = "gated_delta",
    .help = "gated delta net: a matrix for each head as its state",
    .lacks = OfWholeEngine(Lacks),
    .caches = OfWholeEngine(+[](const LayerInput& in) -> std::vector<KvLayer> {
      return {{.kind = KvKind::kState, .token_bytes = StateBytes(in), .block_size = 0}};
    }),
    .work = OfWholeEngine(Work),
};

}  // namespace servecast::layer_gated_delta
