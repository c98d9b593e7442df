// 64-bit hashes for ids and fingerprints: the same on every platform, not cryptographic.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/random.h"

namespace servecast {

// Order matters; every bit of every word counts.
class Hasher {
 public:
  void Add(std::uint64_t word) { state_ = Step(state_ ^ word); }
  void Add(std::int64_t word) { Add(static_cast<std::uint64_t>(word)); }
  void Add(std::string_view text) {
    Add(static_cast<std::uint64_t>(text.size()));
    for (const char c : text) Add(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
  }
  std::uint64_t Finish() const { return Mix64(state_); }

 private:
  // A bijection, so two states that differ stay different.
  static constexpr std::uint64_t Step(std::uint64_t x) {
    x *= 0x9FB21C651E98DF25ULL;
    return x ^ (x >> 29);
  }
  std::uint64_t state_ = 0x53657276656361ULL;
};

}  // namespace servecast
