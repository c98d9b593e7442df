// Reading Vidur's recorded runs and running the engine on them.
#include "testing/vidur_golden.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <system_error>

#include "cost/vidur_planner.h"
#include "fmt/format.h"
#include "io/vidur_names.h"
#include "metrics/summarize.h"
#include "nlohmann/json.hpp"
#include "serving/cluster/cluster.h"
#include "serving/replica/scheduler_setup.h"
#include "testing/csv_table.h"
#include "testing/data_files.h"
#include "workload/vidur_zipf.h"

namespace servecast::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Vidur's table of models and devices at 7d47513 (its config/model_config.py,
// device_sku_config.py).
struct VidurModel {
  const char* name;
  std::int64_t layers, heads, kv_heads, hidden, intermediate;
  bool gated = true;
};
constexpr VidurModel kModels[] = {
    {"codellama/CodeLlama-34b-Instruct-hf", 48, 64, 8, 8192, 22016},
    {"meta-llama/Llama-2-7b-hf", 32, 32, 32, 4096, 11008},
    {"meta-llama/Llama-2-70b-hf", 80, 64, 8, 8192, 28672},
    {"meta-llama/Meta-Llama-3-8B", 32, 32, 8, 4096, 14336},
    {"meta-llama/Meta-Llama-3-70B", 80, 64, 8, 8192, 28672},
    {"internlm/internlm-20b", 60, 40, 40, 5120, 13824},
    {"internlm/internlm2-20b", 48, 48, 8, 6144, 16384},
    {"microsoft/phi-2", 32, 32, 32, 2560, 10240, false},
    {"Qwen/Qwen-72B", 80, 64, 64, 8192, 24576},
};
constexpr std::pair<const char*, double> kDevices[] = {{"a40", 45}, {"a100", 80}, {"h100", 80}};

Result<VidurPlanInput> PlanInputOf(const std::string& model, const std::string& device) {
  VidurPlanInput in;
  const auto m = std::find_if(std::begin(kModels), std::end(kModels),
                              [&](const VidurModel& each) { return model == each.name; });
  const auto d = std::find_if(std::begin(kDevices), std::end(kDevices),
                              [&](const auto& each) { return device == each.first; });
  if (m == std::end(kModels)) return Issue{model, "is no model of Vidur"};
  if (d == std::end(kDevices)) return Issue{device, "is no device of Vidur"};
  in.layers = m->layers;
  in.heads = m->heads;
  in.kv_heads = m->kv_heads;
  in.hidden = m->hidden;
  in.intermediate = m->intermediate;
  in.gated = m->gated;
  in.memory_gib = d->second;
  return in;
}

constexpr double kTicks = 1e12;  // of the engine's clock in a second: below what doubles round
TimeNs TicksOf(double seconds) { return static_cast<TimeNs>(std::nearbyint(seconds * kTicks)); }
double SecondsOf(TimeNs ticks) { return ticks < 0 ? -1 : static_cast<double>(ticks) / kTicks; }

// The README's closed form, operation by operation.
class GoldenStage final : public LatencyModel {
 public:
  GoldenStage(std::int64_t stages, std::int64_t stage) : stages_(stages), stage_(stage) {}
  StepPrice Price(const BatchShape& shape) const override {
    std::int64_t tokens = shape.decode_seqs;
    double work = 0;
    for (const PrefillChunk& chunk : shape.prefill) {
      tokens += chunk.tokens;
      work += static_cast<double>(chunk.tokens) *
              (static_cast<double>(chunk.context) + static_cast<double>(chunk.tokens) / 2);
    }
    // Vidur counts the token that a decode computes as there.
    const std::int64_t contexts = shape.decode_context_tokens + shape.decode_seqs;
    double ms = (5.0 + 0.02 * static_cast<double>(tokens) + 1e-4 * static_cast<double>(contexts) +
                 1e-5 * work) /
                static_cast<double>(stages_);
    if (stage_ < stages_ - 1) ms += 0.5;
    return {TicksOf(ms * 1e-3), StepBound::kOverhead};
  }
  HostTimes TakeUpTimes(std::int64_t) const override { return {}; }

