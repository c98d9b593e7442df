#include "testing/sglang_golden.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "nlohmann/json.hpp"
#include "testing/csv_table.h"
#include "testing/data_files.h"
#include "testing/vllm_golden.h"

namespace servecast::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

TimeNs Time(CsvTable& table, std::size_t row, const char* column) {
  const std::optional<TimeNs> time = DecimalSecondsToNs(table.Text(row, column));
  if (!time) table.Fail(row, column, table.Text(row, column), "a time in seconds");
  return time.value_or(0);
}

std::vector<std::int64_t> Numbers(CsvTable& table, std::size_t row, const char* column) {
  std::vector<std::int64_t> numbers;
  for (const std::string& item : Items(table.Text(row, column))) {
    numbers.push_back(table.Int(row, column, item));
  }
  return numbers;
}

std::vector<RequestId> Ids(CsvTable& table, std::size_t row, const char* column) {
  std::vector<RequestId> ids;
  for (const std::int64_t id : Numbers(table, row, column)) {
    ids.push_back(static_cast<RequestId>(id));
  }
  return ids;
}

// What a prompt is made of: a parent's text, then a group's tokens, then its own. A segment for
// each text that others may begin with. The end of a sequence is one token, equal in all requests:
// two texts that are equal up to it are one.
class Contents {
 public:
  explicit Contents(SglangCase& golden) : golden_(golden) {}

  void Add(std::int64_t group, std::int64_t group_tokens, std::int64_t parent) {
    RequestTable& t = golden_.requests;
    const auto r = t.content.size();
    const std::int32_t prompt = t.prompt_tokens[r];
    ContentSegment own;
    if (parent >= 0) {
      const auto p = static_cast<std::size_t>(parent);
      const std::int64_t made = std::min<std::int64_t>(t.output_tokens[p], golden_.max_new[p]);
      own = {t.content[p],
             static_cast<std::int32_t>(std::min<std::int64_t>(t.prompt_tokens[p] + made, prompt))};
    }
    const auto of_group = static_cast<std::int32_t>(std::min<std::int64_t>(group_tokens, prompt));
    if (group >= 0 && of_group > own.shared_tokens) {
      const auto [at, is_new] =
          groups_.try_emplace(std::tuple(own.parent, own.shared_tokens, group), 0);
      if (is_new) at->second = Segment(own);
      own = {at->second, of_group};
    }
    t.content.push_back(WithEnd(r, own));
  }

 private:
  std::int32_t Segment(ContentSegment segment) {
    golden_.requests.segments.push_back(segment);
    return static_cast<std::int32_t>(golden_.requests.segments.size() - 1);
  }

  // The segment of a request, whose prompt is `own` and then its own tokens: that of an equal text,
  // where the first token that it makes is its last.
  std::int32_t WithEnd(std::size_t r, ContentSegment own) {
    const RequestTable& t = golden_.requests;
    const std::int32_t prompt = t.prompt_tokens[r], output = t.output_tokens[r];
    if (output > golden_.max_new[r]) return Segment(own);
    if (output == 1 && own.shared_tokens == prompt) {
      while (prompt <= At(own.parent).shared_tokens) own.parent = At(own.parent).parent;
      const auto [at, is_new] = ends_.try_emplace({own.parent, prompt}, 0);
      if (is_new) at->second = Segment(own);
      return at->second;
    }
    const std::int32_t segment = Segment(own);
    ends_.try_emplace({segment, prompt + output - 1}, segment);
    return segment;
  }
  const ContentSegment& At(std::int32_t segment) const {
    return golden_.requests.segments[static_cast<std::size_t>(segment)];
  }

  SglangCase& golden_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::int64_t>, std::int32_t> groups_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> ends_;  // segment, place
};

