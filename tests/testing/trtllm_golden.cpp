#include "testing/trtllm_golden.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
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

// "3-7 9": with 3 4 5 6 7 9; -1 is an id.
std::vector<RequestId> Spans(CsvTable& table, std::size_t row, const char* column) {
  std::vector<RequestId> ids;
  for (const std::string& item : Items(table.Text(row, column))) {
    const std::size_t dash = item.find('-', 1);
    const std::int64_t from = table.Int(row, column, item.substr(0, dash));
    const std::int64_t to =
        dash == std::string::npos ? from : table.Int(row, column, item.substr(dash + 1));
    if (to - from > 1'000'000) table.Fail(row, column, item, "a short span");
    for (std::int64_t id = from; id <= to && to - from <= 1'000'000; ++id) {
      ids.push_back(static_cast<RequestId>(id));
    }
  }
  return ids;
}

// What a prompt is made of: a parent's text and answer, or a group's tokens, then its own.
class Contents {
 public:
  explicit Contents(TrtllmCase& golden) : golden_(golden) {}

  void Add(std::int64_t group, std::int64_t group_tokens, std::int64_t parent) {
    RequestTable& t = golden_.requests;
    const std::int32_t prompt = t.prompt_tokens[t.content.size()];
    ContentSegment own;
    if (parent >= 0) {
      const auto p = static_cast<std::size_t>(parent);
      const std::int64_t made = std::min<std::int64_t>(t.output_tokens[p], golden_.max_new[p]);
      own = {t.content[p],
             static_cast<std::int32_t>(std::min<std::int64_t>(t.prompt_tokens[p] + made, prompt))};
    } else if (group >= 0 && group_tokens > 0) {
      const auto [at, is_new] = groups_.try_emplace(group, 0);
      if (is_new) at->second = Segment({});
      own = {at->second, static_cast<std::int32_t>(std::min<std::int64_t>(group_tokens, prompt))};
    }
    const std::int32_t segment = Segment(own);
    t.content.push_back(segment);
  }

 private:
  std::int32_t Segment(ContentSegment segment) {
    golden_.requests.segments.push_back(segment);
    return static_cast<std::int32_t>(golden_.requests.segments.size() - 1);
  }

  TrtllmCase& golden_;
  std::map<std::int64_t, std::int32_t> groups_;
};

// Rule 63's acceptance, one entry after another.
std::vector<std::int32_t> AcceptedOf(std::int64_t id, std::int64_t drafts) {
  std::vector<std::int32_t> accepted;
  for (std::int64_t k = 0; k <= drafts; ++k) {
    accepted.push_back(static_cast<std::int32_t>((3 * id + 5 * k) % (drafts + 1)));
  }
  return accepted;
}

std::optional<Issue> ReadRequests(const fs::path& path, TrtllmCase& golden) {
  Result<CsvTable> read =
      CsvTable::Read(path, {"id", "arrival_s", "prompt_tokens", "max_tokens", "output_tokens",
                            "prefix_group", "prefix_tokens", "parent", "priority"});
  if (!read.ok()) return read.issues().front();
  CsvTable& table = read.value();
  RequestTable& t = golden.requests;
  Contents contents(golden);
  std::vector<double> priorities;
  for (std::size_t row = 0; row < table.Rows() && !table.error(); ++row) {
    if (table.Int(row, "id") != static_cast<std::int64_t>(row)) {
      table.Fail(row, "id", table.Text(row, "id"), "the row's number");
    }
    t.arrival.push_back(Time(table, row, "arrival_s"));
    t.prompt_tokens.push_back(static_cast<std::int32_t>(table.Int(row, "prompt_tokens")));
    t.output_tokens.push_back(static_cast<std::int32_t>(table.Int(row, "output_tokens")));
    golden.max_new.push_back(table.Int(row, "max_tokens"));
    t.max_new_tokens.push_back(static_cast<std::int32_t>(golden.max_new.back()));
    priorities.push_back(table.Real(row, "priority"));
    const std::int64_t parent = table.Int(row, "parent");
    if (parent >= static_cast<std::int64_t>(row)) {
      table.Fail(row, "parent", table.Text(row, "parent"), "a request before it");
      break;
    }
    contents.Add(table.Int(row, "prefix_group"), table.Int(row, "prefix_tokens"), parent);
    if (golden.settings.draft_len > 0) {
      t.accepted_drafts.push_back(
          AcceptedOf(static_cast<std::int64_t>(row), golden.settings.draft_len));
    }
  }
  const std::set<double> levels(priorities.begin(), priorities.end());
  for (const double priority : priorities) {
    t.priority.push_back(
        static_cast<std::int32_t>(std::distance(levels.begin(), levels.find(priority))));
  }
  return table.error();
}

