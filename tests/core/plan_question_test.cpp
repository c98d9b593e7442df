// Questions by name: the answers of plans as JSON, whatever the slices.
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "core/documents.h"
#include "gtest/gtest.h"
#include "plan/question.h"

namespace servecast::testing {
namespace {

using nlohmann::json;

const std::string kTargets = R"(slo=[{"metric":"ttft","percentile":99,"limit_ms":100},)"
                             R"({"metric":"tpot","percentile":99,"limit_ms":20}])";

Scenario Loaded(const std::string& rate, const std::string& replicas = "1") {
  return Parsed(
      Changed({kTargets, "workload.arrivals.rate_per_s=" + rate, "workload.output_tokens.value=100",
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
  for (const char* name : {"max-rate", "min-gpus", "growth", "drill"}) {
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
    EXPECT_EQ(step["until_month"].get<double>(), std::min(6.0, std::floor(months)));
    EXPECT_LE(step["months_low"], months);
    EXPECT_GE(step["months_high"], months);
  }
  EXPECT_GE(held, 1);
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
  EXPECT_EQ(drills.size(), 4u);  // as it is, one fewer, one slow, a spike
  for (const json& drill : drills) EXPECT_TRUE(drill["report"]["finished"]);
}

TEST(Question, WhatCannotBeAsked_IsSaid) {
  EXPECT_EQ(RefusalOf(Question::Create("most", Loaded("40"))).size(), 1u);
  Scenario free = Loaded("40");
  free.slo.clear();
  for (const char* name : {"max-rate", "min-gpus", "growth", "drill"}) {
    const Issues issues = RefusalOf(Question::Create(name, free));
    ASSERT_EQ(issues.size(), 1u) << name;
    EXPECT_EQ(issues[0].path, "/slo") << name;
  }
  QuestionOptions options;
  options.percent = -5;
  options.months = 0;
  EXPECT_EQ(RefusalOf(Question::Create("growth", Loaded("40"), {}, options)).size(), 2u);
}

}  // namespace
}  // namespace servecast::testing
