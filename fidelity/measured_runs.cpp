// Serving runs: replayed where their requests are recorded, else drawn by what their rows say.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "io/json_document.h"
#include "measured_reading.h"

namespace servecast {
namespace {

const ColumnNames kInputMean = {"input_tokens_mean", "input_tokens_server_mean",
                                "input_tokens_nominal"};
const ColumnNames kOutputMean = {"output_tokens_configured", "output_tokens_mean"};

// Seats of servers whose stages over a pool of prompts do not state them.
constexpr std::int64_t kPoolSeats = 128;
constexpr const char* kWholeRun = "the whole run; its stages are scored";
// What is simulated at most.
constexpr double kMostRequests = 1e6, kMostSeconds = 1e7;
constexpr NumberRange kRates = {0, 1e6, true};

// Requires: a row of a serving run.
Metrics ServingMetrics(MeasuredRow& row) {
  Metrics values;
  const auto add = [&](const char* name, ColumnNames columns, NumberRange range) {
    if (const auto number = row.Number(columns, range)) values[name] = *number;
  };
  add("ttft", {"ttft_mean_ms", "mean_ttft_ms", "ttft_ms"}, kPositive);
  add("ttft_p99", {"ttft_p99_ms", "p99_ttft_ms"}, kPositive);
  add("tpot_p99", {"tpot_p99_ms", "p99_tpot_ms"}, {});
  add("tpot", {"tpot_from_e2e_ms", "tpot_mean_ms", "mean_tpot_ms", "tpot_ms"}, {});
  // Some write 0 where outputs have one token.
  for (const char* name : {"tpot", "tpot_p99"}) {
    if (values.contains(name) && values[name] == 0) values.erase(name);
  }
  add("e2e", {"e2e_mean_ms", "mean_latency_ms"}, kPositive);
  add("throughput", {"request_throughput_rps", "achieved_rps", "throughput_rps"}, kPositive);
  add("preemptions", {"preemptions"}, {});
  return values;
}

void ReadLengths(MeasuredRow& row, ColumnNames distribution, ColumnNames mean,
                 MeasuredLengths& lengths) {
  const RunLengths read = ReadLengthsOfRow(row, distribution, mean);
  lengths.mean = read.mean;
  if (read.sigma > 0) lengths.sigma = read.sigma;
  lengths.min = read.least;
  lengths.max = std::min(read.most, lengths.max);
}

// What every serving run states.
void ReadServing(const Reading& r, Measured& m) {
  m.serving = true;
  m.load.rate = r.row.Number(kRateColumns, kRates).value_or(0);
  m.values = ServingMetrics(r.row);
  const auto stated = [&m](const char* metric) {
    const auto value = m.values.find(metric);
    return value == m.values.end() ? 0 : value->second;
  };
  m.stated_ttft = stated("ttft");
  m.stated_e2e = stated("e2e");
  m.workload =
      RowLabel({r.row.Text({"workload"}), r.row.Text({"input_dist"}), r.row.Text({"output_dist"})});
  if (m.workload.empty()) {
    m.workload = fmt::format("{:.0f} + {:.0f} tokens", r.row.Number(kInputMean).value_or(0),
                             r.row.Number(kOutputMean).value_or(0));
  }
  m.sweep =
      fmt::format("{} {} tp{} {}", m.setup.model, m.setup.gpu, m.setup.tensor_parallel, m.workload);
}

// A rate that makes the run longer than what is simulated.
void CheckSize(const Reading& r, double requests, double duration_s) {
  if (requests > kMostRequests) {
    r.row.Complain(
        kRateColumns,
        fmt::format("at most {:.0f} requests/s: {:.0f} s at this rate are simulated, and "
                    "of no more than {:.0f} requests",
                    std::floor(kMostRequests / duration_s), duration_s, kMostRequests));
  }
  if (duration_s > kMostSeconds) {
    r.row.Complain(kRateColumns,
                   fmt::format("at least {:.2g} requests/s: no more than {:.0f} s are simulated",
                               requests / kMostSeconds, kMostSeconds));
  }
}

// Open loop with arrivals and lengths drawn anew: a row states its rate and lengths.
void ReadPoisson(const Reading& r, Measured& m) {
  m.load.form = MeasuredForm::kPoisson;
  r.row.NeededNumber(kRateColumns);
  m.load.requests = r.row.Whole({"num_prompts", "n_requests", "n_ok"}, {1, 1e6}).value_or(1000);
  const auto requests = static_cast<double>(m.load.requests);
  if (m.load.rate > 0) CheckSize(r, requests, requests / m.load.rate);
  ReadLengths(r.row, {"input_dist"}, kInputMean, m.load.input);
  ReadLengths(r.row, {"output_dist"}, kOutputMean, m.load.output);
  m.load.max_concurrency = r.row.Whole({"max_concurrency"}, {1, 1e6});
}

const ColumnNames kStage = {"stage(-1=all)", "stage"};

// The rows of a file by runs: stages and their numbers of requests.
struct RunStages {
  std::map<std::int64_t, std::int64_t> requests;  // by stage; 0: not stated
};

bool IsWholeRun(std::string_view stage) { return stage == "-1" || LowerCase(stage) == "all"; }

std::map<std::string, RunStages, std::less<>> StagesOf(const MeasuredFile& file) {
  std::map<std::string, RunStages, std::less<>> runs;
  for (std::size_t i = 0; i < file.table.Rows(); ++i) {
    MeasuredRow row(file.table, "", i);
    const std::string_view stage = row.Text(kStage);
    if (stage.empty() || IsWholeRun(stage)) continue;
    const auto number = row.Whole(kStage, {0, 1e6});
    const auto requests = row.Whole({"n_requests"}, {1, 1e6});
    if (number && row.problem().empty()) {
      runs[std::string(row.Text(kRunColumns))].requests[*number] = requests.value_or(0);
    }
  }
  return runs;
}

// A constant rate over a pool of prompts, which a stage before this one may have cached.
void ReadPool(const Reading& r, Measured& m, std::int64_t stage, std::size_t stages) {
  if (!m.setup.max_num_seqs) m.setup.max_num_seqs = kPoolSeats;
  m.load.form = MeasuredForm::kPromptPool;
  r.row.NeededNumber(kRateColumns);
  m.load.input.mean =
      r.row.NeededNumber({"input_tokens_nominal", "input_tokens_mean"}, kTokenRange);
  m.load.output.mean = r.row.NeededNumber({"output_tokens_configured"}, kTokenRange);
  const auto requests = r.row.Whole({"n_requests"}, {1, 1e6});
  // Two stages of ten minutes or one of twenty, where they are not counted.
  m.load.duration_s = stages > 1 || stage > 0 ? 600 : 1200;
  if (requests && m.load.rate > 0) {
    m.load.duration_s = static_cast<double>(*requests) / m.load.rate;
  }
  // Rounding may make of so many requests a fraction more.
  const double arrivals = std::floor(m.load.rate * m.load.duration_s);
  CheckSize(r, arrivals, m.load.duration_s);
  m.load.warm = stage > 0;
  // All outputs are as long, so that the means say it.
  if (!m.values.contains("tpot") && m.stated_e2e > m.stated_ttft && m.stated_ttft > 0 &&
      m.load.output.mean > 1) {
    m.values["tpot"] = (m.stated_e2e - m.stated_ttft) / (m.load.output.mean - 1);
  }
}

// The first requests of a run carry a cold start, and of a pool of prompts none is cached.
std::size_t ColdRequests(const std::vector<MeasuredRequest>& all) {
  const bool pool = all.size() > std::size_t{kPromptPoolSize} &&
                    all[std::size_t{kPromptPoolSize}].shares_with == 0;
  return std::max(pool ? std::size_t{kPromptPoolSize} : 1, all.size() / 100);
}

Metrics MeansOf(const std::vector<MeasuredRequest>& requests, std::size_t from, std::size_t to) {
  std::vector<double> ttft, tpot, e2e;
  RequestRate rate;
  for (std::size_t i = from; i < to; ++i) {
    const MeasuredRequest& r = requests[i];
    if (std::isfinite(r.ttft_ms)) ttft.push_back(r.ttft_ms);
    if (std::isfinite(r.e2e_ms)) {
      e2e.push_back(r.e2e_ms);
      rate.Add(r.arrival_s, r.e2e_ms);
    }
    if (r.output > 1 && std::isfinite(r.e2e_ms - r.ttft_ms)) {
      tpot.push_back((r.e2e_ms - r.ttft_ms) / (r.output - 1));
    }
  }
  Metrics means = RequestMetrics(std::move(ttft), tpot, e2e);
  if (const auto served = rate.PerSecond()) means["throughput"] = *served;
  return means;
}

// Where the requests of a stage begin: behind those of the stages before it. When the file lacks
// some of these, at the beginning or so that the last is the stage's, by the mean that it states.
std::optional<std::size_t> BeginOf(const RunStages& run, std::int64_t stage, std::size_t n,
                                   const std::vector<MeasuredRequest>& requests, double e2e) {
  std::size_t before = 0;
  bool all = true;
  for (std::int64_t i = 0; i < stage && all; ++i) {
    const auto at = run.requests.find(i);
    all = at != run.requests.end() && at->second > 0;
    if (all) before += static_cast<std::size_t>(at->second);
  }
  if (all) return before;
  constexpr double kSame = 0.02;
  if (n > requests.size()) return std::nullopt;
  for (const std::size_t begin : {requests.size() - n, std::size_t{0}}) {
    const Metrics means = MeansOf(requests, begin, begin + n);
    const auto mean = means.find("e2e");
    if (mean != means.end() && std::fabs(mean->second - e2e) <= kSame * e2e) return begin;
  }
  return std::nullopt;
}

// Puts what clients saw of the run, or of a stage of it, into `m`.
void ReadRecorded(const Reading& r, const RecordedRequests& recorded, const RunStages& run,
                  std::int64_t stage, Measured& m) {
  const std::vector<MeasuredRequest>& requests = *recorded;
  m.load.form = MeasuredForm::kReplay;
  m.load.recorded = recorded;
  m.setup.no_top_p = !requests.empty() && requests[0].scheduled;
  const auto stated = r.row.Whole({"n_requests", "num_requests", "n_ok"}, {1, 1e6});
  std::size_t begin = 0, end = requests.size();
  if (stage >= 0 && stated) {
    const auto n = static_cast<std::size_t>(*stated);
    const auto found = BeginOf(run, stage, n, requests, m.stated_e2e);
    if (!found) {
      return r.row.Complain("the stages before it are missing, so its requests are not known");
    }
    begin = *found;
    end = begin + n;
  } else if (stated) {
    end = std::max(end, static_cast<std::size_t>(*stated));
  }
  // Some write no failed requests; more than a few that are missing were cut off.
  constexpr double kMostMissing = 0.02;
  const auto missing = static_cast<double>(end) - static_cast<double>(requests.size());
  if (missing > kMostMissing * static_cast<double>(end)) {
    return r.row.Complain(
        fmt::format("the file of requests ends after {}, and this needs {}", requests.size(), end));
  }
  // What never ended is in no file, and yet took seats, blocks and steps.
  constexpr double kMostOfOthers = 0.1;
  double written = 0;
  for (const MeasuredRequest& one : requests) written += one.output;
  const double made = r.row.Number({"server_generation_tokens"}).value_or(0);
  if (made > (1 + kMostOfOthers) * written) {
    return r.row.Complain(fmt::format(
        "the server made {:.0f} tokens, and the requests in the file have {:.0f}", made, written));
  }
  end = std::min(end, requests.size());
  m.load.from = std::max(begin, ColdRequests(requests));
  m.load.to = end;
  if (m.load.from >= m.load.to) return r.row.Complain("no requests behind the cold start");
  for (const auto& [name, value] : MeansOf(requests, m.load.from, m.load.to)) {
    m.values[name] = value;
  }
  // Arrivals of clients that wait for answers say the server's rate, unless they come anew.
  const bool loop = std::any_of(requests.begin(), requests.end(),
                                [](const MeasuredRequest& one) { return one.follows >= 0; });
  if (!m.serving && !loop) m.values.erase("throughput");
}

// What a run had that its row names and does not describe; "" when nothing.
std::string Unstated(MeasuredRow& row, std::string_view name) {
  const std::string offload = LowerCase(row.Text({"offload"}));
  if (offload == "on" || offload == "true" || offload == "1") {
    return "KV offload to memory whose size is not stated";
  }
  if (row.Number({"kv_offload_gib"}).value_or(0) > 0) {
    return "KV offload, and what of its prompts earlier runs left there is not stated";
  }
  // Sweeps whose first release has no such column set it, too, as their source says of them.
  constexpr std::string_view kSweeps =
      "experimental/multiturn/vllm_benchmark/results/sweep_results_";
  if (row.Text({"attention"}).find("use_trtllm_attention=0") != std::string_view::npos ||
      row.Text({"source_path"}).find(kSweeps) == 0) {
    return "use_trtllm_attention=0: kernels that the engine would not take, and no field names";
  }
  if (const std::string_view suspect = row.Text({"suspect"}); !suspect.empty()) {
    return fmt::format("its source doubts it: {}", suspect);
  }
  const bool apart = LowerCase(name).find("disagg") != std::string::npos;
  return apart ? "prefill and decode on servers of their own that the row does not describe" : "";
}

// A run, or a stage of one: replayed where its requests are recorded, else drawn by what the row
// says of rate and lengths.
void ReadRun(const Reading& r, const RunStages& run) {
  const std::string name(r.row.Text(kRunColumns));
  const std::string_view stage_text = r.row.Text(kStage);
  Measured m = r.Begin(RowLabel({name, stage_text.empty() ? "" : "stage", stage_text}));
  ReadServing(r, m);
  const bool whole = IsWholeRun(stage_text);
  // -1: the row is of no stage.
  const std::int64_t stage =
      whole || stage_text.empty() ? -1 : r.row.Whole(kStage, {0, 1e6}).value_or(-1);
  const bool conversations = r.file.table.Has("exp_name");
  // Clients that wait for their answers.
  if (conversations) m.serving = false;
  const bool pool = r.file.table.HasAny({"input_tokens_nominal", "n_system_prompts"});
  const auto path = r.file.requests.Find(r.file.Directory(), name);
  if (whole && !run.requests.empty()) m.skipped = kWholeRun;
  if (m.skipped.empty()) m.skipped = Unstated(r.row, name);
  if (!m.skipped.empty()) return r.Add(std::move(m));
  if (path) {
    const Result<RecordedRequests>& recorded = r.file.requests.Read(*path);
    if (recorded.ok()) {
      ReadRecorded(r, recorded.value(), run, stage, m);
    } else {
      m.skipped = recorded.issues()[0].message;
    }
  } else if (conversations) {
    m.skipped = "conversations without a file of requests, requests/NAME.csv";
  } else if (pool) {
    ReadPool(r, m, stage, run.requests.size());
  } else {
    ReadPoisson(r, m);
  }
  r.Add(std::move(m));
}

}  // namespace

void ReadSweep(const Reading& r) {
  Measured m = r.Begin(RowLabel({r.row.Text({"run"}), r.row.Text({"point"})}));
  ReadServing(r, m);
  ReadMode(r.row, m.setup);
  ReadPoisson(r, m);
  r.Add(std::move(m));
}

void ReadRuns(const MeasuredFile& file, std::vector<Measured>& out) {
  const auto stages = StagesOf(file);
  const std::string name = file.Name();
  for (std::size_t i = 0; i < file.table.Rows(); ++i) {
    MeasuredRow row(file.table, name, i);
    const auto run = stages.find(row.Text(kRunColumns));
    ReadRun({file, row, i, out}, run == stages.end() ? RunStages() : run->second);
  }
}

}  // namespace servecast
