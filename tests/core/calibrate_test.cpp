// Calibrations: known parameters come back from what a model with them says, intervals hold them as
// often as they claim, what cannot be told stays and is named, and bad files are refused whole.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/math.h"
#include "base/random.h"
#include "base/text.h"
#include "calibrate/calibrate.h"
#include "calibrate/least_squares.h"
#include "calibrate/pack.h"
#include "calibrate/predict.h"
#include "calibrate/runs.h"
#include "gtest/gtest.h"

namespace servecast::calibrate_test {
namespace {

Scenario Server(const std::vector<std::string>& overrides = {}) {
  const auto text = ApplyOverrides(
      R"({"schema": 1, "model": {"preset": "llama-3.1-8b"}, "hardware": {"preset": "h100-sxm"},
          "engine": {"preset": "vllm-0.20"}, "latency": {"backend": "analytic"},
          "workload": {"requests": 1}})",
      overrides);
  EXPECT_TRUE(text.ok());
  auto scenario = ParseScenario(text.value());
  EXPECT_TRUE(scenario.ok());
  return scenario.value();
}

CalibrationPoint Prompt(std::int64_t tokens) {
  CalibrationPoint point;
  point.prompt = tokens;
  point.figures = {{Figure::kTtft, 0}};
  return point;
}

CalibrationPoint Step(std::int64_t batch, std::int64_t context) {
  CalibrationPoint point;
  point.form = PointForm::kDecodeStep;
  point.batch = batch;
  point.context = context;
  point.figures = {{Figure::kTpot, 0}};
  return point;
}

CalibrationPoint RunAt(double rate, std::int64_t requests) {
  CalibrationPoint point;
  point.form = PointForm::kRun;
  RunLoad run;
  RunLengths prompt, output;
  prompt.mean = 600;
  prompt.sigma = 0.7;
  output.mean = 60;
  run.draws = DrawRuns(requests, rate, prompt, output, 1);
  run.rate_per_s = rate;
  point.run = std::make_shared<const RunLoad>(std::move(run));
  point.figures = {{Figure::kTtft, 0}, {Figure::kTpot, 0}, {Figure::kE2e, 0}};
  return point;
}

// What `truth` says of the points, each times 1 + noise * a standard normal number.
Measurements MeasuredOn(const Scenario& truth, std::vector<CalibrationPoint> points, double noise,
                        std::int64_t seed) {
  Measurements measured;
  const Scenario server = ServerOf(truth);
  std::int64_t draw = 0;
  for (CalibrationPoint& point : points) {
    const auto values = PredictPoint(server, point);
    EXPECT_TRUE(values.ok());
    for (std::size_t i = 0; i < point.figures.size(); ++i) {
      const double z = NormalQuantile(Uniform(seed, Stream::kArrival, draw++));
      point.figures[i].ms = values.value()[i] * (1 + noise * z);
    }
  }
  measured.points = std::move(points);
  return measured;
}

std::vector<CalibrationPoint> AllKinds() {
  std::vector<CalibrationPoint> points;
  for (const std::int64_t tokens : {128, 512, 2048, 8192, 32768, 98304}) {
    points.push_back(Prompt(tokens));
  }
  for (const std::int64_t batch : {1, 8, 32, 64, 128}) points.push_back(Step(batch, 256));
  for (const std::int64_t context : {1000, 8000, 32000, 96000}) points.push_back(Step(1, context));
  points.push_back(RunAt(4, 120));
  points.push_back(RunAt(20, 400));
  return points;
}

const std::map<std::string, double> kTruth = {
    {"hardware.compute_efficiency", 0.63},  {"hardware.attention_efficiency", 0.5},
    {"hardware.bandwidth_efficiency", 0.8}, {"hardware.kv_bandwidth_efficiency", 0.7},
    {"engine.sequence_overhead_us", 20},    {"engine.request_overhead_ms", 9}};

