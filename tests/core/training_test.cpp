// Coefficients trained on traces: a run's own traces give back the coefficients that it was
// simulated with, intervals hold them as often as they claim, and the fit is that of a second one.
#include "calibrate/training.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/math.h"
#include "base/random.h"
#include "base/text.h"
#include "calibrate/pack.h"
#include "calibrate/replay.h"
#include "calibrate/ridge.h"
#include "calibrate/trace_writer.h"
#include "calibrate/training_pack.h"
#include "cost/model_cost.h"
#include "gtest/gtest.h"
#include "metrics/records.h"
#include "servecast/simulation.h"

namespace servecast::training_test {
namespace {

using Json = nlohmann::json;

// ---- The fit alone
// -------------------------------------------------------------------------------

struct GoldenRow {
  std::vector<double> row;
  double target = 0, weight = 1;
};

const Json& GoldenFits() {
  static const Json golden = [] {
    std::ifstream file(SERVECAST_SOURCE_DIR "/tests/golden/ridge_fit.json");
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    return Json::parse(text, nullptr, false);
  }();
  return golden;
}

std::vector<GoldenRow> GoldenRows() {
  std::vector<GoldenRow> rows;
  for (const Json& row : GoldenFits()["rows"]) {
    rows.push_back({row["row"].get<std::vector<double>>(), row["target"].get<double>(),
                    row["weight"].get<double>()});
  }
  return rows;
}

RowFactor FactorOf(const std::vector<GoldenRow>& rows, std::size_t from, std::size_t to) {
  RowFactor factor(rows[0].row.size());
  for (std::size_t i = from; i < to; ++i) factor.Add(rows[i].row, rows[i].target, rows[i].weight);
  return factor;
}

TEST(Ridge, Golden_AsTheNormalEquationsSay) {
  const std::vector<GoldenRow> rows = GoldenRows();
  ASSERT_EQ(rows.size(), 120u);
  const std::vector<bool> all(rows[0].row.size(), true);
  for (const Json& want : GoldenFits()["fits"]) {
    const double lambda = want["lambda"].get<double>();
    RowFactor factor = FactorOf(rows, 0, rows.size());
    const RidgeFit fit = FitRidge(factor, all, lambda);
    for (std::size_t j = 0; j < all.size(); ++j) {
      const double right = want["coefficients"][j].get<double>();
      EXPECT_NEAR(fit.coefficients[j], right, 1e-8 * std::fabs(right)) << lambda << ", " << j;
    }
    EXPECT_NEAR(fit.degrees, want["degrees"].get<double>(), 1e-8 * fit.degrees) << lambda;
    double error = 0;
    for (std::size_t block = 1; block < kFoldBlocks; ++block) {
      const std::size_t from = rows.size() * block / kFoldBlocks;
      const std::size_t to = rows.size() * (block + 1) / kFoldBlocks;
      RowFactor before(rows[0].row.size());
      for (std::size_t b = 0; b < block; ++b) {
        before.Add(
            FactorOf(rows, rows.size() * b / kFoldBlocks, rows.size() * (b + 1) / kFoldBlocks));
      }
      const std::vector<double> c = FitRidge(before, all, lambda).coefficients;
      double squares = 0, weights = 0;
      for (std::size_t i = from; i < to; ++i) {
        double off = -rows[i].target;
        for (std::size_t j = 0; j < c.size(); ++j) off += rows[i].row[j] * c[j];
        squares += rows[i].weight * off * off;
        weights += rows[i].weight;
      }
      error += std::sqrt(squares / weights) / (kFoldBlocks - 1);
    }
    EXPECT_NEAR(error, want["fold_rmse"].get<double>(), 1e-8 * error) << lambda;
  }
}

TEST(Ridge, ColumnsThatSayTheSame_TheFirstOfTheOrderIsUsed) {
  RowFactor factor(4);
  for (int i = 0; i < 20; ++i) {
    const double x = i * 0.5 + 1;
    factor.Add({1, x, 3 + 2 * x, 0}, 5 + 7 * x, 1);
  }
  EXPECT_EQ(IndependentColumns(factor, {1, 2, 0, 3}),
            (std::vector<bool>{false, true, true, false}));
  EXPECT_EQ(IndependentColumns(factor, {0, 1, 2, 3}),
            (std::vector<bool>{true, true, false, false}));
  const RidgeFit fit = FitRidge(factor, {true, true, false, false}, 0);
  EXPECT_NEAR(fit.coefficients[0], 5, 1e-10);
  EXPECT_NEAR(fit.coefficients[1], 7, 1e-10);
  EXPECT_EQ(fit.coefficients[2], 0);
}

// ---- Round trips
// ---------------------------------------------------------------------------------

// A server a thousand times slower than a real one: times are rounded to a nanosecond, which is
// noise, too.
const std::vector<double> kTrueBeta = {1.3e9, 1.6e9, 1.2e9, 2e9, 1.25e9, 9e5, 1.5e5, 0,
                                       0,     0,     4e5,   0,   0,      0,   8e4,   0};
const std::vector<double> kTrueAlpha = {3e5, 5e5, 2e8, 9e5, 2e7, 7e5, 0, 4e6, 0, 0, 2.5e5};

std::string ListText(const std::vector<double>& values) { return Json(values).dump(); }

Scenario PhysicsServer(const std::vector<std::string>& overrides = {}) {
  std::vector<std::string> settings = {
      "latency.beta_coefficients=" + ListText(kTrueBeta),
      "latency.alpha_coefficients=" + ListText(kTrueAlpha),
  };
  settings.insert(settings.end(), overrides.begin(), overrides.end());
  const auto text = ApplyOverrides(
      R"({"schema": 1, "model": {"preset": "llama-3.1-8b"}, "hardware": {"preset": "h100-sxm"},
          "engine": {"preset": "vllm-0.20", "max_num_batched_tokens": 1024, "max_num_seqs": 32},
          "latency": {"backend": "physics"},
          "workload": {"requests": 300, "arrivals": {"process": "poisson", "rate_per_s": 0.045},
                       "prompt_tokens": {"distribution": "lognormal", "median": 700, "p99": 6000},
                       "output_tokens": {"distribution": "lognormal", "median": 30, "p99": 150}}})",
      settings);
  EXPECT_TRUE(text.ok());
  auto scenario = ParseScenario(text.value());
  EXPECT_TRUE(scenario.ok()) << (scenario.ok() ? "" : scenario.issues()[0].message);
  return scenario.value();
}