void ReadMembers(CsvTable& table, std::size_t row, TrtllmStep& step) {
  const std::vector<std::string> members = Items(table.Text(row, "context"));
  const std::vector<std::int64_t> begins = Numbers(table, row, "context_begin");
  const std::vector<std::int64_t> lasts = Numbers(table, row, "context_last");
  if (begins.size() != members.size() || lasts.size() != members.size()) {
    return table.Fail(row, "context", table.Text(row, "context"),
                      "a list as long as context_begin and context_last");
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::vector<std::string> parts = Split(members[i], ':');
    if (parts.size() != 2) return table.Fail(row, "context", members[i], "id:tokens");
    step.context.push_back({static_cast<RequestId>(table.Int(row, "context", parts[0])),
                            table.Int(row, "context", parts[1]), begins[i], lasts[i] != 0});
  }
}

std::optional<Issue> ReadSteps(const fs::path& path, TrtllmCase& golden) {
  const bool ranks = golden.settings.attention_dp_size > 1, drafts = golden.settings.draft_len > 0;
  std::vector<std::string> columns = {"step",
                                      "sched_s",
                                      "start_s",
                                      "end_s",
                                      "T",
                                      "K",
                                      "Q",
                                      "context",
                                      "context_begin",
                                      "context_last",
                                      "generation",
                                      "paused",
                                      "finished",
                                      "fitting",
                                      "free_after_schedule",
                                      "free_after_step",
                                      "active_after_schedule",
                                      "waiting_after_schedule",
                                      "active_after_step"};
  if (ranks) columns.emplace_back("rank");
  if (drafts) columns.emplace_back("draft");
  Result<CsvTable> read = CsvTable::Read(path, columns);
  if (!read.ok()) return read.issues().front();
  CsvTable& table = read.value();
  for (std::size_t row = 0; row < table.Rows() && !table.error(); ++row) {
    TrtllmStep step;
    step.step = table.Int(row, "step");
    if (ranks) step.rank = table.Int(row, "rank");
    step.scheduled = Time(table, row, "sched_s");
    step.start = Time(table, row, "start_s");
    step.end = Time(table, row, "end_s");
    step.T = table.Int(row, "T");
    step.K = table.Int(row, "K");
    step.Q = table.Real(row, "Q");
    ReadMembers(table, row, step);
    step.generation = Spans(table, row, "generation");
    if (drafts) step.draft = Numbers(table, row, "draft");
    step.paused = Ids(table, row, "paused");
    step.finished = Ids(table, row, "finished");
    step.fitting = table.Int(row, "fitting");
    step.free_after_schedule = table.Int(row, "free_after_schedule");
    step.free_after_step = table.Int(row, "free_after_step");
    step.active_after_schedule = table.Int(row, "active_after_schedule");
    step.waiting_after_schedule = table.Int(row, "waiting_after_schedule");
    step.active_after_step = table.Int(row, "active_after_step");
    golden.steps.push_back(std::move(step));
  }
  return table.error();
}