std::optional<Issue> ReadRequests(const fs::path& path, SglangCase& golden) {
  Result<CsvTable> read =
      CsvTable::Read(path, {"id", "arrival_s", "prompt_tokens", "max_new_tokens", "output_tokens",
                            "prefix_group", "prefix_tokens", "parent", "priority"});
  if (!read.ok()) return read.issues().front();
  CsvTable& table = read.value();
  RequestTable& t = golden.requests;
  Contents contents(golden);
  for (std::size_t row = 0; row < table.Rows() && !table.error(); ++row) {
    if (table.Int(row, "id") != static_cast<std::int64_t>(row)) {
      table.Fail(row, "id", table.Text(row, "id"), "the row's number");
    }
    t.arrival.push_back(Time(table, row, "arrival_s"));
    t.prompt_tokens.push_back(static_cast<std::int32_t>(table.Int(row, "prompt_tokens")));
    t.output_tokens.push_back(static_cast<std::int32_t>(table.Int(row, "output_tokens")));
    golden.max_new.push_back(table.Int(row, "max_new_tokens"));
    t.max_new_tokens.push_back(static_cast<std::int32_t>(golden.max_new.back()));
    t.priority.push_back(static_cast<std::int32_t>(table.Int(row, "priority")));
    const std::int64_t parent = table.Int(row, "parent");
    if (parent >= static_cast<std::int64_t>(row)) {
      table.Fail(row, "parent", table.Text(row, "parent"), "a request before it");
      break;
    }
    contents.Add(table.Int(row, "prefix_group"), table.Int(row, "prefix_tokens"), parent);
  }
  return table.error();
}

void ReadMembers(CsvTable& table, std::size_t row, SglangStep& step) {
  const std::vector<std::int64_t> ids = Numbers(table, row, "members");
  const std::vector<std::int64_t> tokens = Numbers(table, row, "tokens");
  const std::vector<std::int64_t> prefix = Numbers(table, row, "prefix");
  const std::string& kinds = table.Text(row, "kind");  // a letter each
  if (tokens.size() != ids.size() || prefix.size() != ids.size() || kinds.size() != ids.size()) {
    return table.Fail(row, "members", table.Text(row, "members"),
                      "a list as long as tokens, prefix and kind");
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    step.members.push_back({static_cast<RequestId>(ids[i]), tokens[i], prefix[i], kinds[i]});
  }
}

std::optional<Issue> ReadSteps(const fs::path& path, SglangCase& golden) {
  Result<CsvTable> read = CsvTable::Read(path, {"sched_s",
                                                "start_s",
                                                "end_s",
                                                "mode",
                                                "members",
                                                "tokens",
                                                "prefix",
                                                "kind",
                                                "retracted",
                                                "preempted",
                                                "finished",
                                                "chunked",
                                                "new_token_ratio",
                                                "available_after_schedule",
                                                "evictable_after_schedule",
                                                "running_after_schedule",
                                                "waiting_after_schedule",
                                                "batch_is_full",
                                                "available_after_step",
                                                "evictable_after_step"});
  if (!read.ok()) return read.issues().front();
  CsvTable& table = read.value();
  for (std::size_t row = 0; row < table.Rows() && !table.error(); ++row) {
    SglangStep step;
    step.scheduled = Time(table, row, "sched_s");
    step.start = Time(table, row, "start_s");
    step.end = Time(table, row, "end_s");
    step.mode = table.Text(row, "mode");
    ReadMembers(table, row, step);
    step.retracted = Ids(table, row, "retracted");
    step.preempted = Ids(table, row, "preempted");
    step.finished = Ids(table, row, "finished");
    step.chunked = static_cast<RequestId>(table.Int(row, "chunked"));
    step.new_token_ratio = table.Real(row, "new_token_ratio");
    step.available_after_schedule = table.Int(row, "available_after_schedule");
    step.evictable_after_schedule = table.Int(row, "evictable_after_schedule");
    step.running_after_schedule = table.Int(row, "running_after_schedule");
    step.waiting_after_schedule = table.Int(row, "waiting_after_schedule");
    step.batch_is_full = table.Int(row, "batch_is_full") != 0;
    step.available_after_step = table.Int(row, "available_after_step");
    step.evictable_after_step = table.Int(row, "evictable_after_step");
    golden.steps.push_back(std::move(step));
  }
  return table.error();
}

