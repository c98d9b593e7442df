// KV memory of a model as vLLM plans it: layers whose caches are alike form groups of equal size,
// each group has its own blocks of a request, and all blocks come from one pool. "Rule" is one of
// section A of the README of the hybrid golden cases.
//
//   layers     G G G F  G G G F ...          (G: a state, F: full attention)
//   pages      one size: F's block is made as long as a state needs, the state padded to it (A3)
//   groups     G0 = layers 0, 4, ...   G1 = 1, 5, ...   G2 = 2, 6, ...   F = 3, 7, ...   (A6)
//   a block    one page of each layer of one group; of any group it has the same bytes (A7)
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/base.h"

namespace servecast {

enum class KvKind : std::uint8_t { kFull, kSliding, kChunked, kState, kCross };

// What one layer caches, or one of its caches, on one GPU.
struct KvLayer {
  KvKind kind = KvKind::kFull;
  std::int64_t token_bytes = 0;    // of an entry; of a state all of it
  std::int64_t block_size = 16;    // tokens; before GroupLayers that is asked for, 0: KvRules'
  std::int64_t window = 0;         // tokens that it looks back, or of a chunk
  std::int64_t ratio = 1;          // tokens of an entry
  std::int64_t page_unit = 1;      // bytes of which a page is a multiple
  std::int64_t former_window = 0;  // of one that keeps every token after all (A5)
};

// States of a request: one, kept in place; one at the end of each block, of which two are held; one
// at the end of each block, all findable.
enum class StateMode : std::uint8_t { kNone, kAlign, kAll };

// What a plan goes by beside the layers.
struct KvRules {
  std::int64_t block_size = 16;    // that is asked for, or the attention kernels' own (A2)
  std::int64_t kernel_block = 16;  // the smallest that the kernels take
  // Of a token in one layer of full attention by the model's own heads; and whether that is a
  // latent (A3).
  std::int64_t full_token_bytes = 0;
  bool latent = false;
  bool prefix_caching = true;
  bool all_states = false;       // mode all is asked for, and the model can (A4)
  std::int64_t state_chunk = 0;  // tokens that its kernels take at a time; 0: unknown
  bool by_groups = true;         // the manager of groups is on (A5)
  std::int64_t max_model_len = 0;
  std::int64_t in_flight = 0;  // tokens of the steps in flight, at most (A9)
  std::int64_t encoder_tokens = 0;
  std::optional<std::int64_t> match_unit;

  StateMode Mode() const {
    if (!prefix_caching) return StateMode::kNone;
    return all_states ? StateMode::kAll : StateMode::kAlign;
  }
};

struct KvGroup {
  KvKind kind = KvKind::kFull;
  std::int64_t block_size = 16, window = 0;
  StateMode mode = StateMode::kNone;  // of states
  std::vector<std::int64_t> layers;   // places among the caches
  bool mixed = false;                 // pages of several sizes: its block is the sum of them

  // Blocks of a request of `tokens` tokens (A9).
  std::int64_t Planned(std::int64_t tokens, const KvRules& rules) const;
  // Blocks that the test of a whole prompt asks for (B4): of a new request without hits.
  std::int64_t Asked(std::int64_t tokens, const KvRules& rules) const;
  // Windows and chunks: the most that test asks for.
  std::optional<std::int64_t> Cap(const KvRules& rules) const {
    if (kind != KvKind::kSliding && kind != KvKind::kChunked) return std::nullopt;
    return Planned(rules.max_model_len, rules);
  }
  // Both are one class of a look-up: equal but for their layers.
  bool Alike(const KvGroup& other) const {
    return kind == other.kind && block_size == other.block_size && window == other.window;
  }
};

struct KvGroups {
  std::vector<KvGroup> groups;
  std::vector<KvLayer> layers;                         // resolved: their block sizes
  std::vector<std::int64_t> page_bytes;                // of a block, by layer
  std::int64_t attention_block = 16, state_block = 0;  // A3, A4; 0: no state
  std::int64_t cache_block = 16, scheduler_block = 16, hash_block = 16;  // A12

  // Of one pool block on a pipeline stage that has the caches [first, last).
  std::int64_t BlockBytes(std::int64_t first, std::int64_t last) const;
  // Pool blocks of a request: of all groups.
  std::int64_t Planned(std::int64_t tokens, const KvRules& rules) const;
  std::int64_t Asked(std::int64_t tokens, const KvRules& rules) const;
  // The longest request of at most `most` tokens that so many blocks hold; 0: none.
  std::int64_t Longest(std::int64_t blocks, std::int64_t most, const KvRules& rules) const;
};

KvGroups GroupLayers(std::vector<KvLayer> layers, const KvRules& rules);

// What a replica of a model with several groups goes by.
struct KvPlan {
  KvRules rules;
  KvGroups groups;
};

// What windows add to the blocks that the full layers of a request take. Position k stands for its
// tokens kb .. kb+b-1; one unit of the pool is a block of each full group.
struct KvWindows {
  std::int64_t units = 0;  // at every `every`-th position, up to `most`; 0: no windows
  std::int64_t every = 1;
  std::int64_t most = 0;           // positions that a window spans while the request decodes
  std::int64_t most_admitted = 0;  // likewise with all tokens of the steps in flight

  bool any() const { return units > 0; }
  std::int64_t Held(std::int64_t positions) const {
    return units * CeilDiv(std::min(positions, most), every);
  }
  // Of a prompt of so many positions, the first `hit` of them cached, before it is admitted.
  std::int64_t Asked(std::int64_t positions, std::int64_t hit) const {
    return units * CeilDiv(std::min({positions, most_admitted, positions - hit + most}), every);
  }
  // The most positions of a request that `total` units hold.
  std::int64_t MostPositions(std::int64_t total) const {
    std::int64_t low = 0, high = total;
    while (low < high) {
      const std::int64_t middle = high - (high - low) / 2;
      if (middle + Asked(middle, 0) <= total) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }
};

}  // namespace servecast
