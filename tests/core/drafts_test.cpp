// Drafts: how many are accepted, what they cost, and what they do not go with.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/documents.h"
#include "cost/model_cost.h"
#include "gtest/gtest.h"
#include "servecast/simulation.h"
#include "serving/replica/acceptance_curves.h"
#include "serving/replica/draft_latency.h"
#include "serving/replica/draft_rules.h"
#include "testing/engine_run.h"
#include "testing/random_drafts.h"

namespace servecast {
namespace {

SpeculativeSpec Drafts(std::int64_t tokens, double length) {
  SpeculativeSpec s;
  s.method = DraftMethod::kEagle;
  s.num_speculative_tokens = tokens;
  s.acceptance_length = length;
  return s;
}

double MeanAccepted(const SpeculativeSpec& spec, std::int64_t drafts) {
  const RequestTable none;
  const Acceptance acceptance(spec, none, 7);
  constexpr std::int64_t kDraws = 200'000;
  std::int64_t sum = 0;
  for (std::int64_t n = 0; n < kDraws; ++n) sum += acceptance.Accepted(3, n, drafts);
  return static_cast<double>(sum) / static_cast<double>(kDraws);
}

TEST(Acceptance, Length_IsTheMeanOfTheDraws) {
  for (const std::int64_t tokens : {1, 3, 8}) {
    for (const double length : {1.0, 1.4, 1.9}) {
      EXPECT_NEAR(MeanAccepted(Drafts(tokens, length), tokens), length - 1, 0.01)
          << tokens << " " << length;
    }
  }
}

TEST(Acceptance, Curve_HasTheMeasuredLengthAtEachNumberOfDrafts) {
  ASSERT_FALSE(AcceptanceCurves().empty());
  for (const AcceptanceCurve& curve : AcceptanceCurves()) {
    for (std::int64_t drafts = 1; drafts <= kMeasuredDrafts; ++drafts) {
      double length = 1, before = 1;
      for (const double rate : RatesOfCurve(curve.name, drafts)) {
        EXPECT_LE(rate, before + 1e-12) << curve.name;
        length += before = rate;
      }
      EXPECT_NEAR(length, curve.lengths[static_cast<std::size_t>(drafts - 1)], 0.03)
          << curve.name << " " << drafts;
    }
  }
}

TEST(Acceptance, FewerDrafts_AreAcceptedAsTheFirstOfMore) {
  const RequestTable none;
  const Acceptance acceptance(Drafts(8, 3), none, 1);
  for (std::int64_t n = 0; n < 1000; ++n) {
    const std::int64_t of_all = acceptance.Accepted(5, n, 8);
    EXPECT_EQ(acceptance.Accepted(5, n, 2), std::min<std::int64_t>(of_all, 2));
  }
}

constexpr const char* kDocument = R"({"schema": 1,
  "model": {"preset": "llama-3.1-8b"}, "hardware": {"preset": "h100-sxm"},
  "engine": {"preset": "vllm", "async_scheduling": false, "speculative": {DRAFTS}},
  "latency": {"backend": "analytic"},
  "workload": {"arrivals": {"process": "closed_loop", "concurrency": 4}, "requests": 40,
               "prompt_tokens": {"distribution": "fixed", "value": 100},
               "output_tokens": {"distribution": "fixed", "value": 101}}})";

Result<Scenario> ScenarioWith(const std::string& drafts) {
  std::string text = kDocument;
  text.replace(text.find("DRAFTS"), 6, drafts);
  return ParseScenario(text);
}

Report RunOf(const std::string& drafts) {
  Result<Scenario> scenario = ScenarioWith(drafts);
  EXPECT_TRUE(scenario.ok()) << (scenario.ok() ? "" : scenario.issues()[0].message);
  Result<Simulation> simulation = Simulation::Create(scenario.value(), {});
  EXPECT_TRUE(simulation.ok());
  while (!simulation.value().Advance(INT64_MAX)) {
  }
  return simulation.value().Snapshot();
}

// As many tokens a step as the trace says, whatever the engine does.
TEST(Speculation, TracesOwnList_IsAcceptedStepByStep) {
  const Result<Trace> trace = ParseTrace(
      "arrival_s,input_tokens,output_tokens,accepted_drafts\n"
      "0,100,25,2 0 1\n1,100,9,3\n",
      "t");
  ASSERT_TRUE(trace.ok());
  std::vector<std::string> set = {
      R"(workload={"arrivals":{"process":"trace"},"prompt_tokens":{"distribution":"trace"},)"
      R"("output_tokens":{"distribution":"trace"}})",
      "engine.async_scheduling=false"};
  const auto counts = [&trace, &set] {
    return testing::RunToEnd(testing::Changed(set), trace.value()).counts;
  };
  EXPECT_EQ(counts().verified_steps, 0);  // of an engine without drafts
  set.push_back("engine.speculative.method=eagle3");
  set.push_back("engine.speculative.num_speculative_tokens=3");
  // Behind their first tokens 24 are made by 3, 1, 2, 3, 1, 2 ... and 8 by 4 and 4.
  EXPECT_EQ(counts().verified_steps, 12 + 2);
  EXPECT_EQ(counts().accepted_tokens, 12 + 6);
  EXPECT_EQ(counts().used_draft_tokens, 12 + 6);
}