std::optional<Issue> ReadResults(const fs::path& path, SglangCase& golden) {
  Result<CsvTable> read = CsvTable::Read(
      path, {"id", "first_scheduled_s", "first_token_s", "finish_s", "output_tokens",
             "finish_reason", "retractions", "cached_tokens", "cached_at_first_schedule",
             "cached_on_resumes", "first_step", "finish_step"});
  if (!read.ok()) return read.issues().front();
  CsvTable& table = read.value();
  for (std::size_t row = 0; row < table.Rows() && !table.error(); ++row) {
    SglangResult result;
    result.first_scheduled = Time(table, row, "first_scheduled_s");
    result.first_token = Time(table, row, "first_token_s");
    result.finish = Time(table, row, "finish_s");
    result.output_tokens = table.Int(row, "output_tokens");
    result.finish_reason = table.Text(row, "finish_reason");
    result.retractions = table.Int(row, "retractions");
    result.cached_tokens = table.Int(row, "cached_tokens");
    result.cached_at_first_schedule = table.Int(row, "cached_at_first_schedule");
    result.cached_on_resumes = table.Int(row, "cached_on_resumes");
    result.first_step = table.Int(row, "first_step");
    result.finish_step = table.Int(row, "finish_step");
    golden.results.push_back(std::move(result));
  }
  return table.error();
}

// False: a setting is missing or of another type.
bool ReadSettings(const Json& json, SglangSettings& s) {
  bool ok = true;
  const auto read = [&](const char* key, auto& value) {
    using T = std::decay_t<decltype(value)>;
    const auto at = json.find(key);
    if (at == json.end()) return static_cast<void>(ok = false);
    if constexpr (std::is_same_v<T, std::optional<std::int64_t>>) {
      if (at->is_number_integer()) value = at->template get<std::int64_t>();
    } else {
      const bool fits = std::is_same_v<T, bool>          ? at->is_boolean()
                        : std::is_same_v<T, std::string> ? at->is_string()
                                                         : at->is_number();
      ok = ok && fits;
      if (fits) value = at->template get<T>();
    }
  };
  read("max_running_requests", s.max_running_requests);
  read("chunked_prefill_size", s.chunked_prefill_size);
  read("max_prefill_tokens", s.max_prefill_tokens);
  read("prefill_max_requests", s.prefill_max_requests);
  read("schedule_policy", s.schedule_policy);
  read("schedule_conservativeness", s.schedule_conservativeness);
  read("page_size", s.page_size);
  read("disable_radix_cache", s.disable_radix_cache);
  read("enable_mixed_chunk", s.enable_mixed_chunk);
  read("overlap", s.overlap);
  read("max_total_num_tokens", s.max_total_num_tokens);
  read("context_len", s.context_len);
  read("enable_priority_scheduling", s.enable_priority_scheduling);
  read("schedule_low_priority_values_first", s.schedule_low_priority_values_first);
  read("priority_scheduling_preemption_threshold", s.priority_scheduling_preemption_threshold);
  read("disable_priority_preemption", s.disable_priority_preemption);
  read("radix_eviction_policy", s.radix_eviction_policy);
  read("retraction_policy", s.retraction_policy);
  read("ignore_eos", s.ignore_eos);
  read("init_new_token_ratio", s.init_new_token_ratio);
  read("min_new_token_ratio_factor", s.min_new_token_ratio_factor);
  read("new_token_ratio_decay_steps", s.new_token_ratio_decay_steps);
  read("retract_decode_steps", s.retract_decode_steps);
  read("clip_max_new_tokens", s.clip_max_new_tokens);
  read("in_batch_check_threshold", s.in_batch_check_threshold);
  read("in_batch_deprioritize_threshold", s.in_batch_deprioritize_threshold);
  return ok;
}