Scenario Truth(const std::string& without = "") {
  std::vector<std::string> settings;
  for (const auto& [path, value] : kTruth) {
    if (path != without) settings.push_back(path + "=" + NumberText(value));
  }
  return Server(settings);
}

std::string Joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

TEST(LeastSquares_, Rosenbrock_EndsInItsValley) {
  LeastSquares problem;
  problem.residuals = [](const std::vector<double>& x, std::vector<double>& r) {
    r = {10 * (x[1] - x[0] * x[0]), 1 - x[0]};
    return true;
  };
  problem.start = {-1.2, 1};
  problem.low = {-5, -5};
  problem.high = {5, 5};
  problem.step = {1e-6, 1e-6};
  const auto fit = FitLeastSquares(problem);
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->at[0], 1, 1e-6);
  EXPECT_NEAR(fit->at[1], 1, 1e-6);
  problem.high = {0.5, 5};
  const auto bounded = FitLeastSquares(problem);
  ASSERT_TRUE(bounded);
  EXPECT_DOUBLE_EQ(bounded->at[0], 0.5);
  EXPECT_TRUE(bounded->at_bound[0]);
  EXPECT_NEAR(bounded->at[1], 0.25, 1e-6);
}

TEST(LeastSquares_, Line_HasTheCovarianceOfTheTextbook) {
  Jacobian j{3, 2, {1, 0, 1, 1, 1, 2}};  // y = a + b x at x = 0, 1, 2
  const auto covariance = CovarianceOf(j, {true, true});
  EXPECT_NEAR(covariance[0], 5.0 / 6, 1e-9);
  EXPECT_NEAR(covariance[1], -0.5, 1e-9);
  EXPECT_NEAR(covariance[3], 0.5, 1e-9);
}

TEST(Calibrate_, KnownServerWithoutNoise_ComesBackWithinOnePerCent) {
  // Whom a stall hits changes with the constants, as noise does.
  Scenario server = Server(), truth = Truth();
  server.engine.host_stalls_per_s = truth.engine.host_stalls_per_s = 0;
  const auto made = Calibrate(server, MeasuredOn(truth, AllKinds(), 0, 1));
  ASSERT_TRUE(made.ok());
  std::map<std::string, double> fitted;
  for (const FittedParameter& p : made.value().fitted) fitted[p.parameter->path] = p.value;
  for (const auto& [path, value] : kTruth) {
    ASSERT_TRUE(fitted.contains(path)) << path << "\n" << Joined(made.value().warnings);
    EXPECT_NEAR(fitted[path], value, 0.01 * value) << path;
  }
  for (const CalibrationError& error : made.value().errors) {
    EXPECT_LT(error.after.most, 0.3) << WordOf(error.form) << " " << WordOf(error.figure);
    EXPECT_GT(error.before.most, 3);
  }
}

TEST(Calibrate_, KnownServerWithNoise_IntervalsHoldItAsOftenAsTheyClaim) {
  std::vector<CalibrationPoint> points;
  for (const std::int64_t tokens : {64, 128, 1024, 2048}) points.push_back(Prompt(tokens));
  for (const std::int64_t batch : {1, 4, 16, 32, 64, 128}) {
    for (const std::int64_t context : {128, 512, 900}) points.push_back(Step(batch, context));
  }
  for (const std::int64_t context : {8000, 32000, 64000, 96000}) points.push_back(Step(1, context));
  const Scenario truth_server = Truth("hardware.attention_efficiency");
  constexpr std::int64_t kSeedsOfNoise = 60;
  std::map<std::string, std::int64_t> held, told;
  for (std::int64_t seed = 1; seed <= kSeedsOfNoise; ++seed) {
    const auto made = Calibrate(Server(), MeasuredOn(truth_server, points, 0.01, seed));
    ASSERT_TRUE(made.ok());
    for (const FittedParameter& p : made.value().fitted) {
      const auto truth = kTruth.find(p.parameter->path);
      if (truth == kTruth.end()) continue;
      ++told[truth->first];
      held[truth->first] += p.low <= truth->second && truth->second <= p.high ? 1 : 0;
    }
  }
  for (const auto& [path, value] : kTruth) {
    if (path == "hardware.attention_efficiency") continue;  // no prompt is long enough
    EXPECT_EQ(told[path], kSeedsOfNoise) << path;
    // 95 %, less four standard deviations of so many draws.
    EXPECT_GE(static_cast<double>(held[path]), 0.84 * static_cast<double>(told[path])) << path;
  }
}

