// Reading the golden traces: CSV tables whose columns are found by name, settings whose types are
// checked. Comparing is in vllm_golden_compare.cpp.
#include "testing/vllm_golden.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "testing/csv_table.h"
#include "testing/data_files.h"
#include "testing/vllm_hybrid_plan.h"

namespace servecast::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Where `file` of a manifest in `folder` is.
fs::path Find(const fs::path& folder, const std::string& file) {
  std::error_code error;
  const fs::path here = folder / file;
  const fs::path parent = folder.parent_path();
  for (const fs::path& path : {here, parent / file, folder / fs::path(file).filename(),
                               parent / fs::path(file).filename()}) {
    if (fs::exists(path, error)) return path;
  }
  return here;
}

// A segment for each prefix group (of an adapter's own), and one for each request, whose first
// tokens are its group's.
void WriteContent(GoldenCase& golden) {
  RequestTable& requests = golden.requests;
  std::map<std::pair<std::int64_t, std::int32_t>, std::int32_t> groups;
  const auto add = [&](ContentSegment segment) {
    requests.segments.push_back(segment);
    return static_cast<std::int32_t>(requests.segments.size() - 1);
  };
  for (std::size_t i = 0; i < golden.extras.size(); ++i) {
    const GoldenExtras& extras = golden.extras[i];
    ContentSegment segment;
    if (extras.parent >= 0) {  // that came before it
      segment.parent = requests.content[static_cast<std::size_t>(extras.parent)];
      segment.shared_tokens = static_cast<std::int32_t>(extras.prefix_tokens);
    } else if (extras.prefix_group >= 0) {
      const std::int32_t lora = requests.lora.empty() ? 0 : requests.lora[i];
      const auto [group, is_new] = groups.try_emplace({extras.prefix_group, lora}, 0);
      if (is_new) group->second = add({});
      segment.parent = group->second;
      segment.shared_tokens = static_cast<std::int32_t>(extras.prefix_tokens);
    }
    requests.content.push_back(add(segment));
  }
}

std::optional<Issue> ReadRequests(const fs::path& path, GoldenCase& golden) {
  Result<CsvTable> read = CsvTable::Read(path, {"id", "arrival_s", "prompt_tokens", "output_tokens",
                                                "prefix_group", "prefix_tokens", "priority"});
  if (!read.ok()) return read.issues().front();
  CsvTable& table = read.value();
  const std::size_t rows = table.Rows();
  golden.requests.arrival.assign(rows, 0);
  golden.requests.prompt_tokens.assign(rows, 0);
  golden.requests.output_tokens.assign(rows, 0);
  golden.requests.priority.assign(rows, 0);
  golden.extras.assign(rows, {});
  const bool drafts = table.Has("accept");  // of the set with drafts
  if (drafts) {
    golden.requests.lora.assign(rows, 0);
    golden.requests.accepted_drafts.assign(rows, {});
    golden.requests.proposed_drafts.assign(rows, {});
  }
  std::vector<bool> seen(rows, false);
  const auto list = [&](std::size_t row, const char* column) {
    std::vector<std::int32_t> entries;
    for (const std::string& item : Items(table.Text(row, column))) {
      entries.push_back(static_cast<std::int32_t>(table.Int(row, column, item)));
    }
    return entries;
  };
  const auto tokens = [&](std::size_t row, const char* column) {
    const std::int64_t value = table.Int(row, column);
    if (value < 1 || value > INT32_MAX) {
      table.Fail(row, column, table.Text(row, column), "a number of tokens");
      return std::int32_t{1};
    }
    return static_cast<std::int32_t>(value);
  };
  for (std::size_t row = 0; row < rows; ++row) {
    // A request's id is its row in a trace, so the ids have to be 0 .. n-1, in any order.
    const std::int64_t id = table.Int(row, "id");
    if (id < 0 || id >= static_cast<std::int64_t>(rows) || seen[static_cast<std::size_t>(id)]) {
      table.Fail(row, "id", table.Text(row, "id"), "an id of its own in 0 .. rows - 1");
      break;
    }
    const auto at = static_cast<std::size_t>(id);
    seen[at] = true;
    const std::optional<TimeNs> arrival = DecimalSecondsToNs(table.Text(row, "arrival_s"));
    if (!arrival) table.Fail(row, "arrival_s", table.Text(row, "arrival_s"), "a time in seconds");
    golden.requests.arrival[at] = arrival.value_or(0);
    golden.requests.prompt_tokens[at] = tokens(row, "prompt_tokens");
    golden.requests.output_tokens[at] = tokens(row, "output_tokens");
    golden.extras[at].prefix_group = table.Int(row, "prefix_group");
    golden.extras[at].prefix_tokens = table.Int(row, "prefix_tokens");
    golden.requests.priority[at] = static_cast<std::int32_t>(table.Int(row, "priority"));
    if (table.Has("parent")) golden.extras[at].parent = table.Int(row, "parent");
    if (!drafts) continue;
    golden.requests.lora[at] = static_cast<std::int32_t>(table.Int(row, "lora"));
    golden.requests.accepted_drafts[at] = list(row, "accept");
    golden.requests.proposed_drafts[at] = list(row, "propose");
  }
  if (table.error()) return table.error();
  WriteContent(golden);
  return std::nullopt;
}

