// Traces as JSON: the detailed result of vLLM's benchmark, and objects that each tell a request by
// numbers with the names that a CSV's columns have (trace_columns.h), one a line or in a list.
//
//   {"input_lens": [..], "output_lens": [..], "start_times": [..], "errors": [..]}
//       `vllm bench serve --save-result --save-detailed`, as of vLLM 0.15. start_times, seconds of
//       a clock of its own, came late: without them a result has lengths only. A request that
//       failed has an error, or no output.
//   {"prompt_len": 12, "output_len": 34}
//   {"conversations": [{"from": "human", "tokens": 12}, {"from": "gpt", "tokens": 34}, ..]}
//       ShareGPT's form; as in vLLM's benchmark the first two turns are the request. Texts without
//       counts of tokens are refused: there is no tokenizer here.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/text.h"
#include "io/json_events.h"
#include "io/trace_columns.h"
#include "io/trace_lines.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kBenchMembers[] = {"input_lens", "output_lens", "start_times", "errors"};
constexpr std::string_view kConversations[] = {"conversations", "conversation", "messages"};
constexpr std::string_view kTokenCounts[] = {"tokens",      "num_tokens", "n_tokens",
                                             "token_count", "token_len",  "length"};
// Of a request's object, and of a name or value in it: more tells nothing.
constexpr std::size_t kMostMembers = 256, kMostText = 64;

template <class Range>
bool IsOneOf(std::string_view word, const Range& words) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

// One object that tells a request.
struct Record {
  struct Member {
    std::string name, text;
  };
  std::vector<Member> members;
  std::vector<std::string> turns;  // token counts of a conversation
  bool conversation = false;
};

// What a benchmark's result has of its requests.
struct BenchResult {
  std::vector<std::string> input_lens, output_lens, start_times;
  std::vector<bool> errors;
  bool any = false;      // a member of these
  bool summary = false;  // a member that such results have, detailed or not
};

// Gathers records or a result from parser events; nothing else is kept.
class Gatherer : public nlohmann::json_sax<Json> {
 public:
  using OnRecord = std::function<bool(Record&)>;
  explicit Gatherer(OnRecord on_record) : on_record_(std::move(on_record)) {}

  void Reset() {
    depth_ = 0;
    record_depth_ = 0;
  }
  BenchResult bench;
  // Of a document that is none: where, and what was found.
  std::size_t bad_at = 0;
  std::string bad;

  bool null() override { return Value("null", false); }
  bool boolean(bool value) override { return Value(value ? "true" : "false", false); }
  bool number_integer(number_integer_t value) override {
    return Value(fmt::to_string(value), true);
  }
  bool number_unsigned(number_unsigned_t value) override {
    return Value(fmt::to_string(value), true);
  }
  bool number_float(number_float_t, const string_t& text) override { return Value(text, true); }
  bool string(string_t& value) override { return Value(value, false); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override {
    ++depth_;
    if (record_depth_ == 0) record_depth_ = depth_;
    if (depth_ == record_depth_) record_ = {};
    return true;
  }
  bool start_array(std::size_t) override {
    ++depth_;
    if (depth_ == 2 && record_depth_ == 2) {  // in a list of what should be objects
      bad_at = 1;
      bad = "a list in a list";
      return false;
    }
    if (depth_ == 1) record_depth_ = 2;
    if (depth_ == 2 && record_depth_ == 1) bench.any |= IsOneOf(member_, kBenchMembers);
    return true;
  }
  bool end_object() override {
    --depth_;
    if (depth_ + 1 != record_depth_ || (bench.any && record_depth_ == 1)) return true;
    return on_record_(record_);
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool key(string_t& value) override {
    key_.assign(value, 0, kMostText);
    if (depth_ != record_depth_) return true;
    member_ = key_;
    record_.conversation |= IsOneOf(member_, kConversations);
    bench.summary |= depth_ == 1 && (member_ == "request_throughput" || member_ == "mean_ttft_ms");
    return true;
  }
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception&) override {
    bad_at = std::max<std::size_t>(position, 1);
    bad = Shown(token);
    return false;
  }

 private:
  bool Value(const std::string& text, bool number) {
    if (depth_ == 0 || (depth_ == 1 && record_depth_ == 2)) {
      bad_at = 1;
      bad = Shown(text);
      return false;
    }
    if (depth_ == record_depth_) {
      if (record_.members.size() < kMostMembers) {
        record_.members.push_back({member_, text.substr(0, kMostText)});
      }
    } else if (record_depth_ == 1 && depth_ == 2 && bench.any) {
      AddToBench(text);
    } else if (number && record_.conversation && IsOneOf(member_, kConversations) &&
               IsOneOf(key_, kTokenCounts) && record_.turns.size() < 2) {
      record_.turns.push_back(text);
    }
    return true;
  }

  // One more than a run takes is as good as any number more.
  void AddToBench(const std::string& text) {
    std::vector<std::string>* list = member_ == "input_lens"    ? &bench.input_lens
                                     : member_ == "output_lens" ? &bench.output_lens
                                     : member_ == "start_times" ? &bench.start_times
                                                                : nullptr;
    constexpr auto kMostListed = static_cast<std::size_t>(kMaxRequests);
    if (list != nullptr && list->size() <= kMostListed) list->push_back(text.substr(0, kMostText));
    if (member_ == "errors" && bench.errors.size() <= kMostListed) {
      bench.errors.push_back(!text.empty() && text != "null");
    }
  }

  OnRecord on_record_;
  int depth_ = 0, record_depth_ = 0;  // 0: not known yet
  std::string key_, member_;
  Record record_;
};

class JsonTrace final : public TraceFormat {
 public:
  JsonTrace(TraceLines& lines, bool whole)
      : lines_(lines),
        whole_(whole),
        first_line_(static_cast<std::int64_t>(lines.number())),
        gatherer_([this](Record& record) { return Add(record); }) {}