 private:
  std::int64_t stages_, stage_;
};

std::vector<PipelineStage> GoldenStages(std::int64_t count) {
  std::vector<PipelineStage> stages;
  for (std::int64_t i = 0; i < count; ++i) {
    PipelineStage stage;
    stage.latency = std::make_unique<GoldenStage>(count, i);
    stages.push_back(std::move(stage));
  }
  return stages;
}

// Vidur's command line, "--name value ...".
class Options {
 public:
  explicit Options(const std::string& line) {
    std::istringstream words(line);
    for (std::string name, value; words >> name >> value;) values_[name] = value;
  }
  std::string Text(const std::string& name, const std::string& fallback) {
    const auto at = values_.find("--" + name);
    if (at == values_.end()) return fallback;
    used_.push_back(at->first);
    return at->second;
  }
  double Number(const std::string& name, double fallback) {
    const std::string text = Text(name, "");
    const std::optional<double> value = ParseDouble(text);
    if (!text.empty() && !value) bad_ = "--" + name + " " + text;
    return value.value_or(fallback);
  }
  std::int64_t Int(const std::string& name, std::int64_t fallback) {
    return static_cast<std::int64_t>(Number(name, static_cast<double>(fallback)));
  }
  // The first option that nobody asked for, or whose value is none.
  std::optional<std::string> Unknown() const {
    if (bad_) return bad_;
    for (const auto& [name, value] : values_) {
      if (std::find(used_.begin(), used_.end(), name) == used_.end()) return name + " " + value;
    }
    return std::nullopt;
  }

 private:
  std::map<std::string, std::string> values_;
  std::vector<std::string> used_;
  std::optional<std::string> bad_;
};

// Scaled, cut and clipped as Vidur's trace_replay does.
Result<std::vector<VidurJob>> ReadTrace(const fs::path& path, Options& options,
                                        std::int64_t max_tokens) {
  const std::string group = "trace_request_generator_config_";
  const double prompts = options.Number(group + "prefill_scale_factor", 1);
  const double outputs = options.Number(group + "decode_scale_factor", 1);
  const double times = options.Number(group + "time_scale_factor", 1);
  Result<CsvTable> read =
      CsvTable::Read(path.string(), {"arrived_at", "num_prefill_tokens", "num_decode_tokens"});
  if (!read.ok()) return Issues(read.issues());
  CsvTable& table = read.value();
  std::vector<VidurJob> jobs(table.Rows());
  for (std::size_t row = 0; row < jobs.size(); ++row) {
    const auto scaled = [&](const char* column, double scale) {
      return std::max<std::int64_t>(1, static_cast<std::int64_t>(table.Real(row, column) * scale));
    };
    VidurJob& job = jobs[row];
    job.arrival = table.Real(row, "arrived_at") * times;
    job.prompt = scaled("num_prefill_tokens", prompts);
    job.output = scaled("num_decode_tokens", outputs);
    job.prompt -= std::max<std::int64_t>(0, job.prompt + job.output - max_tokens);
    if (job.prompt < 1) return Issue{path.string(), "has an output longer than max_tokens"};
  }
  if (table.error()) return *table.error();
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const VidurJob& a, const VidurJob& b) { return a.arrival < b.arrival; });
  return jobs;
}

const std::pair<const char*, const char*> kSchedulers[] = {
    {"vllm", "vllm_v0"},
    {"sarathi", "sarathi"},
    {"orca", "orca"},
    {"lightllm", "lightllm"},
    {"faster_transformer", "faster_transformer"},
};

