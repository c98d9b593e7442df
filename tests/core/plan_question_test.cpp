// Questions by name: the answers of plans as JSON, whatever the slices.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "core/documents.h"
#include "gtest/gtest.h"
#include "metrics/words.h"
#include "plan/question.h"
#include "servecast/experiment.h"
#include "servecast/workload_spec.h"
#include "testing/words.h"

namespace servecast::testing::plan_question_test {
namespace {

using nlohmann::json;

Scenario Loaded(const std::string& rate, const std::string& replicas = "1") {
  // Short answers and prompts, as a question is tens of thousands of requests.
  return Parsed(Changed({kTargets, "workload.arrivals.rate_per_s=" + rate, "workload.requests=500",
                         "workload.prompt_tokens.value=256", "workload.output_tokens.value=20",
                         "cluster.pools.0.replicas=" + replicas}));
}

Question Answered(std::string_view name, Scenario scenario, const QuestionOptions& options,
                  std::int64_t slice) {
  Question question = Good(Question::Create(name, std::move(scenario), {}, options));
  double before = 0;
  while (!question.Advance(slice)) {
    EXPECT_GE(question.Progress(), before);
    before = question.Progress();
    EXPECT_LT(before, 1);
  }
  EXPECT_EQ(question.Progress(), 1);
  EXPECT_TRUE(question.Problems().empty());
  return question;
}

Issues RefusalOf(const Result<Question>& question) {
  return question.ok() ? Issues{} : question.issues();
}

TEST(Question, SlicesAndLayout_ChangeNothing) {
  const QuestionOptions options = {.months = 3, .drill = {.spike_s = 5}};
  // Growth asks for the highest rate first.
  for (const char* name : {"min-gpus", "growth", "drill", "tornado"}) {
    const Question whole = Answered(name, Loaded("40", "2"), options, INT64_MAX);
    const Question sliced = Answered(name, Loaded("40", "2"), options, 7'000);
    EXPECT_EQ(whole.Json(false), sliced.Json(false)) << name;
    EXPECT_EQ(whole.Sentence(), sliced.Sentence()) << name;
    EXPECT_EQ(json::parse(whole.Json(true)), json::parse(whole.Json(false))) << name;
  }
}

TEST(Question, MaxRate_IsThePlansAnswer) {
  const json answer = json::parse(Answered("max-rate", Loaded("40"), {}, INT64_MAX).Json(false));
  Plan plan = Good(Plan::Create(Loaded("40")));
  while (!plan.Advance(INT64_MAX)) {
  }
  const PlanAnswer of = plan.Answer();
  EXPECT_EQ(answer["answer"]["value"], of.value);
  EXPECT_EQ(answer["answer"]["low"], of.low);
  EXPECT_EQ(answer["curve"].size(), of.curve.size());
  EXPECT_EQ(answer["targets"].size(), 2u);
  EXPECT_EQ(answer["targets"][0]["limit_ms"], 100);
}

TEST(Question, Growth_PassesWhatIsHeldAfterSoManyMonths) {
  QuestionOptions options;
  options.percent = 10;
  options.months = 6;
  const json answer = json::parse(Answered("growth", Loaded("40"), options, INT64_MAX).Json(false));
  EXPECT_DOUBLE_EQ(answer["load"], 40);
  int held = 0;
  for (const json& step : answer["schedule"]) {
    if (step["answer"].is_null()) continue;
    ++held;
    const double months = step["months"], most = step["answer"]["value"];
    EXPECT_NEAR(40 * std::pow(1.1, months), most, 1e-9 * most);
    EXPECT_GE(step["until_month"].get<double>(),
              std::min(6.0, std::floor(step["months_low"].get<double>())));
    EXPECT_LE(step["until_month"].get<double>(), std::floor(step["months_high"].get<double>()));
    EXPECT_LE(step["months_low"], months);
    EXPECT_GE(step["months_high"], months);
  }
  EXPECT_GE(held, 1);
}

// A replica that there may be fewer of does not hold the hour, and as many do.
TEST(Question, Day_HoursHaveTheFewestReplicasThatHoldThem) {
  QuestionOptions options;
  options.hours = {0.1, 1, 2.5, 1};
  const Scenario scenario = Loaded("100", "3");
  const json answer = json::parse(Answered("day", scenario, options, 50'000).Json(false));
  ASSERT_EQ(answer["outcome"], "found");
  ASSERT_EQ(answer["hours"].size(), 4u);
  const auto held = [&scenario](std::int64_t replicas) {
    Scenario s = scenario;
    s.cluster.pools[0].replicas = replicas;
    Plan plan = Good(Plan::Create(std::move(s)));
    while (!plan.Advance(INT64_MAX)) {
    }
    return plan.Answer();
  };
  double sum = 0, most = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const json& hour = answer["hours"][i];
    const std::int64_t replicas = hour["replicas"];
    EXPECT_DOUBLE_EQ(hour["load"], 100 * options.hours[i]);
    const PlanAnswer found = held(replicas);
    EXPECT_EQ(hour["held"], std::max(found.value, hour["load"].get<double>()));
    EXPECT_GE(found.high, hour["load"]);
    if (replicas > 1) {
      EXPECT_LT(held(replicas - 1).low, hour["load"]);
    }
    EXPECT_LE(hour["low"], replicas);
    EXPECT_GE(hour["high"], replicas);
    sum += static_cast<double>(replicas);
    most = std::max(most, static_cast<double>(replicas));
  }
  EXPECT_EQ(answer["hours"][1], [&] {
    json same = answer["hours"][3];
    same["hour"] = 1;
    return same;
  }());
  EXPECT_EQ(answer["answer"]["value"], sum);
  EXPECT_EQ(answer["gpu_hours_at_peak"], 4 * most);
  EXPECT_GT(answer["idle_share"], 0);
  EXPECT_LT(answer["idle_share"], 1);
}

// Each answer stands beside what a run says of its scenarios.
TEST(Question, Answers_AreCheckedByRuns) {
  QuestionOptions options;
  options.months = 2;
  options.hours = {1};
  for (const char* name : {"max-rate", "min-gpus", "growth", "day"}) {
    const json answer = json::parse(Answered(name, Loaded("100"), options, INT64_MAX).Json(false));
    ASSERT_FALSE(answer["checked"].empty()) << name;
    EXPECT_TRUE(answer["checked"][0]["agrees"]) << name << answer["checked"].dump();
    EXPECT_NE(answer["checked"][0]["sentence"], "") << name;
  }
  // The row of the answer is that run, as a drill has it.
  const json fewest = json::parse(Answered("min-gpus", Loaded("300"), {}, INT64_MAX).Json(false));
  const json& pool = fewest["pools"][0];
  ASSERT_GT(pool["replicas"], 1);
  Scenario found = Loaded("300", std::to_string(pool["replicas"].get<int>()));
  const json drills = json::parse(Answered("drill", found, {}, INT64_MAX).Json(false));
  for (const json& row : pool["curve"]) {
    if (row["at"] != pool["replicas"]) continue;
    EXPECT_EQ(row["slo"][0]["value_ms"], drills["drills"][0]["report"]["slo"][0]["value_ms"]);
  }
}

TEST(Question, Growth_SharesAreWrittenAsGiven) {
  QuestionOptions options;
  options.percent = 0.7;
  options.months = 1;
  const std::string text = Answered("growth", Loaded("1"), options, INT64_MAX).Json(false);
  EXPECT_NE(text.find("\"growth_per_month\":0.007,"), std::string::npos) << text;
  options.percent = 0.0001;
  const Issues issues = RefusalOf(Question::Create("growth", Loaded("1"), {}, options));
  ASSERT_EQ(issues.size(), 1u);
  EXPECT_NE(issues[0].message.find("found 0.0001 %"), std::string::npos) << issues[0].message;
}

TEST(Question, Drills_ComeOneByOne) {
  QuestionOptions options;
  options.drill.spike_s = 5;
  Question question = Good(Question::Create("drill", Loaded("40", "2"), {}, options));
  std::size_t before = 0;
  while (!question.Advance(20'000)) {
    const std::size_t now = json::parse(question.Json(false))["drills"].size();
    EXPECT_GE(now, before);
    before = now;
  }
  const json drills = json::parse(question.Json(false))["drills"];
  EXPECT_EQ(drills.size(),
            7u);  // as it is, one fewer, one slow, one that fails, one slow for a while, an update,
                  // a spike
  for (const json& drill : drills) EXPECT_TRUE(drill["report"]["finished"]);
}

TEST(Question, Speculation_PaysWhereItsRatioPassesOne) {
  const Scenario scenario = Parsed(
      Changed({"engine.speculative.method=eagle3", "engine.speculative.num_speculative_tokens=3",
               "engine.speculative.acceptance_length=2.2", "workload.requests=300",
               "workload.prompt_tokens.value=256", "workload.output_tokens.value=60"}));
  const Question whole = Answered("speculation", scenario, {}, INT64_MAX);
  EXPECT_EQ(whole.Json(false), Answered("speculation", scenario, {}, 999).Json(false));
  const json answer = json::parse(whole.Json(false));
  ASSERT_EQ(answer["outcome"], "found") << answer.dump();
  const double value = answer["answer"]["value"];
  EXPECT_LE(answer["answer"]["low"], value);
  EXPECT_GE(answer["answer"]["high"], value);
  for (const json& pair : answer["pairs"]) {
    EXPECT_EQ(pair["ratio"] <= 1.0, pair["at"] <= value) << pair.dump();
    EXPECT_LT(pair["low"], pair["ratio"]);
    EXPECT_GT(pair["high"], pair["ratio"]);
  }
  // Where none is accepted it pays at no load.
  const Scenario vain =
      Parsed(Changed({"engine.speculative.method=eagle3", "engine.speculative.acceptance_length=1",
                      "workload.requests=100", "workload.output_tokens.value=20"}));
  const Question none = Answered("speculation", vain, {}, INT64_MAX);
  EXPECT_EQ(json::parse(none.Json(false))["outcome"], "none") << none.Json(true);
}

TEST(Question, Speculation_WithoutDrafts_IsRefused) {
  const Issues issues = RefusalOf(Question::Create("speculation", Loaded("40"), {}, {}));
  ASSERT_FALSE(issues.empty());
  EXPECT_EQ(issues.front().path, "/engine/speculative/method");
}

const json& InputOf(const json& answer, const std::string& name) {
  static const json kNone;
  for (const json& input : answer["inputs"]) {
    if (input["input"] == name) return input;
  }
  ADD_FAILURE() << "no input " << name;
  return kNone;
}

const json& TornadoOf40() {
  static const json answer =
      json::parse(Answered("tornado", Loaded("40"), {}, INT64_MAX).Json(false));
  return answer;
}

TEST(Question, Tornado_SidesAreVerdictsOfTheTurnedScenario) {
  const json& answer = TornadoOf40();
  const Scenario more = Loaded("48");
  Experiment run = Good(Experiment::Create(more));
  while (!run.Advance(INT64_MAX)) {
  }
  const Report report = run.Snapshot(ReportDetail::kSummary);
  std::size_t target = 0;
  while (Target(report.slo[target].slo) != answer["target"]) ++target;
  const json& side = InputOf(answer, "load")["more"];
  EXPECT_EQ(side["value"], *report.slo[target].value_ms);
  EXPECT_EQ(side["low"], *report.slo[target].low_ms);
  EXPECT_EQ(side["high"], *report.slo[target].high_ms);
}

TEST(Question, Tornado_IsOfTheClosestTargetAndRanked) {
  const json& answer = TornadoOf40();
  const double own = answer["as_it_is"]["value"];
  double before = 1e300;
  for (const json& input : answer["inputs"]) {
    double swing = 0;
    for (const char* side : {"less", "more"}) {
      ASSERT_TRUE(input[side]["value"].is_number()) << input.dump();
      swing = std::max(swing, std::abs(input[side]["value"].get<double>() - own));
    }
    EXPECT_LE(swing, before) << input.dump();
    before = swing;
  }
  // More of a resource never makes it worse by more than its interval, less never better.
  for (const char* resource : {"arithmetic", "memory bandwidth", "host time", "KV memory"}) {
    const json& input = InputOf(answer, resource);
    EXPECT_LE(input["more"]["low"], answer["as_it_is"]["high"]) << resource;
    EXPECT_GE(input["less"]["high"], answer["as_it_is"]["low"]) << resource;
  }
  EXPECT_LT(InputOf(answer, "load")["less"]["value"], own);
  EXPECT_GT(InputOf(answer, "prompt length")["more"]["value"], own);
}

TEST(Question, Tornado_OverloadAndWhatCannotRun_AreSaid) {
  Scenario crowded = Loaded("200");
  crowded.workload->requests = 1000;
  const json overloaded = json::parse(Answered("tornado", crowded, {}, INT64_MAX).Json(false));
  EXPECT_TRUE(InputOf(overloaded, "load")["more"]["unbounded"]);
  EXPECT_TRUE(InputOf(overloaded, "load")["more"]["value"].is_null());
  Scenario longest = Loaded("1");
  longest.workload->prompt_tokens = LengthSpec();
  longest.workload->prompt_tokens.value = 1000;
  longest.engine.max_model_len = 1100;
  const json refused = json::parse(Answered("tornado", longest, {}, INT64_MAX).Json(false));
  const json& more = InputOf(refused, "prompt length")["more"];
  EXPECT_TRUE(more["state"] == "cannot_run" ? !more["reason"].get<std::string>().empty()
                                            : more["value"].is_number() || more["value"].is_null());
}

TEST(Question, Cost_IsTheArithmeticOfPricesAndTokens) {
  Scenario s = Loaded("40", "2");
  s.hardware.price_per_gpu_hour = 3;
  QuestionOptions options;
  options.api = {0.5, 2};
  const json cost = json::parse(Answered("cost", s, options, 1).Json(false));
  EXPECT_EQ(cost["own"]["per_hour"], 6);
  EXPECT_EQ(cost["own"]["per_month"], 6 * 730);
  // 256 tokens in and 20 out: 168 millionths of a dollar a request.
  const double a_request = (256 * 0.5 + 20 * 2) / 1e6;
  EXPECT_DOUBLE_EQ(cost["answer"]["value"].get<double>(), 6 / (3600 * a_request));
  EXPECT_DOUBLE_EQ(cost["api"]["per_hour"]["value"].get<double>(), 40 * 3600 * a_request);
  EXPECT_EQ(cost["answer"]["low"], cost["answer"]["high"]) << "all requests are alike";
  EXPECT_NEAR(cost["own"]["per_million_tokens"].get<double>(), 6e6 / (40 * 3600 * 276), 1e-12);
  options.api = {};
  EXPECT_TRUE(json::parse(Answered("cost", s, options, 1).Json(false))["answer"].is_null());
  // A conversation is billed for every turn, with what was said before.
  s.workload->sessions.turns = 3;
  s.workload->requests = 300;
  options.api = {0.5, 2};
  const json turns = json::parse(Answered("cost", s, options, 1).Json(false));
  EXPECT_EQ(turns["unit"], "conversations/s");
  EXPECT_EQ(turns["output_tokens"]["value"], 60);
  EXPECT_GT(turns["input_tokens"]["value"].get<double>(), 3 * 256);
}

TEST(Question, Cost_OfATraceIsOfItsOwnSpeed) {
  Trace trace;
  // Two a second, of 100 tokens in and 10 out; played twice as fast.
  for (int i = 0; i < 1001; ++i) trace.rows.push_back({i * std::int64_t{500'000'000}, 100, 10});
  trace.has_arrivals = true;
  Scenario s = Parsed(Changed({kTargets, R"(workload.arrivals={"process":"trace","rate_scale":2})",
                               R"(workload.prompt_tokens={"distribution":"trace"})",
                               R"(workload.output_tokens={"distribution":"trace"})"}));
  s.hardware.price_per_gpu_hour = 3;
  QuestionOptions options;
  options.api = {1, 10};
  const Question asked = Good(Question::Create("cost", s, trace, options));
  const json cost = json::parse(asked.Json(false));
  EXPECT_EQ(cost["unit"], "times the trace's rate");
  EXPECT_EQ(cost["load"], 2);
  // 200 millionths of a dollar each: 4 a second as it is played.
  EXPECT_NEAR(cost["api"]["per_hour"]["value"].get<double>(), 4 * 3600 * 200e-6, 0.01);
  EXPECT_NEAR(cost["answer"]["value"].get<double>(), 3 / (2 * 3600 * 200e-6), 0.01);
}

// The interval is to hold the mean of many more requests as often as it says.
TEST(Question, Cost_IntervalsOfItsTokensCover) {
  Scenario s = Loaded("40");
  s.hardware.price_per_gpu_hour = 3;
  s.workload->prompt_tokens.distribution = LengthDistribution::kLognormal;
  s.workload->prompt_tokens.median = 300;
  s.workload->prompt_tokens.p99 = 2000;
  s.workload->requests = 200;
  s.workload->prompt_tokens.max = 4000;
  QuestionOptions options;
  options.api = {1, 1};
  Scenario many = s;
  many.workload->requests = 200000;
  many.seed = 77;
  const json truth = json::parse(Answered("cost", many, options, 1).Json(false));
  const double mean = truth["input_tokens"]["value"];
  int covered = 0;
  for (std::int64_t seed = 1; seed <= 200; ++seed) {
    s.seed = 1000 * seed;
    const json cost = json::parse(Answered("cost", s, options, 1).Json(false))["input_tokens"];
    covered += cost["low"] <= mean && mean <= cost["high"] ? 1 : 0;
  }
  EXPECT_GE(covered, 180);  // 95 % of 200 are 190, give or take 3
}

TEST(Question, WhatCannotBeAsked_IsSaid) {
  Scenario unpriced = Loaded("40");
  unpriced.hardware.price_per_gpu_hour.reset();
  unpriced.workload->arrivals.process = ArrivalProcess::kClosedLoop;
  QuestionOptions wrong;
  wrong.api = {-1, 20'000};
  EXPECT_EQ(RefusalOf(Question::Create("cost", unpriced, {}, wrong)).size(), 4u);

  EXPECT_EQ(RefusalOf(Question::Create("most", Loaded("40"))).size(), 1u);
  Scenario free = Loaded("40");
  free.slo.clear();
  for (const char* name : {"max-rate", "min-gpus", "growth", "drill", "tornado"}) {
    const Issues issues = RefusalOf(Question::Create(name, free));
    ASSERT_EQ(issues.size(), 1u) << name;
    EXPECT_EQ(issues[0].path, "/slo") << name;
  }
  QuestionOptions options;
  options.percent = -5;
  options.months = 0;
  EXPECT_EQ(RefusalOf(Question::Create("growth", Loaded("40"), {}, options)).size(), 2u);
  EXPECT_EQ(RefusalOf(Question::Create("day", Loaded("40"))).size(), 1u);
  options.hours = {0, 1, 2'000};
  EXPECT_EQ(RefusalOf(Question::Create("day", Loaded("40"), {}, options)).size(), 2u);
}

// Slow periods that few of the runs see: no number of replicas is sure to keep the target, and none
// is sure to miss it.
TEST(Question, MinGpusBesideRareSlowdowns_SaysThatItIsTooCloseToCall) {
  Scenario rare = Loaded("40", "2");
  rare.cluster.slowdowns.mean_gap_s = 300;
  rare.cluster.slowdowns.for_s = 20;
  rare.cluster.slowdowns.factor = 8;
  const Question question = Answered("min-gpus", std::move(rare), {}, INT64_MAX);
  EXPECT_EQ(json::parse(question.Json(false))["outcome"], "unknown");
  const std::string sentence = question.Sentence();
  EXPECT_NE(sentence.find("Too close to call wherever it was tried; closest is "),
            std::string::npos)
      << sentence;
  EXPECT_NE(sentence.find("A replica is slow every 320 s in the mean and a run lasts 12.5 s"),
            std::string::npos)
      << sentence;
}

}  // namespace
}  // namespace servecast::testing::plan_question_test
