#include "servecast/experiment.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/math.h"
#include "base/random.h"
#include "base/text.h"
#include "core/documents.h"
#include "core/statistics.h"
#include "experiment/statistics.h"
#include "gtest/gtest.h"
#include "metrics/records.h"
#include "testing/words.h"

namespace servecast::testing::experiment_test {
namespace {

Experiment ExperimentOn(const std::string& document, ExperimentOptions options = {},
                        Trace trace = {}) {
  return Good(Experiment::Create(Parsed(document), std::move(trace), options));
}

Report Finished(Experiment experiment, std::int64_t slice = INT64_MAX) {
  while (!experiment.Advance(slice)) {
  }
  return experiment.Snapshot(ReportDetail::kSummary);
}

std::string Json(const Report& report) { return ReportJson(report, ReportParts::kWithSeries); }

TEST(StudentT, KnownQuantiles_AreReached) {  // Abramowitz and Stegun, table 26.10
  EXPECT_NEAR(StudentT(7, 0.975), 2.365, 0.002);
  EXPECT_NEAR(StudentT(15, 0.975), 2.131, 0.001);
  EXPECT_NEAR(StudentT(15, 0.995), 2.947, 0.001);
  EXPECT_NEAR(StudentT(30, 0.975), 2.042, 0.001);
  EXPECT_NEAR(StudentT(120, 0.975), 1.980, 0.001);
}

TEST(WarmUp, RampBeforeALevel_IsLeftOut) {
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) {
    const double noise = Uniform(1, Stream::kArrival, i) - 0.5;
    values.push_back(i < 200 ? i / 10.0 + noise : 20 + noise);
  }
  EXPECT_NEAR(static_cast<double>(WarmUpOf(values)), 200, 20);
  EXPECT_EQ(WarmUpOf(std::vector<double>(100, 3.0)), 0u);
}

TEST(PercentileInterval, IndependentSamples_CoversAtItsConfidence) {
  constexpr int kTrials = 1000;
  const double p90 = Log(10.0);  // of the exponential distribution
  int covers = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    Groups groups(16);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (int i = 0; i < 100; ++i) {
        groups[g].push_back(
            -Log(Uniform(trial, Stream::kArrival, static_cast<std::int64_t>(g), i)));
      }
    }
    const Interval interval = PercentileIntervals(groups, 90, {0.95})[0];
    covers += interval.low <= p90 && p90 <= interval.high ? 1 : 0;
  }
  EXPECT_GE(covers, 0.93 * kTrials);
  EXPECT_LE(covers, 0.98 * kTrials);
}

TEST(Experiment, FirstRun_IsTheSimulation) {
  const std::string document = Changed({kTargets});
  const Report one = RunToEnd(document);
  const Report many = Finished(ExperimentOn(document));
  EXPECT_EQ(many.fingerprint, one.fingerprint);
  EXPECT_EQ(many.completed, one.completed);
  EXPECT_EQ(many.simulated_s, one.simulated_s);
  EXPECT_EQ(many.itl_ms.p99, one.itl_ms.p99);
  EXPECT_GT(many.ttft_ms.n, one.ttft_ms.n);
  ASSERT_TRUE(many.certainty);
  EXPECT_EQ(many.certainty->runs, 10);
}

TEST(Experiment, SlicesOfAnyLength_GiveTheSameReport) {
  const std::string document = Changed({kTargets});
  EXPECT_EQ(Json(Finished(ExperimentOn(document))), Json(Finished(ExperimentOn(document), 97)));
}

TEST(Experiment, Unfinished_IsPartialAndProgresses) {
  Experiment experiment = ExperimentOn(Changed({kTargets}));
  EXPECT_EQ(experiment.Snapshot(ReportDetail::kSummary).verdict.state, VerdictState::kPartial);
  double before = 0;
  bool done = false;
  while (!done) {
    done = experiment.Advance(1000);
    const double now = experiment.Progress();
    EXPECT_GE(now, before);
    EXPECT_EQ(now == 1, done);
    before = now;
  }
  const Report report = experiment.Snapshot(ReportDetail::kSummary);
  EXPECT_EQ(report.verdict.state, VerdictState::kMeets);
  EXPECT_EQ(report.verdict.sentence.find("Llama-3.1-8B on 1 x H100 meets both targets at 10 req/s"),
            0u)
      << report.verdict.sentence;
}