std::string TraceTextOf(const Scenario& scenario, std::int64_t rich_every = 1) {
  std::string text;
  const auto cost = ComputeModelCost(scenario);
  StepTraceWriter writer([&text](std::string_view piece) { text += piece; },
                         scenario.canonical_text, cost.value().usable_blocks,
                         scenario.engine.block_size, rich_every);
  SimulationHooks hooks;
  hooks.observer = &writer;
  auto simulation = Simulation::Create(scenario, {}, std::move(hooks));
  EXPECT_TRUE(simulation.ok());
  const RunRecords records = simulation.value().Records();
  writer.Watch(records.requests, records.results);
  while (!simulation.value().Advance(INT64_MAX)) {
  }
  writer.Finish();
  return text;
}

StepTrace Traced(const Scenario& scenario, std::int64_t rich_every = 1) {
  auto trace = ReadStepTrace(TraceTextOf(scenario, rich_every), "trace.json");
  EXPECT_TRUE(trace.ok()) << (trace.ok() ? "" : trace.issues()[0].path + trace.issues()[0].message);
  return std::move(trace.value());
}

// Of PhysicsServer, made once.
const StepTrace& OwnTrace() {
  static const StepTrace trace = Traced(PhysicsServer());
  return trace;
}

// The same server, whose coefficients are not known.
Scenario Unknown(const Scenario& scenario) {
  const auto text = ApplyOverrides(scenario.canonical_text, {R"(latency={"backend": "physics"})"});
  return ParseScenario(text.value()).value();
}

