// See style.h.
#include "text/style.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace servecast {
namespace {

std::string_view Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool SaysUtf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view value = Environment(name);
    if (value.empty()) continue;
    std::string letters;
    for (const char c : value) {
      if (c != '-') letters += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
    return letters.find("utf8") != std::string::npos;
  }
  return false;
}

bool Continues(char c) { return (c & 0xC0) == 0x80; }

// The end of an escape "\033[...m" that begins at `i`; `i` where none does.
std::size_t BehindEscape(std::string_view text, std::size_t i) {
  if (text[i] != '\033') return i;
  const std::size_t end = text.find('m', i);
  return end == std::string_view::npos ? text.size() : end + 1;
}

std::string Repeated(std::string_view piece, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += piece;
  return out;
}

}  // namespace

Style StyleOf(std::string_view when, bool terminal) {
  Style style;
  style.utf8 = SaysUtf8();
  const bool may = terminal && Environment("NO_COLOR").empty() && Environment("TERM") != "dumb";
  style.colour = when == "always" || (when != "never" && may);
  return style;
}

std::string Style::In(Tone tone, std::string_view text) const {
  if (!colour || tone == Tone::kPlain || text.empty()) return std::string(text);
  const char* code = tone == Tone::kStrong  ? "1"
                     : tone == Tone::kQuiet ? "2"
                     : tone == Tone::kGood  ? "32"
                     : tone == Tone::kBad   ? "31"
                                            : "33";
  return "\033[" + std::string(code) + "m" + std::string(text) + "\033[0m";
}

std::string Style::Mark(Tone tone) const {
  if (tone == Tone::kGood) return utf8 ? "✓" : "+";
  if (tone == Tone::kBad) return utf8 ? "✗" : "x";
  return tone == Tone::kUnsure ? "?" : " ";
}

std::string Finished(const Style& style, std::string text) {
  if (style.utf8) return text;
  std::string out;
  for (const char c : text) {
    if (Continues(c)) continue;
    out += static_cast<unsigned char>(c) < 0x80 ? c : '?';
  }
  return out;
}

std::size_t WidthOf(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t end = BehindEscape(text, i);
    if (end != i) {
      i = end;
      continue;
    }
    columns += Continues(text[i]) ? 0 : 1;
    ++i;
  }
  return columns;
}

std::string Cut(const Style& style, std::string_view text, std::size_t most) {
  if (WidthOf(text) <= most) return std::string(text);
  const std::string_view dots = style.utf8 ? "…" : "...";
  const std::size_t room = most - std::min(most, WidthOf(dots));
  std::size_t end = 0;
  for (std::size_t letters = 0; letters < room && end < text.size(); ++letters) {
    do ++end;
    while (end < text.size() && Continues(text[end]));
  }
  return std::string(text.substr(0, end)) + std::string(dots);
}

std::string CutInside(const Style& style, std::string_view text, std::size_t most) {
  if (WidthOf(text) <= most) return std::string(text);
  const std::size_t tail = most / 2;
  std::size_t begin = text.size();
  for (std::size_t letters = 0; letters < tail && begin > 0; ++letters) {
    do --begin;
    while (begin > 0 && Continues(text[begin]));
  }
  return Cut(style, text, most - tail) + std::string(text.substr(begin));
}

std::string Wrapped(const Style& style, std::string_view first, std::string_view text) {
  if (const std::size_t line = text.find('\n'); line != std::string_view::npos) {
    const std::string blanks(WidthOf(first), ' ');
    return Wrapped(style, first, text.substr(0, line)) +
           Wrapped(style, blanks, text.substr(line + 1));
  }
  std::string out(first);
  const std::size_t indent = WidthOf(first);
  std::size_t at = indent;
  bool begun = false;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = std::min(text.find(' ', i), text.size());
    // A share stays with its sign.
    while (text.substr(end, 2) == " %") end = std::min(text.find(' ', end + 1), text.size());
    const std::string_view word = text.substr(i, end - i);
    i = end + 1;
    if (word.empty()) continue;
    if (begun && at + 1 + WidthOf(word) > style.width) {
      out += "\n" + std::string(indent, ' ');
      at = indent;
      begun = false;
    }
    if (begun) out += ' ', ++at;
    out += word;
    at += WidthOf(word);
    begun = true;
  }
  return out + "\n";
}

std::string Block(const Style& style, double share, std::size_t cells) {
  const double filled =
      std::isfinite(share) ? std::clamp(share, 0.0, 1.0) * static_cast<double>(cells) : 0;
  if (!style.utf8) return Repeated("#", static_cast<std::size_t>(std::lround(filled)));
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<std::size_t>(std::lround(8 * filled));
  return Repeated("█", eighths / 8) + kEighths[eighths % 8];
}

std::string Bar(const Style& style, double share, std::size_t cells) {
  const std::string block = Block(style, share, cells);
  const std::size_t filled = WidthOf(block);
  const char* end = !(share > 1) ? "|" : style.utf8 ? "|▏" : "|#";
  return block + Repeated(style.utf8 ? "·" : ".", cells - std::min(filled, cells)) + end;
}

}  // namespace servecast
