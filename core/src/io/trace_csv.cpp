// Traces as CSV, told by their header (trace_columns.h), with commas, or else semicolons or tabs,
// between fields as the header has them; also behind the YAML header of a BLIS
// TraceV2 when the two stand in one file. A column hash_ids_512 may name the prompt's blocks of 512
// tokens, and a column accepted_drafts how many drafts are accepted in each of the request's steps
// that verify some: numbers with spaces between; a column adapter_id is a LoRA adapter, from 1 up,
// or 0 for none. Further columns are ignored.
#include <algorithm>
#include <charconv>
#include <vector>

#include "base/text.h"
#include "io/trace_columns.h"
#include "io/trace_lines.h"

namespace servecast {
namespace {

constexpr std::string_view kHashColumn = "hash_ids_512", kAcceptedColumn = "accepted_drafts",
                           kAdapterColumn = "adapter_id";
constexpr std::int64_t kLastAdapter = 1'000'000;
constexpr std::uint64_t kMostAccepted = 32;  // as many drafts as a step may have
// Of a line; what has more is no trace.
constexpr std::size_t kMostFields = 4096;
constexpr std::string_view kVersionKey = "trace_version:";

// Where a quoted field's closing quote is; npos when it has none.
std::size_t ClosingQuote(std::string_view line, std::size_t at) {
  for (std::size_t end = line.find('"', at); end != std::string_view::npos;
       end = line.find('"', end + 2)) {
    if (end + 1 == line.size() || line[end + 1] != '"') return end;
  }
  return std::string_view::npos;
}

// Fields of a line. Quotes around a whole field are taken off, and separators within them are its
// own; doubled quotes stay doubled.
void Split(std::string_view line, char separator, std::vector<TraceField>& fields) {
  fields.clear();
  const char* const spaces = separator == '\t' ? " " : " \t";
  std::size_t start = 0;
  while (true) {
    std::size_t from = start;
    const std::size_t content = line.find_first_not_of(spaces, start);
    if (content != std::string_view::npos && line[content] == '"') {
      const std::size_t quote = ClosingQuote(line, content + 1);
      if (quote != std::string_view::npos) from = quote;
    }
    const std::size_t end = std::min(line.find(separator, from), line.size());
    std::string_view text = Trimmed(line.substr(start, end - start));
    if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
      text = text.substr(1, text.size() - 2);
    }
    fields.push_back({text, start + 1});
    if (end == line.size() || fields.size() == kMostFields) return;
    start = end + 1;
  }
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

class Csv final : public TraceFormat {
 public:
  explicit Csv(TraceLines& lines) : lines_(lines) {}

  bool Line() override {
    if (header_read_) return ReadRow();
    const std::string_view line = lines_.line();
    if (yaml_ || line.substr(0, kVersionKey.size()) == kVersionKey) {
      yaml_ = true;
      const bool header = line.find("arrival_time_us") != std::string_view::npos &&
                          line.find(',') != std::string_view::npos;
      if (!header) return ReadYaml(line);
    }
    header_read_ = true;
    return ReadHeader(line);
  }

  Result<Trace> Finish() override {
    if (yaml_ && !header_read_ && lines_.good()) {
      lines_.Add(1,
                 "the header of a BLIS TraceV2 without its requests: they are in the CSV file "
                 "beside it, which is read without the header, too");
    }
    const char* apart = separator_ == ','   ? ""
                        : separator_ == ';' ? "; semicolons between fields"
                                            : "; tabs between fields";
    std::string reading = columns_.Reading();
    if (accepted_column_) reading += Format(", {}", kAcceptedColumn);
    if (adapter_column_) reading += Format(", {}", kAdapterColumn);
    return lines_.Finish(columns_.format(), reading + apart, columns_.has_arrivals());
  }

 private:
  // The lines of YAML that a TraceV2's header has: key: value, and what is indented below a key.
  bool ReadYaml(std::string_view line) {
    if (line == "---" || line[0] == '-') return true;
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) {
      lines_.Add(1, Format("found {}, allowed \"key: value\", or the CSV's header with "
                           "arrival_time_us",
                           Shown(line)));
      return false;
    }
    const std::string_view key = line.substr(0, colon);
    std::string_view value = Trimmed(line.substr(colon + 1));
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') &&
        value.back() == value.front()) {
      value = value.substr(1, value.size() - 2);
    }
    if (key == "trace_version" && value != "2") return Refuse(colon, key, value, "2");
    if (key == "time_unit" && value != "us" && value != "microseconds") {
      return Refuse(colon, key, value, "us or microseconds");
    }
    return true;
  }

  bool Refuse(std::size_t colon, std::string_view key, std::string_view value,
              const char* allowed) {
    lines_.Add(colon + 2, Format("found {} as {}, allowed {}", Shown(value), key, allowed));
    return false;
  }

  // The line's fields, as its separator tells; tabs at its ends are between empty ones.
  void SplitLine() {
    Split(separator_ == '\t' ? lines_.untrimmed() : lines_.line(), separator_, fields_);
  }

