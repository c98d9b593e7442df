// See link.h.
#include "link.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "host/packed.h"
#include "metrics/words.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

constexpr std::string_view kPrefix = "z1.";
constexpr std::string_view kLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::size_t kMostFragment = 256 * 1024, kMostText = 256 * 1024, kMostName = 200;
constexpr int kBitsOfLetter = 6, kBitsOfByte = 8;

const Issue kDamaged{"", "the link is cut short or damaged"};

bool Begins(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}

bool IsOfPin(std::string_view part) {
  return Begins(part, "v=") || Begins(part, "r=") || Begins(part, "f=");
}

// How an embed looks: no part of a scenario.
bool IsOption(std::string_view part) {
  constexpr std::array<std::string_view, 6> kOptions = {
      "ui=", "metric=", "autorun=", "theme=", "lock=", "knobs="};
  return std::any_of(kOptions.begin(), kOptions.end(),
                     [part](std::string_view option) { return Begins(part, option); });
}

// What stands before the first dot, when that is "z" and digits.
bool IsPacked(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos || dot < 2 || text[0] != 'z') return false;
  return std::all_of(text.begin() + 1, text.begin() + static_cast<std::ptrdiff_t>(dot),
                     [](char c) { return c >= '0' && c <= '9'; });
}

std::optional<std::string> FromBase64Url(std::string_view text) {
  // Six bits over are of no encoder.
  if (text.empty() || text.size() % 4 == 1) return std::nullopt;
  std::string bytes;
  std::uint32_t held = 0;
  int bits = 0;
  for (const char letter : text) {
    const std::size_t value = kLetters.find(letter);
    if (value == std::string_view::npos) return std::nullopt;
    held = (held << kBitsOfLetter) | static_cast<std::uint32_t>(value);
    bits += kBitsOfLetter;
    if (bits < kBitsOfByte) continue;
    bits -= kBitsOfByte;
    bytes += static_cast<char>((held >> bits) & 0xFF);
  }
  return bytes;
}

std::string ToBase64Url(std::string_view bytes) {
  std::string text;
  std::uint32_t held = 0;
  int bits = 0;
  const auto put = [&text](std::uint32_t value) { text += kLetters[value & 63]; };
  for (const char byte : bytes) {
    held = (held << kBitsOfByte) | static_cast<unsigned char>(byte);
    bits += kBitsOfByte;
    for (; bits >= kBitsOfLetter; bits -= kBitsOfLetter) put(held >> (bits - kBitsOfLetter));
  }
  if (bits > 0) put(held << (kBitsOfLetter - bits));
  return text;
}

Result<std::string> Unpacked(std::string_view packed) {
  std::string text;
  switch (Inflate(packed, kMostText, text)) {
    case Inflating::kTooLong:
      return Issue{"", "the link unpacks to more than any scenario needs"};
    case Inflating::kDamaged:
      return kDamaged;
    case Inflating::kWhole:
      break;
  }
  return text;
}

int HexDigit(char c) {
  const auto at = std::string_view("0123456789abcdef").find(static_cast<char>(c | 0x20));
  return c < '0' || at == std::string_view::npos ? -1 : static_cast<int>(at);
}

// How long the UTF-8 character is that begins `text`; 0: none does.
std::size_t CharacterSize(std::string_view text) {
  const auto byte = [text](std::size_t i) {
    return i < text.size() ? static_cast<unsigned>(static_cast<unsigned char>(text[i])) : 0U;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  constexpr std::array<unsigned, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  unsigned code = first & (0xFFU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
    code = (code << 6U) | (byte(i) & 0x3FU);
  }
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return first < 0xC0 || first > 0xF7 || code < kLeast[size] || code > 0x10FFFF || surrogate ? 0
                                                                                             : size;
}

// nullopt: a % without two digits, or what is no UTF-8.
std::optional<std::string> Unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size() || HexDigit(text[i + 1]) < 0 || HexDigit(text[i + 2]) < 0) {
      return std::nullopt;
    }
    out += static_cast<char>((HexDigit(text[i + 1]) << 4) | HexDigit(text[i + 2]));
    i += 2;
  }
  for (std::size_t at = 0; at < out.size();) {
    const std::size_t size = CharacterSize(std::string_view(out).substr(at));
    if (size == 0) return std::nullopt;
    at += size;
  }
  return out;
}

// As JavaScript's encodeURIComponent.
std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                       std::string_view("-_.!~*'()").find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

// The value that `name` ("v=") has among the parts of a pin.
std::optional<std::string_view> After(std::string_view part, std::string_view name) {
  if (!Begins(part, name)) return std::nullopt;
  return part.substr(name.size());
}