std::vector<RequestId> ReadIds(CsvTable& table, std::size_t row, const char* column) {
  std::vector<RequestId> ids;
  for (const std::string& item : Items(table.Text(row, column))) {
    if (item.back() == '*') continue;  // by an earlier call, which scheduled nothing
    ids.push_back(static_cast<RequestId>(table.Int(row, column, item)));
  }
  return ids;
}

std::vector<StepMember> ReadMembers(CsvTable& table, std::size_t row, std::int64_t requests) {
  const std::vector<std::string> scheduled = Items(table.Text(row, "scheduled"));
  const std::vector<std::string> kinds = Items(table.Text(row, "kind"));
  const std::vector<std::string> computed = Items(table.Text(row, "computed_before"));
  const std::vector<std::string> sampled = Items(table.Text(row, "sampled"));
  const bool has_drafts = table.Has("drafts");
  const std::vector<std::string> none(scheduled.size(), "0");
  const auto drafts = has_drafts ? Items(table.Text(row, "drafts")) : none;
  const auto accepted = has_drafts ? Items(table.Text(row, "accepted")) : none;
  std::vector<StepMember> members;
  if (scheduled.empty() || kinds.size() != scheduled.size() ||
      computed.size() != scheduled.size() || sampled.size() != scheduled.size() ||
      drafts.size() != scheduled.size() || accepted.size() != scheduled.size()) {
    table.Fail(row, "scheduled", table.Text(row, "scheduled"),
               "a list as long as the lists of its members");
    return members;
  }
  for (std::size_t i = 0; i < scheduled.size(); ++i) {
    const std::vector<std::string> pair = Split(scheduled[i], ':');
    const bool known_kind = kinds[i] == "n" || kinds[i] == "r" || kinds[i] == "c";
    if (pair.size() != 2) table.Fail(row, "scheduled", scheduled[i], "id:tokens");
    if (!known_kind) table.Fail(row, "kind", kinds[i], "n, r or c");
    if (!has_drafts && sampled[i] != "0" && sampled[i] != "1") {
      table.Fail(row, "sampled", sampled[i], "0 or 1");
    }
    if (table.error()) return members;
    StepMember member;
    const std::int64_t id = table.Int(row, "scheduled", pair[0]);
    if (id < 0 || id >= requests) table.Fail(row, "scheduled", scheduled[i], "a request's id");
    member.id = static_cast<RequestId>(id);
    member.tokens = table.Int(row, "scheduled", pair[1]);
    member.computed_before = table.Int(row, "computed_before", computed[i]);
    member.kind = static_cast<MemberKind>(kinds[i][0]);
    member.sampled = table.Int(row, "sampled", sampled[i]);
    member.drafts = table.Int(row, "drafts", drafts[i]);
    member.accepted = table.Int(row, "accepted", accepted[i]);
    members.push_back(member);
  }
  return members;
}

