// See measured_replay.h.
#include "measured_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "base/random.h"
#include "calibrate/runs.h"
#include "cost/model_cost.h"
#include "experiment/scaled_times.h"
#include "measured_scenario.h"
#include "servecast/report.h"
#include "servecast/simulation.h"
#include "servecast/trace.h"
#include "servecast/workload_spec.h"
#include "serving/hooks.h"
#include "serving/policy.h"
#include "workload/workload.h"

namespace servecast {
namespace {

// Draws of arrivals and lengths that a Poisson row is the mean of.
constexpr std::int64_t kSeeds = 5;

Result<Report> Simulate(const Scenario& scenario, const Trace& trace, ReportDetail detail,
                        const ErrorFactors& factors = {},
                        std::optional<RequestTable> requests = std::nullopt) {
  SimulationHooks hooks;
  hooks.requests = std::move(requests);
  if (!(factors == ErrorFactors())) {
    Result<std::shared_ptr<Deployment>> scaled = DeployScaled(scenario, factors);
    if (!scaled.ok()) return Issues(scaled.issues());
    hooks.deployment = std::move(scaled.value());
  }
  Result<Simulation> simulation = Simulation::Create(scenario, trace, std::move(hooks));
  if (!simulation.ok()) return Issues(simulation.issues());
  while (!simulation.value().Advance(INT64_MAX)) {
  }
  Report report = simulation.value().Snapshot(detail);
  if (report.arrived > 0 && report.dropped == report.arrived) {
    return Issue{"", "every request is longer than the model's length or the KV cache allows"};
  }
  return report;
}

// Why the GPUs of this set-up cannot have held such a request, or such a step; "" when they can.
std::string TooLarge(const MeasuredLoad& load, const Scenario& s, const ModelCost& cost) {
  const std::int64_t length =
      std::min(s.model.max_position_embeddings, s.engine.max_model_len.value_or(INT64_MAX));
  const std::int64_t cache = cost.usable_blocks * s.engine.block_size;
  if (load.form == MeasuredForm::kDecodeStep) {
    if (load.context > length) {
      return fmt::format("a mean context of {} tokens, beyond the model's length of {}",
                         load.context, length);
    }
    if (load.batch * cost.RoomOf(load.context, s.engine.block_size) <= cache) return "";
    return fmt::format("{} contexts of {} tokens, beyond the {} tokens of the KV cache", load.batch,
                       load.context, cache);
  }
  const bool drawn = load.input.sigma || load.output.sigma;
  const bool elsewhere = load.form == MeasuredForm::kReplay || load.form == MeasuredForm::kScenario;
  if (elsewhere || drawn) return "";
  const double answer = std::max(1.0, load.output.mean);
  const double tokens = load.input.mean + answer;
  const std::string request =
      fmt::format("a prompt of {:.0f} tokens and {:.0f} of output", load.input.mean, answer);
  if (tokens > static_cast<double>(length)) {
    return fmt::format("{}, beyond the model's length of {}", request, length);
  }
  if (tokens <= static_cast<double>(cache)) return "";
  return fmt::format("{}, beyond the {} tokens of the KV cache", request, cache);
}

void SetTrace(Scenario& s) {
  s.workload->arrivals.process = ArrivalProcess::kTrace;
  s.workload->prompt_tokens.distribution = LengthDistribution::kTrace;
  s.workload->output_tokens.distribution = LengthDistribution::kTrace;
}

Metrics MetricsOf(const Report& r) {
  Metrics values;
  const auto add = [&values](const char* name, const Distribution& d, double value) {
    if (d.n > 0) values[name] = value;
  };
  add("ttft", r.ttft_ms, r.ttft_ms.mean);
  add("ttft_p99", r.ttft_ms, r.ttft_ms.p99);
  add("tpot", r.tpot_ms, r.tpot_ms.mean);
  add("tpot_p99", r.tpot_ms, r.tpot_ms.p99);
  add("e2e", r.e2e_ms, r.e2e_ms.mean);
  values["throughput"] = r.requests_per_s;
  values["preemptions"] = static_cast<double>(r.preemptions);
  if (r.power) {
    values["power"] = r.power->mean_w;
    if (r.power->j_per_output_token) values["energy"] = *r.power->j_per_output_token;
  }
  return values;
}

Result<Metrics> RunTrace(Scenario s, const Trace& trace, const ErrorFactors& factors = {}) {
  SetTrace(s);
  const Result<Report> report = Simulate(s, trace, ReportDetail::kSummary, factors);
  if (!report.ok()) return Issues(report.issues());
  return MetricsOf(report.value());
}

Result<Metrics> RunPrompt(const MeasuredLoad& load, const Scenario& s) {
  const auto tokens = static_cast<std::int32_t>(std::llround(load.input.mean));
  Trace trace;
  trace.rows = {{0, tokens, 1}};
  if (load.form == MeasuredForm::kPrompt) return RunTrace(s, trace);
  // The prefix was there long before.
  Scenario two = s;
  constexpr std::int64_t kLater = 3'600'000'000'000;
  const auto prefix = static_cast<std::int32_t>(load.prefix);
  trace.rows = {{0, prefix, 1}, {kLater, tokens, 1}};
  trace.prefixes = {{-1, 0}, {0, prefix}};
  SetTrace(two);
  two.measure.warmup_s = 1;
  const Result<Report> report = Simulate(two, trace, ReportDetail::kSummary);
  if (!report.ok()) return Issues(report.issues());
  return MetricsOf(report.value());
}

Metrics RunDecodeStep(const MeasuredLoad& load, const Scenario& s, const ModelCost& cost) {
  const auto model = ChosenLatencyModel(s).make(s, cost);
  BatchShape shape;
  shape.decode_seqs = load.batch;
  shape.decode_context_tokens = load.batch * load.context;
  return Metrics{{"tpot", static_cast<double>(model->Price(shape).duration) * 1e-6}};
}

Result<Metrics> RunClosedLoop(const MeasuredLoad& load, const Scenario& s,
                              const ErrorFactors& factors) {
  const Result<Report> report =
      Simulate(ClosedLoopOf(load, s), {}, ReportDetail::kSummary, factors);
  if (!report.ok()) return Issues(report.issues());
  Metrics values = MetricsOf(report.value());
  if (load.form != MeasuredForm::kSaturated) return values;
  values["tpot"] = report.value().itl_ms.p50;
  if (!report.value().power) return values;
  // Power was measured while all seats were taken: without the end, in which they empty.
  Scenario full = ClosedLoopOf(load, s);
  full.workload->requests *= 2;
  full.measure.horizon_s = report.value().simulated_s;
  const Result<Report> steady = Simulate(full, {}, ReportDetail::kSummary, factors);
  if (!steady.ok()) return Issues(steady.issues());
  Metrics powers = MetricsOf(steady.value());
  for (const char* name : {"power", "energy"}) {
    if (powers.contains(name)) values[name] = powers[name];
  }
  return values;
}

// Recorded rates are those of so many requests, so only where they fall is drawn.
Result<Metrics> RunPoisson(const MeasuredLoad& load, Scenario s, const ErrorFactors& factors) {
  s.workload->arrivals.process = ArrivalProcess::kTrace;
  s.workload->prompt_tokens = LengthsOf(load.input);
  s.workload->output_tokens = LengthsOf(load.output);
  Metrics sum;
  for (s.seed = 1; s.seed <= kSeeds; ++s.seed) {
    Trace trace;
    const double duration_s = static_cast<double>(load.requests) / load.rate;
    for (const double arrival : PoissonArrivals(load.requests, duration_s, s.seed)) {
      trace.rows.push_back({std::llround(arrival * 1e9), 1, 1});
    }
    const Result<Report> report = Simulate(s, trace, ReportDetail::kSummary, factors);
    if (!report.ok()) return Issues(report.issues());
    for (const auto& [name, value] : MetricsOf(report.value())) {
      sum[name] += value / static_cast<double>(kSeeds);
    }
  }
  return sum;
}

// A simulation has turns in rows one behind the other: the requests by client, each client's in
// order. `row_of`: by request.
std::vector<MeasuredRequest> InRows(const std::vector<MeasuredRequest>& requests,
                                    std::vector<std::size_t>& row_of) {
  std::vector<std::size_t> first(requests.size()), order(requests.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::int32_t before = requests[i].follows;
    first[i] = before < 0 ? i : first[static_cast<std::size_t>(before)];
  }
  std::stable_sort(order.begin(), order.end(),
                   [&first](std::size_t a, std::size_t b) { return first[a] < first[b]; });
  row_of.resize(requests.size());
  for (std::size_t row = 0; row < order.size(); ++row) row_of[order[row]] = row;
  std::vector<MeasuredRequest> rows;
  for (const std::size_t i : order) {
    MeasuredRequest request = requests[i];
    if (request.shares_with >= 0) {  // a prompt is known by rows before it alone
      const std::size_t shared = row_of[static_cast<std::size_t>(request.shares_with)];
      request.shares_with = shared < rows.size() ? static_cast<std::int32_t>(shared) : -1;
    }
    rows.push_back(request);
  }
  return rows;
}

// Requires: rows as of InRows, and their trace.
Result<RequestTable> TableOf(const std::vector<MeasuredRequest>& rows, const Scenario& s,
                             const Trace& trace) {
  Result<RequestTable> made = MakeRequests(s, trace);
  if (!made.ok()) return made;
  RequestTable& table = made.value();
  const bool loop = std::any_of(rows.begin(), rows.end(),
                                [](const MeasuredRequest& r) { return r.follows >= 0; });
  if (loop) table.think.assign(rows.size(), -1);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].answer_too && rows[i].shares_with >= 0) {
      table.content[i] = table.content[static_cast<std::size_t>(rows[i].shares_with)];
    }
    if (rows[i].follows < 0) continue;
    table.think[i] = std::llround(rows[i].pause_s * 1e9);
    table.arrival[i] = -1;
  }
  return made;
}