void ExpectNear(const TrainedVector& found, const std::vector<double>& truth, double share) {
  for (std::size_t j = 0; j < truth.size(); ++j) {
    const double scale = truth[j] != 0 ? std::fabs(truth[j]) : 1e5;
    EXPECT_NEAR(found.coefficients[j], truth[j], share * scale) << found.name << ' ' << j + 1;
  }
}

Training TrainOn(const Scenario& truth, StepTrace trace) {
  std::vector<TracedServer> servers;
  servers.push_back({std::move(trace), Unknown(truth)});
  auto training = Train(servers, {});
  EXPECT_TRUE(training.ok()) << (training.ok() ? "" : training.issues()[0].message);
  return std::move(training.value());
}

TEST(Training_, RunsOwnTrace_GivesItsCoefficientsBack) {
  for (const char* async : {"false", "true"}) {
    const Scenario truth = PhysicsServer({std::string("engine.async_scheduling=") + async});
    const StepTrace trace = Traced(truth);
    EXPECT_EQ(trace.journeys.size(), 300u);
    const Training training = TrainOn(truth, trace);
    ExpectNear(training.beta, kTrueBeta, 1e-6);
    ExpectNear(training.alpha, kTrueAlpha, 1e-6);
    EXPECT_LT(training.beta.errors[2].mape, 1e-4);
    ASSERT_TRUE(training.wait.trained);

    const auto text = ApplyOverrides(Unknown(truth).canonical_text,
                                     {"latency=" + LatencyOf(training, Unknown(truth))});
    ASSERT_TRUE(text.ok());
    const auto replay = CompareReplay(trace, ParseScenario(text.value()).value());
    ASSERT_TRUE(replay.ok());
    ASSERT_EQ(replay.value().size(), 3u);
    for (const ReplayDistance& d : replay.value()) {
      EXPECT_LT(d.ks, 0.02) << d.figure;
      EXPECT_TRUE(d.met) << d.figure;
    }
    EXPECT_STREQ(replay.value()[1].figure, "itl");
    // What nothing was fitted to is far away.
    const auto before = CompareReplay(trace, Unknown(truth));
    EXPECT_GT(before.value()[0].ks, 0.2);
  }
}

TEST(Training_, Noise_IntervalsHoldTheTruthAsOftenAsTheyClaim) {
  const char* cases = std::getenv("SERVECAST_NOISE_SEEDS");
  const int seeds = cases == nullptr ? 12 : std::atoi(cases);
  const Scenario truth = PhysicsServer();
  const StepTrace& clean = OwnTrace();
  std::vector<int> held(kTrueBeta.size(), 0);
  std::vector<bool> told(kTrueBeta.size(), false);
  for (int seed = 0; seed < seeds; ++seed) {
    StepTrace noisy = clean;
    std::int64_t draw = 0;
    for (TracedStep& step : noisy.steps) {
      step.duration_us *= 1 + 0.02 * NormalQuantile(Uniform(seed, Stream::kArrival, draw++));
    }
    const Training training = TrainOn(truth, std::move(noisy));
    for (std::size_t j = 0; j < kTrueBeta.size(); ++j) {
      told[j] = told[j] || training.beta.coefficients[j] != 0;
      held[j] +=
          training.beta.low[j] <= kTrueBeta[j] && kTrueBeta[j] <= training.beta.high[j] ? 1 : 0;
    }
  }
  int all = 0, of = 0;
  for (std::size_t j = 0; j < kTrueBeta.size(); ++j) {
    if (!told[j]) continue;
    all += held[j];
    of += seeds;
    // Half of them at least, were the claim of 95 % true: with 12 seeds 1 in 2 million is below.
    EXPECT_GE(held[j], seeds / 2) << "beta " << j + 1;
    if (cases != nullptr) std::printf("beta %zu held %d of %d\n", j + 1, held[j], seeds);
  }
  EXPECT_GE(all, of * 88 / 100);
}