std::optional<Issue> ReadSteps(const fs::path& path, GoldenCase& golden) {
  Result<CsvTable> read =
      CsvTable::Read(path,
                     {"step", "sched_s", "start_s", "end_s", "T", "K", "Q", "scheduled", "kind",
                      "computed_before", "sampled", "preempted", "finished", "free_after_schedule",
                      "free_after_step", "running_after_schedule", "waiting_after_schedule",
                      "running_after_step", "waiting_after_step"},
                     "encoder");
  if (!read.ok()) return read.issues().front();
  CsvTable& table = read.value();
  for (std::size_t row = 0; row < table.Rows(); ++row) {
    GoldenStep step;
    step.record.index = table.Int(row, "step");
    step.record.members = ReadMembers(table, row, golden.requests.size());
    step.record.preempted = ReadIds(table, row, "preempted");
    step.record.finished = ReadIds(table, row, "finished");
    step.record.free_after_schedule = table.Int(row, "free_after_schedule");
    step.record.free_after_step = table.Int(row, "free_after_step");
    step.record.running_after_schedule = table.Int(row, "running_after_schedule");
    step.record.waiting_after_schedule = table.Int(row, "waiting_after_schedule");
    step.record.running_after_step = table.Int(row, "running_after_step");
    step.record.waiting_after_step = table.Int(row, "waiting_after_step");
    step.sched_s = table.Real(row, "sched_s");
    step.start_s = table.Real(row, "start_s");
    step.end_s = table.Real(row, "end_s");
    step.t = table.Int(row, "T");
    step.k = table.Int(row, "K");
    step.q = table.Real(row, "Q");
    if (table.Has("held")) {
      step.held = table.Text(row, "held");
      step.evicted_total = table.Int(row, "evicted_total");
    }
    if (table.error()) return table.error();
    golden.steps.push_back(std::move(step));
  }
  return std::nullopt;
}

std::optional<Issue> ReadResults(const fs::path& path, GoldenCase& golden) {
  Result<CsvTable> read = CsvTable::Read(
      path, {"id", "arrival_s", "first_scheduled_s", "first_token_s", "finish_s", "preemptions",
             "cached_at_first_schedule", "cached_on_resumes", "first_step", "finish_step"});
  if (!read.ok()) return read.issues().front();
  CsvTable& table = read.value();
  if (static_cast<std::int64_t>(table.Rows()) != golden.requests.size()) {
    return Issue{path.string(),
                 fmt::format("{} rows for {} requests", table.Rows(), golden.requests.size())};
  }
  golden.results.assign(table.Rows(), {});
  std::vector<bool> seen(table.Rows(), false);
  for (std::size_t row = 0; row < table.Rows(); ++row) {
    const std::int64_t id = table.Int(row, "id");
    if (id < 0 || id >= golden.requests.size() || seen[static_cast<std::size_t>(id)]) {
      table.Fail(row, "id", table.Text(row, "id"), "the id of a request, once");
      break;
    }
    seen[static_cast<std::size_t>(id)] = true;
    GoldenRequest& request = golden.results[static_cast<std::size_t>(id)];
    request.arrival_s = table.Real(row, "arrival_s");
    if (table.Has("rejected")) request.rejected = table.Text(row, "rejected");
    request.unfinished = table.Text(row, "finish_s").empty();
    if (!request.rejected.empty() || request.unfinished) continue;
    request.first_scheduled_s = table.Real(row, "first_scheduled_s");
    request.first_token_s = table.Real(row, "first_token_s");
    request.finish_s = table.Real(row, "finish_s");
    request.preemptions = table.Int(row, "preemptions");
    request.cached_at_first_schedule = table.Int(row, "cached_at_first_schedule");
    request.cached_on_resumes = table.Int(row, "cached_on_resumes");
    request.first_step = table.Int(row, "first_step");
    request.finish_step = table.Int(row, "finish_step");
  }
  return table.error();
}

// The settings of a case, each checked for its type; the first that is wrong or missing is kept.
class Settings {
 public:
  explicit Settings(const Json& json) : json_(json) {}