  bool ChooseColumns(char separator, std::vector<std::string_view>& names) {
    separator_ = separator;
    SplitLine();
    names.clear();
    for (const TraceField& field : fields_) names.push_back(field.text);
    columns_ = {};
    return columns_.Choose(names);
  }

  bool ReadHeader(std::string_view line) {
    std::vector<std::string_view> names;
    // By the first separator that makes columns of a trace out of it; else commas are meant.
    if (!ChooseColumns(',', names) && !ChooseColumns(';', names) && !ChooseColumns('\t', names) &&
        !ChooseColumns(',', names)) {
      const bool other = fields_.size() == 1 && line.find_first_of(";\t|: ") < line.size();
      lines_.Add(1, Format("found the header {}, which has no column for {}{}; allowed: {}",
                           Shown(line), columns_.missing(),
                           other ? " and no comma: fields are separated by commas, by semicolons "
                                   "or by tabs"
                                 : "",
                           KnownHeaders()));
      return false;
    }
    width_ = fields_.size();
    for (std::size_t f = 0; f < width_; ++f) {
      const bool used = f == columns_.at(TraceColumns::kArrival) ||
                        f == columns_.at(TraceColumns::kPrompt) ||
                        f == columns_.at(TraceColumns::kOutput);
      if (used && Twice(names, names[f])) return false;
      if (fields_[f].text == kHashColumn) hash_column_ = f;
      if (fields_[f].text == kAcceptedColumn) accepted_column_ = f;
      if (fields_[f].text == kAdapterColumn) adapter_column_ = f;
    }
    return (!hash_column_ || !Twice(names, kHashColumn)) &&
           (!accepted_column_ || !Twice(names, kAcceptedColumn)) &&
           (!adapter_column_ || !Twice(names, kAdapterColumn));
  }

  bool Twice(const std::vector<std::string_view>& names, std::string_view name) {
    if (std::count(names.begin(), names.end(), name) < 2) return false;
    const auto last = std::find(names.rbegin(), names.rend(), name);
    lines_.Add(fields_[static_cast<std::size_t>(names.rend() - last) - 1].column,
               Format("the header names {} twice", Shown(name)));
    return true;
  }

  bool ReadRow() {
    SplitLine();
    if (fields_.size() != width_) {
      lines_.Add(lines_.line().size() + 1,
                 Format("found {} fields, but the header names {}", fields_.size(), width_));
      return true;
    }
    std::array<TraceField, TraceColumns::kRoles> row;
    for (std::size_t r = 0; r < row.size(); ++r) {
      const auto at = columns_.at(static_cast<TraceColumns::Role>(r));
      if (at) row[r] = fields_[*at];
    }
    if (accepted_column_) ReadAccepted(fields_[*accepted_column_]);
    if (adapter_column_) ReadAdapter(fields_[*adapter_column_]);
    ids_.clear();
    if (hash_column_ && !ReadIds(row)) return true;
    return columns_.AddRow(row, lines_, ids_);
  }

  void ReadAccepted(const TraceField& field) {
    const bool numbers = ParseIds(field.text, ids_);
    accepted_.clear();
    for (const std::uint64_t drafts : ids_) {
      if (drafts <= kMostAccepted) accepted_.push_back(static_cast<std::int32_t>(drafts));
    }
    if (numbers && !ids_.empty() && accepted_.size() == ids_.size()) {
      lines_.SetAccepted(accepted_);
      return;
    }
    lines_.Add(field.column, Format("found {} as {}, allowed one or more whole numbers from 0 to "
                                    "{} with spaces between",
                                    Shown(field.text), kAcceptedColumn, kMostAccepted));
  }

  void ReadAdapter(const TraceField& field) {
    const std::optional<std::int64_t> adapter = ParseCount(field.text);
    if (adapter && *adapter <= kLastAdapter) {
      return lines_.SetAdapter(static_cast<std::int32_t>(*adapter));
    }
    lines_.Add(field.column, Format("found {} as {}, allowed a whole number from 0 (none) to {}",
                                    Shown(field.text), kAdapterColumn, kLastAdapter));
  }

  // False, with all of the row's issues, when the ids are malformed.
  bool ReadIds(const std::array<TraceField, TraceColumns::kRoles>& row) {
    const TraceField& field = fields_[*hash_column_];
    const auto prompt = TraceColumns::PromptOf(row[TraceColumns::kPrompt].text);
    if (ParseIds(field.text, ids_)) {
      return !prompt || lines_.IdsFit(*prompt, ids_.size(), field.column);
    }
    lines_.Add(field.column, Format("found {} as {}, allowed whole numbers from 0 up with "
                                    "spaces between",
                                    Shown(field.text), kHashColumn));
    return false;
  }

  TraceLines& lines_;
  bool yaml_ = false, header_read_ = false;
  char separator_ = ',';
  std::size_t width_ = 0;
  std::vector<TraceField> fields_;
  TraceColumns columns_;
  std::optional<std::size_t> hash_column_, accepted_column_, adapter_column_;
  std::vector<std::int32_t> accepted_;
  std::vector<std::uint64_t> ids_;
};

}  // namespace

std::unique_ptr<TraceFormat> CsvFormat(TraceLines& lines) { return std::make_unique<Csv>(lines); }

}  // namespace servecast
