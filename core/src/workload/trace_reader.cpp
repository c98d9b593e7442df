// Reads trace files: CSV with a header that tells whose format it is. A malformed line makes the
// whole file an error; every such line is named, none is skipped.
//
//   servecast  arrival_s,input_tokens,output_tokens      seconds; further columns are ignored
//   azure      TIMESTAMP,ContextTokens,GeneratedTokens   "2023-11-16 18:15:46.6805900"
//   vidur      arrived_at,num_prefill_tokens,num_decode_tokens   seconds
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/base.h"
#include "base/hash.h"
#include "base/text.h"
#include "servecast/scenario.h"
#include "servecast/trace.h"

namespace servecast {
namespace {

constexpr std::size_t kMostIssues = 100;
constexpr std::int64_t kMostTokens = 1'000'000'000;

struct Format {
  const char* name;
  std::array<std::string_view, 3> columns;  // arrival, prompt, output
  bool timestamps;                          // calendar times rather than seconds
};

constexpr Format kFormats[] = {
    {"servecast_csv", {"arrival_s", "input_tokens", "output_tokens"}, false},
    {"azure_csv", {"TIMESTAMP", "ContextTokens", "GeneratedTokens"}, true},
    {"vidur_csv", {"arrived_at", "num_prefill_tokens", "num_decode_tokens"}, false},
};

struct Field {
  std::string_view text;
  std::size_t column = 0;  // 1-based character in the line
};

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Fields of a line; quotes around a whole field are taken off.
void Split(std::string_view line, std::vector<Field>& fields) {
  fields.clear();
  std::size_t start = 0;
  while (true) {
    const std::size_t comma = std::min(line.find(',', start), line.size());
    std::string_view text = Trim(line.substr(start, comma - start));
    if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
      text = text.substr(1, text.size() - 2);
    }
    fields.push_back({text, start + 1});
    if (comma == line.size()) return;
    start = comma + 1;
  }
}

// What a field holds, safe to print: at most 40 characters, control characters replaced.
std::string Shown(std::string_view text) {
  std::string shown(text.substr(0, 40));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7F) c = '?';
  }
  return "\"" + shown + (text.size() > 40 ? "...\"" : "\"");
}

// Days from 1970-01-01 of a civil date (Howard Hinnant's days_from_civil).
std::int64_t DaysFromCivil(std::int64_t y, std::int64_t m, std::int64_t d) {
  y -= m <= 2 ? 1 : 0;
  const std::int64_t era = (y >= 0 ? y : y - 399) / 400;
  const std::int64_t year_of_era = y - era * 400;
  const std::int64_t day_of_year = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
  return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
         719468;
}