  std::int64_t Int(const char* key, std::int64_t least) {
    const auto at = json_.find(key);
    if (at == json_.end() || !at->is_number_integer() || at->get<std::int64_t>() < least) {
      return Fail(key, fmt::format("a whole number, at least {}", least)), least;
    }
    return at->get<std::int64_t>();
  }
  double Real(const char* key) {
    const auto at = json_.find(key);
    if (at == json_.end() || !at->is_number()) return Fail(key, "a number"), 0;
    return at->get<double>();
  }
  bool Bool(const char* key) {
    const auto at = json_.find(key);
    if (at == json_.end() || !at->is_boolean()) return Fail(key, "true or false"), false;
    return at->get<bool>();
  }
  std::string Text(const char* key) {
    const auto at = json_.find(key);
    if (at == json_.end() || !at->is_string()) return Fail(key, "a text"), std::string();
    return at->get<std::string>();
  }

  bool Has(const char* key) const { return json_.contains(key); }
  bool IsNull(const char* key) const { return !Has(key) || json_[key].is_null(); }
  template <class T>
  T OneOf(const char* key, const std::map<std::string, T>& values) {
    const auto at = values.find(Text(key));
    if (at != values.end()) return at->second;
    Fail(key, "one that is known");
    return values.begin()->second;
  }
  // null: none.
  NumberTable Rows(const char* key) {
    NumberTable rows;
    const auto at = json_.find(key);
    if (at == json_.end() || at->is_null()) return rows;
    for (const Json& row : *at) {
      const bool good = row.is_array() && row.size() == 3 &&
                        std::all_of(row.begin(), row.end(),
                                    [](const Json& item) { return item.is_number_integer(); });
      if (!good) return Fail(key, "rows of three whole numbers"), NumberTable();
      rows.push_back({row[0].get<double>(), row[1].get<double>(), row[2].get<double>()});
    }
    return rows;
  }

  const std::optional<std::string>& error() const { return error_; }

 private:
  void Fail(const char* key, const std::string& wanted) {
    if (error_) return;
    const auto at = json_.find(key);
    error_ = fmt::format("setting {}: found {}, not {}", key,
                         at == json_.end() ? "none" : at->dump(), wanted);
  }

  const Json& json_;
  std::optional<std::string> error_;
};

// Of the set with drafts.
void ReadDrafts(Settings& settings, EngineSpec& engine) {
  if (!settings.Has("num_speculative_tokens")) return;
  static const std::map<std::string, DraftMethod> kMethods = {
      {"none", DraftMethod::kNone},          {"ngram", DraftMethod::kNgram},
      {"ngram_gpu", DraftMethod::kNgramGpu}, {"eagle", DraftMethod::kEagle},
      {"eagle3", DraftMethod::kEagle3},      {"mtp", DraftMethod::kMtp},
      {"dflash", DraftMethod::kDflash},      {"draft_model", DraftMethod::kDraftModel},
      {"dspark", DraftMethod::kDspark}};
  SpeculativeSpec& speculative = engine.speculative;
  speculative.method = settings.OneOf("method", kMethods);
  if (speculative.On())
    speculative.num_speculative_tokens = settings.Int("num_speculative_tokens", 1);
  speculative.num_speculative_tokens_per_batch_size =
      settings.Rows("num_speculative_tokens_per_batch_size");
  engine.max_loras = settings.Int("max_loras", 0);
  const auto cap = [&settings](const char* name) -> std::optional<std::int64_t> {
    return settings.IsNull(name) ? std::nullopt : std::optional(settings.Int(name, 1));
  };
  engine.max_num_queued_reqs = cap("max_num_queued_reqs");
  engine.max_num_queued_tokens = cap("max_num_queued_tokens");
}

// The settings as an EngineSpec; its other members stay at "no cost outside the step".
void ReadEngine(Settings& settings, GoldenCase& golden) {
  EngineSpec& engine = golden.engine;
  engine.name = "vllm-golden";
  if (!settings.IsNull("block_size")) engine.block_size = settings.Int("block_size", 1);
  engine.num_gpu_blocks_override = settings.Int("num_blocks", 2);
  engine.max_num_batched_tokens = settings.Int("max_num_batched_tokens", 1);
  engine.max_num_seqs = settings.Int("max_num_seqs", 1);
  engine.max_model_len = settings.Int("max_model_len", 1);
  engine.enable_prefix_caching = settings.Bool("enable_prefix_caching");
  engine.enable_chunked_prefill = settings.Bool("enable_chunked_prefill");
  engine.long_prefill_token_threshold = settings.Int("long_prefill_token_threshold", 0);
  engine.watermark = settings.Real("watermark");
  engine.scheduler_reserve_full_isl = settings.Bool("scheduler_reserve_full_isl");
  engine.async_scheduling = settings.Bool("async_scheduling");
  // The default of this version (rule 19); the manifest names it where it differs.
  engine.free_contentless_first = true;
  ReadDrafts(settings, engine);
  const std::string policy = settings.Text("policy");
  golden.scheduler.order = policy == "priority" ? "priority_fcfs" : policy;
}