std::optional<Issue> ReadResults(const fs::path& path, TrtllmCase& golden) {
  const bool ranks = golden.settings.attention_dp_size > 1;
  std::vector<std::string> columns = {"id",
                                      "activated_s",
                                      "first_scheduled_s",
                                      "first_token_s",
                                      "finish_s",
                                      "generated",
                                      "pauses",
                                      "reused_first",
                                      "reused_resumes",
                                      "first_step",
                                      "first_token_step",
                                      "finish_step"};
  if (ranks) columns.emplace_back("rank");
  Result<CsvTable> read = CsvTable::Read(path, columns);
  if (!read.ok()) return read.issues().front();
  CsvTable& table = read.value();
  for (std::size_t row = 0; row < table.Rows() && !table.error(); ++row) {
    TrtllmResult result;
    if (ranks) result.rank = table.Int(row, "rank");
    result.activated = Time(table, row, "activated_s");
    result.first_scheduled = Time(table, row, "first_scheduled_s");
    result.first_token = Time(table, row, "first_token_s");
    result.finish = Time(table, row, "finish_s");
    result.generated = table.Int(row, "generated");
    result.pauses = table.Int(row, "pauses");
    result.reused_first = table.Int(row, "reused_first");
    result.reused_resumes = table.Int(row, "reused_resumes");
    result.first_step = table.Int(row, "first_step");
    result.first_token_step = table.Int(row, "first_token_step");
    result.finish_step = table.Int(row, "finish_step");
    golden.results.push_back(std::move(result));
  }
  return table.error();
}

// False: a setting is missing or of another type.
bool ReadSettings(const Json& json, TrtllmSettings& s) {
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
  read("policy", s.policy);
  read("max_batch_size", s.max_batch_size);
  read("max_num_tokens", s.max_num_tokens);
  read("max_seq_len", s.max_seq_len);
  read("tokens_per_block", s.tokens_per_block);
  read("num_blocks", s.num_blocks);
  read("enable_block_reuse", s.enable_block_reuse);
  read("enable_partial_reuse", s.enable_partial_reuse);
  read("copy_on_partial_reuse", s.copy_on_partial_reuse);
  read("enable_prefix_aware_scheduling", s.enable_prefix_aware_scheduling);
  read("enable_chunked_prefill", s.enable_chunked_prefill);
  read("context_chunking_policy", s.context_chunking_policy);
  read("chunk_unit_size", s.chunk_unit_size);
  read("overlap", s.overlap);
  read("batch_wait_timeout_iters", s.batch_wait_timeout_iters);
  read("batch_wait_max_tokens_ratio", s.batch_wait_max_tokens_ratio);
  read("draft_len", s.draft_len);
  read("waiting_queue", s.waiting_queue);
  read("attention_dp_size", s.attention_dp_size);
  read("attention_dp_enable_balance", s.attention_dp_enable_balance);
  read("attention_dp_timeout_iters", s.attention_dp_timeout_iters);
  read("attention_dp_batching_wait_iters", s.attention_dp_batching_wait_iters);
  return ok;
}

std::optional<Issue> ReadCase(const fs::path& folder, const std::string& name, const Json& json,
                              TrtllmCase& golden) {
  const std::string path = (folder / "manifest.json").string();
  const auto settings = json.is_object() ? json.find("settings") : json.end();
  if (!json.is_object() || settings == json.end() || !ReadSettings(*settings, golden.settings)) {
    return Issue{path, fmt::format("case {}: its settings are not what the form says", name)};
  }
  std::optional<Issue> issue = ReadRequests(folder / ("requests_" + name + ".csv"), golden);
  if (!issue) issue = ReadSteps(folder / (name + ".steps.csv"), golden);
  if (!issue) issue = ReadResults(folder / (name + ".requests.csv"), golden);
  if (issue) return issue;
  const std::int64_t steps = golden.steps.empty() ? 0 : golden.steps.back().step + 1;
  if (json.value("requests", -1) != golden.requests.size() ||
      golden.results.size() != golden.max_new.size() || json.value("steps", -1) != steps) {
    return Issue{path, fmt::format("case {}: its files have not so many rows as it says", name)};
  }
  return std::nullopt;
}

