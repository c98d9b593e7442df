// Reads trace files. The first line tells the format: JSON is Mooncake's (trace_mooncake.cpp) or
// another's (trace_json.cpp), else it is the header of a CSV (trace_csv.cpp). A malformed line
// makes the whole file an error; every such line is named, none is skipped.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "io/json_events.h"
#include "io/trace_columns.h"
#include "io/trace_lines.h"
#include "servecast/scenario.h"
#include "servecast/trace.h"

namespace servecast {
namespace {

// Published lines end below 10 KiB.
constexpr std::size_t kMostLineBytes = std::size_t{4} << 20;
constexpr std::size_t kMostJsonBytes = std::size_t{256} << 20;
// Empty lines and comments: two a request. More are no trace, and would take long to pass over.
constexpr std::int64_t kMostIdleLines = 2 * kMaxRequests;

// Whether a line is JSON that ends on another one: the error, if any, is at its end.
class EndsLater final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit EndsLater(std::string_view line) : size_(line.size()) { ReadJsonEvents(line, *this); }
  bool later = false;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    later = position > size_;
    return false;
  }

 private:
  std::size_t size_;
};

bool Has(std::string_view line, std::string_view word) {
  return line.find(word) != std::string_view::npos;
}

bool LooksLikeMooncake(std::string_view line) {
  return Has(line, "\"input_length\"") &&
         (Has(line, "\"timestamp\"") || Has(line, "\"hash_ids\"") || Has(line, "\"\\u"));
}

}  // namespace

class TraceReader::Impl {
 public:
  explicit Impl(std::string name) : lines_(std::move(name)) {}

  bool Add(std::string_view bytes) {
    while (!stopped_ && !bytes.empty()) {
      const std::size_t end = whole_ ? std::string_view::npos : bytes.find('\n');
      const std::size_t size = std::min(end, bytes.size());
      // How a file begins is looked for only when it matters: that may be far behind.
      const std::size_t length = pending_.size() + size;
      if (length > kMostLineBytes && length > Limit(bytes)) return Stop(Limit(bytes));
      if (end == std::string_view::npos) {
        pending_ += bytes;
        return true;
      }
      // A line that came in one piece is not copied.
      if (pending_.empty()) {
        Line(bytes.substr(0, end), true);
      } else {
        pending_ += bytes.substr(0, end);
        const std::string line = std::move(pending_);
        pending_.clear();
        Line(line, true);
      }
      bytes.remove_prefix(end + 1);
    }
    return !stopped_;
  }

  Result<Trace> Finish() {
    if (!stopped_ && !whole_ && !pending_.empty()) {
      const std::string line = std::move(pending_);
      pending_.clear();
      Line(line, false);
    }
    if (!stopped_ && whole_) format_->Text(pending_);
    pending_ = {};
    if (format_) return format_->Finish();
    if (lines_.good()) {
      lines_.Add(1, "the file is empty; a trace starts with a header line: " + KnownHeaders());
    }
    return lines_.Finish("", "");
  }

 private:
  // What a line, or a document of JSON, may have.
  std::size_t Limit(std::string_view bytes) const {
    if (format_) return whole_ ? kMostJsonBytes : kMostLineBytes;
    const std::string_view begin = pending_.empty() ? bytes : std::string_view(pending_);
    const std::size_t first = begin.find_first_not_of("\xEF\xBB\xBF \t\r\n");
    const bool json =
        first != std::string_view::npos && (begin[first] == '{' || begin[first] == '[');
    return json ? kMostJsonBytes : kMostLineBytes;
  }

  bool Stop(std::size_t limit) {
    stopped_ = true;
    pending_ = {};
    const bool line = limit == kMostLineBytes;
    if (line) lines_.SetLine({});
    lines_.Add(1, Format("found {} of more than {} MiB, allowed less",
                         line ? "a line" : "a document of JSON", limit >> 20));
    return false;
  }

  void Line(std::string_view line, bool more) {
    if (!lines_.SetLine(line)) {
      if (++idle_lines_ <= kMostIdleLines) return;
      stopped_ = true;
      lines_.Add(
          1, Format("found more than {} empty lines and comments, allowed fewer", kMostIdleLines));
      return;
    }
    if (!format_) {
      Recognise(more);
      if (whole_) {
        pending_ = std::string(line) + (more ? "\n" : "");
        return;
      }
    }
    if (!format_->Line()) stopped_ = true;
  }

  void Recognise(bool more) {
    const std::string_view line = lines_.line();
    if (line[0] != '{' && line[0] != '[') {
      format_ = CsvFormat(lines_);
    } else if (line[0] == '{' && LooksLikeMooncake(line)) {
      format_ = MooncakeFormat(lines_);
    } else {
      whole_ = line[0] == '[' || Has(line, "\"input_lens\"") || (more && EndsLater(line).later);
      format_ = JsonFormat(lines_, whole_);
    }
  }

  TraceLines lines_;
  std::unique_ptr<TraceFormat> format_;  // once there is a line
  bool whole_ = false, stopped_ = false;
  std::int64_t idle_lines_ = 0;
  std::string pending_;  // a line that goes on, or the whole document
};

TraceReader::TraceReader(std::string name) : impl_(std::make_unique<Impl>(std::move(name))) {}
TraceReader::~TraceReader() = default;
TraceReader::TraceReader(TraceReader&&) noexcept = default;
TraceReader& TraceReader::operator=(TraceReader&&) noexcept = default;
bool TraceReader::Add(std::string_view bytes) { return impl_->Add(bytes); }
Result<Trace> TraceReader::Finish() { return impl_->Finish(); }

Result<Trace> ParseTrace(std::string_view text, std::string name) {
  TraceReader reader(std::move(name));
  reader.Add(text);
  return reader.Finish();
}

}  // namespace servecast
