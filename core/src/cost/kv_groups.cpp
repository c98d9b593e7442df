// See kv_groups.h.
#include "cost/kv_groups.h"

#include <map>
#include <numeric>
#include <utility>

namespace servecast {
namespace {

constexpr std::int64_t kChunkOfStates = 2048;  // where the model names none
constexpr std::int64_t kLeastLatentBlock = 128;

bool IsState(const KvLayer& layer) { return layer.kind == KvKind::kState; }

std::int64_t PageBytes(const KvLayer& layer) {
  if (IsState(layer)) return layer.token_bytes;
  const std::int64_t bytes = CeilDiv(layer.block_size, layer.ratio) * layer.token_bytes;
  return CeilDiv(bytes, layer.page_unit) * layer.page_unit;
}

bool SameSpec(const KvLayer& a, const KvLayer& b) {
  return a.kind == b.kind && a.token_bytes == b.token_bytes && a.block_size == b.block_size &&
         a.window == b.window && a.ratio == b.ratio && a.former_window == b.former_window;
}

bool SameType(const KvLayer& a, const KvLayer& b) {
  return a.kind == b.kind && a.block_size == b.block_size && a.window == b.window && !IsState(a);
}

KvGroup GroupOf(const KvLayer& layer, const KvRules& rules, std::vector<std::int64_t> layers) {
  return {layer.kind, layer.block_size, layer.window, rules.Mode(), std::move(layers), false};
}

// A2 and A3: the block of full attention, raised until a state fits its page.
std::int64_t AttentionBlock(const std::vector<KvLayer>& layers, const KvRules& rules) {
  std::int64_t state = 0;
  for (const KvLayer& layer : layers) {
    if (IsState(layer)) state = std::max(state, layer.token_bytes);
  }
  if (state == 0) return rules.block_size;
  std::int64_t k = std::max(rules.kernel_block, rules.block_size);
  if (rules.latent) k = std::max(k, kLeastLatentBlock);
  const std::int64_t token = std::max<std::int64_t>(1, rules.full_token_bytes);
  if (rules.Mode() != StateMode::kAll) return std::max(k, k * CeilDiv(state, k * token));
  const std::int64_t chunk =
      std::lcm(rules.state_chunk > 0 ? rules.state_chunk : kChunkOfStates, k);
  return chunk * CeilDiv(CeilDiv(state, token), chunk);
}

// A6 (4): to the largest page, by longer blocks where that divides, else by padding.
void UnifyPages(std::vector<KvLayer>& layers, std::vector<std::int64_t>& pages) {
  const std::int64_t largest = *std::max_element(pages.begin(), pages.end());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!IsState(layers[i]) && largest % pages[i] == 0) {
      layers[i].block_size *= largest / pages[i];
    }
    pages[i] = largest;
  }
}

// Equal layers by the place of the first of them.
template <class Equal>
std::vector<std::vector<std::int64_t>> Buckets(std::size_t count, Equal equal) {
  std::vector<std::vector<std::int64_t>> buckets;
  for (std::size_t i = 0; i < count; ++i) {
    const auto bucket = std::find_if(buckets.begin(), buckets.end(), [&](const auto& b) {
      return equal(static_cast<std::size_t>(b[0]), i);
    });
    const auto place = static_cast<std::int64_t>(i);
    if (bucket == buckets.end()) {
      buckets.push_back({place});
    } else {
      bucket->push_back(place);
    }
  }
  return buckets;
}

// A13. By page size, the layers of a bucket; and the most of one size.
using BySize = std::map<std::int64_t, std::vector<std::int64_t>>;
BySize SizesOf(const std::vector<std::int64_t>& bucket, const std::vector<std::int64_t>& pages) {
  BySize sizes;
  for (const std::int64_t layer : bucket) {
    sizes[pages[static_cast<std::size_t>(layer)]].push_back(layer);
  }
  return sizes;
}
std::int64_t MostOfOneSize(const BySize& sizes) {
  std::size_t most = 0;
  for (const auto& [bytes, layers] : sizes) most = std::max(most, layers.size());
  return static_cast<std::int64_t>(most);
}