TEST(Training_, PreemptionsAndOneGamma_AreFound) {
  std::vector<double> beta = kTrueBeta;
  beta[kBetaPreemption] = 5e6;
  const Scenario truth =
      PhysicsServer({"latency.beta_coefficients=" + ListText(beta), "latency.preemption_gamma=0.1",
                     "engine.num_gpu_blocks_override=1100", "workload.requests=150"});
  const Training training = TrainOn(truth, Traced(truth));
  EXPECT_EQ(training.gamma, 0.1);
  EXPECT_NEAR(training.beta.coefficients[kBetaPreemption], 5e6, 5);
}

TEST(Training_, ChunkedPrefillWithoutSnapshots_IsRefused) {
  const Scenario truth = PhysicsServer();
  StepTrace trace = OwnTrace();
  for (TracedStep& step : trace.steps) step.to = step.from;
  std::vector<TracedServer> servers;
  servers.push_back({trace, Unknown(truth)});
  const auto training = Train(servers, {});
  ASSERT_FALSE(training.ok());
  EXPECT_NE(training.issues()[0].message.find("--step-tracing-rich-subsample-rate"),
            std::string::npos);
}

TEST(Training_, WholePromptsWithoutSnapshots_AreEstimated) {
  const Scenario truth =
      PhysicsServer({"engine.enable_chunked_prefill=false", "engine.max_num_batched_tokens=16384",
                     "engine.max_model_len=16384", "engine.enable_prefix_caching=false",
                     "workload.requests=150"});
  StepTrace trace = Traced(truth);
  for (TracedStep& step : trace.steps) step.to = step.from;
  const Training training = TrainOn(truth, std::move(trace));
  EXPECT_LT(training.beta.errors[2].mape, 5);
  EXPECT_GT(training.beta.errors[0].mape, 10);
}

TEST(Training_, SeveralConfigurations_EachIsLeftOutOnce) {
  const Scenario one = PhysicsServer();
  const Scenario other =
      PhysicsServer({R"(hardware={"preset": "a100-80gb"})", "workload.arrivals.rate_per_s=0.015",
                     "workload.requests=100"});
  std::vector<TracedServer> servers;
  servers.push_back({OwnTrace(), Unknown(one)});
  servers.push_back({Traced(other), Unknown(other)});
  servers[1].trace.name = "a100.json";
  const auto training = Train(servers, {});
  ASSERT_TRUE(training.ok());
  double worst = -1;
  for (const TrainingError& e : training.value().beta.errors) {
    if (e.of.find("left out: ") == 0) worst = std::max(worst, e.mape);
  }
  EXPECT_GE(worst, 0);
  EXPECT_LT(worst, 1);
}

TEST(Training_, Blackbox_StepsAreLinearInTokens) {
  const Scenario truth = PhysicsServer(
      {R"(latency={"backend": "blackbox", "alpha": [15000, 20, 0], "beta": [5000000, 30000, 60000]})",
       "workload.requests=60"});
  std::vector<TracedServer> servers;
  servers.push_back({Traced(truth), Unknown(truth)});
  TrainingOptions options;
  options.blackbox = true;
  const auto training = Train(servers, options);
  ASSERT_TRUE(training.ok());
  ExpectNear(training.value().beta, {5e6, 3e4, 6e4}, 1e-6);
  ExpectNear(training.value().alpha, {1.5e4, 20}, 1e-6);
}

TEST(Training_, Pack_IsAPackAndACoefficientFile) {
  const Scenario truth = PhysicsServer();
  std::vector<TracedServer> servers;
  servers.push_back({OwnTrace(), Unknown(truth)});
  const auto training = Train(servers, {});
  ASSERT_TRUE(training.ok());
  const std::string text = TrainingPackJson(training.value(), servers, {}, {}, "2026-11-25");
  const auto pack = ReadPack(text);
  ASSERT_TRUE(pack.ok()) << pack.issues()[0].path << pack.issues()[0].message;
  const auto applied = ApplyOverrides(Unknown(truth).canonical_text, pack.value().overrides);
  ASSERT_TRUE(applied.ok());
  const Scenario used = ParseScenario(applied.value()).value();
  EXPECT_NEAR(used.latency.beta_coefficients[0], kTrueBeta[0], 1e3);
  const auto carrying = CalibratedDocument(Unknown(truth).canonical_text, pack.value());
  ASSERT_TRUE(carrying.ok());
  EXPECT_TRUE(CalibrationWarnings(ParseScenario(carrying.value()).value()).empty());
  const auto changed_since = ApplyOverrides(carrying.value(), {"latency.preemption_gamma=0.7"});
  const auto warned = CalibrationWarnings(ParseScenario(changed_since.value()).value());
  ASSERT_EQ(warned.size(), 1U);
  EXPECT_NE(warned[0].find("latency was changed since the calibration"), std::string::npos);

  Json changed = Json::parse(text);
  changed["latency"]["backend"] = "analytic";
  changed["latency"]["extra"] = 1;
  const auto refused = ReadPack(changed.dump());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.issues()[0].path, "/latency/extra");
}