template <class T>
std::string Text(const T& value) {
  if constexpr (std::is_same_v<T, std::vector<TrtllmMember>>) {
    std::string text;
    for (const TrtllmMember& m : value) {
      text += fmt::format("{}{}:{}+{}{}", text.empty() ? "" : " ", m.id, m.begin, m.tokens,
                          m.last ? "!" : "");
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
    difference_ = fmt::format("{} {}: {}: found {}, TensorRT-LLM has {}", what_, row_, column,
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
  return fmt::format("all {}: found {}, TensorRT-LLM has {}", what, found.size(), wanted.size());
}

}  // namespace

Result<std::vector<TrtllmCase>> LoadTrtllmCases(const std::string& folder) {
  const fs::path root(folder);
  const std::string path = (root / "manifest.json").string();
  const std::optional<std::string> text = ReadFile(path);
  if (!text) return Issue{path, "cannot be read"};
  const Json manifest = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!manifest.is_object() || !manifest.contains("cases") || !manifest["cases"].is_object()) {
    return Issue{path, "is not a JSON object with \"cases\""};
  }
  std::vector<TrtllmCase> cases;
  Issues issues;
  for (const auto& [name, json] : manifest["cases"].items()) {
    TrtllmCase golden;
    golden.name = name;
    if (std::optional<Issue> issue = ReadCase(root, name, json, golden)) {
      issues.push_back(*std::move(issue));
    } else {
      cases.push_back(std::move(golden));
    }
  }
  if (!issues.empty()) return issues;
  return cases;
}

StepPrice TrtllmGoldenLatency::Price(const BatchShape& shape) const {
  // In tenths of a nanosecond's worth: 1e-5 ms * n * (m + n / 2) = 5 ns * n * (2 m + n).
  TimeNs ns = 5'000'000 + 20'000 * shape.decode_seqs + 100 * shape.decode_context_tokens;
  for (const DraftedDecodes& decodes : shape.drafted) {
    ns += 20'000 * decodes.sequences * decodes.tokens + 100 * decodes.context;
  }
  for (const PrefillChunk& chunk : shape.prefill) {
    ns += 20'000 * chunk.tokens + 5 * chunk.tokens * (2 * chunk.context + chunk.tokens);
  }
  return {ns, StepBound::kCompute};
}

EngineCase EngineCaseOf(const TrtllmCase& golden) {
  const TrtllmSettings& s = golden.settings;
  EngineCase made{golden.requests, {}, {}, 0, std::nullopt};
  EngineSpec& e = made.engine;
  e.name = "trtllm-golden";
  e.max_num_seqs = s.max_batch_size;
  e.max_num_batched_tokens = s.max_num_tokens;
  e.enable_chunked_prefill = s.enable_chunked_prefill;
  e.block_size = s.tokens_per_block;
  e.enable_prefix_caching = s.enable_block_reuse;
  e.async_scheduling = s.overlap;
  e.num_gpu_blocks_override = s.num_blocks + 1;
  made.model_max_len = s.max_seq_len;
  made.scheduler.policy = "trtllm";
  TrtllmSpec& o = made.scheduler.trtllm;
  o.capacity_scheduler_policy = s.policy == "MAX_UTILIZATION" ? TrtllmCapacity::kMaxUtilization
                                : s.policy == "STATIC_BATCH"  ? TrtllmCapacity::kStaticBatch
                                                              : TrtllmCapacity::kGuaranteedNoEvict;
  if (s.context_chunking_policy == "EQUAL_PROGRESS") {
    o.context_chunking_policy = TrtllmChunking::kEqualProgress;
  }
  o.chunk_unit_size = s.chunk_unit_size;
  o.enable_prefix_aware_scheduling = s.enable_prefix_aware_scheduling;
  if (s.waiting_queue == "PRIORITY") o.waiting_queue = TrtllmQueue::kPriority;
  o.batch_wait_timeout_iters = s.batch_wait_timeout_iters;
  o.batch_wait_max_tokens_ratio = s.batch_wait_max_tokens_ratio;
  o.enable_partial_reuse = s.enable_partial_reuse;
  o.copy_on_partial_reuse = s.copy_on_partial_reuse;
  made.ranks = s.attention_dp_size;
  o.enable_attention_dp = made.ranks > 1;
  o.attention_dp_enable_balance = s.attention_dp_enable_balance;
  o.attention_dp_timeout_iters = s.attention_dp_timeout_iters;
  o.attention_dp_batching_wait_iters = s.attention_dp_batching_wait_iters;
  return made;
}

// What a record says of each rank; of one rank, what it says.
static std::vector<TrtllmRankLevels> RanksOf(const StepRecord& r) {
  if (!r.trtllm.ranks.empty()) return r.trtllm.ranks;
  TrtllmRankLevels one;
  for (std::int64_t tokens = 0; tokens < r.prefill_tokens; ++one.contexts) {
    tokens += r.members[static_cast<std::size_t>(one.contexts)].tokens;
  }
  one.generating = static_cast<std::int64_t>(r.members.size()) - one.contexts;
  one.paused = static_cast<std::int64_t>(r.preempted.size());
  one.finished = static_cast<std::int64_t>(r.finished.size());
  one.fitting = r.trtllm.fitting;
  one.active_after_schedule = r.trtllm.active_after_schedule;
  one.active_after_step = r.trtllm.active_after_step;
  one.free_after_schedule = r.free_after_schedule;
  one.free_after_step = r.free_after_step;
  return {one};
}

static TrtllmStep RowOf(const StepRecord& r, const TrtllmRankLevels& rank, std::size_t member) {
  TrtllmStep step;
  step.scheduled = r.scheduled;
  step.start = r.start;
  step.end = r.end;
  for (std::int64_t i = 0; i < rank.contexts + rank.generating; ++i) {
    const StepMember& m = r.members[member + static_cast<std::size_t>(i)];
    step.T += m.tokens;
    if (i < rank.contexts) {
      step.context.push_back({m.id, m.tokens, m.computed_before, m.sampled > 0});
      step.Q += static_cast<double>(m.tokens) *
                (static_cast<double>(m.computed_before) + static_cast<double>(m.tokens) / 2);
    } else {
      step.generation.push_back(m.id);
      step.K += m.computed_before;
    }
  }
  if (rank.dummies > 0) step.generation.push_back(kNoRequest);
  step.T += rank.dummies;
  step.K += rank.dummies;
  step.fitting = rank.fitting;
  step.free_after_schedule = rank.free_after_schedule;
  step.free_after_step = rank.free_after_step;
  step.active_after_schedule = rank.active_after_schedule;
  step.waiting_after_schedule =
      r.waiting_after_schedule - (r.trtllm.active_after_schedule - r.running_after_schedule);
  step.active_after_step = rank.active_after_step;
  return step;
}

// With nobody in a list TensorRT-LLM waits for a request before it looks at what is in flight,
// which then nobody needs: so that is handled when the next batch has its blocks.
static void HandleLate(const std::vector<StepRecord>& records, std::vector<TrtllmStep>& steps,
                       std::size_t ranks) {
  for (std::size_t i = ranks; i + 2 * ranks <= steps.size(); i += ranks) {
    const TrtllmLevels& levels = records[i / ranks].trtllm;
    std::int64_t before = 0, left = levels.active_after_schedule;
    for (std::size_t k = 0; k < ranks; ++k) before += steps[i - ranks + k].active_after_step;
    for (const TrtllmLateOutput& late : levels.late) {
      left -= static_cast<std::int64_t>(late.finished.size());
    }
    const bool ahead = steps[i].scheduled < steps[i - ranks].end;
    if (left > 0 && (before > 0 || !ahead)) continue;
    for (std::size_t k = 0; k < ranks; ++k) {
      const TrtllmStep& next = steps[i + ranks + k];
      const std::int64_t dummies =
          std::count(next.generation.begin(), next.generation.end(), kNoRequest);
      steps[i + k].free_after_step = next.free_after_schedule + dummies;
      steps[i + k].active_after_step = next.active_after_schedule - dummies;
    }
  }
}

std::vector<TrtllmStep> TrtllmStepsOf(const std::vector<StepRecord>& records) {
  std::vector<TrtllmStep> steps;
  std::size_t ranks = 1;
  for (std::size_t row = 0; row < records.size(); ++row) {
    const StepRecord& r = records[row];
    const std::vector<TrtllmRankLevels> levels = RanksOf(r);
    ranks = levels.size();
    for (const TrtllmLateOutput& late : r.trtllm.late) {
      TrtllmStep& kept = steps[(row - 1) * ranks + static_cast<std::size_t>(late.rank)];
      kept.finished = late.finished;
      kept.active_after_step = late.active_after_step;
      kept.free_after_step = late.free_after_step;
    }
    std::size_t member = 0;
    auto paused = r.preempted.begin(), finished = r.finished.begin();
    for (std::size_t i = 0; i < ranks; ++i) {
      TrtllmStep step = RowOf(r, levels[i], member);
      member += static_cast<std::size_t>(levels[i].contexts + levels[i].generating);
      step.step = static_cast<std::int64_t>(row);
      step.rank = static_cast<std::int64_t>(i);
      step.paused.assign(paused, paused + levels[i].paused);
      step.finished.assign(finished, finished + levels[i].finished);
      paused += levels[i].paused;
      finished += levels[i].finished;
      steps.push_back(std::move(step));
    }
  }
  HandleLate(records, steps, ranks);
  return steps;
}

std::vector<TrtllmResult> ResultsOf(const TrtllmCase& golden,
                                    const std::vector<StepRecord>& records,
                                    const RequestResults& results) {
  std::vector<TrtllmResult> all(golden.max_new.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].first_scheduled = results.first_scheduled[i];
    all[i].first_token = results.first_token[i];
    all[i].finish = results.completion[i];
    all[i].generated = results.generated[i];
    all[i].pauses = results.preemptions[i];
    all[i].reused_first = results.cached_tokens[i];
    if (!results.rank.empty()) all[i].rank = results.rank[i];
  }
  const auto of = [&all](RequestId id) -> TrtllmResult& {
    return all[static_cast<std::size_t>(id)];
  };
  for (std::size_t row = 0; row < records.size(); ++row) {
    const auto step = static_cast<std::int64_t>(row);
    for (const auto& [id, time] : records[row].trtllm.activated) of(id).activated = time;
    std::size_t member = 0;
    for (const TrtllmRankLevels& rank : RanksOf(records[row])) {
      for (std::int64_t i = 0; i < rank.contexts + rank.generating; ++i, ++member) {
        const StepMember& m = records[row].members[member];
        const bool context = i < rank.contexts;
        TrtllmResult& result = of(m.id);
        if (result.first_step < 0) result.first_step = step;
        if (context && m.sampled > 0 && result.first_token_step < 0) {
          result.first_token_step = step;
        }
        if (context && m.kind == MemberKind::kResumed) result.reused_resumes += m.computed_before;
      }
    }
    for (const RequestId id : records[row].finished) of(id).finish_step = step;
    for (const TrtllmLateOutput& late : records[row].trtllm.late) {
      for (const RequestId id : late.finished) of(id).finish_step = step - 1;
    }
  }
  return all;
}

