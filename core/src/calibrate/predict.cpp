// See predict.h. Prompts and runs go through the simulator, as chunks, asynchronous steps and the
// host's queues are its matter; a step of decodes is priced as it is.
#include "calibrate/predict.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "calibrate/parameters.h"
#include "cost/model_cost.h"
#include "metrics/records.h"
#include "servecast/simulation.h"
#include "servecast/workload_spec.h"
#include "serving/batch.h"
#include "serving/policy.h"

namespace servecast {
namespace {

// What ran to its end, or an issue of what never ends.
Result<Simulation> RunToEnd(Scenario s, const Trace& trace, std::optional<std::int64_t> concurrency,
                            SimulationHooks hooks) {
  s.workload->requests = static_cast<std::int64_t>(trace.rows.size());
  s.workload->prompt_tokens.distribution = LengthDistribution::kTrace;
  s.workload->output_tokens.distribution = LengthDistribution::kTrace;
  s.workload->arrivals.process = concurrency ? ArrivalProcess::kClosedLoop : ArrivalProcess::kTrace;
  if (concurrency) s.workload->arrivals.concurrency = *concurrency;
  Result<Simulation> simulation = Simulation::Create(std::move(s), trace, std::move(hooks));
  if (!simulation.ok()) return simulation;
  while (!simulation.value().Advance(INT64_MAX)) {
  }
  const std::vector<RequestState>& states = simulation.value().Records().results.state;
  const auto ended = std::count(states.begin(), states.end(), RequestState::kCompleted);
  if (ended == static_cast<std::ptrdiff_t>(states.size())) return simulation;
  return Issue{"", Format("{} of {} requests do not end: longer than the model's length or the KV "
                          "cache allow",
                          static_cast<std::ptrdiff_t>(states.size()) - ended, states.size())};
}

// The mean of a figure over the rows that are compared, ms; of requests of one token there is no
// TPOT. A report would say the same and cost a fifth more.
double MeanOf(const RunRecords& run, Figure figure, std::size_t from, std::size_t to) {
  double sum = 0, n = 0;
  for (std::size_t i = from; i < to; ++i) {
    const TimeNs since =
        figure == Figure::kTpot ? run.results.first_token[i] : run.requests.arrival[i];
    const TimeNs until =
        figure == Figure::kTtft ? run.results.first_token[i] : run.results.completion[i];
    const std::int32_t gaps = figure == Figure::kTpot ? run.results.generated[i] - 1 : 1;
    if (gaps < 1) continue;
    sum += static_cast<double>(until - since) / gaps;
    ++n;
  }
  return n > 0 ? sum / n * 1e-6 : 0;
}

Result<std::vector<double>> PredictRun(const Scenario& server, const CalibrationPoint& point) {
  const RunLoad& run = *point.run;
  const Scenario servers = ServerOfRun(server, run);
  std::vector<double> values(point.figures.size(), 0.0);
  for (const Trace& trace : run.draws) {
    SimulationHooks hooks;
    hooks.recorded = {.series = false, .gaps = false};
    const Result<Simulation> done = RunToEnd(servers, trace, run.concurrency, std::move(hooks));
    if (!done.ok()) return Issues(done.issues());
    const std::size_t rows = trace.rows.size();
    const bool some = run.to > run.from;
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] += MeanOf(done.value().Records(), point.figures[i].figure, some ? run.from : 0,
                          some ? std::min(run.to, rows) : rows) /
                   static_cast<double>(run.draws.size());
    }
  }
  return values;
}

// What the model says of a step, us.
double StepUs(const LatencyModel& model, const BatchShape& shape) {
  return static_cast<double>(model.Price(shape).duration) * 1e-3;
}

double DecodesUs(const LatencyModel& model, std::int64_t sequences) {
  constexpr std::int64_t kContext = 1024;
  BatchShape shape;
  shape.decode_seqs = sequences;
  shape.decode_context_tokens = sequences * kContext;
  return StepUs(model, shape);
}

}  // namespace

Scenario ServerOfRun(Scenario server, const RunLoad& run) {
  PoolSpec& pool = server.cluster.pool();
  if (run.one_server) pool.replicas = pool.attention_data_parallel;
  if (run.greedy) server.model.top_p_by_default = false;
  return server;
}