// What of the setup the options say. Issues: an option, a name or a value that is not known.
Issues ReadOptions(Options& options, const fs::path& folder, VidurCase& golden) {
  const auto issue = [&](const std::string& what) { return Issues{{golden.name, what}}; };
  options.Text("execution_time_predictor_config_type", "");
  if (options.Text("request_generator_config_type", "") != "trace_replay") {
    return issue("requests that are no trace_replay");
  }
  const std::string router =
      options.Text("cluster_config_global_scheduler_config_type",
                   options.Text("global_scheduler_config_type", "round_robin"));
  const std::string type = options.Text("replica_scheduler_config_type", "sarathi");
  const auto known = std::find_if(std::begin(kSchedulers), std::end(kSchedulers),
                                  [&](const auto& each) { return type == each.first; });
  if (known == std::end(kSchedulers)) return issue("unknown scheduler " + type);
  if (router != "round_robin" && router != "lor") return issue("unknown router " + router);

  SchedulerLimits& limits = golden.limits;
  golden.scheduler = &FindScheduler(known->second);
  golden.router = router == "lor" ? "least_outstanding" : "round_robin";
  limits.as_vidur = true;
  golden.replicas = options.Int("cluster_config_num_replicas", 1);
  const std::string own = type + "_scheduler_config_";
  limits.stages = options.Int("replica_config_num_pipeline_stages", 1);
  limits.max_num_seqs = options.Int(own + "batch_size_cap", 128);
  limits.block_size = options.Int(own + "block_size", 16);
  limits.max_num_batched_tokens = type == "sarathi"
                                      ? options.Int(own + "chunk_size", 512)
                                      : options.Int(own + "max_tokens_in_batch", 4096);
  limits.max_waiting_iters = options.Int(own + "max_waiting_iters", 10);
  limits.max_model_len = options.Int("trace_request_generator_config_max_tokens", 4096);
  if (limits.stages < 1 || limits.block_size < 1 || golden.replicas < 1 ||
      limits.max_num_seqs < limits.stages) {
    return issue("a number of stages, replicas, requests or tokens below 1");
  }

  Result<VidurPlanInput> plan =
      PlanInputOf(options.Text("replica_config_model_name", "meta-llama/Llama-2-7b-hf"),
                  options.Text("replica_config_device", "a100"));
  if (!plan.ok()) return plan.issues();
  options.Text("replica_config_network_device", "");
  plan.value().margin = options.Number("replica_config_memory_margin_fraction", 0.1);
  plan.value().tensor_parallel = options.Int("replica_config_tensor_parallel_size", 1);
  plan.value().pipeline_parallel = limits.stages;
  plan.value().max_tokens = limits.max_model_len;
  plan.value().block_size = limits.block_size;
  plan.value().max_num_seqs = limits.max_num_seqs;
  const VidurPlan planned = PlanVidurMemory(plan.value());
  limits.blocks = options.Int(own + "num_blocks", planned.blocks);
  limits.max_reserved = planned.slots * limits.stages;
  limits.watermark_blocks = static_cast<std::int64_t>(
      options.Number(own + "watermark_blocks_fraction", 0.01) * static_cast<double>(limits.blocks));

  Result<std::vector<VidurJob>> jobs =
      ReadTrace(folder / options.Text("trace_request_generator_config_trace_file", ""), options,
                limits.max_model_len);
  if (!jobs.ok()) return jobs.issues();
  golden.jobs = std::move(jobs.value());
  if (const std::optional<std::string> unknown = options.Unknown()) {
    return issue("option that is not known: " + *unknown);
  }
  return {};
}

Issues ReadBatches(const fs::path& path, VidurCase& golden) {
  constexpr const char* kMembers = "members(id:tokens)";
  Result<CsvTable> read = CsvTable::Read(
      path.string(), {"replica", "time", "size", "allocated_blocks_after_schedule", kMembers});
  if (!read.ok()) return read.issues();
  CsvTable& table = read.value();
  for (std::size_t row = 0; row < table.Rows(); ++row) {
    VidurBatch batch;
    batch.replica = table.Int(row, "replica");
    batch.time = table.Real(row, "time");
    batch.used_blocks = table.Int(row, "allocated_blocks_after_schedule");
    for (const std::string& item : Items(table.Text(row, kMembers))) {
      const std::vector<std::string> pair = Split(item, ':');
      batch.members.emplace_back(table.Int(row, kMembers, pair.front()),
                                 table.Int(row, kMembers, pair.back()));
    }
    if (static_cast<std::int64_t>(batch.members.size()) != table.Int(row, "size")) {
      table.Fail(row, "size", table.Text(row, "size"), "the number of members");
    }
    golden.batches.push_back(std::move(batch));
  }
  return table.error() ? Issues{*table.error()} : Issues{};
}

