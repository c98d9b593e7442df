// Draws for random cases. std::mt19937_64 is the same everywhere; the distributions of <random> are
// not, so draws are made of plain integers here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace servecast::testing {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : bits_(seed) {}

  // Uniform in [low, high].
  std::int64_t Between(std::int64_t low, std::int64_t high) {
    const auto width = static_cast<std::uint64_t>(high - low) + 1;
    return low + static_cast<std::int64_t>(bits_() % width);
  }
  bool Percent(std::int64_t percent) { return Between(1, 100) <= percent; }
  template <class T = std::int64_t>
  T Pick(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(
        Between(0, static_cast<std::int64_t>(values.size()) - 1))];
  }

 private:
  std::mt19937_64 bits_;
};

}  // namespace servecast::testing