// ---- Files
// ---------------------------------------------------------------------------------------

std::string FirstIssue(const std::string& text) {
  const auto trace = ReadStepTrace(text, "x");
  return trace.ok() ? "" : trace.issues()[0].path + ": " + trace.issues()[0].message;
}

std::string Line(const std::string& events) {
  return R"({"resourceSpans":[{"scopeSpans":[{"spans":[{"events":[)" + events + "]}]}]}]}\n";
}

TEST(StepTrace_, BadFiles_SayWhere) {
  EXPECT_NE(FirstIssue("").find("no event step.BATCH_SUMMARY"), std::string::npos);
  EXPECT_NE(FirstIssue("{\"a\":1}\n").find("x, line 1: found no resourceSpans"), std::string::npos);
  EXPECT_NE(FirstIssue("{\"resourceSpans\":[]}\nnonsense\n").find("x, line 2: found no JSON"),
            std::string::npos);
  EXPECT_NE(FirstIssue("{\"resourceSpans\":7}").find("found 7, allowed a list"), std::string::npos);
  const std::string bad = FirstIssue(Line(
      R"({"name":"step.BATCH_SUMMARY","attributes":[{"key":"step.id","value":{"intValue":"-4"}}]})"));
  EXPECT_NE(bad.find("/events/0, step.id: found \"-4\", allowed a whole number"), std::string::npos)
      << bad;
  std::string many;
  for (int i = 0; i < 3000; ++i) many += Line(R"({"name":"BATCH_SUMMARY"})");
  EXPECT_LE(ReadStepTrace(many, "x").issues().size(), 101u);
  // Deep, and cut in the middle.
  EXPECT_NE(FirstIssue(std::string(200'000, '[')), "");
  const std::string whole = TraceTextOf(PhysicsServer({"workload.requests=3"}));
  EXPECT_EQ(FirstIssue(whole), "");
  EXPECT_NE(FirstIssue(whole.substr(0, whole.size() - 40)), "");
  EXPECT_NE(FirstIssue(whole + whole).find("twice"), std::string::npos);
}

TEST(StepTrace_, OneDocumentOverManyLines_IsRead) {
  const std::string whole = TraceTextOf(PhysicsServer({"workload.requests=2"}));
  Json all = {{"resourceSpans", Json::array()}};
  for (std::size_t at = 0; at < whole.size();) {
    const std::size_t end = whole.find('\n', at);
    const Json line = Json::parse(whole.substr(at, end - at));
    for (const Json& span : line["resourceSpans"]) all["resourceSpans"].push_back(span);
    at = end + 1;
  }
  const auto read = ReadStepTrace(all.dump(1), "x");
  ASSERT_TRUE(read.ok()) << read.issues()[0].message;
  EXPECT_EQ(read.value().journeys.size(), 2u);
}

TEST(Ks, Distances_OfKnownSets) {
  std::vector<double> a = {1, 2, 3, 4}, b = {3, 4, 5, 6}, same = {4, 3, 2, 1}, ties = {2, 2, 2, 2};
  EXPECT_DOUBLE_EQ(KsDistance(a, b), 0.5);
  EXPECT_DOUBLE_EQ(KsDistance(a, same), 0);
  EXPECT_DOUBLE_EQ(KsDistance(a, ties), 0.5);
}

}  // namespace
}  // namespace servecast::training_test