Result<Metrics> RunPromptPool(const MeasuredLoad& load, Scenario s, const ErrorFactors& factors) {
  const Trace trace = PromptPoolOf(load, s);
  return RunTrace(std::move(s), trace, factors);
}

}  // namespace

Result<Metrics> MetricsOf(const Scenario& scenario, const ErrorFactors& factors) {
  const Result<Report> report = Simulate(scenario, {}, ReportDetail::kSummary, factors);
  if (!report.ok()) return Issues(report.issues());
  return MetricsOf(report.value());
}

Result<Metrics> MeasuredReplay::Replay(const Measured& row, Scenario s,
                                       const ErrorFactors& factors) {
  const std::vector<MeasuredRequest>& requests = *row.load.recorded;
  if (replayed_ != row.load.recorded || scenario_ != s.id || !(factors_ == factors)) {
    replayed_ = nullptr;
    factors_ = factors;
    scenario_ = s.id;
    SetTrace(s);
    std::vector<std::size_t> row_of;
    const std::vector<MeasuredRequest> rows = InRows(requests, row_of);
    const Trace trace = RecordedTrace(rows);
    Result<RequestTable> table = TableOf(rows, s, trace);
    if (!table.ok()) return Issues(table.issues());
    const Result<Report> report =
        Simulate(s, trace, ReportDetail::kRequests, factors, std::move(table.value()));
    if (!report.ok()) return Issues(report.issues());
    const auto column = [&](const char* name, std::vector<double>& out) {
      const std::vector<double>& values = report.value().ColumnOf(name);
      out.clear();
      for (const std::size_t at : row_of) out.push_back(values[at]);
    };
    column("arrival_s", arrival_);
    column("ttft_ms", ttft_);
    column("tpot_ms", tpot_);
    column("e2e_ms", e2e_);
    preemptions_ = static_cast<double>(report.value().preemptions);
    replayed_ = row.load.recorded;
  }
  std::vector<double> ttft, tpot, e2e;
  RequestRate rate;
  const auto add = [](double measured, double predicted, std::vector<double>& out) {
    if (std::isfinite(measured) && std::isfinite(predicted)) out.push_back(predicted);
  };
  for (std::size_t i = row.load.from; i < row.load.to; ++i) {
    add(requests[i].ttft_ms, ttft_[i], ttft);
    add(requests[i].e2e_ms - requests[i].ttft_ms, tpot_[i], tpot);
    add(requests[i].e2e_ms, e2e_[i], e2e);
    const bool both = std::isfinite(requests[i].e2e_ms) && std::isfinite(e2e_[i]);
    if (both) rate.Add(arrival_[i], e2e_[i]);
  }
  Metrics values = RequestMetrics(std::move(ttft), tpot, e2e);
  if (const auto served = rate.PerSecond()) values["throughput"] = *served;
  values["preemptions"] = preemptions_;
  return values;
}

