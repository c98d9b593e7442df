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
  std::string digits = "0";  // no leading or trailing zeros, "0" for zero
  int point = 1;             // value = 0.digits * 10^point
  bool negative = false;
};

// The shortest digits that read back to `value`, by Dragonbox. fmt's formatting of doubles would
// bring all widths and precisions with it, 6 KB of the page's module.
Decimal ShortestDigits(double value) {
  if (value == 0) return {};
  const auto shortest = fmt::detail::dragonbox::to_decimal(std::fabs(value));
  std::string digits = fmt::format_int(shortest.significand).str();
  const int point = static_cast<int>(digits.size()) + shortest.exponent;
  digits.erase(digits.find_last_not_of('0') + 1);
  return {std::move(digits), point, value < 0};
}

// Without an exponent.
std::string Plain(const Decimal& d) {
  const int n = static_cast<int>(d.digits.size());
  const std::string sign = d.negative ? "-" : "";
  if (d.point <= 0) {
    return sign + "0." + std::string(static_cast<std::size_t>(-d.point), '0') + d.digits;
  }
  if (n <= d.point) {
    return sign + d.digits + std::string(static_cast<std::size_t>(d.point - n), '0');
  }
  const auto point = static_cast<std::size_t>(d.point);
  return sign + d.digits.substr(0, point) + "." + d.digits.substr(point);
}

// To so many decimals, halves of the digits away from zero.
Decimal Rounded(Decimal d, int decimals) {
  const int keep = d.point + decimals;
  if (keep >= static_cast<int>(d.digits.size())) return d;
  if (keep < 0) return {};
  auto i = static_cast<std::size_t>(keep);
  const bool up = d.digits[i] >= '5';
  d.digits.resize(i);
  if (up) {
    while (i > 0 && d.digits[i - 1] == '9') --i;
    d.digits.resize(i);
    if (i > 0) {
      ++d.digits[i - 1];
    } else {
      d.digits = "1";
      ++d.point;
    }
  }
  const std::size_t last = d.digits.find_last_not_of('0');
  if (last == std::string::npos) return {};
  d.digits.erase(last + 1);
  return d;
}

}  // namespace

void FormatArg::AppendTo(std::string& out) const {
  if (is_number_) {
    out += fmt::format_int(number_).str();
  } else {
    out += text_;
  }
}

std::string FormatText(std::string_view format, std::initializer_list<FormatArg> args) {
  std::string out;
  const FormatArg* next = args.begin();
  for (std::size_t i = 0; i < format.size(); ++i) {
    const char c = format[i];
    if (c != '{' && c != '}') {
      out += c;
    } else if (format[++i] == c) {  // doubled
      out += c;
    } else {
      (next++)->AppendTo(out);
    }
  }
  return out;
}

std::string NumberText(double value) {
  const Decimal d = ShortestDigits(value);
  if (d.point <= 21 && d.point >= -5) return Plain(d);  // ECMA-262, Number::toString
  std::string out = d.negative ? "-" : "";
  out += d.digits[0];
  if (d.digits.size() > 1) out += "." + d.digits.substr(1);
  return out + (d.point > 0 ? "e+" : "e") + fmt::format_int(d.point - 1).str();
}

std::string ShortNumber(double value) {
  const double size = std::fabs(value);
  const int decimals = size == 0     ? 0
                       : size < 0.01 ? 4
                       : size < 1    ? 3
                       : size < 10   ? 2
                       : size < 100  ? 1
                                     : 0;
  std::string text = Plain(Rounded(ShortestDigits(value), decimals));
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

std::vector<std::string_view> Split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(separators, start), text.size());
    parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

}  // namespace servecast
