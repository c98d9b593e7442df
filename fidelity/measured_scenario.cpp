// See measured_scenario.h.
#include "measured_scenario.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/math.h"
#include "calibrate/runs.h"
#include "io/fit_json.h"
#include "io/json_document.h"
#include "servecast/workload_spec.h"
#include "workload/trace_fit.h"

namespace servecast {
namespace {

// Requests of a closed loop, in times of its concurrency. InferenceX sends ten a client, so those
// that come at once in the beginning are a tenth; of loops that fill all seats no number is known.
// Where lengths are drawn from a wide distribution the last requests of few rounds would be a long
// tail.
constexpr std::int64_t kRounds = 10, kRoundsOfSeats = 4, kRoundsOfChat = 100;

// Outputs of one stated length are drawn from within so much of it. Equal ones would keep requests
// that were once computed together in step for ever, so that prompts of one hardly ever delay
// tokens of another; between a client and a server they drift apart. Chosen on closed loops of
// vLLM on H100, whose errors it takes from 3.3 to 2.4 % (docs/fidelity.md). Not with SGLang's
// scheduler: prompts come first there, and the whole batch decodes again together.
constexpr double kDrift = 0.05;

// So many single prompts one after the other, and so many decode steps around the one that was
// timed.
constexpr std::int64_t kPrompts = 20;
constexpr std::int64_t kSteps = 64;

LengthSpec FixedLength(double tokens) {
  LengthSpec spec;
  spec.value = std::max<std::int64_t>(1, std::llround(tokens));
  return spec;
}

// A single client, or all requests at once.
WorkloadSpec FixedWorkload(ArrivalProcess process, std::int64_t requests, double prompt,
                           double output) {
  WorkloadSpec workload;
  workload.arrivals.process = process;
  workload.arrivals.concurrency = 1;
  workload.requests = requests;
  workload.prompt_tokens = FixedLength(prompt);
  workload.output_tokens = FixedLength(output);
  return workload;
}

Result<WorkloadSpec> Fitted(const Trace& trace) {
  Result<FittedTrace> fitted = FitTrace(trace);
  if (!fitted.ok()) return Issues(fitted.issues());
  return std::move(fitted.value().workload);
}

Result<WorkloadSpec> WorkloadOf(const MeasuredLoad& load, const Scenario& setup) {
  Scenario s = setup;
  switch (load.form) {
    case MeasuredForm::kPrompt:
      return FixedWorkload(ArrivalProcess::kClosedLoop, kPrompts, load.input.mean, 1);
    case MeasuredForm::kPrefix: {
      const auto prefix = static_cast<double>(load.prefix);
      WorkloadSpec workload = FixedWorkload(ArrivalProcess::kClosedLoop, kPrompts,
                                            std::max(1.0, load.input.mean - prefix), 1);
      workload.prefix = {1, load.prefix};
      return workload;
    }
    case MeasuredForm::kDecodeStep: {
      const std::int64_t before = std::max<std::int64_t>(1, load.context - kSteps / 2);
      return FixedWorkload(ArrivalProcess::kStatic, load.batch, static_cast<double>(before),
                           static_cast<double>(kSteps));
    }
    case MeasuredForm::kSaturated:
    case MeasuredForm::kClosedLoop:
      return *ClosedLoopOf(load, s).workload;
    case MeasuredForm::kPoisson: {
      WorkloadSpec workload;
      workload.arrivals.rate_per_s = load.rate;
      workload.arrivals.max_concurrency = load.max_concurrency;
      workload.requests = load.requests;
      workload.prompt_tokens = LengthsOf(load.input);
      workload.output_tokens = LengthsOf(load.output);
      return workload;
    }
    case MeasuredForm::kPromptPool: {
      MeasuredLoad cold = load;  // a fit knows no pause between two stages
      cold.warm = false;
      return Fitted(PromptPoolOf(cold, s));
    }
    case MeasuredForm::kScenario:
      return *s.workload;
    case MeasuredForm::kReplay:
      return Fitted(RecordedTrace(*load.recorded));
  }
  return Issue{"", "a form that is not known"};
}

}  // namespace

LengthSpec LengthsOf(const MeasuredLengths& lengths) {
  if (lengths.least && lengths.most) {
    LengthSpec spec;
    spec.distribution = LengthDistribution::kUniform;
    spec.min = std::max<std::int64_t>(1, std::llround(*lengths.least));
    spec.max = std::max<std::int64_t>(spec.min, std::llround(*lengths.most));
    return spec;
  }
  if (!lengths.sigma) return FixedLength(lengths.mean);
  constexpr double kNormalAt99 = 2.3263478740408408;
  LengthSpec spec;
  spec.distribution = LengthDistribution::kLognormal;
  const double sigma = *lengths.sigma;
  spec.median = lengths.mean * Exp(-sigma * sigma / 2);
  spec.p99 = spec.median * Exp(kNormalAt99 * sigma);
  spec.min = std::llround(lengths.min);
  spec.max = std::llround(lengths.max);
  return spec;
}

Scenario ClosedLoopOf(const MeasuredLoad& load, Scenario s) {
  s.workload->arrivals.process = ArrivalProcess::kClosedLoop;
  s.workload->arrivals.concurrency = load.batch;
  const bool saturated = load.form == MeasuredForm::kSaturated;
  const std::int64_t rounds = saturated          ? kRoundsOfSeats
                              : load.input.sigma ? kRoundsOfChat
                                                 : kRounds;
  s.workload->requests = rounds * load.batch;
  s.workload->prompt_tokens = LengthsOf(load.input);
  MeasuredLengths output = load.output;
  if (saturated) {  // only the mean is known
    output.least = 1;
    output.most = 2 * output.mean - 1;
  } else if (!output.least && !output.sigma && s.scheduler.policy != "sglang") {
    output.least = (1 - kDrift) * output.mean;
    output.most = (1 + kDrift) * output.mean;
  }
  s.workload->output_tokens = LengthsOf(output);
  if (!load.seats_stated) s.engine.max_num_seqs = std::max(s.engine.max_num_seqs, load.batch);
  s.engine.max_num_batched_tokens =
      std::max(s.engine.max_num_batched_tokens, s.engine.max_num_seqs);
  return s;
}

// A constant rate, but jittered: the gaps of such runs vary as those of a Poisson process.
Trace PromptPoolOf(const MeasuredLoad& load, Scenario& s) {
  Trace trace;
  const auto requests = static_cast<std::int64_t>(load.rate * load.duration_s);
  const auto input = static_cast<std::int32_t>(std::llround(load.input.mean));
  const auto output = static_cast<std::int32_t>(std::llround(load.output.mean));
  const auto add = [&](double arrival_s) {
    const auto before = static_cast<std::int64_t>(trace.rows.size()) - kPromptPoolSize;
    trace.rows.push_back({std::llround(arrival_s * 1e9), input, output});
    trace.prefixes.push_back(before < 0 ? TracePrefix{}
                                        : TracePrefix{static_cast<std::int32_t>(before), input});
  };
  double start_s = 0;
  if (load.warm) {
    for (std::int64_t i = 0; i < kPromptPoolSize; ++i) add(static_cast<double>(i) / load.rate);
    start_s = static_cast<double>(kPromptPoolSize) / load.rate + 60;
    s.measure.warmup_s = start_s - 1;
  }
  for (const double arrival : PoissonArrivals(requests, load.duration_s, 1)) add(start_s + arrival);
  return trace;
}

Trace RecordedTrace(const std::vector<MeasuredRequest>& requests) {
  Trace trace;
  for (const MeasuredRequest& r : requests) {
    const double after_first = std::max(0.0, r.arrival_s - requests[0].arrival_s);
    trace.rows.push_back({std::llround(after_first * 1e9), r.input, r.output});
    TracePrefix prefix;
    if (r.shares_with >= 0) {
      prefix = {r.shares_with,
                std::min(r.input, requests[static_cast<std::size_t>(r.shares_with)].input)};
    }
    trace.prefixes.push_back(prefix);
  }
  return trace;
}

Result<std::string> OpenScenario(const Measured& row, const Scenario& setup,
                                 const std::string& name) {
  const Result<WorkloadSpec> workload = WorkloadOf(row.load, setup);
  if (!workload.ok()) return Issues(workload.issues());
  nlohmann::json document = LooseJson(setup.canonical_text);
  document["name"] = name;
  document["workload"] = LooseJson(WorkloadJson(workload.value(), true));
  const bool closed =
      row.load.form == MeasuredForm::kClosedLoop || row.load.form == MeasuredForm::kSaturated;
  if (closed) {  // seats for all clients
    const EngineSpec engine = ClosedLoopOf(row.load, setup).engine;
    document["engine"]["max_num_seqs"] = engine.max_num_seqs;
    document["engine"]["max_num_batched_tokens"] = engine.max_num_batched_tokens;
  }
  Result<Scenario> scenario = ParseScenario(document.dump());
  if (!scenario.ok()) return Issues(scenario.issues());
  return std::move(scenario.value().canonical_text);
}

}  // namespace servecast
