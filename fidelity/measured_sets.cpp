// See measured_sets.h.
#include "measured_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "formats/measured_table.h"
#include "host/files.h"
#include "measured_reading.h"
#include "measured_requests.h"

namespace servecast {
namespace {

// Chat prompts of sets that do not state them: "prompts short for chat".
constexpr double kUnstatedPrompt = 200;
constexpr const char* kForms =
    "not a known form; the forms are tables with columns prompt_tokens and ttft_p50_ms; "
    "prefix_tokens and suffix_tokens; batch, mean_context_tokens and itl_p50_ms; avg_batch_size "
    "and max_num_seqs; isl, osl and concurrency; isl_mean, osl_mean and concurrency; "
    "request_rate_rps; input_tokens_nominal and target_rate_rps; run, experiment or exp_name "
    "beside requests/NAME.csv; row beside scenarios/ROW.json";
constexpr const char* kScenarios = "scenarios";

void ReadPrompt(const Reading& r) {
  const PromptRow prompt = ReadPromptRow(r.row);
  Measured m = r.Begin(fmt::format("prompt {}", prompt.tokens));
  m.load.input.mean = static_cast<double>(prompt.tokens);
  m.values["ttft"] = prompt.ttft_ms;
  r.Add(std::move(m));
}

void ReadPrefix(const Reading& r) {
  const std::int64_t prefix = r.row.NeededWhole({"prefix_tokens"}, kTokenRange);
  const std::int64_t suffix = r.row.NeededWhole({"suffix_tokens"}, kTokenRange);
  const auto warm = r.row.Number({"warm_ttft_p50_ms"}, kPositive);
  const auto cold = r.row.Number({"cold_ttft_p50_ms"}, kPositive);
  for (const bool cached : {true, false}) {
    const std::optional<double> ttft = cached ? warm : cold;
    if (!ttft && (warm || cold)) continue;
    Measured m =
        r.Begin(fmt::format("{} + {} {}", prefix, suffix, cached ? "cached" : "not cached"));
    m.load.form = cached ? MeasuredForm::kPrefix : MeasuredForm::kPrompt;
    m.load.prefix = prefix;
    m.load.input.mean = static_cast<double>(prefix + suffix);
    if (ttft) m.values["ttft"] = *ttft;
    r.Add(std::move(m));
    if (!ttft) return;
  }
}

void ReadDecodeStep(const Reading& r) {
  const DecodeStepRow step = ReadDecodeStepRow(r.row);
  Measured m = r.Begin(RowLabel({r.row.Text({"run", "point"}), "batch", std::to_string(step.batch),
                                 "context", std::to_string(step.context)}));
  const std::int64_t seats = m.setup.max_num_seqs.value_or(step.batch) * m.setup.data_parallel;
  if (step.batch > seats) {
    r.row.Complain({"batch", "decode_batch"}, fmt::format("at most {}, by max_num_seqs", seats));
  }
  m.load.form = MeasuredForm::kDecodeStep;
  m.load.batch = step.batch;
  m.load.context = step.context;
  m.values["tpot"] = step.itl_ms;
  r.Add(std::move(m));
}

// Mean power of a GPU, stated or that of all over their number; and the energy of an output token.
// Attention replicas that share experts each have the stated seats here, and the rows that have
// them state tokens as if all had these: their energy is not compared.
void ReadPower(MeasuredRow& row, Measured& m) {
  constexpr NumberRange kWatts = {0, 1e7, true}, kJoules = {0, 1e9, true};
  const auto each = row.Number({"avg_power_per_gpu_w", "mean_power_per_gpu_w"}, kWatts);
  const auto all = row.Number({"avg_power_w"}, kWatts);
  const auto gpus = row.Whole({"num_gpus"}, {1, 1e5});
  if (each) {
    m.values["power"] = *each;
  } else if (all && gpus) {
    m.values["power"] = *all / static_cast<double>(*gpus);
  }
  const auto joules = row.Number({"energy_per_token_j"}, kJoules);
  const bool replicas = m.setup.expert_parallel > m.setup.tensor_parallel;
  if (joules && !replicas) m.values["energy"] = *joules;
}

void ReadSaturated(const Reading& r) {
  Measured m = r.Begin(RowLabel({r.row.Text({"model"}), r.row.Text({"task"}), "tp",
                                 r.row.Text({"tp"}), "batch", r.row.Text({"avg_batch_size"})}));
  m.load.form = MeasuredForm::kSaturated;
  // The published measurements of this form are of vLLM 0.11.1.
  if (m.setup.engine.empty() && m.setup.engine_version.empty()) m.setup.engine_version = "0.11";
  m.load.batch = r.row.NeededWhole({"max_num_seqs"}, {1, 1e5});
  m.load.input.mean = r.row.Number({"avg_input_len"}, kTokenRange).value_or(kUnstatedPrompt);
  m.load.output.mean = r.row.NeededNumber({"avg_output_len"}, kTokenRange);
  m.values["tpot"] = r.row.NeededNumber({"itl_p50_ms"});
  ReadPower(r.row, m);
  r.Add(std::move(m));
}

constexpr NumberRange kWorkers = {1, 1e4};

// Servers of their own for prefill and for decode, whose columns begin with these words.
void ReadWorkers(MeasuredRow& row, MeasuredSetup& s) {
  const auto read = [&row](ColumnNames workers, ColumnNames tp, ColumnNames dp, ColumnNames ep) {
    const auto whole = [&row](ColumnNames columns) {  // some write 0 for what they do not use
      return std::max<std::int64_t>(1, row.Whole(columns, {0, kWorkers.most}).value_or(1));
    };
    MeasuredWorkers of;
    of.workers = whole(workers);
    of.tensor_parallel = row.NeededWhole(tp, kWorkers);
    of.data_parallel = whole(dp);
    of.expert_parallel = whole(ep);
    return of;
  };
  s.prefill = read({"prefill_workers"}, {"prefill_tp"}, {"prefill_dp"}, {"prefill_ep"});
  s.decode = read({"decode_workers"}, {"decode_tp"}, {"decode_dp"}, {"decode_ep"});
  s.tensor_parallel = s.decode->tensor_parallel;
}

}  // namespace

void ReadMode(MeasuredRow& row, MeasuredSetup& setup) {
  const std::string mode = LowerCase(row.Text({"mode"}));
  if (mode.find("disagg") != std::string::npos) return ReadWorkers(row, setup);
  if (!mode.empty() && mode != "agg" && mode != "aggregated") {
    row.Complain({"mode"}, "agg or disagg");
  }
}

namespace {

// Where no clients are counted but a batch is stated, of all servers or of a replica that decodes:
// its step, with no prefill beside it, at the mean context.
void ReadBatch(const Reading& r, Measured& m) {
  constexpr NumberRange kRange = {1, 1e5};
  m.load.form = MeasuredForm::kDecodeStep;
  m.load.context = std::llround(m.load.input.mean + m.load.output.mean / 2);
  if (!m.setup.decode) {
    m.load.batch = r.row.NeededWhole({"concurrency", "batch_size"}, kRange);
    return;
  }
  m.setup.data_parallel = m.setup.decode->data_parallel;
  m.setup.expert_parallel = m.setup.decode->expert_parallel;
  m.setup.expert_tensor_parallel.reset();
  m.load.batch = r.row.NeededWhole({"decode_batch"}, kRange) * m.setup.data_parallel;
  m.setup.prefill.reset();
  m.setup.decode.reset();
}

// Of each request as many as said, or, with a ratio, uniformly from that share of them.
void ReadLengths(MeasuredRow& row, MeasuredLoad& load) {
  load.input.mean = row.NeededNumber({"isl"}, kTokenRange);
  load.output.mean = row.NeededNumber({"osl"}, {2, 1e7});
  const auto ratio = row.Number({"length_range_ratio"}, {0, 1});
  if (!ratio || *ratio == 1) return;
  for (MeasuredLengths* lengths : {&load.input, &load.output}) {
    lengths->most = lengths->mean;
    lengths->least = *ratio * lengths->mean;
    lengths->mean = (1 + *ratio) / 2 * lengths->mean;
  }
}

void ReadClosedLoop(const Reading& r) {
  Measured m = r.Begin(RowLabel(
      {r.row.Text({"id"}), r.row.Text({"model"}), r.row.Text({"gpu"}), r.row.Text({"engine"})}));
  m.load.form = MeasuredForm::kClosedLoop;
  ReadMode(r.row, m.setup);
  ReadLengths(r.row, m.load);
  // The client of InferenceX descends from vLLM's benchmark_serving.py, whose requests say
  // "temperature": 0.0 (vllm-project/vllm, benchmarks/backend_request_func.py).
  m.test = r.row.Text({"origin"});
  m.setup.no_top_p = LowerCase(m.test).starts_with("inferencex");
  const bool clients = !r.row.Text({"concurrency"}).empty();
  const bool batch = !r.row.Text({"batch_size", "decode_batch"}).empty();
  if (clients || !batch) {
    m.load.batch = r.row.NeededWhole({"concurrency"}, {1, 1e5});
  } else {
    ReadBatch(r, m);
  }
  m.values["tpot"] = r.row.NeededNumber({"tpot_ms"});
  m.stated_ttft = r.row.Number({"ttft_ms"}).value_or(0);
  // Where prompts come in bursts the median of requests is far from their mean.
  if (r.row.Number({"tpot_p50_ms"}) == m.values["tpot"] && m.skipped.empty()) {
    m.skipped = "TPOT is the median of requests (tpot_p50_ms), and means are compared";
  }
  r.Add(std::move(m));
}

// Clients whose requests are as those of chat data sets: lognormal lengths of the means that are
// stated. Two chat data sets of vLLM's benchmark have sigmas of 0.9 to 1.2.
void ReadChatLoop(const Reading& r) {
  constexpr double kChatSigma = 1;
  constexpr NumberRange kChatTokens = {1, 1e5};
  Measured m =
      r.Begin(RowLabel({r.row.Text({"model"}), r.row.Text({"weights"}), "on", r.row.Text({"gpus"}),
                        r.row.Text({"gpu"}), "clients", r.row.Text({"concurrency"})}));
  m.load.form = MeasuredForm::kClosedLoop;
  m.load.batch = r.row.NeededWhole({"concurrency"}, {1, 1e5});
  m.load.seats_stated = m.setup.max_num_seqs.has_value();
  m.load.input.mean = r.row.NeededNumber({"isl_mean"}, kChatTokens);
  m.load.output.mean = r.row.NeededNumber({"osl_mean"}, kChatTokens);
  m.load.input.sigma = m.load.output.sigma = kChatSigma;
  const auto add = [&](const char* name, ColumnNames columns, double per) {
    if (const auto value = r.row.Number(columns, kPositive)) m.values[name] = *value / per;
  };
  add("ttft", {"ttft_mean_ms"}, 1);
  add("ttft_p99", {"ttft_p99_ms"}, 1);
  add("tpot", {"tpot_mean_ms"}, 1);
  add("throughput", {"total_tokens_per_s"}, m.load.input.mean + m.load.output.mean);
  add("throughput", {"output_tokens_per_s"}, m.load.output.mean);
  r.Add(std::move(m));
}

// A row whose server and load a scenario beside it says.
void ReadOfScenario(const Reading& r) {
  const std::string name(r.row.Text({"row"}));
  Measured m;
  m.set = r.file.Set();
  m.row = Shortened(name, 200);
  m.file_row = r.index + 1;
  m.setup.model = r.row.Text({"model"});
  m.setup.gpu = r.row.Text({"gpu"});
  m.setup.engine = r.row.Text({"engine"});
  m.setup.engine_version = r.row.Text({"engine_version"});
  m.setup.tensor_parallel = r.row.Whole({"tp"}, {1, 1e4}).value_or(1);
  m.load.form = MeasuredForm::kScenario;
  m.setup.scenario = fmt::format("{}{}/{}.json", r.file.Directory(), kScenarios, name);
  // Clients of vllm bench serve, bench_serving of SGLang and trtllm-bench ask for temperature 0.
  m.setup.no_top_p = true;
  const auto add = [&](const char* metric, ColumnNames columns) {
    if (const auto value = r.row.Number(columns, kPositive)) m.values[metric] = *value;
  };
  add("ttft", {"meas_ttft_ms"});
  add("ttft_p99", {"meas_p99_ttft_ms"});
  add("tpot", {"meas_tpot_ms"});
  const auto requests = r.row.Number({"requests"}, kPositive);
  const auto duration_s = r.row.Number({"meas_duration_s"}, kPositive);
  if (requests && duration_s) m.values["throughput"] = *requests / *duration_s;
  const auto tokens_per_gpu = r.row.Number({"meas_out_tps_gpu"}, kPositive);
  const auto output = r.row.Number({"osl"}, kPositive);
  const auto gpus = static_cast<double>(m.setup.tensor_parallel);
  if (tokens_per_gpu && output) m.values["throughput"] = *tokens_per_gpu * gpus / *output;
  r.Add(std::move(m));
}

using Reader = void (*)(const Reading&);

// nullptr: runs, or no form.
Reader ReaderOf(const MeasuredTable& t) {
  const MeasuredTableForm form = FormOf(t, kRateColumns);
  if (t.Has("prefix_tokens") && t.Has("suffix_tokens")) return ReadPrefix;
  if (form == MeasuredTableForm::kPrompts) return ReadPrompt;
  if (form == MeasuredTableForm::kDecodeSteps) return ReadDecodeStep;
  if (t.Has("avg_batch_size")) return ReadSaturated;
  const bool measured = t.HasAny({"meas_tpot_ms", "meas_ttft_ms", "meas_out_tps_gpu"});
  if (t.Has("row") && measured) return ReadOfScenario;
  if (t.Has("isl_mean") && t.Has("osl_mean") && t.Has("concurrency")) return ReadChatLoop;
  if (t.Has("isl") && t.Has("osl") && t.Has("concurrency")) return ReadClosedLoop;
  const bool rated = form == MeasuredTableForm::kRated;
  return t.Has("request_rate_rps") || (rated && !t.HasAny(kRunColumns)) ? ReadSweep : nullptr;
}

bool IsOfRuns(const MeasuredTable& t) {
  return t.HasAny(kRunColumns) || t.Has("input_tokens_nominal");
}

void ReadTable(const MeasuredFile& file, std::vector<Measured>& out) {
  const Reader reader = ReaderOf(file.table);
  if (reader == nullptr && IsOfRuns(file.table)) return ReadRuns(file, out);
  const std::string name = file.Name();
  for (std::size_t i = 0; i < file.table.Rows(); ++i) {
    if (reader != nullptr) {
      MeasuredRow row(file.table, name, i);
      reader({file, row, i, out});
      continue;
    }
    Measured m;
    m.set = file.Set();
    m.file_row = i + 1;
    m.skipped = i == 0 ? kForms : "not a known form, as row 1";
    out.push_back(std::move(m));
  }
}

// A file that is no table of a set, as one row of one.
Measured NotScored(std::string_view set, std::string reason) {
  Measured m;
  m.set = PlainText(set);
  m.row = "the file";
  m.skipped = std::move(reason);
  return m;
}

// Whether a folder of the path has this name.
bool Below(const std::string& path, std::string_view name) {
  return path.find(fmt::format("{}/", name)) == 0 ||
         path.find(fmt::format("/{}/", name)) != std::string::npos;
}

// Scenarios that no row names.
void ListUnnamedScenarios(const std::vector<std::string>& scenarios, std::vector<Measured>& rows) {
  std::set<std::string> named;
  for (const Measured& m : rows) named.insert(m.setup.scenario);
  for (const std::string& path : scenarios) {
    if (!named.contains(path)) {
      rows.push_back(NotScored(path, "a scenario that no row of another file names"));
    }
  }
}

// Figures in other wrappings, which a reader may take for included.
bool IsOtherData(const std::string& path) {
  const std::string lower = LowerCase(path);
  for (const char* ending : {".json", ".jsonl", ".ndjson", ".yaml", ".yml", ".gz", ".zst", ".zip",
                             ".parquet", ".feather", ".xlsx", ".ods"}) {
    const std::size_t at = lower.rfind(ending);
    if (at != std::string::npos && at + std::string_view(ending).size() == lower.size())
      return true;
  }
  return false;
}

double MeanOf(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

}  // namespace

double PercentileOf(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double rank = share * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(rank);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (rank - static_cast<double>(low)) * (values[high] - values[low]);
}

Metrics RequestMetrics(std::vector<double> ttft, const std::vector<double>& tpot,
                       const std::vector<double>& e2e) {
  Metrics values;
  if (!tpot.empty()) values["tpot"] = MeanOf(tpot);
  if (!tpot.empty()) values["tpot_p99"] = PercentileOf(tpot, 0.99);
  if (!e2e.empty()) values["e2e"] = MeanOf(e2e);
  if (ttft.empty()) return values;
  values["ttft"] = MeanOf(ttft);
  values["ttft_p99"] = PercentileOf(std::move(ttft), 0.99);
  return values;
}

void RequestRate::Add(double arrival_s, double e2e_ms) {
  const double end_s = arrival_s + 1e-3 * e2e_ms;
  first_s_ = requests_ == 0 ? arrival_s : std::min(first_s_, arrival_s);
  last_s_ = requests_ == 0 ? end_s : std::max(last_s_, end_s);
  ++requests_;
}

std::optional<double> RequestRate::PerSecond() const {
  if (last_s_ <= first_s_) return std::nullopt;
  return static_cast<double>(requests_) / (last_s_ - first_s_);
}

std::vector<Measured> ReadMeasuredSets(const std::string& folder) {
  std::vector<Measured> rows;
  const std::vector<std::string> paths = FilesBelow(folder);
  RequestFiles requests(folder, paths);
  std::vector<std::string> of_requests, scenarios;
  for (const std::string& path : paths) {
    if (Below(path, "ops") || Below(path, "traces") || path.find("models/") == 0) continue;
    const std::string_view stem = CsvStem(path);
    if (stem.empty()) {
      if (Below(path, kScenarios) && path.ends_with(".json")) {
        scenarios.push_back(path);
        continue;
      }
      if (IsOtherData(path)) rows.push_back(NotScored(path, kForms));
      continue;
    }
    if (Below(path, "requests")) {
      of_requests.push_back(path);
      continue;
    }
    const std::string plain = path.substr(0, path.find_last_of('.'));
    if (!CsvStem(plain).empty() && std::binary_search(paths.begin(), paths.end(), plain)) {
      rows.push_back(NotScored(path, "a file of this name that is not compressed is read instead"));
      continue;
    }
    const Result<std::string> text = ReadFile(folder + "/" + path, kMostFileBytes);
    if (!text.ok()) {
      rows.push_back(NotScored(stem, text.issues()[0].message));
      continue;
    }
    const MeasuredTable table(text.value());
    if (IsRequestTable(table)) {
      of_requests.push_back(path);
    } else if (table.Rows() == 0) {
      rows.push_back(NotScored(stem, "no rows in it"));
    } else {
      ReadTable({folder, path, table, requests}, rows);
    }
  }
  ListUnnamedScenarios(scenarios, rows);
  for (const std::string& path : of_requests) {
    if (requests.IsOfARun(path)) continue;
    rows.push_back(NotScored(CsvStem(path), "requests of a run that no row of another file names"));
  }
  return rows;
}

}  // namespace servecast
