// What the formats of traces have in common: lines, issues with their places, rows.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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
  explicit TraceLines(std::string name);

  // Goes on to the next line; true when it is neither empty nor a comment (#).
  bool SetLine(std::string_view line);
  std::string_view line() const { return line_; }  // trimmed
  std::string_view untrimmed() const { return untrimmed_; }
  std::size_t number() const { return number_; }  // from 1; 0 before the first
  bool good() const { return issues_.empty(); }

  // Issues are of this entry of a list, from 1, and no longer of a line.
  void SetEntry(std::size_t entry) { entry_ = entry; }

  // An issue of this line; `column` counts from 1. Beyond the hundredth they are only counted.
  void Add(std::size_t column, std::string message);
  // An issue of another place, such as "entry 12".
  void AddAt(std::string place, std::string message);
  // A whole number of 1 or more tokens; an issue otherwise. `field` is what the format calls it.
  std::optional<std::int32_t> Tokens(std::string_view text, std::string_view field,
                                     std::size_t column);
  // Of this row and those that follow, an id stands for so many tokens.
  void SetIdTokens(std::int64_t tokens) { id_tokens_ = tokens; }
  // No more ids than the prompt has blocks; an issue otherwise.
  bool IdsFit(std::int64_t prompt_tokens, std::size_t ids, std::size_t column);
  // Of the row that is added next; once for one, for each. Not empty.
  void SetAccepted(std::span<const std::int32_t> drafts) {
    accepted_.assign(drafts.begin(), drafts.end());
  }
  // Likewise.
  void SetAdapter(std::int32_t adapter) { adapter_ = adapter; }
  // False, with an issue, when there are too many. Requires: IdsFit.
  bool AddRow(const TraceRow& row, std::span<const std::uint64_t> hash_ids = {});
  void AddFailed() { ++trace_.failed; }
  // All arrivals so far so many times as late; false, and nothing changes, where one is too late.
  bool ScaleTimes(std::int64_t times);

  // The trace, or all issues. `format` and `reading` as in Trace.
  Result<Trace> Finish(const char* format, std::string reading, bool has_arrivals = true);

 private:
  std::string_view line_, untrimmed_;
  std::size_t number_ = 0, entry_ = 0, found_ = 0;
  Issues issues_;
  Trace trace_;
  HashChains chains_;
  std::int64_t id_tokens_ = kHashBlockTokens;
  bool any_ids_ = false;
  std::vector<std::int32_t> accepted_;
  std::optional<std::int32_t> adapter_;
};

// Reads the lines, or the text, of one format.
class TraceFormat {
 public:
  virtual ~TraceFormat() = default;
  // A line with something on it; false when nothing behind it matters.
  virtual bool Line() = 0;
  // True: `Text` gets the whole file instead of `Line` its lines.
  virtual bool WantsText() const { return false; }
  virtual void Text(std::string_view) {}
  virtual Result<Trace> Finish() = 0;
};

// Each begins with the line that `lines` is at, which has been read. JSON: any document but
// Mooncake's; `whole`: one that ends on a later line.
std::unique_ptr<TraceFormat> CsvFormat(TraceLines& lines);
std::unique_ptr<TraceFormat> MooncakeFormat(TraceLines& lines);
std::unique_ptr<TraceFormat> JsonFormat(TraceLines& lines, bool whole);

}  // namespace servecast