Issues ReadRequests(const fs::path& path, VidurCase& golden) {
  Result<CsvTable> read =
      CsvTable::Read(path.string(), {"id", "replica", "prefill", "decode", "arrived_at",
                                     "scheduled_at", "prefill_completed_at", "completed_at",
                                     "restarts", "preempted_time", "execution_time"});
  if (!read.ok()) return read.issues();
  CsvTable& table = read.value();
  for (std::size_t row = 0; row < table.Rows(); ++row) {
    if (table.Int(row, "id") != static_cast<std::int64_t>(row)) {
      table.Fail(row, "id", table.Text(row, "id"), "the number of the row");
    }
    golden.requests.push_back(
        {table.Int(row, "replica"), table.Int(row, "prefill"), table.Int(row, "decode"),
         table.Int(row, "restarts"), table.Real(row, "arrived_at"), table.Real(row, "scheduled_at"),
         table.Real(row, "prefill_completed_at"), table.Real(row, "completed_at"),
         table.Real(row, "preempted_time"), table.Real(row, "execution_time")});
  }
  return table.error() ? Issues{*table.error()} : Issues{};
}

constexpr double kTimeTolerance = 1e-6;  // s
bool Near(double a, double b) { return std::fabs(a - b) <= kTimeTolerance; }

std::string MembersText(const std::vector<std::pair<std::int64_t, std::int64_t>>& members) {
  std::string text;
  for (const auto& [id, tokens] : members) text += fmt::format(" {}:{}", id, tokens);
  return text;
}

// A run of the engine: each replica's batches in order, and the requests' results.
struct VidurRun {
  std::vector<std::vector<StepRecord>> batches;  // by replica
  RequestTable requests;
  RequestResults results;
  bool finished = false;
};

class BatchCollector final : public StepObserver {
 public:
  explicit BatchCollector(VidurRun& run) : run_(run) {}
  void OnStep(const StepRecord& step) override {
    run_.batches[static_cast<std::size_t>(step.replica)].push_back(step);
  }

 private:
  VidurRun& run_;
};

VidurRun RunCase(const VidurCase& golden) {
  VidurRun run;
  run.batches.resize(static_cast<std::size_t>(golden.replicas));
  for (const VidurJob& job : golden.jobs) {
    run.requests.arrival.push_back(TicksOf(job.arrival));
    run.requests.prompt_tokens.push_back(static_cast<std::int32_t>(job.prompt));
    run.requests.output_tokens.push_back(static_cast<std::int32_t>(job.output));
  }
  run.results.Resize(run.requests.size());
  run.results.replica.assign(run.requests.arrival.size(), -1);
  EngineSpec engine;
  engine.compat = Compat::kVidur;
  const std::vector<PipelineStage> stages = GoldenStages(golden.limits.stages);
  const LatencyModel& latency = *stages[0].latency;
  constexpr std::int64_t kNoLimit = INT32_MAX;
  Clients clients(run.requests, latency, kNoLimit, run.results, 0);
  Inbox unused(clients, run.requests, run.results, true);
  ReplicaScratch scratch(run.requests);
  Recorder recorder(0);
  BatchCollector collector(run);
  SchedulerSetup setup;
  setup.entry = golden.scheduler;
  setup.limits = golden.limits;
  const SchedulerSpec scheduler;
  const ReplicaInput each{.engine = engine,
                          .scheduler = scheduler,
                          .setup = setup,
                          .pool_blocks = golden.limits.blocks,
                          .max_model_len = kNoLimit,
                          .requests = run.requests,
                          .inbox = &unused,
                          .latency = latency,
                          .results = run.results,
                          .recorder = &recorder,
                          .scratch = scratch,
                          .observer = &collector,
                          .stages = stages.size() > 1 ? &stages : nullptr};
  const RouterEntry& router = FindRouter(golden.router);
  Cluster cluster({.pools = {{.each = each, .replicas = golden.replicas}},
                   .router = &router,
                   .router_params = ParamValues(router.params, {}),
                   .clients = clients});
  run.finished = cluster.Advance(4 * static_cast<std::int64_t>(golden.batches.size()) + 1000);
  return run;
}

