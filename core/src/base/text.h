// Numbers as text and back, the same on every platform and as JavaScript writes them.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace servecast {

// An integer, a truth or a text to be put into another.
class FormatArg {
 public:
  FormatArg(std::string_view text) : text_(text) {}    // NOLINT: so that arguments need no names
  FormatArg(const std::string& text) : text_(text) {}  // NOLINT
  FormatArg(const char* text) : text_(text) {}         // NOLINT
  template <class Truth>
  requires std::is_same_v<Truth, bool> FormatArg(Truth value)  // NOLINT
      : text_(value ? "true" : "false") {}
  template <class Integer>
  requires(std::is_integral_v<Integer> && !std::is_same_v<Integer, bool> &&
           !std::is_same_v<Integer, char>) FormatArg(Integer value)  // NOLINT
      : number_(static_cast<std::int64_t>(value)), is_number_(true) {}

  void AppendTo(std::string& out) const;

 private:
  std::string_view text_;
  std::int64_t number_ = 0;  // below 2^63
  bool is_number_ = false;
};

inline bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// `format` with each {} replaced by the next argument; {{ and }} are braces.
std::string FormatText(std::string_view format, std::initializer_list<FormatArg> args);

// fmt::format for {} alone, checked by fmt when compiled. What fmt can do beyond it would be 10 KB
// of the page's module; doubles are to be written by the functions below.
template <class... Args>
std::string Format(fmt::format_string<const Args&...> format, const Args&... args) {
  const fmt::string_view text = format;
  return FormatText({text.data(), text.size()}, {FormatArg(args)...});
}

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

// The first candidate that begins with `word`, if that has three letters, else the nearest by edit
// distance; "" when none is near.
template <class Range>
std::string NearestWord(std::string_view word, const Range& candidates);

// The parts between any of the separators, one at least: views of `text`.
std::vector<std::string_view> Split(std::string_view text, std::string_view separators);

// Of ASCII letters.
std::string LowerCase(std::string_view text);

// Levenshtein distance. O(|a| |b|).
int EditDistance(std::string_view a, std::string_view b);

template <class Range>
std::string NearestWord(std::string_view word, const Range& candidates) {
  std::string best;
  int best_distance = 1 + static_cast<int>(word.size()) / 3;
  for (const auto& candidate : candidates) {
    const bool begins =
        word.size() >= 3 && std::string_view(candidate).substr(0, word.size()) == word;
    const int distance = begins ? 0 : EditDistance(word, candidate);
    if (distance <= best_distance && (best.empty() || distance < best_distance)) {
      best = std::string(candidate);
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace servecast
