// See measured_sets.h.
#include "measured_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "files.h"
#include "measured_table.h"

namespace servecast {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 28;
// Chat prompts of sets that do not state them: "prompts short for chat".
constexpr double kUnstatedPrompt = 200;

struct File {
  const std::string& folder;
  std::string path;  // relative to it
  MeasuredTable table;

  std::string Set() const { return path.substr(0, path.find(".csv")); }
  std::string Directory() const {
    const std::size_t slash = path.find_last_of('/');
    return slash == std::string::npos ? "" : path.substr(0, slash + 1);
  }
};

std::string Label(std::initializer_list<std::string_view> parts) {
  std::string label;
  for (const std::string_view part : parts) {
    if (part.empty()) continue;
    if (!label.empty()) label += ' ';
    label += part;
  }
  return label;
}

std::optional<std::int64_t> Whole(const MeasuredTable& t, std::size_t row, ColumnNames columns) {
  const std::optional<double> number = t.Number(row, columns);
  if (!number) return std::nullopt;
  return std::llround(*number);
}

// The GPUs of a tensor-parallel group in "TP2", "tp2_ep2"; 1 when it does not say.
std::int64_t ParallelIn(std::string_view text) {
  const std::size_t at = text.find_first_of("Tt");
  if (at == std::string_view::npos) return 1;
  const std::vector<double> numbers = NumbersIn(text.substr(at));
  return numbers.empty() ? 1 : std::llround(numbers[0]);
}

MeasuredSetup SetupOf(const MeasuredTable& t, std::size_t row) {
  MeasuredSetup s;
  s.model = t.Text(row, {"model"});
  s.gpu = t.Text(row, {"gpu", "hardware"});
  s.engine = t.Text(row, {"engine"});
  s.engine_version = t.Text(row, {"engine_version"});
  s.precision = t.Text(row, {"precision", "weight_precision", "dtype"});
  s.kv_dtype = t.Text(row, {"kv_dtype"});
  s.tensor_parallel = Whole(t, row, {"tp"}).value_or(ParallelIn(t.Text(row, {"parallelism"})));
  s.expert_parallel = Whole(t, row, {"ep", "moe_ep"}).value_or(1);
  s.max_num_seqs = Whole(t, row, {"max_num_seqs"});
  s.max_num_batched_tokens = Whole(t, row, {"max_num_batched_tokens"});
  s.block_size = Whole(t, row, {"block_size"});
  s.gpu_memory_utilization = t.Number(row, {"gpu_mem_util", "gpu_memory_utilization"});
  s.kv_blocks = Whole(t, row, {"kv_blocks"});
  const std::optional<std::int64_t> tokens = Whole(t, row, {"kv_tokens"});
  if (!s.kv_blocks && tokens)
    s.kv_blocks = *tokens / std::max<std::int64_t>(s.block_size.value_or(16), 1);
  return s;
}

// Requires: a row of a serving run.
Metrics ServingMetrics(const MeasuredTable& t, std::size_t row) {
  Metrics values;
  const auto add = [&](const char* name, ColumnNames columns) {
    if (const auto number = t.Number(row, columns)) values[name] = *number;
  };
  add("ttft", {"ttft_mean_ms", "mean_ttft_ms"});
  add("ttft_p99", {"ttft_p99_ms", "p99_ttft_ms"});
  add("tpot", {"tpot_from_e2e_ms", "tpot_mean_ms", "mean_tpot_ms"});
  add("e2e", {"e2e_mean_ms", "mean_latency_ms"});
  add("throughput", {"request_throughput_rps", "achieved_rps", "throughput_rps"});
  add("preemptions", {"preemptions"});
  return values;
}

Measured RowOf(const File& file, std::size_t row, std::string label) {
  Measured m;
  m.set = file.Set();
  m.row = std::move(label);
  m.setup = SetupOf(file.table, row);
  // What no column says, the folder's name may: "b200-multiturn", "many-gpus-vllm-0.15.1".
  if (m.setup.gpu.empty()) m.setup.gpu = m.set;
  const std::size_t engine = m.set.find("vllm-");
  if (m.setup.engine_version.empty() && engine != std::string::npos) {
    m.setup.engine_version = m.set.substr(engine);
  }
  return m;
}

void NameRun(Measured& m, std::string_view workload, std::string_view load) {
  m.sweep =
      fmt::format("{} {} tp{} {}", m.setup.model, m.setup.gpu, m.setup.tensor_parallel, workload);
  m.run = fmt::format("{} {}", m.sweep, load);
  const auto ttft = m.values.find("ttft"), e2e = m.values.find("e2e");
  if (ttft == m.values.end() || e2e == m.values.end()) return;
  m.identity = fmt::format("{:.3f} {:.3f}", ttft->second, e2e->second);
}

void ReadPrompts(const File& file, std::vector<Measured>& out) {
  for (std::size_t i = 0; i < file.table.Rows(); ++i) {
    const double tokens = file.table.Number(i, {"prompt_tokens"}).value_or(0);
    Measured m = RowOf(file, i, fmt::format("prompt {}", tokens));
    m.load.input.mean = tokens;
    if (const auto t = file.table.Number(i, {"ttft_p50_ms", "ttft_mean_ms"})) m.values["ttft"] = *t;
    out.push_back(std::move(m));
  }
}

void ReadPrefixes(const File& file, std::vector<Measured>& out) {
  for (std::size_t i = 0; i < file.table.Rows(); ++i) {
    const double prefix = file.table.Number(i, {"prefix_tokens"}).value_or(0);
    const double suffix = file.table.Number(i, {"suffix_tokens"}).value_or(0);
    for (const bool warm : {true, false}) {
      Measured m =
          RowOf(file, i, fmt::format("{} + {} {}", prefix, suffix, warm ? "cached" : "not cached"));
      m.load.form = warm ? MeasuredForm::kPrefix : MeasuredForm::kPrompt;
      m.load.prefix = std::llround(prefix);
      m.load.input.mean = prefix + suffix;
      const auto ttft = file.table.Number(i, {warm ? "warm_ttft_p50_ms" : "cold_ttft_p50_ms"});
      if (ttft) m.values["ttft"] = *ttft;
      out.push_back(std::move(m));
    }
  }
}

void ReadDecodeSteps(const File& file, std::vector<Measured>& out) {
  for (std::size_t i = 0; i < file.table.Rows(); ++i) {
    const std::int64_t batch = Whole(file.table, i, {"batch", "decode_batch"}).value_or(1);
    const auto context = Whole(file.table, i, {"mean_context_tokens", "context_tokens"});
    Measured m = RowOf(file, i,
                       Label({file.table.Text(i, {"run", "point"}), "batch", std::to_string(batch),
                              "context", std::to_string(context.value_or(0))}));
    m.load.form = MeasuredForm::kDecodeStep;
    m.load.batch = batch;
    m.load.context = context.value_or(0);
    if (!context) m.skipped = "no context length";
    if (const auto t = file.table.Number(i, {"itl_p50_ms", "itl_mean_ms"})) m.values["tpot"] = *t;
    out.push_back(std::move(m));
  }
}

void ReadSaturated(const File& file, std::vector<Measured>& out) {
  for (std::size_t i = 0; i < file.table.Rows(); ++i) {
    const auto seats = Whole(file.table, i, {"max_num_seqs"});
    Measured m =
        RowOf(file, i,
              Label({file.table.Text(i, {"model"}), file.table.Text(i, {"task"}), "tp",
                     file.table.Text(i, {"tp"}), "batch", file.table.Text(i, {"avg_batch_size"})}));
    m.load.form = MeasuredForm::kSaturated;
    // The published measurements of this form are of vLLM 0.11.1.
    if (m.setup.engine_version.empty()) m.setup.engine_version = "0.11";
    m.load.batch = seats.value_or(1);
    m.load.input.mean = file.table.Number(i, {"avg_input_len"}).value_or(kUnstatedPrompt);
    m.load.output.mean = file.table.Number(i, {"avg_output_len"}).value_or(1);
    if (!seats) m.skipped = "no max_num_seqs";
    if (file.table.Number(i, {"dp"}).value_or(1) > 1) m.skipped = "data parallelism";
    if (const auto t = file.table.Number(i, {"itl_p50_ms"})) m.values["tpot"] = *t;
    out.push_back(std::move(m));
  }
}

void ReadClosedLoops(const File& file, std::vector<Measured>& out) {
  for (std::size_t i = 0; i < file.table.Rows(); ++i) {
    const auto number = [&](const char* column) { return file.table.Number(i, {column}); };
    Measured m = RowOf(file, i,
                       Label({file.table.Text(i, {"id"}), file.table.Text(i, {"model"}),
                              file.table.Text(i, {"gpu"}), file.table.Text(i, {"engine"})}));
    m.load.form = MeasuredForm::kClosedLoop;
    m.load.batch = std::llround(number("concurrency").value_or(0));
    m.load.input.mean = number("isl").value_or(0);
    m.load.output.mean = number("osl").value_or(0);
    if (m.load.batch < 1 || m.load.input.mean < 1 || m.load.output.mean < 2) {
      m.skipped = "no concurrency or lengths";
    }
    const std::string_view mode = file.table.Text(i, {"mode"});
    if (!mode.empty() && mode != "agg") m.skipped = "prefill and decode on servers of their own";
    if (number("pp").value_or(1) > 1) m.skipped = "pipeline parallelism";
    if (const auto t = number("tpot_ms")) m.values["tpot"] = *t;
    out.push_back(std::move(m));
  }
}

// "lognormal(median=256,sigma=0.8,[16,4096])", of the mean that was drawn.
bool ReadLengths(std::string_view text, std::optional<double> mean, MeasuredLengths& lengths) {
  const std::vector<double> numbers = NumbersIn(text);
  if (text.substr(0, 9) == "lognormal" && numbers.size() >= 2) {
    lengths.sigma = numbers[1];
    lengths.mean = mean.value_or(numbers[0] * std::exp(numbers[1] * numbers[1] / 2));
    if (numbers.size() >= 4) lengths.min = numbers[2], lengths.max = numbers[3];
    return true;
  }
  lengths.mean = mean.value_or(numbers.empty() ? 0 : numbers[0]);
  return lengths.mean >= 1 && (text.empty() || text.substr(0, 5) == "fixed");
}

// Open loop with arrivals and lengths drawn anew: a row states its rate and lengths.
void ReadPoissonRow(const File& file, std::size_t i, Measured& m) {
  const MeasuredTable& t = file.table;
  m.load.form = MeasuredForm::kPoisson;
  m.load.rate =
      t.Number(i, {"request_rate_rps", "target_rate_rps", "mean_arrival_rate_rps"}).value_or(0);
  m.load.requests = Whole(t, i, {"num_prompts", "n_requests", "n_ok"}).value_or(1000);
  const bool lengths =
      ReadLengths(t.Text(i, {"input_dist"}),
                  t.Number(i, {"input_tokens_mean", "input_tokens_server_mean"}), m.load.input) &&
      ReadLengths(t.Text(i, {"output_dist"}),
                  t.Number(i, {"output_tokens_configured", "output_tokens_mean"}), m.load.output);
  if (m.load.rate <= 0 || !lengths) m.skipped = "no rate or lengths, and no file of requests";
  m.values = ServingMetrics(t, i);
  NameRun(m,
          Label({t.Text(i, {"workload"}), t.Text(i, {"input_dist"}), t.Text(i, {"output_dist"})}),
          fmt::format("{} rps", m.load.rate));
}

void ReadSweep(const File& file, std::vector<Measured>& out) {
  for (std::size_t i = 0; i < file.table.Rows(); ++i) {
    Measured m =
        RowOf(file, i, Label({file.table.Text(i, {"run"}), file.table.Text(i, {"point"})}));
    ReadPoissonRow(file, i, m);
    out.push_back(std::move(m));
  }
}

// Stages of a constant rate over a pool of prompts; the whole run stands beside its stages.
void ReadStages(const File& file, std::vector<Measured>& out) {
  const MeasuredTable& t = file.table;
  for (std::size_t i = 0; i < t.Rows(); ++i) {
    const std::string_view experiment = t.Text(i, {"experiment"});
    const std::string_view stage = t.Text(i, {"stage(-1=all)", "stage"});
    Measured m = RowOf(file, i, Label({experiment, "stage", stage}));
    if (!m.setup.max_num_seqs) m.setup.max_num_seqs = 128;
    m.load.form = MeasuredForm::kPromptPool;
    m.load.rate = t.Number(i, {"target_rate_rps"}).value_or(0);
    m.load.input.mean = t.Number(i, {"input_tokens_nominal"}).value_or(0);
    m.load.output.mean = t.Number(i, {"output_tokens_configured"}).value_or(0);
    std::int64_t stages = 0;
    for (std::size_t j = 0; j < t.Rows(); ++j) {
      stages += t.Text(j, {"experiment"}) == experiment && t.Number(j, {"target_rate_rps"}) ? 1 : 0;
    }
    m.load.duration_s = stages > 1 ? 600 : 1200;
    m.load.warm = t.Number(i, {"stage(-1=all)", "stage"}).value_or(0) > 0;
    if (m.load.rate <= 0) {
      m.skipped = stages > 0 ? "the whole run; its stages are scored" : "no rate";
    }
    m.values = ServingMetrics(t, i);
    NameRun(m, t.Text(i, {"workload"}), fmt::format("{} rps", m.load.rate));
    out.push_back(std::move(m));
  }
}

std::vector<MeasuredRequest> RequestsOf(const MeasuredTable& t) {
  std::vector<MeasuredRequest> requests;
  std::map<std::string, std::int32_t, std::less<>> seen;
  for (std::size_t i = 0; i < t.Rows(); ++i) {
    MeasuredRequest r;
    r.arrival_s = t.Number(i, {"send_s", "arrival_s", "relative_time_sec"}).value_or(0);
    const auto tokens = [&](ColumnNames columns) {
      return static_cast<std::int32_t>(Whole(t, i, columns).value_or(1));
    };
    r.input = std::max(1, tokens({"input_tokens_server", "input_tokens", "input_num_tokens"}));
    r.output =
        std::max(1, tokens({"output_tokens_configured", "output_tokens", "output_num_tokens"}));
    // Milliseconds, seconds, or the moment of it.
    const auto time = [&](const char* ms, const char* s, const char* s2, const char* at) {
      if (const auto value = t.Number(i, {ms})) return *value;
      if (const auto value = t.Number(i, {s, s2})) return 1e3 * *value;
      if (const auto value = t.Number(i, {at})) return 1e3 * (*value - r.arrival_s);
      return kNotMeasured;
    };
    r.ttft_ms = time("ttft_ms", "ttft_s", "ttft", "first_token_s");
    r.e2e_ms = time(t.Has("latency_ms") ? "latency_ms" : "e2e_ms", "e2e_s", "e2e", "last_token_s");
    const std::string_view identity = t.Text(i, {"prompt_pool_id", "conversation_id"});
    if (!identity.empty()) {
      const auto [at, first] =
          seen.try_emplace(std::string(identity), static_cast<std::int32_t>(i));
      if (!first) r.shares_with = at->second;
      at->second = static_cast<std::int32_t>(i);
    }
    requests.push_back(r);
  }
  return requests;
}

// The requests of a run, when there is a file of them; null when there is none or it is damaged.
std::shared_ptr<const std::vector<MeasuredRequest>> RecordedOf(const File& file,
                                                               std::string_view run) {
  for (const char* ending : {".csv.gz", ".csv"}) {
    const Result<std::string> text = ReadFile(
        fmt::format("{}/{}requests/{}{}", file.folder, file.Directory(), run, ending), kMostBytes);
    if (!text.ok()) continue;
    return std::make_shared<const std::vector<MeasuredRequest>>(
        RequestsOf(MeasuredTable(text.value())));
  }
  return nullptr;
}

// The first requests of a run carry a cold start, and of a pool of prompts none is cached.
std::size_t ColdRequests(const std::vector<MeasuredRequest>& all) {
  const bool pool = all.size() > std::size_t{kPromptPoolSize} &&
                    all[std::size_t{kPromptPoolSize}].shares_with == 0;
  return std::max<std::size_t>(pool ? std::size_t{kPromptPoolSize} : 0, all.size() / 100);
}

Metrics MeansOf(const MeasuredLoad& load) {
  std::vector<double> ttft, tpot, e2e;
  for (std::size_t i = load.from; i < load.to; ++i) {
    const MeasuredRequest& r = (*load.recorded)[i];
    if (std::isfinite(r.ttft_ms)) ttft.push_back(r.ttft_ms);
    if (std::isfinite(r.e2e_ms)) e2e.push_back(r.e2e_ms);
    if (r.output > 1 && std::isfinite(r.e2e_ms - r.ttft_ms)) {
      tpot.push_back((r.e2e_ms - r.ttft_ms) / (r.output - 1));
    }
  }
  return RequestMetrics(std::move(ttft), tpot, e2e);
}

void ReadRuns(const File& file, std::vector<Measured>& out) {
  const MeasuredTable& t = file.table;
  std::map<std::string, std::shared_ptr<const std::vector<MeasuredRequest>>, std::less<>> recorded;
  std::map<std::string, std::size_t, std::less<>> read;  // requests of a run's stages so far
  for (std::size_t i = 0; i < t.Rows(); ++i) {
    const std::string run(t.Text(i, {"experiment", "run", "exp_name"}));
    const std::string_view stage = t.Text(i, {"stage"});
    Measured m = RowOf(file, i, Label({run, stage.empty() ? "" : "stage", stage}));
    if (!recorded.contains(run)) recorded[run] = RecordedOf(file, run);
    ReadPoissonRow(file, i, m);
    if (stage == "all" || stage == "-1") {
      m.skipped = "the whole run; its stages are scored";
    } else if (recorded[run] != nullptr) {
      m.skipped.clear();
      m.load.form = MeasuredForm::kReplay;
      m.load.recorded = recorded[run];
      const std::size_t all = m.load.recorded->size();
      std::size_t& from = read[run];
      m.load.from = std::max(from, ColdRequests(*m.load.recorded));
      const auto stage_requests = stage.empty() ? std::nullopt : Whole(t, i, {"n_requests"});
      from = stage_requests ? std::min(all, from + static_cast<std::size_t>(*stage_requests)) : all;
      m.load.to = from;
      if (m.load.from >= m.load.to) m.skipped = "no requests of it in the file of requests";
      const Metrics means = MeansOf(m.load);
      for (const auto& [name, value] : means) m.values[name] = value;
    } else if (t.HasAny({"exp_name"})) {
      m.skipped = "conversations without a file of requests";
    }
    out.push_back(std::move(m));
  }
}

void ReadTable(const File& file, std::vector<Measured>& out) {
  const MeasuredTable& t = file.table;
  if (t.Has("prefix_tokens") && t.Has("suffix_tokens")) return ReadPrefixes(file, out);
  if (t.Has("prompt_tokens") && t.HasAny({"ttft_p50_ms", "ttft_mean_ms"})) {
    return ReadPrompts(file, out);
  }
  if (t.HasAny({"batch", "decode_batch"}) && t.HasAny({"itl_p50_ms", "itl_mean_ms"})) {
    return ReadDecodeSteps(file, out);
  }
  if (t.Has("avg_batch_size")) return ReadSaturated(file, out);
  if (t.Has("isl") && t.Has("osl") && t.Has("concurrency")) return ReadClosedLoops(file, out);
  if (t.Has("request_rate_rps")) return ReadSweep(file, out);
  if (t.Has("input_tokens_nominal")) return ReadStages(file, out);
  if (t.HasAny({"experiment", "run", "exp_name"})) return ReadRuns(file, out);
  Measured m;
  m.set = file.Set();
  m.row = "all";
  m.skipped = "a form that is not known";
  out.push_back(std::move(m));
}

// One run under two names, as in a summary of summaries.
void SkipRepeated(std::vector<Measured>& rows) {
  std::map<std::string, const Measured*> first;
  for (Measured& m : rows) {
    if (!m.skipped.empty() || m.identity.empty()) continue;
    const auto [at, added] = first.try_emplace(m.identity, &m);
    if (!added) m.skipped = "the same as " + at->second->set + ", " + at->second->row;
  }
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
  if (!e2e.empty()) values["e2e"] = MeanOf(e2e);
  if (ttft.empty()) return values;
  values["ttft"] = MeanOf(ttft);
  values["ttft_p99"] = PercentileOf(std::move(ttft), 0.99);
  return values;
}

Result<std::vector<Measured>> ReadMeasuredSets(const std::string& folder) {
  std::vector<Measured> rows;
  for (const std::string& path : FilesBelow(folder)) {
    const auto below = [&path](std::string_view name) {
      return path.find(fmt::format("{}/", name)) == 0 ||
             path.find(fmt::format("/{}/", name)) != std::string::npos;
    };
    if (below("ops") || below("traces") || below("models") || below("requests")) continue;
    if (path.find(".csv") == std::string::npos) continue;
    const Result<std::string> text = ReadFile(folder + "/" + path, kMostBytes);
    if (!text.ok()) return Issues(text.issues());
    ReadTable({folder, path, MeasuredTable(text.value())}, rows);
  }
  SkipRepeated(rows);
  return rows;
}

}  // namespace servecast
