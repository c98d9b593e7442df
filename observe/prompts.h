// Synthetic prompts: so many tokens, drawn, of which requests share what the scenario says they
// share. No text of anybody is in them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workload/request_table.h"

namespace servecast {

enum class PromptForm {
  kTokenIds,  // a list of ids: so many tokens in every vocabulary of 32,000 and more
  kWords,     // so many common words, each a token or two
};

// Ids from kFirstTokenId on, above the special tokens of usual vocabularies and below the end of
// all of them.
inline constexpr std::int32_t kFirstTokenId = 1'000;
inline constexpr std::int32_t kTokenIds = 30'000;

// The prompt of a request. Two of one salt begin alike as far as `table` says that their content is
// the same; with another salt nothing is, so that no cache of a run before answers. O(tokens).
std::vector<std::int32_t> PromptTokens(const RequestTable& table, std::int64_t row,
                                       std::uint64_t salt);

// The same tokens in their form, as JSON.
std::string PromptJson(const std::vector<std::int32_t>& tokens, PromptForm form);

}  // namespace servecast