// "2023-11-16 18:15:46.6805900", also with T between, Z or +00:00 behind. ns since 1970.
std::optional<TimeNs> ParseTimestamp(std::string_view text) {
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' ||
      (text[10] != ' ' && text[10] != 'T') || text[13] != ':' || text[16] != ':') {
    return std::nullopt;
  }
  if (text.back() == 'Z') text.remove_suffix(1);
  if (text.size() > 25 && text.substr(text.size() - 6) == "+00:00") text.remove_suffix(6);
  const auto year = ParseCount(text.substr(0, 4)), month = ParseCount(text.substr(5, 2)),
             day = ParseCount(text.substr(8, 2)), hour = ParseCount(text.substr(11, 2)),
             minute = ParseCount(text.substr(14, 2));
  const auto second_ns = ParseDecimalNs(text.substr(17), kNsPerS);
  if (!year || !month || !day || !hour || !minute || !second_ns || *year < 2000 || *year > 2199 ||
      *month < 1 || *month > 12 || *day < 1 || *hour > 23 || *minute > 59 ||
      *second_ns >= 61 * kNsPerS) {
    return std::nullopt;
  }
  const std::int64_t days = DaysFromCivil(*year, *month, *day);
  const std::int64_t next_month =
      *month < 12 ? DaysFromCivil(*year, *month + 1, 1) : DaysFromCivil(*year + 1, 1, 1);
  if (days >= next_month) return std::nullopt;
  return ((days * 24 + *hour) * 60 + *minute) * 60 * kNsPerS + *second_ns;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") text_.remove_prefix(3);
  }

  Result<Trace> Read(std::string name) {
    Trace trace;
    trace.name = std::move(name);
    if (!ReadHeader()) return std::move(issues_);
    trace.format = format_->name;
    while (NextLine()) {
      if (line_.empty() || line_[0] == '#') continue;
      if (static_cast<std::int64_t>(trace.rows.size()) == kMaxRequests) {
        Add(1, fmt::format("more than {} requests, the most that a run takes", kMaxRequests));
        break;
      }
      TraceRow row;
      if (ReadRow(row)) trace.rows.push_back(row);
    }
    if (!issues_.empty()) {
      if (found_ > kMostIssues) {
        issues_.push_back({"", fmt::format("and {} more malformed lines", found_ - kMostIssues)});
      }
      return std::move(issues_);
    }
    if (trace.rows.empty()) {
      return Issue{fmt::format("line {}", line_number_), "the trace has a header but no requests"};
    }
    Normalise(trace);
    return trace;
  }

 private:
  bool NextLine() {
    if (at_ >= text_.size()) return false;
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    line_ = text_.substr(at_, end - at_);
    if (!line_.empty() && line_.back() == '\r') line_.remove_suffix(1);
    line_ = Trim(line_);
    at_ = end + 1;
    ++line_number_;
    return true;
  }

  void Add(std::size_t column, std::string message) {
    ++found_;
    if (issues_.size() < kMostIssues) {
      issues_.push_back(
          {fmt::format("line {}, column {}", line_number_, column), std::move(message)});
    }
  }

  bool ReadHeader() {
    while (NextLine() && (line_.empty() || line_[0] == '#')) {
    }
    Split(line_, fields_);
    for (const Format& format : kFormats) {
      std::size_t found = 0;
      for (std::size_t c = 0; c < 3; ++c) {
        for (std::size_t f = 0; f < fields_.size(); ++f) {
          if (fields_[f].text != format.columns[c]) continue;
          if (found > c) {
            Add(fields_[f].column, fmt::format("the header names {} twice", format.columns[c]));
            return false;
          }
          at_column_[c] = f;
          ++found;
        }
        if (found <= c) break;
      }
      if (found == 3) {
        format_ = &format;
        width_ = fields_.size();
        return true;
      }
    }
    std::string known;
    for (const Format& format : kFormats) {
      known += fmt::format("{}{},{},{}", known.empty() ? "" : " or ", format.columns[0],
                           format.columns[1], format.columns[2]);
    }
    const bool nothing = line_.empty();
    if (line_number_ == 0) line_number_ = 1;
    Add(1, nothing ? "the file is empty; a trace starts with a header line: " + known
                   : fmt::format("found the header {}, allowed: {}", Shown(line_), known));
    return false;
  }

  bool ReadRow(TraceRow& row) {
    Split(line_, fields_);
    if (fields_.size() != width_) {
      Add(line_.size() + 1,
          fmt::format("found {} fields, but the header names {}", fields_.size(), width_));
      return false;
    }
    const Field& arrival = fields_[at_column_[0]];
    const auto time =
        format_->timestamps ? ParseTimestamp(arrival.text) : ParseDecimalNs(arrival.text, kNsPerS);
    if (!time) {
      Add(arrival.column,
          fmt::format("found {} as {}, allowed {}", Shown(arrival.text), format_->columns[0],
                      format_->timestamps ? "a time such as 2023-11-16 18:15:46.6805900"
                                          : "seconds from 0 to 4,611,686,018"));
    }
    const auto prompt = ReadTokens(1), output = ReadTokens(2);
    if (!time || !prompt || !output) return false;
    row = {*time, static_cast<std::int32_t>(*prompt), static_cast<std::int32_t>(*output)};
    return true;
  }

  std::optional<std::int64_t> ReadTokens(std::size_t which) {
    const Field& field = fields_[at_column_[which]];
    const auto tokens = ParseCount(field.text);
    if (tokens && *tokens >= 1 && *tokens <= kMostTokens) return tokens;
    Add(field.column, fmt::format("found {} as {}, allowed 1 to {} tokens", Shown(field.text),
                                  format_->columns[which], kMostTokens));
    return std::nullopt;
  }

  static void Normalise(Trace& trace) {
    TimeNs first = kNever;
    for (const TraceRow& row : trace.rows) first = std::min(first, row.arrival_ns);
    Hasher hasher;
    for (TraceRow& row : trace.rows) {
      row.arrival_ns -= first;
      hasher.Add(row.arrival_ns);
      hasher.Add(static_cast<std::int64_t>(row.prompt_tokens) << 32 | row.output_tokens);
    }
    trace.hash = hasher.Finish();
  }

  std::string_view text_, line_;
  std::size_t at_ = 0, line_number_ = 0, found_ = 0, width_ = 0;
  std::vector<Field> fields_;
  const Format* format_ = nullptr;
  std::array<std::size_t, 3> at_column_{};
  Issues issues_;
};

}  // namespace

Result<Trace> ParseTrace(std::string_view text, std::string name) {
  return Reader(text).Read(std::move(name));
}

}  // namespace servecast