// The number of layers of a size that pads the least, of equals the largest.
std::int64_t LayersOfATuple(const std::vector<std::int64_t>& counts) {
  const std::int64_t largest = *std::max_element(counts.begin(), counts.end());
  std::int64_t best = counts[0], least = INT64_MAX;
  for (std::int64_t d = counts[0]; d <= largest; ++d) {
    std::int64_t padding = 0;
    for (const std::int64_t count : counts) padding += CeilDiv(count, d) * d - count;
    if (padding > least) continue;
    least = padding;
    best = d;
  }
  return best;
}

void GroupCompressed(const KvRules& rules, KvGroups& made) {
  const std::vector<KvLayer>& layers = made.layers;
  const auto of_window = [&](std::size_t i) { return layers[i].kind == KvKind::kSliding; };
  std::vector<std::vector<std::int64_t>> buckets =
      Buckets(layers.size(), [&](std::size_t a, std::size_t b) {
        if (!of_window(a) || !of_window(b)) return of_window(a) == of_window(b);
        return layers[a].block_size == layers[b].block_size && layers[a].window == layers[b].window;
      });
  std::stable_partition(buckets.begin(), buckets.end(), [&](const auto& bucket) {
    return !of_window(static_cast<std::size_t>(bucket[0]));
  });
  std::vector<std::int64_t> counts;
  for (const auto& bucket : buckets) {
    counts.push_back(MostOfOneSize(SizesOf(bucket, made.page_bytes)));
  }
  const std::int64_t tuple = LayersOfATuple(counts);
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const bool full = !of_window(static_cast<std::size_t>(buckets[b][0]));
    const std::int64_t split = full ? 1 : CeilDiv(counts[b], tuple);
    std::vector<KvGroup> groups;
    for (std::int64_t i = 0; i < split; ++i) {
      groups.push_back(GroupOf(layers[static_cast<std::size_t>(buckets[b][0])], rules, {}));
      groups.back().mixed = true;
    }
    for (const auto& [bytes, own] : SizesOf(buckets[b], made.page_bytes)) {
      for (std::size_t i = 0; i < own.size(); ++i) {
        groups[i % static_cast<std::size_t>(split)].layers.push_back(own[i]);
      }
    }
    for (KvGroup& group : groups) {
      std::sort(group.layers.begin(), group.layers.end());
      made.groups.push_back(std::move(group));
    }
  }
}

// A6 (4).
void GroupUnified(const KvRules& rules, KvGroups& made) {
  UnifyPages(made.layers, made.page_bytes);
  const std::vector<KvLayer>& layers = made.layers;
  const std::vector<std::vector<std::int64_t>> buckets = Buckets(
      layers.size(), [&](std::size_t a, std::size_t b) { return SameSpec(layers[a], layers[b]); });
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
      const KvLayer& first = layers[static_cast<std::size_t>(bucket[0])];
      made.groups.push_back(GroupOf(first, rules, std::move(own)));
    }
  }
}

void Group(const KvRules& rules, KvGroups& made) {
  const std::vector<KvLayer>& layers = made.layers;
  const auto all = [&](const auto& as_first) {
    return std::all_of(layers.begin(), layers.end(), as_first);
  };
  const bool equal = all([&](const KvLayer& layer) { return SameSpec(layer, layers[0]); });
  const bool one_type = all([&](const KvLayer& layer) { return SameType(layer, layers[0]); });
  const bool compressed = !all([](const KvLayer& layer) { return layer.page_unit == 1; });
  if (!equal && !one_type) {
    if (compressed) return GroupCompressed(rules, made);
    return GroupUnified(rules, made);
  }
  std::vector<std::int64_t> own(layers.size());
  std::iota(own.begin(), own.end(), 0);
  made.groups.push_back(GroupOf(layers[0], rules, std::move(own)));
  made.groups[0].mixed = !equal;
}

