// See text.h.
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

namespace servecast {
namespace {

struct Decimal {
  std::string digits;  // no leading or trailing zeros, "0" for zero
  int point = 0;       // value = 0.digits * 10^point
  bool negative = false;
};

// The shortest digits of `value`, from fmt's shortest text.
Decimal ShortestDigits(double value) {
  Decimal d;
  const std::string text = fmt::format("{}", value);
  int exponent = 0;
  bool fraction = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '-') {
      d.negative = true;
    } else if (c == '.') {
      fraction = true;
    } else if (c == 'e') {
      exponent = std::atoi(text.c_str() + i + 1);
      break;
    } else {
      d.digits += c;
      if (!fraction) ++d.point;
    }
  }
  d.point += exponent;
  const std::size_t first = d.digits.find_first_not_of('0');
  if (first == std::string::npos) return {"0", 1, false};
  d.digits.erase(0, first);
  d.point -= static_cast<int>(first);
  d.digits.erase(d.digits.find_last_not_of('0') + 1);
  return d;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::string NumberText(double value) {
  const Decimal d = ShortestDigits(value);
  const int n = static_cast<int>(d.digits.size());
  std::string out = d.negative ? "-" : "";
  if (d.point > 21 || d.point < -5) {  // ECMA-262, Number::toString
    out += d.digits[0];
    if (n > 1) out += "." + d.digits.substr(1);
    out += fmt::format("e{:+d}", d.point - 1);
  } else if (d.point <= 0) {
    out += "0." + std::string(static_cast<std::size_t>(-d.point), '0') + d.digits;
  } else if (n <= d.point) {
    out += d.digits + std::string(static_cast<std::size_t>(d.point - n), '0');
  } else {
    const auto point = static_cast<std::size_t>(d.point);
    out += d.digits.substr(0, point) + "." + d.digits.substr(point);
  }
  return out;
}

std::string ShortNumber(double value) {
  const double size = std::fabs(value);
  const int decimals = size == 0     ? 0
                       : size < 0.01 ? 4
                       : size < 1    ? 3
                       : size < 10   ? 2
                       : size < 100  ? 1
                                     : 0;
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  if (text == "-0") return "0";
  const std::size_t start = text[0] == '-' ? 1 : 0;
  for (std::size_t i = std::min(text.find('.'), text.size()); i > start + 3;) {
    i -= 3;
    text.insert(i, ",");
  }
  return text;
}

std::optional<std::int64_t> ParseDecimalNs(std::string_view text, std::int64_t unit_ns) {
  // Exact: digits as an integer mantissa, scaled by a power of ten, in 128 bits.
  unsigned __int128 mantissa = 0;
  int scale = 0;  // decimal places
  bool seen_digit = false, fraction = false;
  std::size_t i = 0;
  if (i < text.size() && text[i] == '+') ++i;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (IsDigit(c)) {
      seen_digit = true;
      if (mantissa < static_cast<unsigned __int128>(1'000'000'000'000'000'000ULL) * 1'000'000) {
        mantissa = mantissa * 10 + static_cast<unsigned>(c - '0');
        if (fraction) ++scale;
      } else if (!fraction) {
        return std::nullopt;
      }
    } else if (c == '.' && !fraction) {
      fraction = true;
    } else {
      break;
    }
  }
  if (!seen_digit) return std::nullopt;
  if (i < text.size()) {
    if (text[i] != 'e' && text[i] != 'E') return std::nullopt;
    ++i;
    int sign = 1, exponent = 0;
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) sign = text[i++] == '-' ? -1 : 1;
    if (i == text.size()) return std::nullopt;
    for (; i < text.size(); ++i) {
      if (!IsDigit(text[i]) || exponent > 1000) return std::nullopt;
      exponent = exponent * 10 + (text[i] - '0');
    }
    scale -= sign * exponent;
  }
  constexpr auto kLimit = static_cast<unsigned __int128>(1) << 62;
  if (mantissa == 0) return 0;
  // mantissa < 1e25 and unit_ns <= 1e9 leave the product below 2^114.
  unsigned __int128 ns = mantissa * static_cast<unsigned __int128>(unit_ns);
  for (; scale < 0; ++scale) {
    if (ns > kLimit) return std::nullopt;
    ns *= 10;
  }
  if (scale > 40) return 0;
  bool round_up = false;
  for (; scale > 0; --scale) {
    round_up = ns % 10 >= 5;
    ns /= 10;
  }
  ns += round_up ? 1 : 0;
  if (ns > kLimit) return std::nullopt;
  return static_cast<std::int64_t>(ns);
}

std::optional<std::int64_t> ParseCount(std::string_view text) {
  std::int64_t value = 0;
  std::size_t i = 0;
  for (; i < text.size() && IsDigit(text[i]); ++i) {
    if (i >= 18) return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  if (i == 0) return std::nullopt;
  if (i < text.size() && text[i] == '.') {
    for (++i; i < text.size() && text[i] == '0'; ++i) {
    }
  }
  if (i != text.size()) return std::nullopt;
  return value;
}

int EditDistance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substitute, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace servecast