TEST(Experiment, LimitInTheInterval_IsTooCloseToCall) {
  const Report known = Finished(ExperimentOn(Changed({kTargets})));
  const std::string at_it = R"(slo=[{"metric":"ttft","percentile":99,"limit_ms":)" +
                            std::to_string(*known.slo[0].value_ms) + "}]";
  const Report report = Finished(ExperimentOn(Changed({at_it}), {.most_work = 200'000}));
  EXPECT_EQ(report.verdict.state, VerdictState::kNear);
  EXPECT_NE(report.verdict.sentence.find("too close to call"), std::string::npos);
  EXPECT_FALSE(report.certainty->settled);
}

TEST(Experiment, ValueBelowALimitInSeconds_IsSaidInSeconds) {
  const Report report = Finished(
      ExperimentOn(Changed({R"(slo=[{"metric":"e2e","percentile":99,"limit_ms":1200}])"})));
  EXPECT_NE(report.verdict.sentence.find(" meets its target at 10 req/s; it is E2E p99, 0."),
            std::string::npos)
      << report.verdict.sentence;
  EXPECT_NE(report.verdict.sentence.find(" of 1.2 s (0."), std::string::npos);
}

TEST(Experiment, ValueFarBeyondItsLimit_IsSaidInItsOwnUnit) {
  const Report report =
      Finished(ExperimentOn(Changed({R"(slo=[{"metric":"e2e","percentile":99,"limit_ms":20}])",
                                     R"(workload.output_tokens={"value":400})"})));
  EXPECT_NE(report.verdict.sentence.find(" s of 20 ms ("), std::string::npos)
      << report.verdict.sentence;
}

// The work that an experiment may take bounds it, whatever its limits are.
TEST(Experiment, NoWork_IsCutIntoBatches) {
  const std::string document = Changed({kTargets, "workload.requests=2000"});
  const Report report = Finished(ExperimentOn(document, {.most_work = 1}));
  EXPECT_EQ(report.certainty->method, Certainty::Method::kBatchMeans);
  EXPECT_EQ(report.certainty->runs, 1);
  ASSERT_TRUE(report.slo[0].low_ms);
  EXPECT_LT(*report.slo[0].low_ms, *report.slo[0].high_ms);
}

TEST(Experiment, TraceIsOnePath_IsCutIntoBatches) {
  Trace trace;
  for (int i = 0; i < 400; ++i) trace.rows.push_back({i * TimeNs{50'000'000}, 100 + i % 50, 20});
  trace.has_arrivals = true;
  const Report report =
      Finished(ExperimentOn(Changed({kTargets, R"(workload.arrivals={"process":"trace"})",
                                     R"(workload.prompt_tokens={"distribution":"trace"})",
                                     R"(workload.output_tokens={"distribution":"trace"})"}),
                            {}, std::move(trace)));
  EXPECT_EQ(report.certainty->method, Certainty::Method::kBatchMeans);
  EXPECT_EQ(report.certainty->batches, 16);
  EXPECT_EQ(report.verdict.state, VerdictState::kMeets);
}

TEST(Experiment, Overload_IsARateThatTheRunsLengthDoesNotChange) {
  std::vector<Overload> found;
  for (const char* requests : {"workload.requests=500", "workload.requests=4000"}) {
    const Report report = Finished(ExperimentOn(
        Changed({kTargets, requests, "engine.max_num_seqs=4", "workload.arrivals.rate_per_s=60"})));
    EXPECT_EQ(report.verdict.state, VerdictState::kOverloaded);
    ASSERT_TRUE(report.overload);
    found.push_back(*report.overload);
    EXPECT_TRUE(report.slo[0].unbounded);
    EXPECT_FALSE(report.slo[0].value_ms);
    EXPECT_FALSE(report.slo[1].unbounded);
    EXPECT_EQ(report.verdict.sentence.find("Overloaded: serves "), 0u) << report.verdict.sentence;
  }
  EXPECT_NEAR(found[0].served_per_s, found[1].served_per_s, 0.02 * found[1].served_per_s);
  EXPECT_LT(found[1].high, 60);
}

// Half of the clients left before their answers were complete, and an idle server was overloaded.
TEST(Experiment, ClientsThatGiveUp_AreNoOverload) {
  const Report report = Finished(ExperimentOn(
      Changed({kTargets, "workload.arrivals.rate_per_s=2", "workload.output_tokens.value=100",
               R"(workload.classes=[{"name":"leaves","timeout_s":0.2},{"name":"stays"}])"})));
  EXPECT_GT(report.timed_out, report.arrived / 3);
  EXPECT_FALSE(report.overload);
  EXPECT_EQ(report.verdict.state, VerdictState::kMisses) << report.verdict.sentence;
}

// Nobody comes into a system at work: 512 runs told nothing.
TEST(Experiment, ClosedLoopWithAClientForEachRequest_IsOneRun) {
  const Report report = Finished(ExperimentOn(
      Changed({kTargets, R"(workload.arrivals={"process":"closed_loop","concurrency":5000})"})));
  EXPECT_EQ(report.certainty->runs, 1);
}

// Nothing was complete before the last request came: "serves 0 of 2 req/s", blamed on the budget.
TEST(Experiment, OverloadThatServesNothingWhileLoadIsOffered_HasItsRateAndItsLimit) {
  std::vector<double> served;
  for (const char* rate : {"workload.arrivals.rate_per_s=2", "workload.arrivals.rate_per_s=8"}) {
    const Report report = Finished(
        ExperimentOn(Changed({"hardware.preset=l40s", "cluster.pools.0.tensor_parallel=8", rate},
                             std::string(*ScenarioPreset("llama-3.1-70b-h100x4-rag")))));
    ASSERT_TRUE(report.overload);
    served.push_back(report.overload->served_per_s);
    EXPECT_EQ(report.binding.name, "link");
  }
  EXPECT_NEAR(served[0], served[1], 0.02 * served[1]);
  EXPECT_GT(served[0], 0.05);
}

// 40 requests/s in were 37.6 out: the run's end, in which nothing comes, was counted.
TEST(Experiment, RatesOfASteadyLoad_AreWhatComes) {
  const Report report =
      Finished(ExperimentOn(std::string(*ScenarioPreset("llama-3.1-8b-h100-chat"))));
  EXPECT_NEAR(report.requests_per_s, 40, 1);
  EXPECT_EQ(report.verdict.state, VerdictState::kMeets);
  EXPECT_GT(report.certainty->from_s, 0);
  EXPECT_LT(report.certainty->until_s, report.simulated_s);
}

// Many replicas that still fill, or a run that is over before its last requests have begun: "serves
// 7,800 of 7,797 req/s".
TEST(Experiment, WhatIsServedAsItComes_IsNoOverload) {
  const std::vector<std::string> fleet = {
      R"(cluster.pools=[{"replicas":64}])", "engine.max_num_seqs=16", "workload.requests=1000",
      R"(latency={"backend":"blackbox","alpha":[0,0,0],"beta":[2000,20,100]})",
      R"(workload.prompt_tokens={"distribution":"lognormal","median":50,"p99":200,"min":1,"max":400})"};
  const std::vector<std::vector<std::string>> cases = {
      {"workload.arrivals.rate_per_s=7796.56",
       R"(slo=[{"metric":"ttft","percentile":90,"limit_ms":15}])",
       R"(workload.output_tokens={"distribution":"lognormal","median":20,"p99":80,"min":1,"max":160})"},
      {"workload.arrivals.rate_per_s=13017.5",
       R"(slo=[{"metric":"tpot","percentile":90,"limit_ms":4}])",
       R"(workload.output_tokens={"distribution":"lognormal","median":8,"p99":32,"min":1,"max":64})",
       "measure.horizon_s=0.06269"},
  };
  for (std::vector<std::string> changes : cases) {
    changes.insert(changes.end(), fleet.begin(), fleet.end());
    for (int seed = 2; seed < 8; ++seed) {
      changes.push_back(Format("seed={}", seed));
      const Report report = Finished(ExperimentOn(Changed(changes)));
      EXPECT_FALSE(report.overload) << report.verdict.sentence;
      EXPECT_TRUE(report.slo[0].met) << report.verdict.sentence;
    }
  }
}

// All of a burst came and ended at moments without a time between them: an endless number of
// requests/s, which no text came to the end of.
TEST(Experiment, BurstWithoutATimeBetweenItsEnds_HasNoRate) {
  const Report report = Finished(ExperimentOn(
      R"({"schema":1,"model":{"preset":"llama-2-70b"},"hardware":{"memory_gib":214,)"
      R"("memory_bandwidth_gb_s":4702,"peak_bf16_tflops":414,"interconnect_gb_s":187,"compute_efficiency":0.56,"bandwidth_efficiency":0.45},)"
      R"("engine":{"preset":"trtllm-1.2","max_model_len":100,"enable_chunked_prefill":true},)"
      R"("workload":{"requests":84,"arrivals":{"rate_per_s":212.4,"profile":"ramp",)"
      R"("spikes":[[0,2,4.86],[10,5,3.45]],"ramp_from":78.4,"ramp_to":0.000001},)"
      R"("prompt_tokens":{"distribution":"normal","mean":44,"stddev":14.7,"min":11,"max":176},)"
      R"("output_tokens":{"distribution":"fixed","value":30}},)"
      R"("slo":[{"metric":"tpot","limit_ms":1733},{"metric":"itl","limit_ms":2802}]})"));
  EXPECT_LT(report.verdict.sentence.size(), 300U) << report.verdict.sentence;
  EXPECT_FALSE(report.overload);
}

// The walks of all runs of the experiment.
double WalkedIn(const Report& report) {
  const Certainty& c = *report.certainty;
  return static_cast<double>(report.counts.walked) / static_cast<double>(report.arrived) *
         static_cast<double>(c.runs * c.requests_per_run);
}

// TensorRT-LLM looks at blocks one by one: runs of 300,000 conversations took two minutes.
TEST(Experiment, SchedulerThatWalks_IsRationedByIt) {
  const std::string document =
      Changed({R"(model={"preset":"qwen3-0.6b"})", R"(engine={"preset":"trtllm-1.2"})",
               "workload.arrivals.rate_per_s=100", "workload.requests=150",
               R"(workload.sessions={"turns":6,"think_time_s":19})",
               R"(workload.prompt_tokens={"distribution":"fixed","value":1500})",
               R"(workload.output_tokens={"distribution":"fixed","value":40})"});
  const Report report = Finished(ExperimentOn(document));
  EXPECT_GT(report.counts.walked, 10 * report.arrived);
  EXPECT_LT(WalkedIn(report), 4.0 * ExperimentOptions().most_work);
}

// SGLang's tree has a node for each chunk: prompts that are computed token by token took 14 s.
TEST(Experiment, TreeOfSmallChunks_IsRationedByItsWalks) {
  const std::string document =
      Changed({R"(model={"preset":"qwen3-4b"})",
               R"(engine={"preset":"sglang-0.5.9","max_num_batched_tokens":1})",
               "workload.arrivals.rate_per_s=1",
               R"(workload.prompt_tokens={"distribution":"fixed","value":600})",
               R"(workload.output_tokens={"distribution":"fixed","value":10})"});
  const Report report = Finished(ExperimentOn(document));
  EXPECT_GT(report.counts.walked, 10'000 * report.arrived);
  EXPECT_LT(WalkedIn(report), 8.0 * ExperimentOptions().most_work);
}

// Models whose layers keep blocks in groups: ten and more a prompt in each, one by one.
TEST(Experiment, BlocksInGroups_AreRationed) {
  const std::string document = Changed(
      {R"(model={"preset":"gemma-3-27b"})", R"(hardware={"preset":"h200-sxm"})",
       "workload.arrivals.rate_per_s=20", R"(workload.sessions={"turns":6,"think_time_s":400})",
       R"(workload.prompt_tokens={"distribution":"fixed","value":1500})",
       R"(workload.output_tokens={"distribution":"fixed","value":40})"});
  const Report report = Finished(ExperimentOn(document));
  EXPECT_GT(report.counts.walked, 10 * report.arrived);
  EXPECT_LT(WalkedIn(report), 8.0 * ExperimentOptions().most_work);
}

}  // namespace
}  // namespace servecast::testing::experiment_test