Result<Metrics> MeasuredReplay::Run(const Measured& row, Scenario scenario,
                                    const ErrorFactors& factors) {
  constexpr std::int64_t kMostClients = 100'000;
  if (row.load.batch > kMostClients) {
    return Issue{"", fmt::format("found {} clients of all replicas, allowed at most {}",
                                 row.load.batch, kMostClients)};
  }
  std::optional<ModelCost> cost;  // of the last pool
  for (std::size_t i = 0; i < scenario.cluster.pools.size(); ++i) {
    Scenario pool = scenario;
    pool.UsePool(i);
    Result<ModelCost> of_pool = ComputeModelCost(pool);
    if (!of_pool.ok()) return Issues(of_pool.issues());
    const std::string reason = TooLarge(row.load, scenario, of_pool.value());
    if (!reason.empty()) return Issue{"", reason};
    cost = std::move(of_pool.value());
  }
  switch (row.load.form) {
    case MeasuredForm::kPrompt:
    case MeasuredForm::kPrefix:
      return RunPrompt(row.load, scenario);
    case MeasuredForm::kDecodeStep:
      return RunDecodeStep(row.load, scenario, *cost);
    case MeasuredForm::kSaturated:
    case MeasuredForm::kClosedLoop:
      return RunClosedLoop(row.load, scenario, factors);
    case MeasuredForm::kPoisson:
      return RunPoisson(row.load, std::move(scenario), factors);
    case MeasuredForm::kPromptPool:
      return RunPromptPool(row.load, std::move(scenario), factors);
    case MeasuredForm::kReplay:
      return Replay(row, std::move(scenario), factors);
    case MeasuredForm::kScenario:
      return MetricsOf(scenario, factors);
  }
  return Issue{"", "a form that is not known"};
}

}  // namespace servecast
