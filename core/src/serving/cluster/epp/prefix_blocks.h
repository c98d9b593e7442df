// A prompt as keys of blocks for the approximate prefix index. Two blocks have one key when they
// and all before them are equal; a partial last block is a block, too.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "servecast/epp.h"

namespace servecast::epp {

// Tokens [first, last) of a text. Texts of different numbers have no token in common.
struct TextPiece {
  std::int64_t text = 0, first = 0, last = 0;
};

// Parameters of the producer "approx-prefix-cache-producer".
struct PrefixSettings {
  bool auto_tune = true;  // sizes that servers report go first
  std::int64_t block_tokens = 16;
  std::int64_t lru_capacity = 31'250;  // blocks per server
  std::int64_t most_tokens = 131'072;  // of a prompt; 0: most_blocks instead
  std::int64_t most_blocks = 2'048;    // 0: no limit
};

// Tokens of a block where the first candidate's server reports that size; 0: none. At least 64.
std::int64_t BlockTokens(const PrefixSettings& settings, std::int64_t reported);

// Appends the keys of one prompt's blocks. `context` stands for model and salt. O(blocks + pieces).
void AppendKeys(const PrefixSettings& settings, std::int64_t block_tokens, std::uint64_t context,
                std::span<const TextPiece> prompt, std::vector<std::uint64_t>& keys);

}  // namespace servecast::epp