Result<Report> RunRequests(Scenario s, const Trace& trace, std::optional<std::int64_t> concurrency,
                           ReportDetail detail, StepObserver* observer) {
  SimulationHooks hooks;
  hooks.observer = observer;
  const Result<Simulation> done = RunToEnd(std::move(s), trace, concurrency, std::move(hooks));
  if (!done.ok()) return Issues(done.issues());
  return done.value().Snapshot(detail);
}

Result<Scenario> WithBlackbox(Scenario server) {
  if (server.latency.backend == "blackbox") return server;
  const Scenario analytic = ServerOf(server);
  const Result<ModelCost> cost = ComputeModelCost(analytic);
  if (!cost.ok()) return Issues(cost.issues());
  const auto model = ChosenLatencyModel(analytic).make(analytic, cost.value());
  constexpr std::int64_t kDecodes = 64, kPrompt = 1024;
  const double one = DecodesUs(*model, 1);
  const double each = (DecodesUs(*model, kDecodes) - one) / (kDecodes - 1);
  const PrefillChunk chunk{kPrompt, 0, kPrompt, true};
  BatchShape prompt;
  prompt.prefill = {&chunk, 1};
  const double step = std::max(1.0, one - each);
  const double token = std::max(0.0, (StepUs(*model, prompt) - step) / kPrompt);
  const auto delay_us = [&model](std::int64_t tokens) {
    return static_cast<double>(model->EnqueueDelay(tokens)) * 1e-3;
  };
  server.latency = {};
  server.latency.backend = "blackbox";
  server.latency.beta = {step, token, std::max(0.0, each)};
  server.latency.alpha = {delay_us(1), (delay_us(kPrompt) - delay_us(1)) / (kPrompt - 1),
                          static_cast<double>(model->OutputTokenDelay()) * 1e-3};
  return server;
}

Scenario ServerOf(Scenario scenario) {
  if (scenario.latency.backend != "blackbox") scenario.latency.backend = "analytic";
  *scenario.workload = {};
  scenario.slo.clear();
  scenario.measure = {};
  return scenario;
}

Result<std::vector<double>> PredictPoint(const Scenario& server, const CalibrationPoint& point) {
  if (point.form == PointForm::kRun) return PredictRun(server, point);
  if (point.form == PointForm::kDecodeStep) {
    const Result<ModelCost> cost = ComputeModelCost(server);
    if (!cost.ok()) return Issues(cost.issues());
    if (point.batch * cost.value().RoomOf(point.context, server.engine.block_size) >
        cost.value().usable_blocks * server.engine.block_size) {
      return Issue{"", Format("{} contexts of {} tokens do not fit into the KV cache", point.batch,
                              point.context)};
    }
    const auto model = ChosenLatencyModel(server).make(server, cost.value());
    BatchShape shape;
    shape.decode_seqs = point.batch;
    shape.decode_context_tokens = point.batch * point.context;
    return std::vector<double>(point.figures.size(),
                               static_cast<double>(model->Price(shape).duration) * 1e-6);
  }
  Trace trace;
  trace.rows = {{0, static_cast<std::int32_t>(point.prompt), 1}};
  // A prompt's time is a median of many, which no stall moves; one at a fixed moment would.
  Scenario steady = server;
  steady.engine.host_stalls_per_s = 0;
  const Result<Report> report = RunRequests(steady, trace, std::nullopt, ReportDetail::kSummary);
  if (!report.ok()) return Issues(report.issues());
  return std::vector<double>(point.figures.size(), report.value().ttft_ms.mean);
}

const Result<std::vector<double>>* KnownPredictions::Of(const Scenario& server,
                                                        const std::vector<CalibrationPoint>& points,
                                                        std::size_t point) {
  std::vector<double> key;
  for (const CalibrationParameter& parameter : CalibrationParametersOf(server)) {
    key.push_back(parameter.read(server));
  }
  auto at = known_.find(key);
  if (at == known_.end() || !at->second[point]) {
    missing_ = missing_ || left_ <= 0;
    if (left_ <= 0) return nullptr;
    if (at == known_.end()) at = known_.emplace(std::move(key), OfServer(points.size())).first;
    std::int64_t requests = 1;
    if (points[point].run) {
      for (const Trace& trace : points[point].run->draws) {
        requests += static_cast<std::int64_t>(trace.rows.size());
      }
    }
    left_ -= requests;
    at->second[point] = PredictPoint(server, points[point]);
  }
  return &*at->second[point];
}

}  // namespace servecast
