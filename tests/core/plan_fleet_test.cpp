// The fewest GPUs, growth and drills: what is built of plans.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/documents.h"
#include "experiment/advise.h"
#include "gtest/gtest.h"
#include "io/pool_checks.h"
#include "plan/answers.h"
#include "plan/bound.h"
#include "plan/checks.h"
#include "plan/drill.h"
#include "servecast/experiment.h"
#include "servecast/plan.h"
#include "servecast/workload_spec.h"
#include "testing/words.h"

namespace servecast::testing::plan_fleet_test {
namespace {

constexpr PlanOptions kQuick = {.most_work = 1'500'000};

template <class Asked>
Asked ToEnd(Result<Asked> made) {
  Asked asked = Good(std::move(made));
  double before = 0;
  while (!asked.Advance(100'000)) {
    EXPECT_GE(asked.Progress(), before);
    before = asked.Progress();
    EXPECT_LT(before, 1);
  }
  EXPECT_EQ(asked.Progress(), 1);
  return asked;
}

VerdictState StateOf(Scenario scenario) {
  return ToEnd(Experiment::Create(std::move(scenario), {},
                                  {.most_work = 600'000, .names_limit = false}))
      .Snapshot(ReportDetail::kSummary)
      .verdict.state;
}

// The verdict's runs are others: it may call close what the plan is sure of, but not miss it.
bool Holds(const Scenario& scenario) {
  const VerdictState state = StateOf(scenario);
  return state == VerdictState::kMeets || state == VerdictState::kNear;
}

TEST(FleetPlan, OnePool_HasTheFewestReplicasTimesTheirGpus) {
  const Scenario scenario =
      Parsed(Changed({kTargets, "workload.arrivals.rate_per_s=200",
                      "workload.output_tokens.value=100", "cluster.pools.0.tensor_parallel=2"}));
  const FleetAnswer answer = ToEnd(FleetPlan::Create(scenario, {}, kQuick)).Answer();
  ASSERT_EQ(answer.outcome, PlanOutcome::kFound);
  ASSERT_EQ(answer.pools.size(), 1u);
  EXPECT_EQ(answer.Gpus(), 2 * answer.pools[0].replicas);
  EXPECT_LE(answer.LeastGpus(), static_cast<double>(answer.Gpus()));
  EXPECT_GT(answer.LeastGpus(), 0);
  Scenario held = scenario;
  held.cluster.pools[0].replicas = answer.pools[0].high;
  EXPECT_TRUE(Holds(held));
  held.cluster.pools[0].replicas = answer.pools[0].low - 1;
  if (answer.pools[0].low > 1) {
    EXPECT_NE(StateOf(held), VerdictState::kMeets);
  }
}

// Every other pair with as many GPUs or fewer misses, by brute force.
TEST(FleetPlan, PrefillAndDecode_NoPairWithFewerHolds) {
  const Scenario scenario = Parsed(Changed(
      {kTargets, "workload.arrivals.rate_per_s=60", "workload.output_tokens.value=100",
       R"(cluster.pools=[{"role":"prefill","replicas":1},{"role":"decode","replicas":6}])"}));
  const FleetAnswer answer = ToEnd(FleetPlan::Create(scenario, {}, kQuick)).Answer();
  ASSERT_EQ(answer.outcome, PlanOutcome::kFound);
  ASSERT_EQ(answer.pools.size(), 2u);
  const std::int64_t gpus = answer.Gpus();
  for (std::int64_t prefill = 1; prefill < gpus - 1; ++prefill) {
    Scenario fewer = scenario;
    fewer.cluster.pools[0].replicas = prefill;
    fewer.cluster.pools[1].replicas = gpus - 1 - prefill;
    EXPECT_NE(StateOf(fewer), VerdictState::kMeets) << prefill;
  }
  Scenario enough = scenario;
  for (std::size_t i = 0; i < 2; ++i) enough.cluster.pools[i].replicas = answer.pools[i].high;
  EXPECT_TRUE(Holds(enough));
}

// A candidate that cannot run is no answer, and is named.
TEST(FleetPlan, WhatARunRefuses_IsNotTried) {
  const Scenario scenario = Parsed(
      Changed({kTargets, "workload.arrivals.rate_per_s=1000", "engine.max_num_queued_reqs=100"}));
  const FleetAnswer answer = ToEnd(FleetPlan::Create(scenario, {}, kQuick)).Answer();
  EXPECT_EQ(answer.outcome, PlanOutcome::kNone);
  EXPECT_NE(answer.refused.find("2 replicas: /engine/max_num_queued_reqs: found 100"),
            std::string::npos)
      << answer.refused;
  for (std::int64_t replicas = 1; replicas < 4; ++replicas) {
    Scenario tried = scenario;
    tried.cluster.pools[0].replicas = replicas;
    EXPECT_EQ(IssuesTogether(tried).empty(), replicas == 1);
  }
}

// With one pool, and with two, whose search is another.
TEST(FleetPlan, TargetThatNoNumberMeets_IsSaid) {
  const std::string target = R"(slo=[{"metric":"e2e","percentile":50,"limit_ms":60000},
               {"metric":"tpot","percentile":50,"limit_ms":0.1}])";
  for (const char* pools :
       {R"([{"replicas":1}])",
        R"([{"role":"prefill","replicas":1},{"role":"decode","replicas":1}])"}) {
    const Scenario scenario = Parsed(Changed({target, std::string("cluster.pools=") + pools}));
    const FleetAnswer answer = ToEnd(FleetPlan::Create(scenario, {}, kQuick)).Answer();
    EXPECT_EQ(answer.outcome, PlanOutcome::kNone) << pools;
    EXPECT_EQ(MinGpusSentence(scenario, answer), "No number of replicas meets TPOT p50 <= 0.1 ms.");
  }
}

// Where the work that there may be ends before places are known, what scouts saw still counts: one
// of them missed.
TEST(FleetPlan, WithLittleWork_SomeNumbersMiss) {
  for (const std::int64_t work : {20'000, 60'000, 200'000}) {
    const Scenario scenario =
        Parsed(Changed({kTargets, "workload.arrivals.rate_per_s=200",
                        "workload.output_tokens.value=100", "cluster.pools.0.replicas=64"}));
    const FleetAnswer answer =
        ToEnd(FleetPlan::Create(scenario, {}, PlanOptions{.most_work = work})).Answer();
    EXPECT_NE(answer.outcome, PlanOutcome::kUnbounded) << work;
    EXPECT_NE(answer.outcome, PlanOutcome::kNone) << work;
  }
}

TEST(FleetPlan, FailuresOfNamedReplicas_AreRefused) {
  Scenario scenario = Parsed(Changed({"cluster.pools.0.replicas=2"}));
  scenario.cluster.failures.schedule = {{10, 1}};
  const Result<FleetPlan> plan = FleetPlan::Create(scenario, {}, kQuick);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.issues()[0].path, "/cluster/failures/schedule");
}

TEST(FleetPlan, PoolsAlike_AreRefused) {
  const Result<FleetPlan> plan = FleetPlan::Create(
      Parsed(Changed({kTargets, R"(cluster.pools=[{"replicas":1},{"replicas":2}])"})));
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.issues()[0].path, "/cluster/pools");
}

// A request of 101 tokens in, 1 out, on a model whose figures the cost model gives: the bound grows
// with the rate, and falls with what is cached.
TEST(LeastReplicas, AreInProportionToTheLoadThatIsComputed) {
  const Scenario scenario = Parsed(Changed({}));
  const auto at = [&](double rate, double cached) {
    return Good(LeastReplicasFor(scenario, {}, rate, cached))[0];
  };
  EXPECT_DOUBLE_EQ(at(20, 0).compute, 2 * at(10, 0).compute);
  EXPECT_DOUBLE_EQ(at(20, 0).bandwidth, 2 * at(10, 0).bandwidth);
  EXPECT_LT(at(10, 0.5).compute, at(10, 0).compute);
  EXPECT_DOUBLE_EQ(at(10, 0.5).bandwidth, at(10, 0).bandwidth);
}

TEST(GrowthPlan, MonthsAreThoseOfCompoundGrowth) {
  const Scenario scenario = Parsed(
      Changed({kTargets, "workload.arrivals.rate_per_s=10", "workload.output_tokens.value=100"}));
  const GrowthPlan plan =
      ToEnd(GrowthPlan::Create(scenario, {}, {.growth = 1, .months = 4, .plan = kQuick}));
  ASSERT_FALSE(plan.Steps().empty());
  std::int64_t from = 0, replicas = 0;
  for (const GrowthStep& step : plan.Steps()) {
    EXPECT_EQ(step.from_month, from);
    EXPECT_GT(step.replicas, replicas);
    const auto last = [](double most) {
      return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(std::log2(most / 10))),
                                      -1, 4);
    };
    EXPECT_GE(step.until_month, last(step.most.low));
    EXPECT_LE(step.until_month, last(step.most.high));
    EXPECT_LE(step.low_month, step.until_month);
    EXPECT_GE(step.high_month, step.until_month);
    from = step.until_month + 1;
    replicas = step.replicas;
  }
  EXPECT_EQ(plan.Steps().back().until_month, 4);
}

// One question, one answer: what the first month beyond today's replicas needs is what FleetPlan
// says of its load.
TEST(GrowthPlan, NeedsTheFewestOfThatMonth) {
  const Scenario scenario = Parsed(
      Changed({kTargets, "workload.arrivals.rate_per_s=400", "workload.output_tokens.value=100"}));
  const GrowthPlan plan =
      ToEnd(GrowthPlan::Create(scenario, {}, {.growth = 0.5, .months = 1, .plan = kQuick}));
  ASSERT_GE(plan.Steps().size(), 2u);
  for (std::size_t i = 1; i < plan.Steps().size(); ++i) {
    Scenario then = scenario;
    then.workload->arrivals.rate_per_s = plan.LoadIn(plan.Steps()[i].from_month);
    const FleetAnswer fewest = ToEnd(FleetPlan::Create(then, {}, kQuick)).Answer();
    EXPECT_EQ(plan.Steps()[i].replicas, fewest.pools[0].replicas) << i;
  }
}

TEST(GrowthPlan, OptionsBeyondTheirRanges_AreAllNamed) {
  const Result<GrowthPlan> plan =
      GrowthPlan::Create(Parsed(Changed({kTargets, R"(cluster.pools=[{},{}])"})), {},
                         {.growth = 0, .months = 500, .plan = {}});
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.issues().size(), 3u);
}

