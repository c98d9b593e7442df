// What the formats of traces have in common: lines, issues with their places, rows.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "servecast/result.h"
#include "servecast/trace.h"
#include "workload/hash_chains.h"

namespace servecast {

// Spaces and tabs around it taken off.
std::string_view Trimmed(std::string_view text);

// What a field holds, in quotes and safe to print: at most 40 characters.
std::string Shown(std::string_view text);

// A trace that is being read, line by line.
class TraceLines {
 public:
  TraceLines(std::string_view text, std::string name);

  // The next line that is neither empty nor a comment (#) is `line()`; false at the end.
  bool Next();
  std::string_view line() const { return line_; }  // trimmed
  std::size_t number() const { return number_; }   // from 1; 0 before the first

  // An issue of this line; `column` counts from 1. Beyond the hundredth they are only counted.
  void Add(std::size_t column, std::string message);
  // A whole number of 1 or more tokens; an issue otherwise. `field` is what the format calls it.
  std::optional<std::int32_t> Tokens(std::string_view text, std::string_view field,
                                     std::size_t column);
  // No more ids than the prompt has blocks; an issue otherwise.
  bool IdsFit(std::int64_t prompt_tokens, std::size_t ids, std::size_t column);
  // False, with an issue, when there are too many. Requires: IdsFit.
  bool AddRow(const TraceRow& row, std::span<const std::uint64_t> hash_ids);

  // The trace, or all issues. `format` as in Trace.
  Result<Trace> Finish(const char* format);

 private:
  std::string_view text_, line_;
  std::size_t at_ = 0, number_ = 0, found_ = 0;
  Issues issues_;
  Trace trace_;
  HashChains chains_;
  bool any_ids_ = false;
};

// Reads lines from the present one on: JSON objects of Mooncake's members.
Result<Trace> ReadMooncake(TraceLines& lines);

}  // namespace servecast