// A model of the case's layers, and the options that only such models have.
void ReadHybridModel(const Json& json, GoldenCase& golden) {
  golden.model = HybridModelOf(json["layers"], json);
  EngineSpec& engine = golden.engine;
  if (const std::int64_t block = HybridStateBlock(json)) engine.block_size = block;
  engine.frees_states_across_gaps = false;  // as that version did
  if (json.value("mamba_cache_mode", "") == "all") engine.mamba_cache_mode = MambaCacheMode::kAll;
  if (json["kv_cache_dtype"] == "fp8") engine.kv_cache_dtype = KvCacheDType::kFp8;
  if (json["prefix_match_unit"].is_number()) {
    engine.prefix_match_unit = json["prefix_match_unit"].get<std::int64_t>();
  }
  const auto flag = [&json](const char* key) { return json.contains(key) && json[key] == true; };
  if (flag("disable_hybrid_kv_cache_manager")) {
    engine.hybrid_kv_cache_manager = HybridKvManager::kOff;
  } else if (flag("allow_chunked_local_with_hybrid") || json["groups"].size() == 1) {
    // Of one group, too: a child may ask for what its parent still makes, as in no scenario.
    const std::string kind = json["groups"][0]["kind"];
    const bool chunks = json["layers"].dump().find("chunked_local") != std::string::npos;
    const bool whole = json["groups"].size() == 1 && chunks && kind == "full_attention";
    if (!whole) engine.hybrid_kv_cache_manager = HybridKvManager::kOn;
  }
}

std::optional<Issue> ReadCase(const fs::path& folder, const std::string& prefix, const Json& json,
                              GoldenCase& golden) {
  const std::string manifest = (folder / "manifest.json").string();
  Settings settings(json);
  golden.name = prefix + settings.Text("name");
  ReadEngine(settings, golden);
  if (json.contains("layers")) ReadHybridModel(json, golden);
  if (json.contains("free_contentless_first")) {
    golden.engine.free_contentless_first = settings.Bool("free_contentless_first");
  }
  const auto file = [&](const char* key, const std::string& usual) {
    return settings.Has(key) ? settings.Text(key) : usual;
  };
  const std::string name = settings.Text("name");
  const std::string requests_file = file("requests_file", "requests_" + name + ".csv");
  const std::string steps_file = file("steps_file", name + ".steps.csv");
  const std::string results_file = file("results_file", name + ".requests.csv");
  const std::int64_t requests = settings.Int("requests", 0);
  const std::int64_t steps = settings.Int("steps", 0);
  if (settings.error()) {
    return Issue{manifest, fmt::format("case {}: {}", golden.name, *settings.error())};
  }
  for (const auto& [key, value] : json.items()) {
    golden.settings[key] = value.is_string() ? value.get<std::string>() : value.dump();
  }

  std::optional<Issue> issue = ReadRequests(Find(folder, requests_file), golden);
  if (!issue) issue = ReadSteps(Find(folder, steps_file), golden);
  if (!issue) issue = ReadResults(Find(folder, results_file), golden);
  if (issue) return issue;
  if (requests != golden.requests.size() ||
      steps != static_cast<std::int64_t>(golden.steps.size())) {
    return Issue{
        manifest,
        fmt::format("case {}: {} requests and {} steps, its files have {} and {}", golden.name,
                    requests, steps, golden.requests.size(), golden.steps.size())};
  }
  return std::nullopt;
}