// What clients see of several replicas is fitted through all of them, by the scenario's router.
TEST(Calibrate_, RunsOfSeveralReplicas_AreThoseOfAllOfThem) {
  constexpr double kEach = 6;
  int replicas = 1;
  for (const char* router : {"round_robin", "least_outstanding", "central_queue"}) {
    ++replicas;
    const std::vector<std::string> cluster = {Format("cluster.pools.0.replicas={}", replicas),
                                              std::string("cluster.router.policy=") + router};
    std::vector<std::string> slow = cluster;
    slow.emplace_back("engine.step_overhead_us=3000");
    std::vector<CalibrationPoint> points;
    points.push_back(RunAt(kEach * replicas, 300));
    // Of one server alone, as its own metrics have it.
    CalibrationPoint one = RunAt(kEach, 100);
    RunLoad load = *one.run;
    load.one_server = true;
    one.run = std::make_shared<const RunLoad>(std::move(load));
    points.push_back(one);
    const Measurements measured = MeasuredOn(Server(slow), std::move(points), 0, 1);
    const auto made = Calibrate(Server(cluster), measured);
    ASSERT_TRUE(made.ok()) << router;
    for (const CalibrationError& e : made.value().errors) {
      if (e.figure == Figure::kTtft) continue;  // may hang on what one run cannot tell
      EXPECT_GT(e.before.most, 5) << router << " " << WordOf(e.figure);
      EXPECT_LT(e.before.most, 60) << router << " " << WordOf(e.figure);
      EXPECT_LT(e.after.most, 1.5) << router << " " << WordOf(e.figure);
    }
    for (const SeenRange& range : made.value().seen) {
      if (range.name != std::string_view("rate_per_s")) continue;
      EXPECT_NEAR(range.low, kEach, 1e-9);
      EXPECT_NEAR(range.high, kEach, 1e-9);
    }
    EXPECT_EQ(made.value().replicas, replicas);
  }
}

// Requests at temperature 0 pay no top-p, whatever the model's files ask for.
TEST(PredictPoint_, OfGreedyRequests_HasNoTopP) {
  CalibrationPoint point = RunAt(4, 50);
  const auto tpot = [&point](const char* top_p) {
    const auto values =
        PredictPoint(ServerOf(Server({std::string("model.top_p_by_default=") + top_p})), point);
    EXPECT_TRUE(values.ok());
    return values.value()[1];
  };
  const double sampled = tpot("true"), plain = tpot("false");
  EXPECT_GT(sampled, plain);
  RunLoad load = *point.run;
  load.greedy = true;
  point.run = std::make_shared<const RunLoad>(std::move(load));
  EXPECT_EQ(tpot("true"), plain);
}

// A prediction is what a report of the same run says.
TEST(PredictPoint_, OfARun_IsTheMeansOfItsReport) {
  const Scenario server = ServerOf(Server({"cluster.pools.0.replicas=2"}));
  CalibrationPoint point = RunAt(9, 120);
  const auto means = [&] { return PredictPoint(server, point).value(); };
  const auto report =
      RunRequests(server, point.run->draws[0], std::nullopt, ReportDetail::kRequests);
  ASSERT_TRUE(report.ok());
  EXPECT_NEAR(means()[0], report.value().ttft_ms.mean, 1e-9);
  EXPECT_NEAR(means()[1], report.value().tpot_ms.mean, 1e-9);
  EXPECT_NEAR(means()[2], report.value().e2e_ms.mean, 1e-9);
  RunLoad load = *point.run;
  load.from = 40, load.to = 90;
  point.run = std::make_shared<const RunLoad>(std::move(load));
  double sum = 0;
  for (std::size_t i = 40; i < 90; ++i) sum += report.value().ColumnOf("e2e_ms")[i];
  EXPECT_NEAR(means()[2], sum / 50, 1e-9);
}