// A12.
void SetBlocks(const KvRules& rules, KvGroups& made) {
  std::int64_t least = INT64_MAX, all = 1, common = 0;
  bool states = false;
  for (const KvGroup& group : made.groups) {
    least = std::min(least, group.block_size);
    all = std::lcm(all, group.block_size);
    common = std::gcd(common, group.block_size);
    states = states || group.kind == KvKind::kState;
  }
  made.cache_block = least;
  made.scheduler_block = made.hash_block = all;
  if (made.groups.size() == 1 || !rules.prefix_caching) return;
  if (states && rules.Mode() != StateMode::kAlign) return;
  made.hash_block = rules.match_unit.value_or(common);
}

}  // namespace

std::int64_t KvGroup::Planned(std::int64_t tokens, const KvRules& rules) const {
  switch (kind) {
    case KvKind::kFull:
      break;
    case KvKind::kSliding:
      return CeilDiv(std::min(window - 1 + rules.in_flight, tokens), block_size) + 1;
    case KvKind::kChunked:
      return CeilDiv(std::min(window + rules.in_flight, tokens), block_size);
    case KvKind::kCross:
      return CeilDiv(rules.encoder_tokens, block_size);
    case KvKind::kState:
      if (mode == StateMode::kNone) return 1;
      if (mode == StateMode::kAlign) return 2;
      break;
  }
  return CeilDiv(tokens, block_size);
}

std::int64_t KvGroup::Asked(std::int64_t tokens, const KvRules& rules) const {
  if (kind == KvKind::kCross) return Planned(tokens, rules);
  if (kind == KvKind::kState && mode != StateMode::kAll) return 1;
  const std::int64_t blocks = CeilDiv(tokens, block_size);
  return std::min(blocks, Cap(rules).value_or(blocks));
}

std::int64_t KvGroups::Planned(std::int64_t tokens, const KvRules& rules) const {
  std::int64_t sum = 0;
  for (const KvGroup& group : groups) sum += group.Planned(tokens, rules);
  return sum;
}

std::int64_t KvGroups::Asked(std::int64_t tokens, const KvRules& rules) const {
  std::int64_t sum = 0;
  for (const KvGroup& group : groups) sum += group.Asked(tokens, rules);
  return sum;
}

std::int64_t KvGroups::Longest(std::int64_t blocks, std::int64_t most, const KvRules& rules) const {
  std::int64_t low = 0, high = most;
  while (low < high) {
    const std::int64_t middle = high - (high - low) / 2;
    if (Planned(middle, rules) <= blocks) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
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

KvGroups GroupLayers(std::vector<KvLayer> layers, const KvRules& rules) {
  KvGroups made;
  made.attention_block = AttentionBlock(layers, rules);
  const bool states = std::any_of(layers.begin(), layers.end(), IsState);
  if (states) {
    const bool none = rules.Mode() == StateMode::kNone;
    made.state_block = none ? rules.max_model_len : made.attention_block;
  }
  const std::int64_t padded = rules.full_token_bytes * made.attention_block;
  for (KvLayer& layer : layers) {
    const bool window = layer.kind == KvKind::kSliding || layer.kind == KvKind::kChunked;
    if (window && !rules.by_groups) {
      layer.former_window = layer.window;
      layer.kind = KvKind::kFull;
      layer.window = 0;
      layer.block_size = 0;
    }
    if (IsState(layer)) layer.block_size = made.state_block;
    if (layer.block_size == 0) layer.block_size = made.attention_block;
    made.page_bytes.push_back(IsState(layer) ? std::max(padded, layer.token_bytes)
                                             : PageBytes(layer));
  }
  made.layers = std::move(layers);
  Group(rules, made);
  SetBlocks(rules, made);
  return made;
}

}  // namespace servecast
