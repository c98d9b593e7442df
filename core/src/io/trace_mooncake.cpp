// Mooncake's traces, a JSON object a line: {"timestamp": ms, "input_length": tokens,
// "output_length": tokens, "hash_ids": [one per 512 prompt tokens]}. Other members are ignored.
// Without any hash_ids, times with fractions are seconds. Alibaba's Qwen-Bailian traces have this
// form, too, with parent_chat_id: their times are seconds, and an id stands for 16 tokens (README
// of alibaba-edu/qwen-bailian-usagetraces-anon).
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/base.h"
#include "base/text.h"
#include "io/json_events.h"
#include "io/trace_lines.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 4> kMembers = {"timestamp", "input_length", "output_length",
                                                      "hash_ids"};
constexpr std::string_view kBailianMember = "parent_chat_id";
constexpr std::int64_t kBailianIdTokens = 16;
constexpr std::size_t kTimestamp = 0, kInput = 1, kOutputLength = 2, kHashIds = 3;

// Takes the members of one line from parser events; nothing is built.
class LineReader final : public nlohmann::json_sax<Json> {
 public:
  explicit LineReader(TraceLines& lines) : lines_(lines) {}

  // The line's request; false when it has issues.
  bool Read(TraceRow& row) {
    depth_ = 0;
    good_ = true;
    seen_ = {};
    columns_ = {};
    ids_.clear();
    const std::string_view line = lines_.line();
    if (line[0] != '{') {
      lines_.Add(1, Format("found {}, allowed a JSON object with timestamp, input_length and "
                           "output_length",
                           Shown(line)));
      return false;
    }
    if (!ReadJsonEvents(line, *this)) return false;
    for (const std::size_t member : {kTimestamp, kInput, kOutputLength}) {
      if (!seen_[member]) {
        Refuse(1, Format("found no {}, allowed an object with timestamp, input_length and "
                         "output_length; a trace may also be CSV that begins with "
                         "arrival_s,input_tokens,output_tokens",
                         kMembers[member]));
      }
    }
    if (bailian_) lines_.SetIdTokens(kBailianIdTokens);
    if (!good_ || !lines_.IdsFit(prompt_, ids_.size(), Column(kHashIds))) return false;
    row = {time_, prompt_, output_};
    return true;
  }
  const std::vector<std::uint64_t>& ids() const { return ids_; }
  bool bailian() const { return bailian_; }
  // Whether any line had a part of a unit of time.
  bool fractions() const { return fractions_; }

  bool null() override { return Other("null"); }
  bool boolean(bool value) override { return Other(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return Number(fmt::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    if (depth_ == 2 && member_ == kHashIds) {
      ids_.push_back(value);
      return true;
    }
    return Number(fmt::to_string(value));
  }
  bool number_float(number_float_t, const string_t& text) override { return Number(text); }
  bool string(string_t& value) override { return Other(value); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override {
    if (depth_ > 0) Other("{");
    ++depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    if (depth_ != 1 || member_ != kHashIds) Other("[");
    ++depth_;
    return true;
  }
  bool end_object() override { return Leave(); }
  bool end_array() override { return Leave(); }
  bool key(string_t& value) override {
    if (depth_ != 1) return true;
    member_ = static_cast<std::size_t>(std::find(kMembers.begin(), kMembers.end(), value) -
                                       kMembers.begin());
    bailian_ |= value == kBailianMember;
    if (member_ == kMembers.size()) return true;
    if (seen_[member_]) Refuse(Column(member_), Format("{} appears twice", value));
    seen_[member_] = true;
    return true;
  }
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception&) override {
    Refuse(std::max<std::size_t>(position, 1),
           Format("found {}, allowed a JSON object on one line", Shown(token)));
    return false;
  }

 private:
  bool Leave() {
    --depth_;
    return true;
  }

  bool Number(const std::string& text) {
    if (depth_ != 1 || member_ == kMembers.size()) return Other(text);
    const std::size_t column = Column(member_);
    if (member_ == kTimestamp) {
      const auto time = ParseDecimalNs(text, kNsPerMs);
      if (!time) {
        Refuse(column, Format("found {} as timestamp, allowed ms from 0 to 4,611,686,018,427",
                              Shown(text)));
      }
      time_ = time.value_or(0);
      fractions_ |= time_ % kNsPerMs != 0;
    } else if (member_ == kHashIds) {
      Other(text);
    } else {
      const auto tokens = lines_.Tokens(text, kMembers[member_], column);
      good_ = good_ && tokens;
      (member_ == kInput ? prompt_ : output_) = tokens.value_or(1);
    }
    return true;
  }

  // A value of another type than the member that it belongs to, if it belongs to one of ours.
  bool Other(std::string_view text) {
    const bool ours = member_ != kMembers.size() && (depth_ == 1 || member_ == kHashIds);
    if (!ours || depth_ == 0 || (depth_ > 1 && !good_)) return true;  // one issue a list
    Refuse(Column(member_),
           Format("found {} as {}, allowed {}", Shown(text), kMembers[member_],
                  member_ == kHashIds ? "a list of whole numbers from 0 up" : "a number"));
    return true;
  }

  void Refuse(std::size_t column, std::string message) {
    good_ = false;
    lines_.Add(column, std::move(message));
  }

  // Where the member's name stands first; 1 when it is written with escapes. Searched once a line,
  // for a name may stand there as often as the line is long.
  std::size_t Column(std::size_t member) {
    std::size_t& column = columns_[member];
    if (column == 0) {
      const std::size_t at = lines_.line().find(Format("\"{}\"", kMembers[member]));
      column = at == std::string_view::npos ? 1 : at + 1;
    }
    return column;
  }

  TraceLines& lines_;
  int depth_ = 0;
  std::size_t member_ = kMembers.size();
  bool good_ = true, fractions_ = false, bailian_ = false;
  std::array<bool, kMembers.size()> seen_{};
  std::array<std::size_t, kMembers.size()> columns_{};  // 0: not searched yet
  std::int64_t time_ = 0;
  std::int32_t prompt_ = 1, output_ = 1;
  std::vector<std::uint64_t> ids_;
};

class Mooncake final : public TraceFormat {
 public:
  explicit Mooncake(TraceLines& lines) : lines_(lines), reader_(lines) {}
  bool Line() override {
    TraceRow row;
    const bool good = reader_.Read(row);
    any_ids_ |= !reader_.ids().empty();
    return !good || lines_.AddRow(row, reader_.ids());
  }
  Result<Trace> Finish() override {
    if (reader_.bailian() && lines_.ScaleTimes(1000)) {
      return lines_.Finish("mooncake_jsonl",
                           "Qwen-Bailian JSON lines: members timestamp (s), input_length, "
                           "output_length, hash_ids of 16 tokens");
    }
    // Mooncake's times are whole; others of this form, without its ids, have seconds.
    if (reader_.fractions() && !any_ids_ && lines_.ScaleTimes(1000)) {
      return lines_.Finish(
          "mooncake_jsonl",
          "JSON lines with Mooncake's members and no hash_ids: timestamp (s, as it has fractions), "
          "input_length, output_length");
    }
    return lines_.Finish(
        "mooncake_jsonl",
        "Mooncake JSON lines: members timestamp (ms), input_length, output_length");
  }

 private:
  TraceLines& lines_;
  LineReader reader_;
  bool any_ids_ = false;
};

}  // namespace

std::unique_ptr<TraceFormat> MooncakeFormat(TraceLines& lines) {
  return std::make_unique<Mooncake>(lines);
}

}  // namespace servecast
