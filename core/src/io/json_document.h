// JSON text to a value and back, with every problem of the text said as an issue.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "servecast/result.h"

namespace servecast {

// What recursion over a document may rely on.
inline constexpr std::size_t kMostJsonLevels = 64;

// Issues: syntax with line and column, duplicate keys with their path, nesting beyond
// kMostJsonLevels, text beyond 4 MiB. O(size).
Result<nlohmann::json> ParseJson(std::string_view text);

// The same without limits, and without a word on what is wrong: a discarded value. nlohmann's own
// parse() is compiled wherever it is called, which takes a second or two.
nlohmann::json LooseJson(std::string_view text);

// The whole text as a number; nullopt when it is none, or not finite.
std::optional<double> NumberOf(std::string_view text);

// Keys sorted, no white space, numbers as JavaScript writes them.
std::string CompactJson(const nlohmann::json& value);

// The same as ShownText has it, in at most 60 bytes: what an issue says was found.
std::string ShortJson(const nlohmann::json& value);

// A key as a token of a JSON pointer (RFC 6901).
std::string PointerToken(std::string_view key);
// The same as ShownText has it: a pointer in an issue is safe to print, and short.
std::string ShownPointerToken(std::string_view key);

}  // namespace servecast
