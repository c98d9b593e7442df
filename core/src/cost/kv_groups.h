// KV memory of models in which only some layers have a window, as vLLM plans it: layers form groups
// of equal size, each group has its own blocks of a request, and all blocks come from one pool.
// Rules A2 to A11 of the hybrid golden cases' README, for attention with and without windows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/base.h"

namespace servecast {

struct KvLayer {
  std::int64_t token_bytes = 0;  // K and V of one token on one GPU
  std::int64_t block_size = 16;  // tokens
  std::int64_t window = 0;       // tokens that it looks back; 0: all
  bool chunked = false;          // the window begins at a multiple of its size
};

struct KvGroup {
  std::int64_t block_size = 16, window = 0;
  bool chunked = false;
  std::vector<std::int64_t> layers;  // places in the model

  // Blocks of a request of `tokens` tokens, of which so many may be in flight.
  std::int64_t Planned(std::int64_t tokens, std::int64_t in_flight) const;
};

struct KvGroups {
  std::vector<KvGroup> groups;
  std::vector<std::int64_t> page_bytes;  // of a block, by layer

  // Of one pool block on a pipeline stage that has the layers [first, last).
  std::int64_t BlockBytes(std::int64_t first, std::int64_t last) const;
  // Pool blocks of a request: of all groups.
  std::int64_t Planned(std::int64_t tokens, std::int64_t in_flight) const;
};

// `hybrid` false: vLLM's manager of groups is off, and layers with windows keep every token.
KvGroups GroupLayers(std::vector<KvLayer> layers, bool hybrid = true);

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