void ReadManifest(const fs::path& folder, const std::string& prefix, std::vector<GoldenCase>& cases,
                  Issues& issues) {
  const fs::path path = folder / "manifest.json";
  const std::optional<std::string> text = ReadFile(path.string());
  if (!text) {
    issues.push_back({path.string(), "cannot be read"});
    return;
  }
  const Json manifest = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!manifest.is_object() || !manifest.contains("cases") || !manifest["cases"].is_array()) {
    issues.push_back({path.string(), "is not a JSON object with a list \"cases\""});
    return;
  }
  for (const Json& json : manifest["cases"]) {
    if (!json.is_object()) {
      issues.push_back({path.string(), "a case is not an object"});
      continue;
    }
    GoldenCase golden;
    if (std::optional<Issue> issue = ReadCase(folder, prefix, json, golden)) {
      issues.push_back(*std::move(issue));
    } else {
      cases.push_back(std::move(golden));
    }
  }
}

// Those of a section of a set of hybrid cases that `wanted` lets pass, which may change them.
Result<std::vector<GoldenCase>> LoadSection(const std::string& folder, const char* section,
                                            bool (*wanted)(Json&)) {
  const fs::path root(folder), manifest_path = root / "manifest.json";
  const std::optional<std::string> text = ReadFile(manifest_path.string());
  Json manifest = Json::parse(text.value_or(""), nullptr, /*allow_exceptions=*/false);
  if (!manifest.is_object() || !manifest.contains(section)) {
    return Issue{manifest_path.string(),
                 fmt::format("is not a JSON object with a list \"{}\"", section)};
  }
  std::vector<GoldenCase> cases;
  Issues issues;
  for (Json& json : manifest[section]) {
    if (!wanted(json)) continue;
    GoldenCase golden;
    if (std::optional<Issue> issue = ReadCase(root / section, "", json, golden)) {
      issues.push_back(*std::move(issue));
    } else {
      cases.push_back(std::move(golden));
    }
  }
  if (!issues.empty()) return issues;
  return cases;
}

// Images are in the order of requests and offsets.
std::optional<Issue> ReadImages(const fs::path& path, GoldenCase& golden) {
  Result<CsvTable> read =
      CsvTable::Read(path, {"request", "item", "hash", "offset", "length", "gap", "embeds"});
  if (!read.ok()) return read.issues().front();
  CsvTable& table = read.value();
  RequestTable& requests = golden.requests;
  std::size_t row = 0;
  for (std::int64_t request = 0; request < requests.size(); ++request) {
    for (; row < table.Rows() && table.Int(row, "request") == request; ++row) {
      requests.images.push_back({table.Int(row, "hash"),
                                 static_cast<std::int32_t>(table.Int(row, "offset")),
                                 static_cast<std::int32_t>(table.Int(row, "length")),
                                 static_cast<std::int32_t>(table.Int(row, "embeds")),
                                 static_cast<std::int32_t>(table.Int(row, "gap"))});
    }
    requests.images_until.push_back(static_cast<std::int64_t>(requests.images.size()));
  }
  if (!table.error() && row != table.Rows()) {
    table.Fail(row, "request", table.Text(row, "request"), "a request's images in order");
  }
  return table.error();
}

}  // namespace

Result<std::vector<GoldenCase>> LoadHybridSchedules(const std::string& folder) {
  return LoadSection(folder, "schedules", [](Json&) { return true; });
}

namespace {

// As vLLM sets them, which a scenario cannot change.
bool UsualEncoder(const Json& json) {
  return json["max_num_encoder_input_tokens"].is_null() && json["encoder_cache_size"].is_null();
}

Result<std::vector<GoldenCase>> WithImages(const std::string& folder,
                                           Result<std::vector<GoldenCase>> cases) {
  if (!cases.ok()) return cases;
  for (GoldenCase& golden : cases.value()) {
    const fs::path items = fs::path(folder) / "encoder" / ("items_" + golden.name + ".csv");
    if (std::optional<Issue> issue = ReadImages(items, golden)) return *std::move(issue);
    golden.engine.disable_chunked_mm_input = golden.settings["disable_chunked_mm_input"] == "true";
    golden.most_image_tokens = ParseInt(golden.settings["mm_max_tokens_per_item"]).value_or(0);
  }
  return cases;
}

}  // namespace