bool IsOf(std::string_view text, std::size_t most, bool (*allowed)(char)) {
  return !text.empty() && text.size() <= most && std::all_of(text.begin(), text.end(), allowed);
}

std::string Millionths(std::optional<double> value, double factor) {
  if (!value) return "-";
  return fmt::format("{}", static_cast<std::int64_t>(std::floor(*value * factor + 0.5)));
}

}  // namespace

Result<Link> DecodeLink(std::string_view text) {
  const std::size_t hash = text.find('#');
  if (hash != std::string_view::npos) text.remove_prefix(hash + 1);
  if (text.size() > kMostFragment) return Issue{"", "the link is longer than any scenario"};
  Link link;
  std::string asked;
  std::vector<std::string_view> parts = Split(text, "&");
  const bool packed = Begins(text, kPrefix);
  for (const std::string_view part : parts) {
    if (IsOfPin(part)) {
      link.pin += (link.pin.empty() ? "" : "&") + std::string(part);
    } else if (!IsOption(part)) {
      asked += (asked.empty() ? "" : "&") + std::string(part);
    }
  }
  if (!packed) {
    if (IsPacked(text)) return Issue{"", "the link is of a newer kind than this command knows"};
    if (asked.empty()) return Issue{"", "found no link, allowed z1.PACKED or p=PRESET&path=value"};
    Result<std::string> document = ParseReadableLink(asked);
    if (!document.ok()) return Issues(document.issues());
    link.document = std::move(document.value());
    return link;
  }
  std::optional<std::string> bytes = FromBase64Url(parts[0].substr(kPrefix.size()));
  if (!bytes) return kDamaged;
  for (const std::string_view part : parts) {
    const auto name = After(part, "trace=");
    if (!name || !link.trace.empty()) continue;
    const std::optional<std::string> unescaped = Unescaped(*name);
    if (!unescaped) return kDamaged;
    link.trace = unescaped->substr(0, kMostName);
  }
  Result<std::string> document = Unpacked(*bytes);
  if (!document.ok()) return Issues(document.issues());
  link.document = std::move(document.value());
  return link;
}

std::string EncodeLink(const std::string& canonical, const std::string& trace,
                       const std::string& pin) {
  return std::string(kPrefix) + ToBase64Url(Deflated(canonical)) +
         (trace.empty() ? "" : "&trace=" + Escaped(trace)) + (pin.empty() ? "" : "&" + pin);
}

std::string PinOf(const Report& report) {
  constexpr double kOfMs = 1e3, kOfShare = 1e6;
  std::string result = StateName(report.verdict.state);
  for (const SloResult& r : report.slo) {
    const bool share = r.slo.metric == SloMetric::kAttainment;
    const std::string value = share ? Millionths(r.share, kOfShare) : Millionths(r.value_ms, kOfMs);
    result += "," + (r.unbounded ? "-" : value);
  }
  return fmt::format("v={}.{}&r={}&f={}", kScenarioSchema, kEngineVersion, result,
                     HashText(report.fingerprint));
}

std::optional<Pin> ReadPin(std::string_view pin) {
  constexpr std::size_t kMostWord = 32, kMostValues = 32, kMostDigits = 15, kHash = 16;
  const std::vector<std::string_view> parts = Split(pin, "&");
  if (parts.size() != 3) return std::nullopt;
  const auto version = After(parts[0], "v="), result = After(parts[1], "r="),
             fingerprint = After(parts[2], "f=");
  if (!version || !result || !fingerprint) return std::nullopt;
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto of_version = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.' ||
           c == '+' || c == '-';
  };
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  const auto of_state = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  const std::size_t dot = version->find('.');
  if (dot == std::string_view::npos || !IsOf(version->substr(0, dot), 4, digit) ||
      !IsOf(version->substr(dot + 1), 24, of_version) || !IsOf(*fingerprint, kHash, hex) ||
      fingerprint->size() != kHash) {
    return std::nullopt;
  }
  const std::vector<std::string_view> values = Split(*result, ",");
  if (!IsOf(values[0], kMostWord, of_state) || values.size() > kMostValues + 1) return std::nullopt;
  Pin read{std::string(*version), std::string(values[0]), std::string(*fingerprint), {}};
  for (std::size_t i = 1; i < values.size(); ++i) {
    read.values.emplace_back();
    if (values[i] == "-") continue;
    if (!IsOf(values[i], kMostDigits, digit)) return std::nullopt;
    std::int64_t value = 0;
    std::from_chars(values[i].data(), values[i].data() + values[i].size(), value);
    read.values.back() = value;
  }
  return read;
}

}  // namespace servecast
