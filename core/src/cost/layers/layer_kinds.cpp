// See layer_kind.h.
#include <algorithm>
#include <array>

#include "base/base.h"
#include "cost/layers/layer_kind.h"

namespace servecast {

// clang-format off
namespace layer_full { extern const LayerKindEntry kEntry; }
namespace layer_sliding { extern const LayerKindEntry kEntry; }
namespace layer_chunked { extern const LayerKindEntry kEntry; }
namespace layer_latent { extern const LayerKindEntry kEntry; }
namespace layer_sparse { extern const LayerKindEntry kEntry; }
namespace layer_sparse_latent { extern const LayerKindEntry kEntry; }
namespace layer_compressed { extern const LayerKindEntry kEntry; }
namespace layer_gated_delta { extern const LayerKindEntry kEntry; }
namespace layer_kimi_delta { extern const LayerKindEntry kEntry; }
namespace layer_mamba2 { extern const LayerKindEntry kEntry; }
namespace layer_mamba1 { extern const LayerKindEntry kEntry; }
namespace layer_linear { extern const LayerKindEntry kEntry; }
namespace layer_short_conv { extern const LayerKindEntry kEntry; }
namespace layer_none { extern const LayerKindEntry kEntry; }
// clang-format on

namespace {

constexpr std::array kKinds = {
    &layer_full::kEntry,        &layer_sliding::kEntry,       &layer_chunked::kEntry,
    &layer_latent::kEntry,      &layer_sparse_latent::kEntry, &layer_compressed::kEntry,
    &layer_gated_delta::kEntry, &layer_kimi_delta::kEntry,    &layer_mamba2::kEntry,
    &layer_mamba1::kEntry,      &layer_linear::kEntry,        &layer_short_conv::kEntry,
    &layer_sparse::kEntry,      &layer_none::kEntry};

}  // namespace

std::span<const LayerKindEntry* const> LayerKinds() { return kKinds; }

std::vector<std::string_view> LayerKindNames() {
  std::vector<std::string_view> names;
  for (const LayerKindEntry* kind : kKinds) names.push_back(kind->name);
  return names;
}

const LayerKindEntry& FindLayerKind(std::string_view name) {
  const auto at = std::find_if(kKinds.begin(), kKinds.end(),
                               [name](const LayerKindEntry* kind) { return kind->name == name; });
  SERVECAST_CHECK(at != kKinds.end(), "a kind of layers is registered");
  return **at;
}

bool HasLayerKinds(const ModelSpec& m) {
  return !m.layers.empty() || (m.sliding_window > 0 && m.num_sliding_layers > 0);
}

bool KnowsLayers(const ModelSpec& m) {
  return !HasLayerKinds(m) || FindLayerKind("sliding").work != nullptr;
}

std::vector<LayerSpec> LayersOf(const ModelSpec& m) {
  std::vector<LayerSpec> all;
  const auto count = static_cast<std::size_t>(m.num_hidden_layers);
  all.reserve(count);
  if (m.layers.empty()) {
    // Those with a window stand at even distances, the first of them in front.
    const std::int64_t sliding =
        m.sliding_window > 0 ? std::min(m.num_sliding_layers, m.num_hidden_layers) : 0;
    const auto before = [&](std::int64_t i) { return CeilDiv(sliding * i, m.num_hidden_layers); };
    const char* full = m.kv_lora_rank > 0 ? "latent" : "full";
    for (std::int64_t i = 0; i < m.num_hidden_layers; ++i) {
      const bool slides = before(i + 1) > before(i);
      LayerSpec& layer = all.emplace_back();
      layer.kind = slides ? "sliding" : full;
      if (slides) layer.window = m.sliding_window;
    }
    return all;
  }
  while (all.size() < count) {
    for (const LayerSpec& run : m.layers) {
      const auto copies = std::min(static_cast<std::size_t>(run.count), count - all.size());
      all.insert(all.end(), copies, run);
    }
  }
  for (LayerSpec& layer : all) layer.count = 1;
  return all;
}

std::string FirstZero(std::span<const NamedSize> sizes) {
  for (const NamedSize& each : sizes) {
    if (each.size <= 0) return each.name;
  }
  return "";
}

}  // namespace servecast