std::optional<Issue> ReadCase(const fs::path& folder, const std::string& name, const Json& json,
                              SglangCase& golden) {
  const std::string path = (folder / "manifest.json").string();
  const auto settings = json.is_object() ? json.find("settings") : json.end();
  if (!json.is_object() || settings == json.end() || !ReadSettings(*settings, golden.settings)) {
    return Issue{path, fmt::format("case {}: its settings are not what the form says", name)};
  }
  std::optional<Issue> issue = ReadRequests(folder / ("requests_" + name + ".csv"), golden);
  if (!issue) issue = ReadSteps(folder / (name + ".steps.csv"), golden);
  if (!issue) issue = ReadResults(folder / (name + ".requests.csv"), golden);
  if (issue) return issue;
  if (json.value("requests", -1) != golden.requests.size() ||
      golden.results.size() != golden.max_new.size() ||
      json.value("steps", -1) != static_cast<int>(golden.steps.size())) {
    return Issue{path, fmt::format("case {}: its files have not so many rows as it says", name)};
  }
  return std::nullopt;
}

template <class T>
std::string Text(const T& value) {
  if constexpr (std::is_same_v<T, std::vector<SglangMember>>) {
    std::string text;
    for (const SglangMember& m : value) {
      text += fmt::format("{}{}:{}+{}", text.empty() ? "" : " ", m.id, m.prefix, m.tokens) + m.kind;
    }
    return text;
  } else {
    return fmt::format("{}", value);
  }
}

// The first of many comparisons that fails.
class Comparison {
 public:
  Comparison(std::string what, std::size_t row) : what_(std::move(what)), row_(row) {}

  template <class T>
  void Same(const char* column, const T& found, const T& wanted) {
    if (difference_ || found == wanted) return;
    difference_ = fmt::format("{} {}: {}: found {}, SGLang has {}", what_, row_, column,
                              Text(found), Text(wanted));
  }
  void Near(const char* column, TimeNs found, TimeNs wanted) {
    if (std::abs(found - wanted) > 1000) Same(column, found, wanted);
  }
  const std::optional<std::string>& difference() const { return difference_; }

 private:
  std::string what_;
  std::size_t row_;
  std::optional<std::string> difference_;
};

template <class Rows>
std::optional<std::string> OtherSize(const char* what, const Rows& found, const Rows& wanted) {
  if (found.size() == wanted.size()) return std::nullopt;
  return fmt::format("all {}: found {}, SGLang has {}", what, found.size(), wanted.size());
}

}  // namespace

Result<std::vector<SglangCase>> LoadSglangCases(const std::string& folder) {
  const fs::path root(folder);
  const std::string path = (root / "manifest.json").string();
  const std::optional<std::string> text = ReadFile(path);
  if (!text) return Issue{path, "cannot be read"};
  const Json manifest = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!manifest.is_object() || !manifest.contains("cases") || !manifest["cases"].is_object()) {
    return Issue{path, "is not a JSON object with folders of \"cases\""};
  }
  std::vector<SglangCase> cases;
  Issues issues;
  for (const auto& [below, listed] : manifest["cases"].items()) {
    for (const auto& [name, json] : listed.items()) {
      SglangCase golden;
      golden.name = below + "/" + name;
      if (std::optional<Issue> issue = ReadCase(root / below, name, json, golden)) {
        issue->path = path + ": " + issue->path;
        issues.push_back(*std::move(issue));
      } else {
        cases.push_back(std::move(golden));
      }
    }
  }
  if (!issues.empty()) return issues;
  return cases;
}

StepPrice SglangGoldenLatency::Price(const BatchShape& shape) const {
  // In tenths of a nanosecond's worth: 1e-5 ms * n * (m + n / 2) = 5 ns * n * (2 m + n).
  TimeNs ns = 5'000'000 + 20'000 * shape.decode_seqs + 100 * shape.decode_context_tokens;
  for (const PrefillChunk& chunk : shape.prefill) {
    ns += 20'000 * chunk.tokens + 5 * chunk.tokens * (2 * chunk.context + chunk.tokens);
  }
  return {ns, StepBound::kCompute};
}