  bool WantsText() const override { return whole_; }

  bool Line() override {
    full_ = false;
    gatherer_.Reset();
    const std::string_view line = lines_.line();
    if (!ReadJsonEvents(line, gatherer_) && !full_ && !stop_) {
      lines_.Add(gatherer_.bad_at,
                 Format("found {}, allowed a JSON object on one line", gatherer_.bad));
    }
    return !full_ && !stop_;
  }

  void Text(std::string_view text) override {
    if (!ReadJsonEvents(text, gatherer_)) {
      if (full_ || stop_) return;
      const std::string_view before = text.substr(0, gatherer_.bad_at - 1);
      const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
      lines_.AddAt(
          Format("line {}, column {}", std::count(before.begin(), before.end(), '\n') + first_line_,
                 gatherer_.bad_at - line_start),
          Format("found {}, allowed one JSON document: a list of objects, or a result of vllm "
                 "bench serve",
                 gatherer_.bad));
      return;
    }
    if (gatherer_.bench.any) AddBench(gatherer_.bench);
  }

  Result<Trace> Finish() override {
    if (gatherer_.bench.any) {
      const bool timed = !gatherer_.bench.start_times.empty();
      return lines_.Finish("vllm_bench",
                           std::string("vLLM bench serve result: ") +
                               (timed ? "start_times (s), " : "") + "input_lens, output_lens",
                           timed);
    }
    if (whole_ && entries_ == 0 && lines_.good()) {
      lines_.AddAt("", "found an empty list, allowed a list of objects, one a request");
    }
    return lines_.Finish(
        "json", columns_.Reading(whole_ ? "JSON list of requests: members" : "JSON lines: members"),
        columns_.has_arrivals());
  }

 private:
  void Refuse(std::string message) {
    if (whole_) {
      lines_.AddAt(Format("entry {}", entries_), std::move(message));
    } else {
      lines_.Add(1, std::move(message));
    }
  }

  // False: nothing behind it matters.
  bool Add(Record& record) {
    ++entries_;
    if (record.turns.size() == 2) {
      record.members.insert(record.members.begin(), {{"prompt_tokens", record.turns[0]},
                                                     {"output_tokens", record.turns[1]}});
    }
    if (!chosen_ && !Choose(record)) {
      stop_ = true;
      return false;
    }
    std::array<TraceField, TraceColumns::kRoles> row;
    for (std::size_t r = 0; r < row.size(); ++r) {
      const auto role = static_cast<TraceColumns::Role>(r);
      if (!columns_.at(role)) continue;
      const auto found =
          std::find_if(record.members.begin(), record.members.end(),
                       [&](const Record::Member& m) { return m.name == columns_.name(role); });
      if (found == record.members.end()) {
        Refuse(Format("found no {}, which the first has", columns_.name(role)));
        return true;
      }
      row[r].text = found->text;
    }
    if (whole_) lines_.SetEntry(entries_);
    full_ = !columns_.AddRow(row, lines_);
    return !full_;
  }

  bool Choose(const Record& record) {
    std::vector<std::string_view> names;
    names.reserve(record.members.size());
    for (const Record::Member& member : record.members) names.push_back(member.name);
    chosen_ = columns_.Choose(names);
    if (chosen_) return true;
    if (gatherer_.bench.summary) {
      Refuse(
          "found a result of vllm bench serve without input_lens and output_lens, allowed one "
          "that was written with --save-detailed");
    } else if (record.conversation) {
      Refuse(
          "found a conversation without counts of tokens, allowed one with \"tokens\" in each "
          "turn, or prompt_len and output_len: there is no tokenizer here");
    } else {
      Refuse(Format("found an object without a member for {}; allowed as a CSV's columns: {}",
                    columns_.missing(), KnownHeaders()));
    }
    return false;
  }

  void AddBench(const BenchResult& bench) {
    const std::size_t n = bench.input_lens.size();
    const auto same = [&](const char* name, std::size_t size) {
      if (size == n) return true;
      lines_.AddAt("", Format("found {} {} but {} input_lens, allowed as many", size, name, n));
      return false;
    };
    const bool timed = !bench.start_times.empty();
    if (!same("output_lens", bench.output_lens.size()) ||
        (timed && !same("start_times", bench.start_times.size())) ||
        (!bench.errors.empty() && !same("errors", bench.errors.size()))) {
      return;
    }
    columns_.ChooseNamed("start_times", "input_lens", "output_lens");
    for (std::size_t i = 0; i < n; ++i) {
      if ((!bench.errors.empty() && bench.errors[i]) || bench.output_lens[i] == "0") {
        lines_.AddFailed();
        continue;
      }
      lines_.SetEntry(i + 1);
      if (!columns_.AddRow({TraceField{timed ? bench.start_times[i] : "0"},
                            {bench.input_lens[i]},
                            {bench.output_lens[i]},
                            {}},
                           lines_)) {
        return;
      }
    }
  }

  TraceLines& lines_;
  const bool whole_;
  bool chosen_ = false, full_ = false, stop_ = false;
  std::int64_t first_line_ = 1;
  std::size_t entries_ = 0;
  TraceColumns columns_;
  Gatherer gatherer_;
};

}  // namespace

std::unique_ptr<TraceFormat> JsonFormat(TraceLines& lines, bool whole) {
  return std::make_unique<JsonTrace>(lines, whole);
}

}  // namespace servecast
