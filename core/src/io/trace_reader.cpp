// Reads trace files. The first line tells the format: a JSON object is Mooncake's
// (trace_mooncake.cpp), else it is the header of a CSV. A malformed line makes the whole file an
// error; every such line is named, none is skipped.
//
//   servecast  arrival_s,input_tokens,output_tokens      seconds
//   azure      TIMESTAMP,ContextTokens,GeneratedTokens   "2023-11-16 18:15:46.6805900"
//   vidur      arrived_at,num_prefill_tokens,num_decode_tokens   seconds
//
// A column hash_ids_512 may name the prompt's blocks of 512 tokens: numbers with spaces between.
// Further columns are ignored.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <vector>

#include "base/base.h"
#include "base/text.h"
#include "io/trace_lines.h"
#include "servecast/trace.h"

namespace servecast {
namespace {

constexpr std::string_view kHashColumn = "hash_ids_512";

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

// Fields of a line; quotes around a whole field are taken off.
void Split(std::string_view line, std::vector<Field>& fields) {
  fields.clear();
  std::size_t start = 0;
  while (true) {
    const std::size_t comma = std::min(line.find(',', start), line.size());
    std::string_view text = Trimmed(line.substr(start, comma - start));
    if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
      text = text.substr(1, text.size() - 2);
    }
    fields.push_back({text, start + 1});
    if (comma == line.size()) return;
    start = comma + 1;
  }
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
  if (text.size() >= 25 && text.substr(text.size() - 6) == "+00:00") text.remove_suffix(6);
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

// Numbers with spaces or semicolons between; false when there is anything else.
bool ParseIds(std::string_view text, std::vector<std::uint64_t>& ids) {
  ids.clear();
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    while (at != end && (*at == ' ' || *at == ';')) ++at;
    if (at == end) return true;
    std::uint64_t id = 0;
    const auto [next, error] = std::from_chars(at, end, id);
    if (error != std::errc{} || (next != end && *next != ' ' && *next != ';')) return false;
    ids.push_back(id);
    at = next;
  }
}

class CsvReader {
 public:
  explicit CsvReader(TraceLines& lines) : lines_(lines) {}

  Result<Trace> Read() {
    if (!ReadHeader()) return lines_.Finish("");
    while (lines_.Next()) {
      TraceRow row;
      if (ReadRow(row) && !lines_.AddRow(row, ids_)) break;
    }
    return lines_.Finish(format_->name);
  }

 private:
  bool ReadHeader() {
    const std::string_view line = lines_.line();
    Split(line, fields_);
    width_ = fields_.size();
    for (const Format& format : kFormats) {
      std::size_t found = 0;
      for (std::size_t c = 0; c < 3; ++c) {
        const auto at = FindColumn(format.columns[c]);
        if (twice_) return false;
        if (!at) break;
        at_column_[c] = *at;
        ++found;
      }
      if (found < 3) continue;
      format_ = &format;
      hash_column_ = FindColumn(kHashColumn);
      return !twice_;
    }
    std::string known;
    for (const Format& format : kFormats) {
      known += fmt::format("{},{},{} or ", format.columns[0], format.columns[1], format.columns[2]);
    }
    known += "lines of JSON with timestamp, input_length and output_length";
    lines_.Add(1, line.empty()
                      ? "the file is empty; a trace starts with a header line: " + known
                      : fmt::format("found the header {}, allowed: {}", Shown(line), known));
    return false;
  }

  // Sets twice_, with an issue, when the header names it twice.
  std::optional<std::size_t> FindColumn(std::string_view name) {
    std::optional<std::size_t> found;
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      if (fields_[f].text != name) continue;
      if (found) {
        lines_.Add(fields_[f].column, fmt::format("the header names {} twice", name));
        twice_ = true;
        return found;
      }
      found = f;
    }
    return found;
  }

  bool ReadRow(TraceRow& row) {
    Split(lines_.line(), fields_);
    if (fields_.size() != width_) {
      lines_.Add(lines_.line().size() + 1,
                 fmt::format("found {} fields, but the header names {}", fields_.size(), width_));
      return false;
    }
    const Field& arrival = fields_[at_column_[0]];
    const auto time =
        format_->timestamps ? ParseTimestamp(arrival.text) : ParseDecimalNs(arrival.text, kNsPerS);
    if (!time) {
      lines_.Add(arrival.column,
                 fmt::format("found {} as {}, allowed {}", Shown(arrival.text), format_->columns[0],
                             format_->timestamps ? "a time such as 2023-11-16 18:15:46.6805900"
                                                 : "seconds from 0 to 4,611,686,018"));
    }
    const auto prompt = ReadTokens(1), output = ReadTokens(2);
    const bool ids = ReadIds(prompt);
    if (!time || !prompt || !output || !ids) return false;
    row = {*time, *prompt, *output};
    return true;
  }

  std::optional<std::int32_t> ReadTokens(std::size_t which) {
    const Field& field = fields_[at_column_[which]];
    return lines_.Tokens(field.text, format_->columns[which], field.column);
  }

  bool ReadIds(std::optional<std::int32_t> prompt) {
    if (!hash_column_) return true;
    const Field& field = fields_[*hash_column_];
    if (ParseIds(field.text, ids_)) {
      return !prompt || lines_.IdsFit(*prompt, ids_.size(), field.column);
    }
    lines_.Add(field.column, fmt::format("found {} as {}, allowed whole numbers from 0 up with "
                                         "spaces between",
                                         Shown(field.text), kHashColumn));
    return false;
  }

  TraceLines& lines_;
  std::size_t width_ = 0;
  std::vector<Field> fields_;
  const Format* format_ = nullptr;
  std::array<std::size_t, 3> at_column_{};
  std::optional<std::size_t> hash_column_;
  bool twice_ = false;
  std::vector<std::uint64_t> ids_;
};

}  // namespace

Result<Trace> ParseTrace(std::string_view text, std::string name) {
  TraceLines lines(text, std::move(name));
  lines.Next();
  if (!lines.line().empty() && lines.line()[0] == '{') return ReadMooncake(lines);
  return CsvReader(lines).Read();
}

}  // namespace servecast