std::optional<std::string> FirstDifference(const TrtllmCase& golden,
                                           const std::vector<TrtllmStep>& steps) {
  for (std::size_t i = 0; i < std::min(steps.size(), golden.steps.size()); ++i) {
    const TrtllmStep &found = steps[i], &wanted = golden.steps[i];
    Comparison row("row", i);
    row.Same("step", found.step, wanted.step);
    row.Same("rank", found.rank, wanted.rank);
    row.Near("sched_s", found.scheduled, wanted.scheduled);
    row.Same("context", found.context, wanted.context);
    row.Same("generation", found.generation, wanted.generation);
    row.Same("draft", found.draft, wanted.draft);
    row.Near("start_s", found.start, wanted.start);
    row.Near("end_s", found.end, wanted.end);
    row.Same("T", found.T, wanted.T);
    row.Same("K", found.K, wanted.K);
    row.Same("Q", found.Q, wanted.Q);
    row.Same("paused", found.paused, wanted.paused);
    row.Same("finished", found.finished, wanted.finished);
    row.Same("fitting", found.fitting, wanted.fitting);
    row.Same("free_after_schedule", found.free_after_schedule, wanted.free_after_schedule);
    row.Same("free_after_step", found.free_after_step, wanted.free_after_step);
    row.Same("active_after_schedule", found.active_after_schedule, wanted.active_after_schedule);
    row.Same("waiting_after_schedule", found.waiting_after_schedule, wanted.waiting_after_schedule);
    row.Same("active_after_step", found.active_after_step, wanted.active_after_step);
    if (row.difference()) return row.difference();
  }
  return OtherSize("rows", steps, golden.steps);
}