TEST(Calibrate_, OneKindOfMeasurement_LeavesWhatItCannotTell) {
  std::vector<CalibrationPoint> points;
  for (const std::int64_t context : {1000, 8000, 32000}) points.push_back(Step(1, context));
  const auto made = Calibrate(Server(), MeasuredOn(Truth(), points, 0, 1));
  ASSERT_TRUE(made.ok());
  for (const FittedParameter& p : made.value().fitted) {
    EXPECT_NE(std::string(p.parameter->path), "hardware.compute_efficiency");
    EXPECT_NE(std::string(p.parameter->path), "engine.request_overhead_ms");
  }
  const std::string warnings = Joined(made.value().warnings);
  EXPECT_NE(warnings.find("hardware.compute_efficiency: it stays at 0.75"), std::string::npos);
  EXPECT_NE(warnings.find("cannot tell engine.step_overhead_us from "), std::string::npos)
      << warnings;
}

TEST(Calibrate_, ServerThatIsNone_IsRefused) {
  Measurements none;
  EXPECT_FALSE(Calibrate(Server(), none).ok());
  Measurements held = MeasuredOn(Server(), {Prompt(128)}, 0, 1);
  held.points[0].held_out = true;
  EXPECT_FALSE(Calibrate(Server(), held).ok());
  const auto roofline = Calibrate(Server({"latency={\"backend\": \"roofline\"}"}),
                                  MeasuredOn(Server(), {Prompt(128)}, 0, 1));
  ASSERT_FALSE(roofline.ok());
  EXPECT_EQ(roofline.issues()[0].path, "/latency/backend");
  Measurements long_prompt = MeasuredOn(Server(), {Prompt(128)}, 0, 1);
  long_prompt.points[0].prompt = 9'000'000;
  long_prompt.points[0].label = "a.csv, row 1";
  const auto too_long = Calibrate(Server(), long_prompt);
  ASSERT_FALSE(too_long.ok());
  EXPECT_EQ(too_long.issues()[0].path, "a.csv, row 1");
}

TEST(Pack_, WrittenAndRead_IsTheSameServer) {
  const Measurements measured = MeasuredOn(Truth(), AllKinds(), 0, 1);
  const auto made = Calibrate(Server(), measured);
  ASSERT_TRUE(made.ok());
  const std::string json = PackJson(made.value(), OriginOf(Server(), measured, "2026-11-25"));
  const auto pack = ReadPack(json);
  ASSERT_TRUE(pack.ok());
  const Scenario server = Server(pack.value().overrides);
  EXPECT_EQ(server.latency.backend, "analytic");
  for (const auto& [path, value] : kTruth) {
    EXPECT_NEAR(FindCalibrationParameter(path)->read(server), value, 0.01 * value) << path;
  }
}