EngineCase EngineCaseOf(const SglangCase& golden) {
  const SglangSettings& s = golden.settings;
  const auto choice = [](const std::string& name, std::initializer_list<const char*> names) {
    const auto at = std::find(names.begin(), names.end(), name);
    return static_cast<int>(at - names.begin());
  };
  EngineCase made{golden.requests, {}, {}, 0, std::nullopt};
  EngineSpec& e = made.engine;
  e.name = "sglang-golden";
  e.max_num_seqs = s.max_running_requests;
  e.enable_chunked_prefill = s.chunked_prefill_size > 0;
  if (e.enable_chunked_prefill) e.max_num_batched_tokens = s.chunked_prefill_size;
  e.block_size = s.page_size;
  e.enable_prefix_caching = !s.disable_radix_cache;
  e.async_scheduling = s.overlap;
  e.num_gpu_blocks_override = s.max_total_num_tokens / s.page_size + 1;
  made.model_max_len = s.context_len;
  made.scheduler.policy = "sglang";
  SglangSpec& o = made.scheduler.sglang;
  o.version = s.is_0_5_9 ? SglangVersion::k059 : SglangVersion::k0516;
  o.schedule_policy =
      static_cast<SglangQueue>(choice(s.schedule_policy, {"fcfs", "lpm", "dfs-weight", "lof"}));
  if (s.max_total_num_tokens % s.page_size != 0) o.max_total_tokens = s.max_total_num_tokens;
  o.schedule_conservativeness = s.schedule_conservativeness;
  o.max_prefill_tokens = s.max_prefill_tokens;
  o.prefill_max_requests = s.prefill_max_requests;
  o.enable_mixed_chunk = s.enable_mixed_chunk;
  o.ignore_eos = s.ignore_eos;
  o.radix_eviction_policy = static_cast<RadixEviction>(
      choice(s.radix_eviction_policy, {"lru", "lfu", "slru", "fifo", "filo", "mru", "priority"}));
  o.enable_priority_scheduling = s.enable_priority_scheduling;
  o.schedule_low_priority_values_first = s.schedule_low_priority_values_first;
  o.disable_priority_preemption = s.disable_priority_preemption;
  o.priority_scheduling_preemption_threshold = s.priority_scheduling_preemption_threshold;
  o.retraction_policy =
      static_cast<SglangRetraction>(choice(s.retraction_policy, {"length", "priority"}));
  o.init_new_token_ratio = s.init_new_token_ratio;
  o.min_new_token_ratio_factor = s.min_new_token_ratio_factor;
  o.new_token_ratio_decay_steps = s.new_token_ratio_decay_steps;
  o.retract_decode_steps = s.retract_decode_steps;
  o.clip_max_new_tokens = s.clip_max_new_tokens;
  o.in_batch_check_threshold = s.in_batch_check_threshold;
  o.in_batch_deprioritize_threshold = s.in_batch_deprioritize_threshold;
  return made;
}

std::vector<SglangStep> StepsOf(const SglangCase& golden, const std::vector<StepRecord>& records) {
  const std::int64_t page = golden.settings.page_size;
  std::vector<SglangStep> steps;
  for (const StepRecord& r : records) {
    SglangStep step;
    step.scheduled = r.scheduled;
    step.start = r.start;
    step.end = r.end;
    std::int64_t prefilled = 0;
    bool decodes = false;
    for (const StepMember& m : r.members) {
      const bool extends = prefilled < r.prefill_tokens;
      if (extends) prefilled += m.tokens;
      decodes = decodes || !extends;
      const char kind = !extends ? 'd' : m.sampled ? 'e' : 'c';
      step.members.push_back({m.id, m.tokens, m.computed_before, kind});
    }
    step.mode = prefilled == 0 ? "decode" : decodes ? "mixed" : "extend";
    const auto first_retracted =
        std::prev(r.preempted.end(), static_cast<std::ptrdiff_t>(r.sglang.retracted));
    step.preempted.assign(r.preempted.begin(), first_retracted);
    step.retracted.assign(first_retracted, r.preempted.end());
    step.finished = r.finished;
    step.chunked = r.sglang.chunked;
    step.new_token_ratio = r.sglang.new_token_ratio;
    step.evictable_after_schedule = r.sglang.evictable_after_schedule;
    step.available_after_schedule =
        r.free_after_schedule * page - r.sglang.evictable_after_schedule;
    step.running_after_schedule = r.sglang.running_batch;
    step.waiting_after_schedule = r.waiting_after_schedule;
    step.batch_is_full = r.sglang.batch_is_full;
    step.evictable_after_step = r.sglang.evictable_after_step;
    step.available_after_step = r.free_after_step * page - r.sglang.evictable_after_step;
    steps.push_back(std::move(step));
  }
  return steps;
}