TEST(Pools, WithoutANameHaveWordsOfTheirOwn) {
  std::vector<PoolSpec> pools(2);
  EXPECT_EQ(OfPool(pools, 0), " of pool 0");
  EXPECT_EQ(OfPool(pools, 1), " of pool 1");
  pools[0].role = PoolRole::kPrefill;
  pools[1].role = PoolRole::kDecode;
  EXPECT_EQ(OfPool(pools, 1), " for decode");
  pools[1].name = "fast";
  EXPECT_EQ(OfPool(pools, 1), " of fast");
  const Scenario scenario = Parsed(Changed({kTargets, "cluster.pools=[{},{}]"}));
  std::vector<std::string> words;
  for (const Change& change : ChangesOf(scenario)) words.push_back(change.words);
  std::sort(words.begin(), words.end());
  EXPECT_EQ(std::adjacent_find(words.begin(), words.end()), words.end());
  EXPECT_EQ(std::count_if(words.begin(), words.end(),
                          [](const std::string& w) { return w.back() == ' '; }),
            0);
}

// Each is a document that runs, and fewer drafts are only tried where as many are accepted.
TEST(Advise, DraftsThatMayNotPay_AreTriedLessAndNotAtAll) {
  const auto words = [](const std::string& drafts) {
    const std::string document = Changed({kTargets, "engine.speculative=" + drafts});
    std::vector<std::string> found;
    for (const Change& change : ChangesOf(Parsed(document))) {
      if (change.words.find("specul") == std::string::npos) continue;
      const Scenario changed = Parsed(Good(ApplyOverrides(document, change.overrides)));
      EXPECT_LT(
          changed.engine.speculative.On() ? changed.engine.speculative.num_speculative_tokens : 0,
          4);
      found.push_back(change.words);
    }
    return found;
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(words(R"({"method":"eagle3","num_speculative_tokens":4,"acceptance_length":2.5})"),
            (Words{"no speculative decoding", "num_speculative_tokens 2"}));
  EXPECT_EQ(words(R"({"method":"eagle3","num_speculative_tokens":4,"acceptance_length":4})"),
            Words{"no speculative decoding"});
  EXPECT_EQ(words(R"({"method":"none"})"), Words{});
}

// The same GPUs, in more replicas or in fewer.
TEST(Advise, GpusMayBeCutOtherwise) {
  const auto words = [](const std::vector<std::string>& overrides) {
    std::vector<std::string> all = overrides;
    all.emplace_back(kTargets);
    const std::string document = Changed(all);
    const std::int64_t gpus = Parsed(document).cluster.Gpus();
    std::vector<std::string> found;
    for (const Change& change : ChangesOf(Parsed(document))) {
      if (change.words.find(" of TP ") == std::string::npos) continue;
      const Scenario changed = Parsed(Good(ApplyOverrides(document, change.overrides)));
      EXPECT_EQ(changed.cluster.Gpus(), gpus) << change.words;
      found.push_back(change.words);
    }
    return found;
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(words({"cluster.pools.0.replicas=1", "cluster.pools.0.tensor_parallel=1"}), Words{});
  EXPECT_EQ(words({"cluster.pools.0.replicas=1", "cluster.pools.0.tensor_parallel=8"}),
            Words{"2 replicas of TP 4"});
  EXPECT_EQ(words({"cluster.pools.0.replicas=2", "cluster.pools.0.tensor_parallel=2"}),
            (Words{"4 replicas of TP 1", "1 replica of TP 4"}));
  EXPECT_EQ(words({R"(cluster.pools=[{"role":"prefill","replicas":3},)"
                   R"({"role":"decode","replicas":2,"tensor_parallel":2}])"}),
            (Words{"4 replicas of TP 1 for decode", "1 replica of TP 4 for decode"}));
  // Experts are shared by as many replicas as before, or by as many GPUs.
  EXPECT_EQ(
      words({R"(model={"preset":"mixtral-8x7b"})", "cluster.pools.0.replicas=2",
             "cluster.pools.0.tensor_parallel=2", "cluster.pools.0.attention_data_parallel=2"}),
      (Words{"4 replicas of TP 1", "4 replicas of TP 1 with attention data parallel 4",
             "1 replica of TP 4 that share no experts"}));
}

TEST(FleetPlan, WordsOfPools_NameTheirRoles) {
  const Scenario s = Parsed(Changed({kTargets, R"(cluster.pools=[{"role":"prefill","replicas":9},)"
                                               R"({"role":"decode","replicas":9}])"}));
  FleetAnswer answer;
  answer.outcome = PlanOutcome::kFound;
  answer.pools.resize(2);
  answer.pools[0].replicas = answer.pools[0].low = answer.pools[0].high = 3;
  answer.pools[1].replicas = answer.pools[1].low = answer.pools[1].high = 1;
  EXPECT_NE(MinGpusSentence(s, answer).find("3 replicas for prefill and 1 replica for decode"),
            std::string::npos);
  const std::vector<Check> checks = ChecksOf(s, answer);
  ASSERT_EQ(checks.size(), 2u);
  EXPECT_EQ(checks[0].of, "3 replicas for prefill and 1 replica for decode");
  EXPECT_EQ(checks[1].of, "2 replicas for prefill and 1 replica for decode");
  answer.outcome = PlanOutcome::kUnknown;
  answer.closest.emplace().targets.resize(2);
  for (PlanTarget& target : answer.closest->targets) target.value = 3;
  answer.closest_replicas = {2, 5};
  const std::string unsure = MinGpusSentence(s, answer);
  EXPECT_NE(unsure.find("closest is 2 replicas for prefill and 5 replicas for decode"),
            std::string::npos)
      << unsure;
}

using Words = std::vector<std::string>;

Words NotRun(const std::vector<Drill>& drills) {
  Words said;
  for (const Drill& drill : drills) {
    if (!drill.not_run.empty()) said.push_back(drill.name + ": " + drill.not_run);
  }
  return said;
}

TEST(Drills, AreTheScenariosThatTheirNamesSay) {
  const Scenario scenario = Parsed(Changed({kTargets, "cluster.pools.0.replicas=3"}));
  const std::vector<Drill> drills = DrillsOf(scenario, {.spike = 3, .spike_s = 10});
  ASSERT_EQ(drills.size(), 8u);
  EXPECT_EQ(drills[1].name, "one replica fewer");
  EXPECT_EQ(drills[1].scenario.cluster.pools[0].replicas, 2);
  EXPECT_EQ(drills[2].name, "one replica at 70 % of its speed");
  ASSERT_EQ(drills[2].scenario.cluster.pools.size(), 2u);
  EXPECT_EQ(drills[2].scenario.cluster.pools[0].replicas, 2);
  EXPECT_DOUBLE_EQ(drills[2].scenario.cluster.pools[1].hardware->memory_bandwidth_gb_s,
                   0.7 * scenario.hardware.memory_bandwidth_gb_s);
  EXPECT_EQ(drills[3].name, "one replica fails for 153 s");
  const FailureSpec& failures = drills[3].scenario.cluster.failures;
  EXPECT_EQ(failures.schedule, (NumberTable{{153, 0}}));
  EXPECT_NEAR(static_cast<double>(drills[3].scenario.workload->requests),
              3 * 153 * scenario.workload->arrivals.rate_per_s, 1);
  EXPECT_EQ(drills[5].name, "one replica twice as slow for 153 s");
  EXPECT_EQ(drills[5].scenario.cluster.slowdowns.schedule, (NumberTable{{153, 0}}));
  EXPECT_EQ(drills[5].scenario.cluster.slowdowns.for_s, 153);
  EXPECT_EQ(drills[5].scenario.workload->requests, drills[3].scenario.workload->requests);
  EXPECT_EQ(drills[6].name, "a rolling update, 1 more and 0 down at a time");
  EXPECT_EQ(drills[6].scenario.cluster.rolling_update.at_s, 153);
  EXPECT_NEAR(static_cast<double>(drills[6].scenario.workload->requests),
              5 * 153 * scenario.workload->arrivals.rate_per_s, 1);
  EXPECT_EQ(drills[7].name, "3 times the load for 10 s");
  ASSERT_EQ(drills[7].scenario.workload->arrivals.spikes.size(), 1u);
  const double factor = drills[7].scenario.workload->arrivals.spikes[0][2];
  EXPECT_EQ(factor, 3);
  EXPECT_EQ(drills[0].not_run, "");
  EXPECT_EQ(NotRun(drills), Words{"a node of 8 replicas fails for 153 s: it has all replicas"});
  EXPECT_EQ(NotRun(DrillsOf(Parsed(Changed({kTargets})), {})),
            Words{"one replica fewer, failing or slow: it is the only one"});
  // Eight GPUs to a node, two to a replica; a router that failures do not go with.
  const std::vector<std::string> node = {kTargets, "cluster.pools.0.replicas=6",
                                         "cluster.pools.0.tensor_parallel=2"};
  const std::vector<Drill> of_node = DrillsOf(Parsed(Changed(node)), {});
  ASSERT_EQ(of_node.size(), 8u);
  EXPECT_EQ(of_node[4].name, "a node of 4 replicas fails for 153 s");
  EXPECT_EQ(of_node[4].scenario.cluster.failures.domain_replicas, 4);
  // The outage is behind the warm-up and in the run, whatever the scenario's own window is.
  std::vector<std::string> window = node;
  window.insert(window.end(), {"measure.warmup_s=100", "measure.horizon_s=120"});
  const Scenario failing = DrillsOf(Parsed(Changed(window)), {})[3].scenario;
  EXPECT_EQ(failing.cluster.failures.schedule, (NumberTable{{253, 0}}));
  EXPECT_FALSE(failing.measure.horizon_s);
  // Of several pools one of each, by its number among all.
  const std::vector<Drill> apart =
      DrillsOf(Parsed(Changed({kTargets, R"(cluster.pools=[{"role":"prefill","replicas":2},)"
                                         R"({"role":"decode","replicas":3}])"})),
               {});
  ASSERT_EQ(apart.size(), 11u);
  EXPECT_EQ(apart[4].name, "one replica for prefill fails for 153 s");
  EXPECT_EQ(apart[5].name, "one replica for decode fails for 153 s");
  EXPECT_EQ(apart[5].scenario.cluster.failures.schedule, (NumberTable{{153, 2}}));
  EXPECT_EQ(apart[7].name, "one replica for prefill twice as slow for 153 s");
  EXPECT_EQ(apart[8].scenario.cluster.slowdowns.schedule, (NumberTable{{153, 2}}));
  std::vector<std::string> affine = node;
  affine.push_back("cluster.router.policy=prefix_affinity");
  EXPECT_EQ(NotRun(DrillsOf(Parsed(Changed(affine)), {})).size(), 3u);
}

TEST(Drills, SayWhyTheyCannotBeTried) {
  const auto not_run = [](std::vector<std::string> overrides) {
    overrides.emplace_back(kTargets);
    return NotRun(DrillsOf(Parsed(Changed(overrides)), {}));
  };
  EXPECT_EQ(
      not_run({"cluster.pools.0.replicas=10", "cluster.failures={\"mtbf_s\":900}",
               "cluster.slowdowns.schedule=[[5,0]]", "cluster.slowdowns.for_s=9"}),
      (Words{"one replica fails for 153 s: the scenario has failures of its own",
             "a node of 8 replicas fails for 153 s: the scenario has failures of its own",
             "one replica twice as slow for 153 s: the scenario has slow replicas of its own"}));
  EXPECT_EQ(not_run({R"(cluster.pools=[{"role":"prefill","replicas":2},{"role":"decode"}])"}),
            (Words{"one replica fewer, failing or slow for decode: it is the only one",
                   "one replica at 70 % of its speed: there are several pools",
                   "a node of 8 replicas fails for 153 s: which pools share a node is not known",
                   "a rolling update, 1 more and 0 down at a time: an update is of one pool, and "
                   "there are several"}));
  const Words closed =
      not_run({"cluster.pools.0.replicas=10", "latency.backend=blackbox",
               "latency.beta=[5000,10,20]", "workload.arrivals={\"process\":\"closed_loop\"}"});
  ASSERT_EQ(closed.size(), 6u);
  EXPECT_EQ(closed[0].substr(34),
            "latency.backend \"blackbox\" takes no step time from the GPU's "
            "figures");
  EXPECT_NE(closed[5].find("2 times the load for 60 s: the load has no rate"), std::string::npos);
}

}  // namespace
}  // namespace servecast::testing::plan_fleet_test