// Blocks are read when the whole schedule is over, which may have formed several batches.
bool SameBlocks(const std::vector<StepRecord>& batches, std::size_t i, const VidurCase& golden,
                std::int64_t wanted) {
  for (std::size_t j = i; j < batches.size() && batches[j].scheduled == batches[i].scheduled; ++j) {
    if (golden.limits.blocks - batches[j].free_after_schedule == wanted) return true;
  }
  return false;
}

std::optional<std::string> BatchDifference(const VidurCase& golden, const VidurRun& run) {
  std::vector<std::size_t> next(run.batches.size(), 0);
  for (std::size_t row = 0; row < golden.batches.size(); ++row) {
    const VidurBatch& wanted = golden.batches[row];
    const auto replica = static_cast<std::size_t>(wanted.replica);
    if (replica >= run.batches.size() || next[replica] == run.batches[replica].size()) {
      return fmt::format("batch {} of Vidur's is on replica {}, which forms {} batches", row,
                         replica, replica < next.size() ? next[replica] : 0);
    }
    const std::size_t i = next[replica]++;
    const StepRecord& batch = run.batches[replica][i];
    std::vector<std::pair<std::int64_t, std::int64_t>> members;
    for (const StepMember& member : batch.members) members.emplace_back(member.id, member.tokens);
    const double time = SecondsOf(batch.scheduled);
    if (!Near(time, wanted.time)) {
      return fmt::format("batch {} on replica {}: at {} s, Vidur's at {} s", row, replica, time,
                         wanted.time);
    }
    if (members != wanted.members) {
      return fmt::format("batch {} at {} s: members{}, Vidur's{}", row, time, MembersText(members),
                         MembersText(wanted.members));
    }
    if (!SameBlocks(run.batches[replica], i, golden, wanted.used_blocks)) {
      return fmt::format("batch {} at {} s: {} blocks, Vidur's {}", row, time,
                         golden.limits.blocks - batch.free_after_schedule, wanted.used_blocks);
    }
  }
  return std::nullopt;
}

// What the command writes of the requests (--requests --names vidur), by column; in s.
std::vector<std::map<std::string, double>> CommandsRows(const VidurRun& run) {
  const Scenario scenario;
  const ModelCost cost;
  const std::string no_trace;
  const Recorder recorder(0);
  const RunView view{.scenario = scenario,
                     .cost = cost,
                     .trace_name = no_trace,
                     .requests = run.requests,
                     .results = run.results,
                     .recorder = recorder,
                     .prefix_cache = {},
                     .finished = true,
                     .label = {},
                     .pools = {{scenario, cost, recorder}}};
  Report report;
  report.columns.resize(Columns().size());
  FillRequestColumns(view, report);
  VidurTimes times;
  for (const std::vector<StepRecord>& batches : run.batches) {
    for (const StepRecord& batch : batches) times.OnStep(batch);
  }
  std::string header = VidurRequestHeader();
  header.pop_back();  // the end of the line
  const std::vector<std::string> names = Split(header, ',');
  std::vector<std::map<std::string, double>> rows;
  for (std::size_t i = 0; i < run.requests.arrival.size(); ++i) {
    std::string row = VidurRequestRow(report, times, i);
    if (!row.empty()) row.pop_back();
    const std::vector<std::string> cells = Split(row, ',');
    rows.emplace_back();
    for (std::size_t c = 0; c < names.size() && cells.size() == names.size(); ++c) {
      const bool is_time =
          names[c].find("time") != std::string::npos || names[c].find("delay") != std::string::npos;
      // It takes a tick for a nanosecond.
      const double value = ParseDouble(cells[c]).value_or(std::nan(""));
      rows.back()[names[c]] = is_time ? value * 1e9 / kTicks : value;
    }
  }
  return rows;
}