Result<std::vector<GoldenCase>> LoadEncoderCases(const std::string& folder) {
  Result<std::vector<GoldenCase>> cases = LoadSection(folder, "encoder", [](Json& json) {
    const Json& groups = json["groups"];
    const bool plain = groups.size() == 1 && groups[0]["kind"] == "full_attention" &&
                       UsualEncoder(json) && json["hang"] == false;
    json.erase("layers");  // as a scenario has it
    return plain;
  });
  if (!cases.ok()) return cases;
  std::vector<GoldenCase>& all = cases.value();
  const auto follows = [](const GoldenCase& golden) {
    return std::any_of(golden.extras.begin(), golden.extras.end(),
                       [](const GoldenExtras& each) { return each.parent >= 0; });
  };
  all.erase(std::remove_if(all.begin(), all.end(), follows), all.end());
  return WithImages(folder, std::move(cases));
}

Result<std::vector<GoldenCase>> LoadGroupedEncoderCases(const std::string& folder) {
  return WithImages(folder,
                    LoadSection(folder, "encoder", [](Json& j) { return UsualEncoder(j); }));
}

Result<std::vector<GoldenCase>> LoadGoldenCases(const std::string& folder) {
  std::vector<GoldenCase> cases;
  Issues issues;
  std::error_code error;
  // Without a trailing separator, or parent_path() would be the folder itself.
  fs::path root = fs::absolute(folder, error).lexically_normal();
  if (!root.has_filename()) root = root.parent_path();
  ReadManifest(root, "", cases, issues);
  std::vector<fs::path> subfolders;
  for (fs::directory_iterator at(root, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (fs::exists(at->path() / "manifest.json", ignored)) subfolders.push_back(at->path());
  }
  if (error) issues.push_back({folder, "cannot be listed: " + error.message()});
  std::sort(subfolders.begin(), subfolders.end());
  for (const fs::path& subfolder : subfolders) {
    ReadManifest(subfolder, subfolder.filename().string() + "/", cases, issues);
  }
  if (!issues.empty()) return issues;
  return cases;
}

std::optional<TimeNs> DecimalSecondsToNs(const std::string& text) {
  // mantissa digits * 10^-scale, from sign, digits, a point among them and an exponent.
  std::size_t at = 0;
  const bool negative = !text.empty() && text[0] == '-';
  if (negative) ++at;
  std::string digits;
  std::int64_t scale = 0;
  bool point = false;
  for (; at < text.size() && text[at] != 'e' && text[at] != 'E'; ++at) {
    if (text[at] == '.' && !point) {
      point = true;
    } else if (text[at] >= '0' && text[at] <= '9') {
      digits += text[at];
      if (point) ++scale;
    } else {
      return std::nullopt;
    }
  }
  if (digits.empty()) return std::nullopt;
  if (at < text.size()) {
    std::string exponent = text.substr(at + 1);
    if (!exponent.empty() && exponent[0] == '+') exponent.erase(0, 1);
    const std::optional<std::int64_t> value = ParseInt(exponent);
    if (!value || std::abs(*value) > 400) return std::nullopt;
    scale -= *value;
  }
  // Digits in front of the nanosecond's point, then the rest, which decides the rounding.
  const std::int64_t whole = static_cast<std::int64_t>(digits.size()) - scale + 9;
  if (whole > static_cast<std::int64_t>(digits.size())) {
    digits.append(static_cast<std::size_t>(whole) - digits.size(), '0');
  }
  if (whole < 0) return 0;
  const std::string head = digits.substr(0, static_cast<std::size_t>(whole));
  const std::string tail = digits.substr(static_cast<std::size_t>(whole));
  std::int64_t ns = 0;
  for (const char digit : head) {
    if (ns > (INT64_MAX - 10) / 10) return std::nullopt;
    ns = ns * 10 + (digit - '0');
  }
  const bool more = tail.find_first_not_of('0', 1) != std::string::npos && tail.size() > 1;
  if (!tail.empty() && (tail[0] > '5' || (tail[0] == '5' && (more || ns % 2 == 1)))) ++ns;
  return negative ? -ns : ns;
}

}  // namespace servecast::testing