TEST(Speculation, Class_HasALengthOfItsOwn) {
  const auto run = [](const char* classes) {
    return testing::RunToEnd(testing::Changed({"engine.speculative.method=eagle3",
                                               "engine.speculative.acceptance_length=2",
                                               "workload.requests=400", classes}));
  };
  const auto length = [](const Report& r) {
    return 1 + static_cast<double>(r.counts.accepted_tokens) /
                   static_cast<double>(r.counts.verified_steps);
  };
  const Report one = run(R"(workload.classes=[{"name":"a"},{"name":"b"}])");
  const Report same = run(R"(workload.classes=[{"name":"a"},{"name":"b","acceptance_length":2}])");
  const Report two = run(
      R"(workload.classes=[{"name":"a","acceptance_length":1},{"name":"b","acceptance_length":4}])");
  EXPECT_EQ(one.e2e_ms.mean, same.e2e_ms.mean);
  EXPECT_NEAR(length(one), 2, 0.05);
  EXPECT_LT(two.classes[1].tpot_ms.mean * 1.5, two.classes[0].tpot_ms.mean);
  const Issues issues = testing::IssuesOf(
      testing::Changed({"engine.speculative.method=eagle3",
                        R"(workload.classes=[{"name":"a","acceptance_length":5}])"}));
  ASSERT_EQ(issues.size(), 1u);
  EXPECT_EQ(issues[0].path, "/workload/classes/0/acceptance_length");
}

TEST(Speculation, AllAccepted_YieldsEveryDraftOfAStep) {
  const Report all = RunOf(R"("method": "ngram_gpu", "num_speculative_tokens": 4,
                              "acceptance_length": 5)");
  // 100 tokens after the first, five a step: twenty steps of each.
  EXPECT_EQ(all.counts.verified_steps, 40 * 20);
  EXPECT_EQ(all.counts.used_draft_tokens, 40 * 80);
  EXPECT_EQ(all.completed, 40);
}

TEST(Speculation, NoneAccepted_TakesAsManyStepsAsWithout) {
  const Report none = RunOf(R"("method": "eagle", "acceptance_length": 1)");
  const Report without = RunOf(R"("method": "none")");
  EXPECT_EQ(none.counts.accepted_tokens, 0);
  EXPECT_EQ(none.steps, without.steps);
  EXPECT_GT(none.tpot_ms.mean, without.tpot_ms.mean);
}

TEST(Speculation, Drafter_TakesMemoryAndTime) {
  const Report look_up = RunOf(R"("method": "ngram_gpu", "acceptance_length": 2)");
  const Report eagle = RunOf(R"("method": "eagle", "acceptance_length": 2)");
  const Report model = RunOf(R"("method": "draft_model", "acceptance_length": 2,
                                "draft_num_hidden_layers": 16)");
  EXPECT_GT(look_up.kv_tokens, eagle.kv_tokens);
  EXPECT_GT(eagle.kv_tokens, model.kv_tokens);
  EXPECT_LT(look_up.tpot_ms.mean, eagle.tpot_ms.mean);
  EXPECT_LT(eagle.tpot_ms.mean, model.tpot_ms.mean);
}

TEST(Speculation, WhatDoesNotGoTogether_IsRefusedWithReasons) {
  const auto path_of = [](const std::string& drafts) {
    const Result<Scenario> scenario = ScenarioWith(drafts);
    return scenario.ok() ? std::string() : scenario.issues()[0].path;
  };
  const std::string speculative = "/engine/speculative/";
  EXPECT_EQ(path_of(R"("method": "eagle")"), "");
  EXPECT_EQ(path_of(R"("method": "eagle", "acceptance_length": 5)"),
            speculative + "acceptance_length");
  EXPECT_EQ(path_of(R"("method": "eagle", "acceptance_rates": [[1, 0.5]])"),
            speculative + "acceptance_rates");
  EXPECT_EQ(path_of(R"("method": "eagle", "num_speculative_tokens": 1,
                       "acceptance_rates": [[1, 1.5]])"),
            speculative + "acceptance_rates");
  EXPECT_EQ(path_of(R"("method": "eagle", "acceptance_as": "glm-5.2-mtp",
                       "num_speculative_tokens": 9)"),
            speculative + "num_speculative_tokens");
  EXPECT_EQ(path_of(R"("method": "eagle",
                       "num_speculative_tokens_per_batch_size": [[2, 3, 1]])"),
            speculative + "num_speculative_tokens_per_batch_size");
  EXPECT_EQ(path_of(R"("method": "dflash", "num_speculative_tokens": 32)"),
            "/engine/max_num_batched_tokens");
}

