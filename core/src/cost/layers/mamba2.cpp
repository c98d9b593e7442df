// Mamba 2 (Dao and Gu 2024, arXiv:2405.21060; Nemotron-H, Granite 4, Falcon-H1): state_heads of
// state_value_dim channels, each with state_size values.
#include "cost/layers/layer_kind.h"

namespace servecast::layer_mamba2 {
namespace {

std::int64_t InnerSize(const LayerSpec& l) {
  return l.inner_size > 0 ? l.inner_size : l.state_heads * l.state_value_dim;
}

// Groups that do not divide over the GPUs are copied (rule A1).
std::int64_t Groups(const LayerInput& in) {
  const std::int64_t groups = in.layer.state_groups, tp = in.tensor_parallel;
  return groups % tp == 0 ? groups : groups + (tp - groups);
}

std::int64_t ConvWidth(const LayerSpec& l, std::int64_t groups) {
  return InnerSize(l) + 2 * groups * l.state_size;
}

std::int64_t StateBytes(const LayerInput& in) {
  const LayerSpec& l = in.layer;
  const std::int64_t tp = in.tensor_parallel;
  return (l.conv_kernel - 1) * (ConvWidth(l, Groups(in)) / tp) * 2 +
         l.state_heads / tp * l.state_value_dim * l.state_size * in.state_value_bytes();
}

std::string Lacks(const LayerInput& in) {
  const LayerSpec& l = in.layer;
  const NamedSize sizes[] = {{"state_heads", l.state_heads},
                             {"state_value_dim", l.state_value_dim},
                             {"state_size", l.state_size},
                             {"state_groups", l.state_groups},
                             {"conv_kernel", l.conv_kernel}};
  return FirstZero(sizes);
}

LayerWork Work(const LayerInput& in) {
  const auto d = [](std::int64_t x) { return static_cast<double>(x); };
  const LayerSpec& l = in.layer;
  const double hidden = d(in.model.hidden_size), inner = d(InnerSize(l));
  const double conv = d(ConvWidth(l, l.state_groups));
  LayerWork w;
  w.split = hidden * (inner + conv + d(l.state_heads)) + inner * hidden;  // z, x, B, C, dt; out
  w.plain = conv * d(l.conv_kernel + 1) + 3 * d(l.state_heads) + inner;
  w.state_bytes = 2 * d(StateBytes(in));
  // Decay, the input added, the output: 5 FLOPs a value of the state; the convolution.
  w.token_flops =
      (5 * inner * d(l.state_size) + 2 * conv * d(l.conv_kernel)) / d(in.tensor_parallel);
  return w;
}

}  // namespace

extern const LayerKindEntry kEntry = {
    .name = "mamba2",
    .help = "Mamba 2: state_size values for each channel of its heads",
    .lacks = OfWholeEngine(Lacks),
    .caches = OfWholeEngine(+[](const LayerInput& in) -> std::vector<KvLayer> {
      return {{.kind = KvKind::kState, .token_bytes = StateBytes(in), .block_size = 0}};
    }),
    .work = OfWholeEngine(Work),
    .all_states = true,
};

}  // namespace servecast::layer_mamba2
