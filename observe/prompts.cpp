// See prompts.h.
#include "observe/prompts.h"

#include <algorithm>
#include <array>

#include "base/random.h"

namespace servecast {
namespace {

// Short words of English, each with its space one token of the usual vocabularies.
constexpr std::array<const char*, 32> kWords = {
    "time",  "year",  "people", "way",   "day",  "man",   "thing", "world", "life",  "hand", "part",
    "child", "eye",   "place",  "work",  "week", "case",  "point", "home",  "water", "room", "area",
    "money", "story", "fact",   "month", "lot",  "right", "study", "book",  "word",  "side"};

// Whose tokens they are: a segment of the table, or the request alone.
std::uint64_t OwnerKey(std::uint64_t salt, std::int64_t owner, bool segment) {
  return Mix64(Mix64(salt + kGolden) ^ (2 * static_cast<std::uint64_t>(owner) + (segment ? 1 : 0)));
}

}  // namespace

std::vector<std::int32_t> PromptTokens(const RequestTable& table, std::int64_t row,
                                       std::uint64_t salt) {
  const auto r = static_cast<std::size_t>(row);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(table.prompt_tokens[r]));
  const auto fill = [&tokens](std::size_t from, std::size_t to, std::uint64_t key) {
    for (std::size_t i = from; i < to; ++i) {
      const std::uint64_t bits = Mix64(key + (i + 1) * kGolden);
      tokens[i] = kFirstTokenId + static_cast<std::int32_t>(bits % kTokenIds);
    }
  };
  if (table.content.empty()) {
    fill(0, tokens.size(), OwnerKey(salt, row, false));
    return tokens;
  }
  // From the end to the beginning: what a segment does not share is its own (request_table.h).
  std::size_t to = tokens.size();
  for (std::int32_t s = table.content[r]; to > 0;) {
    const ContentSegment segment =
        s >= 0 ? table.segments[static_cast<std::size_t>(s)] : ContentSegment{};
    const std::size_t from =
        std::min(to, static_cast<std::size_t>(std::max(segment.shared_tokens, 0)));
    fill(from, to, s >= 0 ? OwnerKey(salt, s, true) : OwnerKey(salt, row, false));
    to = from;
    s = segment.parent;
  }
  return tokens;
}

std::string PromptJson(const std::vector<std::int32_t>& tokens, PromptForm form) {
  std::string text(1, form == PromptForm::kWords ? '"' : '[');
  text.reserve(tokens.size() * 7 + 2);
  bool first = true;
  for (const std::int32_t token : tokens) {
    if (!first) text += form == PromptForm::kWords ? ' ' : ',';
    first = false;
    if (form == PromptForm::kWords) {
      text += kWords[static_cast<std::size_t>(token) % kWords.size()];
    } else {
      text += std::to_string(token);
    }
  }
  text += form == PromptForm::kWords ? '"' : ']';
  return text;
}

}  // namespace servecast