std::optional<std::string> FirstDifference(const SglangCase& golden,
                                           const std::vector<SglangStep>& steps) {
  for (std::size_t i = 0; i < std::min(steps.size(), golden.steps.size()); ++i) {
    const SglangStep &found = steps[i], &wanted = golden.steps[i];
    Comparison step("step", i);
    step.Near("sched_s", found.scheduled, wanted.scheduled);
    step.Same("mode", found.mode, wanted.mode);
    step.Same("members", found.members, wanted.members);
    step.Near("start_s", found.start, wanted.start);
    step.Near("end_s", found.end, wanted.end);
    step.Same("retracted", found.retracted, wanted.retracted);
    step.Same("preempted", found.preempted, wanted.preempted);
    step.Same("finished", found.finished, wanted.finished);
    step.Same("chunked", found.chunked, wanted.chunked);
    step.Same("new_token_ratio", found.new_token_ratio, wanted.new_token_ratio);
    step.Same("available_after_schedule", found.available_after_schedule,
              wanted.available_after_schedule);
    step.Same("evictable_after_schedule", found.evictable_after_schedule,
              wanted.evictable_after_schedule);
    step.Same("running_after_schedule", found.running_after_schedule,
              wanted.running_after_schedule);
    step.Same("waiting_after_schedule", found.waiting_after_schedule,
              wanted.waiting_after_schedule);
    step.Same("batch_is_full", found.batch_is_full, wanted.batch_is_full);
    step.Same("available_after_step", found.available_after_step, wanted.available_after_step);
    step.Same("evictable_after_step", found.evictable_after_step, wanted.evictable_after_step);
    if (step.difference()) return step.difference();
  }
  return OtherSize("steps", steps, golden.steps);
}

std::optional<std::string> FirstDifference(const SglangCase& golden,
                                           const std::vector<SglangResult>& results) {
  for (std::size_t i = 0; i < std::min(results.size(), golden.results.size()); ++i) {
    const SglangResult &found = results[i], &wanted = golden.results[i];
    Comparison request("request", i);
    request.Near("first_scheduled_s", found.first_scheduled, wanted.first_scheduled);
    request.Near("first_token_s", found.first_token, wanted.first_token);
    request.Near("finish_s", found.finish, wanted.finish);
    request.Same("output_tokens", found.output_tokens, wanted.output_tokens);
    request.Same("finish_reason", found.finish_reason, wanted.finish_reason);
    request.Same("retractions", found.retractions, wanted.retractions);
    request.Same("cached_tokens", found.cached_tokens, wanted.cached_tokens);
    request.Same("cached_at_first_schedule", found.cached_at_first_schedule,
                 wanted.cached_at_first_schedule);
    request.Same("cached_on_resumes", found.cached_on_resumes, wanted.cached_on_resumes);
    request.Same("first_step", found.first_step, wanted.first_step);
    request.Same("finish_step", found.finish_step, wanted.finish_step);
    if (request.difference()) return request.difference();
  }
  return OtherSize("requests", results, golden.results);
}

std::optional<std::string> FirstDifference(const SglangCase& golden,
                                           const RequestResults& results) {
  for (std::size_t i = 0; i < golden.results.size(); ++i) {
    const SglangResult& wanted = golden.results[i];
    Comparison request("request", i);
    request.Near("first_scheduled_s", results.first_scheduled[i], wanted.first_scheduled);
    request.Near("first_token_s", results.first_token[i], wanted.first_token);
    request.Near("finish_s", results.completion[i], wanted.finish);
    request.Same("output_tokens", std::int64_t{results.generated[i]}, wanted.output_tokens);
    request.Same("retractions", std::int64_t{results.preemptions[i]}, wanted.retractions);
    request.Same("cached_at_first_schedule", std::int64_t{results.cached_tokens[i]},
                 wanted.cached_at_first_schedule);
    if (request.difference()) return request.difference();
  }
  return std::nullopt;
}

}  // namespace servecast::testing
