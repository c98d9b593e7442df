#include "servecast/plan.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/base.h"
#include "core/documents.h"
#include "gtest/gtest.h"
#include "plan/answers.h"
#include "servecast/experiment.h"
#include "servecast/workload_spec.h"
#include "testing/words.h"

namespace servecast::testing::plan_test {
namespace {

PlanAnswer Planned(const std::string& document, PlanOptions options = {}, Trace trace = {},
                   std::int64_t slice = INT64_MAX) {
  options.most_work = 1'500'000;
  Plan plan = Good(Plan::Create(Parsed(document), std::move(trace), options));
  while (!plan.Advance(slice)) {
  }
  return plan.Answer();
}

double StrainOf(const Report& report) {
  if (report.verdict.state == VerdictState::kOverloaded) return 1e9;
  double most = 0;
  for (const SloResult& result : report.slo) {
    most = std::max(most, *result.value_ms / result.slo.limit_ms);
  }
  return most;
}

double StrainAt(const std::string& document, const std::string& change) {
  Experiment experiment =
      Good(Experiment::Create(Parsed(Changed({change, "workload.requests=4000"}, document)), {},
                              {.most_work = 600'000, .names_limit = false}));
  while (!experiment.Advance(INT64_MAX)) {
  }
  return StrainOf(experiment.Snapshot(ReportDetail::kSummary));
}

// Just below the interval the long run keeps its targets, just above it does not.
TEST(Plan, MaxRate_IsWhereLongRunsPutIt) {
  for (const char* change : {"engine.max_num_seqs=256", "engine.max_num_seqs=16"}) {
    const std::string document = Changed({kTargets, change, "workload.output_tokens.value=100"});
    const PlanAnswer answer = Planned(document);
    ASSERT_EQ(answer.outcome, PlanOutcome::kFound) << change;
    EXPECT_LE(answer.low, answer.value);
    EXPECT_GE(answer.high, answer.value);
    EXPECT_LE(answer.high - answer.low, 0.1 * answer.value);
    EXPECT_TRUE(answer.monotone);
    const auto at = [&](double rate) {
      return StrainAt(document, "workload.arrivals.rate_per_s=" + std::to_string(rate));
    };
    EXPECT_LE(at(0.99 * answer.low), 1) << change;
    EXPECT_GT(at(1.01 * answer.high), 1) << change;
  }
}

// A target that nothing misses: a load above the answer keeps the engine busy to its end.
TEST(Plan, MaxRateThatCapacityEnds_IsAroundWhatIsServed) {
  for (int seed = 1; seed <= 4; ++seed) {
    const std::string document =
        Changed({R"(slo=[{"metric":"ttft","percentile":50,"limit_ms":1000000}])",
                 "engine.max_num_seqs=16", "seed=" + std::to_string(seed)});
    const PlanAnswer answer = Planned(document);
    ASSERT_EQ(answer.outcome, PlanOutcome::kFound) << seed;
    EXPECT_FALSE(answer.binding) << seed;
    EXPECT_LT(answer.low, answer.value) << seed;
    EXPECT_LT(answer.value, answer.high) << seed;
    EXPECT_LE(answer.high - answer.low, 0.15 * answer.value) << seed;
    Scenario busy = Parsed(document);
    busy.workload->arrivals.rate_per_s = 1.1 * answer.value;
    busy.workload->requests = 20'000;
    Simulation simulation = Good(Simulation::Create(busy));
    while (!simulation.Advance(INT64_MAX)) {
    }
    const Report report = simulation.Snapshot();
    const double served = static_cast<double>(report.completed) / report.simulated_s;
    EXPECT_LE(answer.low, 1.01 * served) << seed;
    EXPECT_GE(answer.high, 0.99 * served) << seed;
  }
}

TEST(Plan, MostLoadOfALine_IsNoAnswerWhereItKeepsTheTargets) {
  const PlanAnswer answer =
      Planned(Changed({R"(slo=[{"metric":"ttft","percentile":50,"limit_ms":1000000}])",
                       R"(workload.arrivals={"process":"closed_loop","concurrency":8})"}));
  EXPECT_EQ(answer.outcome, PlanOutcome::kUnbounded);
}

TEST(Plan, Slices_ChangeNothing) {
  const std::string document = Changed({kTargets});
  const PlanAnswer one = Planned(document), many = Planned(document, {}, {}, 997);
  EXPECT_EQ(one.value, many.value);
  EXPECT_EQ(one.low, many.low);
  EXPECT_EQ(one.high, many.high);
  EXPECT_EQ(one.curve.size(), many.curve.size());
}

TEST(Plan, WhereThePlanBegins_HardlyChangesTheAnswer) {
  const auto from = [](const char* rate) { return Planned(Changed({kTargets, rate})); };
  const PlanAnswer low = from("workload.arrivals.rate_per_s=1");
  const PlanAnswer high = from("workload.arrivals.rate_per_s=4000");
  EXPECT_LE(std::max(low.low, high.low), std::min(low.high, high.high));
}

TEST(Plan, ProgressNeverFalls) {
  Plan plan = Good(Plan::Create(Parsed(Changed({kTargets}))));
  double before = 0;
  bool done = false;
  while (!done) {
    done = plan.Advance(5000);
    EXPECT_GE(plan.Progress(), before);
    before = plan.Progress();
    EXPECT_EQ(before == 1, done);
  }
}

TEST(Plan, TargetThatNoLoadKeeps_IsSaid) {
  const std::string document = Changed({R"(slo=[{"metric":"e2e","percentile":50,"limit_ms":60000},
               {"metric":"ttft","percentile":50,"limit_ms":0.1}])"});
  const PlanAnswer answer = Planned(document);
  EXPECT_EQ(answer.outcome, PlanOutcome::kNone);
  EXPECT_EQ(answer.binding, 1u);
  EXPECT_EQ(MaxRateSentence(Parsed(document), answer), "No load meets TTFT p50 <= 0.1 ms.");
}

// Gaps have percentiles of whole runs alone: a scout, one run, has one too.
TEST(Plan, TargetOfGaps_IsPlannedAsItIsJudged) {
  const std::string document = Changed({R"(slo=[{"metric":"itl","percentile":99,"limit_ms":12}])"});
  const PlanAnswer answer = Planned(document);
  ASSERT_EQ(answer.outcome, PlanOutcome::kFound);
  EXPECT_EQ(answer.binding, 0u);
  const auto at = [&](double rate) {
    return StrainAt(document, "workload.arrivals.rate_per_s=" + std::to_string(rate));
  };
  EXPECT_LE(at(0.97 * answer.low), 1);
  EXPECT_GT(at(1.03 * answer.high), 1);
}

// From 5.53 req/s on, halving ends at a rate at which the runs of scouts last as long as a run may,
// and those of places, which have more requests, too long.
TEST(Plan, LightestLoadThatCannotRun_EndsTheLineBeforeIt) {
  const PlanAnswer answer =
      Planned(Changed({R"(slo=[{"metric":"ttft","percentile":50,"limit_ms":0.1}])",
                       "workload.arrivals.rate_per_s=5.53"}));
  EXPECT_EQ(answer.outcome, PlanOutcome::kNone);
  EXPECT_NE(answer.refused, "");
}

// Two in five prompts are longer than the engine takes: at every load, and for every number of
// replicas. It is known from one run.
TEST(Plan, PromptsThatNoEngineTakes_AreWhyNothingKeepsTheTarget) {
  const std::string document =
      Changed({R"(slo=[{"metric":"tpot","percentile":50,"limit_ms":1000},
               {"metric":"e2e","percentile":90,"limit_ms":60000}])",
               R"(workload.prompt_tokens={"distribution":"uniform","min":1,"max":1000})",
               "engine.max_model_len=600"});
  const PlanAnswer answer = Planned(document);
  EXPECT_EQ(answer.outcome, PlanOutcome::kNone);
  EXPECT_EQ(answer.runs, 1);
  ASSERT_TRUE(answer.never);
  EXPECT_EQ(answer.never->target, 1u);
  EXPECT_NEAR(answer.never->dropped_share, 0.4, 0.05);
  const Scenario scenario = Parsed(document);
  FleetAnswer fewest;
  fewest.outcome = PlanOutcome::kNone;
  fewest.never = answer.never;
  for (const std::string& sentence :
       {MaxRateSentence(scenario, answer), MinGpusSentence(scenario, fewest)}) {
    EXPECT_NE(sentence.find("longer than the engine accepts"), std::string::npos) << sentence;
  }
}

// Lengths that vary, or clients stay in step for ever and how they began decides.
TEST(Plan, ClosedLoop_IsANumberOfClients) {
  const std::string document =
      Changed({R"(slo=[{"metric":"tpot","percentile":50,"limit_ms":10}])",
               R"(workload.output_tokens={"distribution":"uniform","min":5,"max":60})",
               R"(workload.arrivals={"process":"closed_loop","concurrency":4})"});
  const PlanAnswer answer = Planned(document);
  ASSERT_EQ(answer.outcome, PlanOutcome::kFound);
  EXPECT_EQ(answer.unit, "clients");
  const auto at = [&](double clients) {
    return StrainAt(document, "workload.arrivals.concurrency=" +
                                  std::to_string(static_cast<std::int64_t>(clients)));
  };
  EXPECT_LE(at(answer.low), 1.001);
  EXPECT_GT(at(answer.high + 1), 0.999);
}

TEST(Plan, Trace_IsPlayedFaster) {
  Trace trace;
  for (int i = 0; i < 1000; ++i) trace.rows.push_back({i * TimeNs{200'000'000}, 100 + i % 50, 50});
  trace.has_arrivals = true;
  const PlanAnswer answer = Planned(Changed({kTargets, R"(workload.arrivals={"process":"trace"})",
                                             R"(workload.prompt_tokens={"distribution":"trace"})",
                                             R"(workload.output_tokens={"distribution":"trace"})"}),
                                    {}, std::move(trace));
  ASSERT_EQ(answer.outcome, PlanOutcome::kFound);
  EXPECT_EQ(answer.unit, "times the trace's rate");
  EXPECT_GT(answer.value, 1);
}

TEST(Plan, FewestReplicas_KeepTheTargetsAndOneFewerDoesNot) {
  const std::string document =
      Changed({kTargets, "workload.arrivals.rate_per_s=200", "workload.output_tokens.value=100"});
  const PlanAnswer answer = Planned(document, {.line = PlanLine::kReplicas});
  ASSERT_EQ(answer.outcome, PlanOutcome::kFound);
  ASSERT_GT(answer.value, 1);
  const auto at = [&](double replicas) {
    return StrainAt(document, "cluster.pools.0.replicas=" +
                                  std::to_string(static_cast<std::int64_t>(replicas)));
  };
  EXPECT_LE(at(answer.high), 1);
  EXPECT_GT(at(answer.low - 1), 1);
}

TEST(Plan, NoTargetAndNoRate_AreBothSaid) {
  const Result<Plan> plan =
      Plan::Create(Parsed(Changed({R"(workload.arrivals={"process":"static"})"})));
  ASSERT_FALSE(plan.ok());
  ASSERT_EQ(plan.issues().size(), 2u);
  EXPECT_EQ(plan.issues()[0].path, "/slo");
  EXPECT_EQ(plan.issues()[1].path, "/workload/arrivals/process");
}

}  // namespace
}  // namespace servecast::testing::plan_test
