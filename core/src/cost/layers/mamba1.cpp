// Mamba (Gu and Dao 2023, arXiv:2312.00752; Jamba): inner_size channels with state_size values.
#include "cost/layers/layer_kind.h"

namespace servecast::layer_mamba1 {
namespace {

std::int64_t StateBytes(const LayerInput& in) {
  const LayerSpec& l = in.layer;
  const std::int64_t inner = l.inner_size / in.tensor_parallel;
  return (l.conv_kernel - 1) * inner * 2 + inner * l.state_size * in.state_value_bytes();
}

std::string Lacks(const LayerInput& in) {
  const LayerSpec& l = in.layer;
  const NamedSize sizes[] = {
      {"inner_size", l.inner_size}, {"state_size", l.state_size}, {"conv_kernel", l.conv_kernel}};
  return FirstZero(sizes);
}

LayerWork Work(const LayerInput& in) {
  const auto d = [](std::int64_t x) { return static_cast<double>(x); };
  const LayerSpec& l = in.layer;
  const double hidden = d(in.model.hidden_size), inner = d(l.inner_size), state = d(l.state_size);
  const double rank = d(CeilDiv(in.model.hidden_size, 16));  // of dt, where configs say "auto"
  LayerWork w;
  w.split = 3 * hidden * inner + inner * (2 * rank + 2 * state);
  w.plain = inner * (d(l.conv_kernel) + 1 + state + 2);
  w.state_bytes = 2 * d(StateBytes(in));
  w.token_flops = (6 * inner * state + 2 * inner * d(l.conv_kernel)) / d(in.tensor_parallel);
  return w;
}

}  // namespace

extern const LayerKindEntry kEntry = {
    .name = "mamba1",
    .help = "Mamba: state_size values for each of inner_size channels",
    .lacks = OfWholeEngine(Lacks),
    .caches = OfWholeEngine(+[](const LayerInput& in) -> std::vector<KvLayer> {
      return {{.kind = KvKind::kState, .token_bytes = StateBytes(in), .block_size = 0}};
    }),
    .work = OfWholeEngine(Work),
    .all_states = true,
};

}  // namespace servecast::layer_mamba1