std::optional<std::string> FirstDifference(const TrtllmCase& golden,
                                           const std::vector<TrtllmResult>& results) {
  for (std::size_t i = 0; i < std::min(results.size(), golden.results.size()); ++i) {
    const TrtllmResult &found = results[i], &wanted = golden.results[i];
    Comparison request("request", i);
    request.Same("rank", found.rank, wanted.rank);
    request.Near("activated_s", found.activated, wanted.activated);
    request.Near("first_scheduled_s", found.first_scheduled, wanted.first_scheduled);
    request.Near("first_token_s", found.first_token, wanted.first_token);
    request.Near("finish_s", found.finish, wanted.finish);
    request.Same("generated", found.generated, wanted.generated);
    request.Same("pauses", found.pauses, wanted.pauses);
    request.Same("reused_first", found.reused_first, wanted.reused_first);
    request.Same("reused_resumes", found.reused_resumes, wanted.reused_resumes);
    request.Same("first_step", found.first_step, wanted.first_step);
    request.Same("first_token_step", found.first_token_step, wanted.first_token_step);
    request.Same("finish_step", found.finish_step, wanted.finish_step);
    if (request.difference()) return request.difference();
  }
  return OtherSize("requests", results, golden.results);
}

std::optional<std::string> FirstDifference(const TrtllmCase& golden) {
  if (!golden.OfEngine()) {
    const TrtllmGoldenLatency latency;
    const TrtllmOutput output =
        RunTrtllmReference({golden.requests, golden.max_new, golden.settings, latency});
    std::optional<std::string> difference = FirstDifference(golden, output.steps);
    return difference ? difference : FirstDifference(golden, output.results);
  }
  const Result<EngineRun> run =
      RunEngine(EngineCaseOf(golden), std::make_unique<TrtllmGoldenLatency>(), {});
  if (!run.ok()) return "the engine refuses it: " + run.issues().front().message;
  std::optional<std::string> difference = FirstDifference(golden, TrtllmStepsOf(run.value().steps));
  if (difference) return difference;
  RequestResults results = ResultsOf(run.value().report, golden.requests);
  for (const double replica : run.value().report.ColumnOf("replica")) {
    results.rank.push_back(static_cast<std::int32_t>(replica));
  }
  return FirstDifference(golden, ResultsOf(golden, run.value().steps, results));
}

}  // namespace servecast::testing
