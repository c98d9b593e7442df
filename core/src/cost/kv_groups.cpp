// See kv_groups.h.
#include "cost/kv_groups.h"

#include <numeric>
#include <utility>

namespace servecast {
namespace {

bool SameSpec(const KvLayer& a, const KvLayer& b) {
  return a.token_bytes == b.token_bytes && a.block_size == b.block_size && a.window == b.window &&
         a.chunked == b.chunked;
}

bool SameType(const KvLayer& a, const KvLayer& b) {
  return a.block_size == b.block_size && a.window == b.window && a.chunked == b.chunked;
}

std::int64_t PageBytes(const KvLayer& layer) { return layer.token_bytes * layer.block_size; }

KvGroup GroupOf(const KvLayer& layer, std::vector<std::int64_t> layers) {
  return {layer.block_size, layer.window, layer.chunked, std::move(layers)};
}

// A6: to the largest page, by longer blocks where that divides, else by padding.
void UnifyPages(std::vector<KvLayer>& layers, std::vector<std::int64_t>& pages) {
  const std::int64_t largest = *std::max_element(pages.begin(), pages.end());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (largest % pages[i] == 0) layers[i].block_size *= largest / pages[i];
    pages[i] = largest;
  }
}

}  // namespace

std::int64_t KvGroup::Planned(std::int64_t tokens, std::int64_t in_flight) const {
  if (window == 0) return CeilDiv(tokens, block_size);
  if (chunked) return CeilDiv(std::min(window + in_flight, tokens), block_size);
  return CeilDiv(std::min(window - 1 + in_flight, tokens), block_size) + 1;
}

std::int64_t KvGroups::Planned(std::int64_t tokens, std::int64_t in_flight) const {
  std::int64_t sum = 0;
  for (const KvGroup& group : groups) sum += group.Planned(tokens, in_flight);
  return sum;
}

std::int64_t KvGroups::BlockBytes(std::int64_t first, std::int64_t last) const {
  std::int64_t most = 0;
  for (const KvGroup& group : groups) {
    std::int64_t bytes = 0;
    for (const std::int64_t layer : group.layers) {
      if (layer >= first && layer < last) bytes += page_bytes[static_cast<std::size_t>(layer)];
    }
    most = std::max(most, bytes);
  }
  return most;
}

KvGroups GroupLayers(std::vector<KvLayer> layers, bool hybrid) {
  KvGroups made;
  if (!hybrid) {
    const auto full = std::find_if(layers.begin(), layers.end(),
                                   [](const KvLayer& layer) { return layer.window == 0; });
    const std::int64_t size = (full == layers.end() ? layers.begin() : full)->block_size;
    for (KvLayer& layer : layers) layer = {layer.token_bytes, size};
  }
  for (const KvLayer& layer : layers) made.page_bytes.push_back(PageBytes(layer));
  const bool one = std::all_of(layers.begin(), layers.end(), [&layers](const KvLayer& layer) {
    return SameType(layer, layers[0]);
  });
  if (one) {
    std::vector<std::int64_t> all(layers.size());
    std::iota(all.begin(), all.end(), 0);
    made.groups.push_back(GroupOf(layers[0], std::move(all)));
    return made;
  }
  UnifyPages(layers, made.page_bytes);
  std::vector<std::vector<std::int64_t>> buckets;  // of equal layers, by first appearance
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto bucket = std::find_if(buckets.begin(), buckets.end(), [&](const auto& b) {
      return SameSpec(layers[static_cast<std::size_t>(b[0])], layers[i]);
    });
    const auto place = static_cast<std::int64_t>(i);
    if (bucket == buckets.end()) {
      buckets.push_back({place});
    } else {
      bucket->push_back(place);
    }
  }
  std::size_t least = layers.size(), most = 0;
  for (const auto& bucket : buckets) {
    least = std::min(least, bucket.size());
    most = std::max(most, bucket.size());
  }
  const std::size_t size = 2 * most < 3 * least ? most : least;  // layers of a group
  for (const auto& bucket : buckets) {
    const std::size_t count = (bucket.size() + size - 1) / size;
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<std::int64_t> own;
      for (std::size_t j = i; j < bucket.size(); j += count) own.push_back(bucket[j]);
      made.groups.push_back(GroupOf(layers[static_cast<std::size_t>(bucket[0])], std::move(own)));
    }
  }
  return made;
}

}  // namespace servecast