// Coefficients of a linear model, without a trace of steps.
TEST(Calibrate_, KnownBlackbox_ComesBackThroughTheSimulator) {
  const Scenario truth = Server(
      {R"(latency={"backend": "blackbox", "alpha": [9000, 0, 120], "beta": [6500, 42, 35]})"});
  std::vector<CalibrationPoint> points = {RunAt(2, 150), RunAt(30, 400)};
  for (const std::int64_t batch : {1, 32, 128}) points.push_back(Step(batch, 512));
  for (const std::int64_t tokens : {128, 1024, 4096}) points.push_back(Prompt(tokens));
  const Measurements measured = MeasuredOn(truth, points, 0, 1);
  const auto start = WithBlackbox(Server());
  ASSERT_TRUE(start.ok());
  const auto made = Calibrate(start.value(), measured);
  ASSERT_TRUE(made.ok());
  const LatencySpec& fitted = made.value().latency;
  EXPECT_EQ(fitted.backend, "blackbox");
  EXPECT_NEAR(fitted.beta[0], 6500, 65) << Joined(made.value().warnings);
  EXPECT_NEAR(fitted.beta[1], 42, 0.42);
  EXPECT_NEAR(fitted.beta[2], 35, 0.35);
  for (const CalibrationError& error : made.value().errors) EXPECT_LT(error.after.most, 0.5);

  const std::string json = PackJson(made.value(), OriginOf(Server(), measured, "2026-11-26"));
  const auto pack = ReadPack(json);
  ASSERT_TRUE(pack.ok()) << json;
  EXPECT_EQ(pack.value().spec.backend, "blackbox");
  EXPECT_EQ(pack.value().spec.errors.size(), made.value().errors.size());
  const Scenario server = Server(pack.value().overrides);
  EXPECT_EQ(server.latency.backend, "blackbox");
  EXPECT_NEAR(server.latency.beta[1], fitted.beta[1], 1e-4);
}

// What analytic says of a step of its own kind is what its blackbox begins with.
TEST(WithBlackbox_, FromAnalytic_IsLikeIt) {
  const auto start = WithBlackbox(Server());
  ASSERT_TRUE(start.ok());
  for (const auto& point : {Step(1, 1024), Step(64, 1024), Prompt(1024)}) {
    const auto analytic = PredictPoint(ServerOf(Server()), point);
    const auto linear = PredictPoint(ServerOf(start.value()), point);
    ASSERT_TRUE(analytic.ok() && linear.ok());
    EXPECT_NEAR(linear.value()[0], analytic.value()[0], 0.01 * analytic.value()[0]);
  }
  const auto again = WithBlackbox(start.value());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again.value().latency.beta, start.value().latency.beta);
}

// Requests of a server that the model has exactly: their distributions are the same once it is
// fitted, but for what is not fitted to the last digit.
TEST(Calibrate_, RequestsOneByOne_AreReplayedAndCompared) {
  const Scenario truth = ServerOf(Truth());
  CalibrationPoint point = RunAt(12, 300);
  RunLoad run = *point.run;
  run.to = run.draws[0].rows.size();
  const auto report = RunRequests(truth, run.draws[0], std::nullopt, ReportDetail::kRequests);
  ASSERT_TRUE(report.ok());
  run.seen.ttft = report.value().ColumnOf("ttft_ms");
  run.seen.e2e = report.value().ColumnOf("e2e_ms");
  point.run = std::make_shared<const RunLoad>(run);
  std::vector<CalibrationPoint> points = AllKinds();
  points.push_back(point);
  const auto made = Calibrate(Server(), MeasuredOn(Truth(), points, 0, 1));
  ASSERT_TRUE(made.ok());
  ASSERT_EQ(made.value().replays.size(), 1U);
  const RunReplay& replay = made.value().replays[0];
  ASSERT_EQ(replay.after.size(), 2U);  // no gaps between tokens are known
  for (std::size_t i = 0; i < replay.after.size(); ++i) {
    EXPECT_LT(replay.after[i].ks, 0.05) << replay.after[i].figure;
    EXPECT_GT(replay.before[i].ks, 0.1);
    EXPECT_TRUE(replay.after[i].met);
    EXPECT_EQ(replay.after[i].measured, 300);
  }
  EXPECT_EQ(Joined(made.value().warnings).find("replayed"), std::string::npos);

  // Single requests that are not what the means say: no constant makes both.
  for (double& ttft : run.seen.ttft) ttft *= 0.2;
  points.back().run = std::make_shared<const RunLoad>(run);
  const auto off = Calibrate(Server(), MeasuredOn(Truth(), points, 0, 1));
  ASSERT_TRUE(off.ok());
  EXPECT_NE(Joined(off.value().warnings).find("replayed one by one"), std::string::npos);
  EXPECT_NE(Joined(off.value().warnings).find("ttft"), std::string::npos);

  // A handful has no distribution.
  run.seen.ttft.resize(kLeastReplayed - 1);
  run.seen.e2e.resize(kLeastReplayed - 1);
  points.back().run = std::make_shared<const RunLoad>(run);
  const auto few = Calibrate(Server(), MeasuredOn(Truth(), points, 0, 1));
  ASSERT_TRUE(few.ok());
  EXPECT_TRUE(few.value().replays.empty());
  EXPECT_EQ(Joined(few.value().warnings).find("replayed"), std::string::npos);
}