std::optional<std::string> RequestDifference(const VidurCase& golden, const VidurRun& run) {
  std::vector<std::map<std::string, double>> rows = CommandsRows(run);
  for (std::size_t i = 0; i < golden.requests.size(); ++i) {
    const VidurRequest& wanted = golden.requests[i];
    const double output = static_cast<double>(wanted.output);
    const std::pair<const char*, double> figures[] = {
        {"request_num_restarts", wanted.restarts},
        {"request_num_prefill_tokens", wanted.prompt},
        {"request_num_decode_tokens", wanted.output},
        {"request_scheduling_delay", wanted.scheduled - wanted.arrival},
        {"request_e2e_time", wanted.completed - wanted.arrival},
        {"request_e2e_time_normalized", (wanted.completed - wanted.arrival) / output},
        {"request_preemption_time", wanted.preempted},
        {"request_execution_time", wanted.execution},
        {"request_execution_time_normalized", wanted.execution / output},
        {"request_execution_plus_preemption_time", wanted.execution + wanted.preempted},
        {"prefill_e2e_time", wanted.prefill_end - wanted.arrival},
        {"prefill_time_execution_plus_preemption", wanted.prefill_end - wanted.scheduled},
        {"decode_time_execution_plus_preemption_normalized",
         (wanted.completed - wanted.prefill_end) / output},
    };
    if (run.results.replica[i] != wanted.replica) {
      return fmt::format("request {}: on replica {}, Vidur's {}", i, run.results.replica[i],
                         wanted.replica);
    }
    for (const auto& [name, value] : figures) {
      const auto cell = rows[i].find(name);
      if (cell != rows[i].end() && Near(cell->second, value)) continue;
      return fmt::format("request {}: {} {}, Vidur's {}", i, name,
                         cell == rows[i].end() ? "missing" : fmt::format("{}", cell->second),
                         value);
    }
  }
  return std::nullopt;
}

}  // namespace

VidurCases LoadVidurCases(const std::string& folder) {
  VidurCases loaded;
  const fs::path manifest = fs::path(folder) / "manifest.json";
  const std::optional<std::string> text = ReadFile(manifest.string());
  const Json list = text ? Json::parse(*text, nullptr, false) : Json();
  if (!list.is_array()) {
    loaded.issues.push_back({manifest.string(), text ? "is no JSON list" : "cannot be read"});
    return loaded;
  }
  for (const Json& entry : list) {
    const auto number = [&](const char* key) {
      return entry.contains(key) && entry[key].is_number_integer() ? entry[key].get<std::int64_t>()
                                                                   : -1;
    };
    if (!entry.is_object() || !entry.contains("tag") || !entry["tag"].is_string() ||
        !entry.contains("args") || !entry["args"].is_string()) {
      loaded.issues.push_back({manifest.string(), "has an entry without tag and args"});
      continue;
    }
    VidurCase golden;
    golden.name = entry["tag"].get<std::string>();
    golden.restarts = number("restarts");
    golden.blocks = number("num_blocks");
    Options options(entry["args"].get<std::string>());
    Issues issues = ReadOptions(options, folder, golden);
    if (issues.empty())
      issues = ReadBatches(fs::path(folder) / (golden.name + ".batches.csv"), golden);
    if (issues.empty())
      issues = ReadRequests(fs::path(folder) / (golden.name + ".requests.csv"), golden);
    if (issues.empty() && golden.requests.size() != golden.jobs.size()) {
      issues.push_back({golden.name, "has another number of requests than its trace"});
    }
    if (issues.empty()) {
      loaded.cases.push_back(std::move(golden));
    } else {
      loaded.issues.insert(loaded.issues.end(), issues.begin(), issues.end());
    }
  }
  return loaded;
}

