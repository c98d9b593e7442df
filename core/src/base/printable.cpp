// See printable.h.
#include "base/printable.h"

#include <cstdint>

namespace servecast {
namespace {

struct Range {
  std::uint32_t first, last;
};
// Unicode 15: Cc, the bidirectional and the default ignorable ones of Cf, line separators.
constexpr Range kUnsafe[] = {{0x00, 0x1F},     {0x7F, 0x9F},      {0xAD, 0xAD},
                             {0x61C, 0x61C},   {0x180E, 0x180E},  {0x200B, 0x200F},
                             {0x2028, 0x202E}, {0x2060, 0x206F},  {0xFEFF, 0xFEFF},
                             {0xFFF9, 0xFFFB}, {0xE0000, 0xE0FFF}};

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;  // 0: no UTF-8
};

// The first one. Requires: not empty.
Character Decoded(std::string_view text) {
  const auto byte = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 0;
  if (bytes == 0 || first > 0xF4 || text.size() < bytes) return {};
  std::uint32_t code = first & (0x7Fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0u) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kLeast[bytes] || code > 0x10FFFF || surrogate) return {};
  return {code, bytes};
}

void AppendHex(const char* mark, std::uint32_t value, int digits, std::string& out) {
  out += mark;
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
    out += "0123456789abcdef"[value >> shift & 15];
  }
}

// Appends the first character as it is shown; returns its bytes.
std::size_t AppendShown(std::string_view text, std::string& out) {
  const Character c = Decoded(text);
  if (c.bytes == 0) {
    AppendHex("\\x", static_cast<unsigned char>(text[0]), 2, out);
    return 1;
  }
  for (const Range& range : kUnsafe) {
    if (c.code < range.first || c.code > range.last) continue;
    AppendHex(c.code > 0xFFFF ? "\\U" : "\\u", c.code, c.code > 0xFFFF ? 8 : 4, out);
    return c.bytes;
  }
  out += text.substr(0, c.bytes);
  return c.bytes;
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string out;
  while (!text.empty()) text.remove_prefix(AppendShown(text, out));
  return out;
}

std::string ShownText(std::string_view text, std::size_t most) {
  constexpr std::string_view kCut = "...";
  std::string out;
  std::size_t whole = 0;  // of `out`, with room for kCut behind it
  while (!text.empty()) {
    text.remove_prefix(AppendShown(text, out));
    if (out.size() > most) return out.substr(0, whole) + std::string(kCut);
    if (out.size() + kCut.size() <= most) whole = out.size();
  }
  return out;
}

}  // namespace servecast
