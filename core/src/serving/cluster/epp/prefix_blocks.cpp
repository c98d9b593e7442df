#include "serving/cluster/epp/prefix_blocks.h"

#include <algorithm>

#include "base/random.h"

namespace servecast::epp {
namespace {

constexpr std::int64_t kLeastBlockTokens = 64;

std::uint64_t Chained(std::uint64_t key, std::int64_t part) {
  return Mix64((key ^ static_cast<std::uint64_t>(part)) * kGolden + 1);
}

}  // namespace

std::int64_t BlockTokens(const PrefixSettings& settings, std::int64_t reported) {
  const bool tuned = settings.auto_tune && reported > 0;
  return std::max(tuned ? reported : settings.block_tokens, kLeastBlockTokens);
}

void AppendKeys(const PrefixSettings& settings, std::int64_t block_tokens, std::uint64_t context,
                std::span<const TextPiece> prompt, std::vector<std::uint64_t>& keys) {
  std::int64_t left = settings.most_tokens > 0   ? settings.most_tokens / block_tokens
                      : settings.most_blocks > 0 ? settings.most_blocks
                                                 : INT64_MAX;
  std::uint64_t key = Mix64(context + kGolden);
  std::int64_t room = block_tokens;
  for (const TextPiece& piece : prompt) {
    for (std::int64_t at = piece.first; at < piece.last && left > 0;) {
      const std::int64_t end = std::min(piece.last, at + room);
      key = Chained(Chained(Chained(key, piece.text), at), end);
      room -= end - at;
      at = end;
      if (room > 0) continue;
      keys.push_back(key);
      key = Mix64(key + kGolden);  // blocks of another size end elsewhere and have other keys
      room = block_tokens;
      --left;
    }
  }
  if (room < block_tokens && left > 0) keys.push_back(key);
}

}  // namespace servecast::epp
