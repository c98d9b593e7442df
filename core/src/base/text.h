// Numbers as text and back, the same on every platform and as JavaScript writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace servecast {

// The shortest decimal that reads back to the same double, in JavaScript's layout: 14, 0.001,
// 1e-7, 1e+21. Requires: finite.
std::string NumberText(double value);

// Three significant digits for sentences: 0.123, 12.3, 1,230. Requires: finite.
std::string ShortNumber(double value);

// A decimal number of seconds (or, with unit_ns, of another unit) as nanoseconds, rounded half
// away from zero from the exact decimal. nullopt when it is not a plain or exponent number, is
// negative, or exceeds 2^62 ns.
std::optional<std::int64_t> ParseDecimalNs(std::string_view text, std::int64_t unit_ns);

// A non-negative integer below 10^18; "12.0" is accepted as 12. nullopt otherwise.
std::optional<std::int64_t> ParseCount(std::string_view text);

// The candidate nearest to `word` by edit distance, else the first that begins with it; "" when
// none is near.
template <class Range>
std::string NearestWord(std::string_view word, const Range& candidates);

// Levenshtein distance. O(|a| |b|).
int EditDistance(std::string_view a, std::string_view b);

template <class Range>
std::string NearestWord(std::string_view word, const Range& candidates) {
  std::string best;
  int best_distance = 1 + static_cast<int>(word.size()) / 3;
  for (const auto& candidate : candidates) {
    const int distance = EditDistance(word, candidate);
    if (distance <= best_distance && (best.empty() || distance < best_distance)) {
      best = std::string(candidate);
      best_distance = distance;
    }
  }
  for (const auto& candidate : candidates) {
    const std::string_view begin = std::string_view(candidate).substr(0, word.size());
    if (best.empty() && word.size() >= 3 && begin == word) best = std::string(candidate);
  }
  return best;
}

}  // namespace servecast