// Gaps between tokens of a run, from the simulator's own steps: none is lost, and each so-manieth
// is one of all.
TEST(CompareRun_, OwnGaps_HaveNoDistance) {
  const Scenario server = ServerOf(Server());
  RunLoad run = *RunAt(12, 200).run;
  run.to = 200;
  const auto report = RunRequests(server, run.draws[0], std::nullopt, ReportDetail::kRequests);
  ASSERT_TRUE(report.ok());
  run.seen.ttft = report.value().ColumnOf("ttft_ms");
  for (const double tpot : report.value().ColumnOf("tpot_ms")) run.seen.itl.push_back(tpot);
  const auto all = CompareRun(server, run);
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all.value().size(), 2U);
  EXPECT_EQ(all.value()[0].ks, 0);
  std::int64_t gaps = 0;
  for (const TraceRow& row : run.draws[0].rows) gaps += row.output_tokens - 1;
  EXPECT_EQ(all.value()[1].simulated, gaps);
  run.seen.every = 7;
  const auto some = CompareRun(server, run);
  ASSERT_TRUE(some.ok());
  EXPECT_EQ(some.value()[1].simulated, (gaps + 6) / 7);
}

TEST(Pack_, BadOnes_AreRefusedWithAllTheirIssues) {
  EXPECT_FALSE(ReadPack("").ok());
  EXPECT_FALSE(ReadPack("[]").ok());
  EXPECT_FALSE(ReadPack("{}").ok());
  const std::string head = R"("kind": "servecast-calibration", "schema": 1, )";
  const auto version = ReadPack("{" + head + R"("spec_version": "2.0"})");
  ASSERT_FALSE(version.ok());
  EXPECT_EQ(version.issues()[0].path, "/spec_version");
  EXPECT_EQ(version.issues()[0].message, "found \"2.0\", allowed \"1.0\"");
  const auto wrong = ReadPack("{" + head + R"("spec_version": "1.0", "backend": "analytic",
    "parameters": {"hardware.compute_eficiency": {"value": 1, "low": 1, "high": 1, "unit": "1"},
                   "hardware.bandwidth_efficiency": {"value": 7, "low": 0.5, "high": 1, "unit": "s"}},
    "errors": [{"of": "week", "figure": "tpot", "points": 1, "after": {"median": 1, "max": 2}}],
    "seen": {"batch": [3, 1]}, "provenance": {"model": "m", "gpu": "g", "engine": 3,
    "tensor_parallel": 1}})");
  ASSERT_FALSE(wrong.ok());
  std::vector<std::string> paths;
  for (const Issue& issue : wrong.issues()) paths.push_back(issue.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"/parameters/hardware.bandwidth_efficiency/value",
                                             "/parameters/hardware.bandwidth_efficiency/unit",
                                             "/parameters/hardware.compute_eficiency",
                                             "/errors/0/of", "/seen/batch", "/provenance/engine"}));
}

}  // namespace
}  // namespace servecast::calibrate_test