std::optional<std::string> FirstDifference(const VidurCase& golden) {
  if (golden.blocks >= 0 && golden.limits.blocks != golden.blocks) {
    return fmt::format("{} KV blocks, Vidur's {}", golden.limits.blocks, golden.blocks);
  }
  const VidurRun run = RunCase(golden);
  std::size_t batches = 0;
  for (const std::vector<StepRecord>& one : run.batches) batches += one.size();
  if (!run.finished || batches > golden.batches.size()) {
    return fmt::format("more than {} batches", golden.batches.size());
  }
  if (batches < golden.batches.size()) {
    return fmt::format("{} batches, Vidur's {}", batches, golden.batches.size());
  }
  if (const auto difference = BatchDifference(golden, run)) return difference;
  std::int64_t restarts = 0;
  for (const std::int32_t count : run.results.preemptions) restarts += count;
  if (golden.restarts >= 0 && restarts != golden.restarts) {
    return fmt::format("{} restarts, Vidur's {}", restarts, golden.restarts);
  }
  return RequestDifference(golden, run);
}

std::string PlannerDifference(const std::string& csv, std::size_t* rows) {
  Result<CsvTable> read = CsvTable::Read(
      csv, {"model", "device", "tp", "pp", "max_tokens", "params_per_device", "weight_bytes",
            "kv_bytes_per_request", "slots", "max_batch_size_cap128", "num_blocks_block16"});
  if (!read.ok()) return read.issues()[0].path + " " + read.issues()[0].message;
  CsvTable& table = read.value();
  for (*rows = 0; *rows < table.Rows(); ++*rows) {
    const std::size_t row = *rows;
    Result<VidurPlanInput> in = PlanInputOf(table.Text(row, "model"), table.Text(row, "device"));
    if (!in.ok()) return in.issues()[0].path + " " + in.issues()[0].message;
    in.value().tensor_parallel = table.Int(row, "tp");
    in.value().pipeline_parallel = table.Int(row, "pp");
    in.value().max_tokens = table.Int(row, "max_tokens");
    const VidurPlan plan = PlanVidurMemory(in.value());
    const bool fits = table.Text(row, "slots") != "does_not_fit";
    const std::pair<const char*, std::int64_t> figures[] = {
        {"params_per_device", plan.parameters},
        {"weight_bytes", plan.weight_bytes},
        {"kv_bytes_per_request", plan.kv_bytes_per_request},
        {"slots", plan.slots},
        {"max_batch_size_cap128", plan.max_batch},
        {"num_blocks_block16", plan.blocks}};
    for (const auto& [column, value] : figures) {
      if (!fits && plan.slots == 0 && value == 0) continue;
      if (table.Text(row, column) == std::to_string(value)) continue;
      return fmt::format("line {}: {} {}, Vidur's {}", row + 2, column, value,
                         table.Text(row, column));
    }
  }
  return "";
}

std::string ZipfDifference(const std::string& csv, std::size_t* rows) {
  Result<CsvTable> read = CsvTable::Read(csv, {"min", "max", "theta", "u", "value"});
  if (!read.ok()) return read.issues()[0].path + " " + read.issues()[0].message;
  CsvTable& table = read.value();
  for (*rows = 0; *rows < table.Rows(); ++*rows) {
    const std::size_t row = *rows;
    const VidurZipf zipf(table.Int(row, "min"), table.Int(row, "max"), table.Real(row, "theta"));
    const std::int64_t value = zipf.Draw(table.Real(row, "u"));
    if (value != table.Int(row, "value")) {
      return fmt::format("line {}: {}, Vidur's {}", row + 2, value, table.Text(row, "value"));
    }
  }
  return table.error() ? table.error()->message : "";
}

}  // namespace servecast::testing
