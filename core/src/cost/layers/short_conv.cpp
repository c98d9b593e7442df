// A short convolution between two gates (LFM2; transformers, modeling_lfm2.py): its state is the
// last inputs.
#include "cost/layers/layer_kind.h"

namespace servecast::layer_short_conv {
namespace {

std::int64_t StateBytes(const LayerInput& in) {
  return (in.layer.conv_kernel - 1) * (in.layer.inner_size / in.tensor_parallel) * 2;
}

std::string Lacks(const LayerInput& in) {
  const NamedSize sizes[] = {{"inner_size", in.layer.inner_size},
                             {"conv_kernel", in.layer.conv_kernel}};
  return FirstZero(sizes);
}

LayerWork Work(const LayerInput& in) {
  const auto d = [](std::int64_t x) { return static_cast<double>(x); };
  const double hidden = d(in.model.hidden_size), inner = d(in.layer.inner_size);
  LayerWork w;
  w.split = 4 * hidden * inner;
  w.plain = inner * d(in.layer.conv_kernel);
  w.state_bytes = 2 * d(StateBytes(in));
  w.token_flops = 2 * inner * d(in.layer.conv_kernel) / d(in.tensor_parallel);
  return w;
}

}  // namespace

extern const LayerKindEntry kEntry = {
    .name = "short_conv",
    .help = "a short convolution between two gates",
    .lacks = OfWholeEngine(Lacks),
    .caches = OfWholeEngine(+[](const LayerInput& in) -> std::vector<KvLayer> {
      return {{.kind = KvKind::kState, .token_bytes = StateBytes(in), .block_size = 0}};
    }),
    .work = OfWholeEngine(Work),
};

}  // namespace servecast::layer_short_conv