// A random case whose steps all take as long, with room for everything, and drafts of which
// `accepted` are accepted each time.
testing::RandomCase RoomyCase(std::uint64_t seed, std::int32_t accepted) {
  testing::RandomCase c = testing::MakeRandomDraftCase(seed);
  EngineSpec& engine = c.engine;
  engine.speculative = {};
  engine.speculative.method = DraftMethod::kNgramGpu;
  engine.speculative.num_speculative_tokens = 4;
  engine.speculative.pads_one_token = false;
  engine.max_loras = 0;
  engine.max_num_queued_reqs.reset();
  engine.max_num_queued_tokens.reset();
  engine.async_scheduling = false;
  engine.num_gpu_blocks_override = 1 << 16;
  engine.max_num_batched_tokens = 1 << 20;
  engine.long_prefill_token_threshold = 0;
  engine.watermark = 0;
  engine.max_model_len.reset();
  c.model_max_len = 1 << 20;
  c.horizon.reset();
  testing::RandomLatencySpec latency;
  latency.base = c.latency.base;
  c.latency = latency;
  RequestTable& requests = c.requests;
  requests.lora.clear();
  requests.acceptance_length.clear();
  requests.proposed_drafts.clear();
  requests.accepted_drafts.assign(requests.arrival.size(), {accepted});
  return c;
}

testing::ReplicaRun Ran(const testing::RandomCase& c) {
  return testing::RunReplica(testing::EngineCaseOf(c), *testing::MakeLatency(c), 0);
}

TEST(Speculation, RandomScenarios_WithNothingAcceptedAreAsWithoutDrafts) {
  std::int64_t verified = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    testing::RandomCase c = RoomyCase(seed, 0);
    const testing::ReplicaRun drafts = Ran(c);
    c.engine.speculative = {};
    const testing::ReplicaRun without = Ran(c);
    EXPECT_EQ(drafts.results.first_token, without.results.first_token) << seed;
    EXPECT_EQ(drafts.results.completion, without.results.completion) << seed;
    EXPECT_EQ(drafts.results.generated, without.results.generated) << seed;
    EXPECT_EQ(drafts.itl, without.itl) << seed;
    EXPECT_EQ(drafts.step_count, without.step_count) << seed;
    EXPECT_EQ(drafts.kv_blocks_used, 0) << seed;
    verified += drafts.counts.verified_steps;
  }
  EXPECT_GT(verified, 10'000);
}

TEST(Speculation, RandomScenarios_WithAllAcceptedMakeAllOfThemAStep) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    testing::RandomCase c = RoomyCase(seed, 4);
    c.requests.timeout.clear();
    const testing::ReplicaRun run = Ran(c);
    std::int64_t steps = 0, tokens = 0;
    for (std::size_t r = 0; r < run.results.generated.size(); ++r) {
      const std::int64_t made = run.results.generated[r];
      if (run.results.completion[r] < 0) continue;
      tokens += made;
      steps += CeilDiv(made - 1, 5);  // behind the first token
    }
    EXPECT_EQ(run.counts.verified_steps, steps) << seed;
    EXPECT_EQ(run.output_tokens, tokens) << seed;
    EXPECT_EQ(run.counts.used_draft_tokens,
              tokens - steps -
                  static_cast<std::int64_t>(std::count_if(run.results.completion.begin(),
                                                          run.results.completion.end(),
                                                          [](TimeNs time) { return time >= 0; })))
        << seed;
  }
}

// More tokens are never quicker, and drafts cost the model no less than single tokens.
TEST(Speculation, PriceOfAStep_GrowsWithItsDrafts) {
  for (const char* backend : {"analytic", "operators"}) {
    Result<Scenario> scenario = ScenarioWith(R"("method": "none")");
    ASSERT_TRUE(scenario.ok());
    scenario.value().latency.backend = backend;
    const Result<ModelCost> cost = ComputeModelCost(scenario.value());
    const auto model = FindLatencyModel(backend).make(scenario.value(), cost.value());
    TimeNs before = model->Price({16, 16 * 1000, {}}).duration;
    for (const std::int64_t tokens : {2, 3, 5, 9}) {
      const std::vector<DraftedDecodes> decodes = {{tokens, 16 * 1000, 16}};
      BatchShape shape;
      shape.drafted = decodes;
      const TimeNs time = model->Price(shape).duration;
      EXPECT_GE(time, before) << backend << " " << tokens;
      before = time;
    }
  }
}

}  // namespace
}  // namespace servecast
