// Which earlier prompt a prompt repeats, from the ids of its blocks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "servecast/trace.h"

namespace servecast {

// What a hash id of Mooncake's traces stands for; the last one of a prompt may stand for fewer
// tokens.
inline constexpr std::int64_t kHashBlockTokens = 512;

// Equal ids after equal ids are equal tokens. All chains so far are one tree; its nodes stand in a
// hash table by a 64-bit hash of the ids from the root (two chains of ten million fall together
// once in 400,000 traces), each with the row that has most of the node's tokens.
class HashChains {
 public:
  // What row `row` shares with earlier ones: of those that share the most, the first that had it.
  // Requires: ascending rows; at most ceil(prompt_tokens / id_tokens) ids, each of so many
  // tokens. O(ids).
  TracePrefix Add(std::int32_t row, std::int32_t prompt_tokens, std::span<const std::uint64_t> ids,
                  std::int64_t id_tokens);

 private:
  struct Node {
    std::uint64_t chain = 0;
    std::int32_t row = -1;    // -1: an empty slot
    std::int32_t tokens = 0;  // from the beginning, that `row` has
  };
  Node& Find(std::uint64_t chain);
  void Grow();

  std::vector<Node> nodes_;  // a power of two, open addressing
  std::size_t used_ = 0;
};

}  // namespace servecast
