// The latency model "physics" in a scenario: its price, its delay under load, coefficient files,
// whether coefficients can be true, and the closed-form estimate.
#include <cmath>
#include <fstream>
#include <string>

#include "core/documents.h"
#include "cost/model_cost.h"
#include "cost/physics_features.h"
#include "gtest/gtest.h"
#include "io/coefficients.h"
#include "io/physics_coefficients.h"
#include "policies/estimate.h"
#include "policies/plausibility.h"

namespace servecast::testing {
namespace {

Scenario With(std::vector<std::string> overrides) {
  overrides.insert(overrides.begin(), R"(latency={"backend":"physics"})");
  return Parsed(Changed(overrides));
}

std::unique_ptr<LatencyModel> ModelOf(const Scenario& s) {
  return FindLatencyModel("physics").make(s, Good(ComputeModelCost(s)));
}

std::string List(std::size_t count, std::size_t one, const std::string& value) {
  std::string list;
  for (std::size_t i = 1; i <= count; ++i) list += (i > 1 ? "," : "") + (i == one ? value : "0");
  return "[" + list + "]";
}

TEST(PhysicsModel, DefaultCoefficients_AddUpTheTimesOfItsFeatures) {
  const Scenario s = With({});
  // 10 decodes behind 1,000 tokens each, a chunk of 512 in the middle of a prompt.
  const PrefillChunk chunk{512, 1024, 4096, false};
  const TimeNs price = ModelOf(s)->Price({10, 10'000, {&chunk, 1}}).duration;
  const double prefill = 512 * 13'958'643'712.0 / 989.5e12;
  const double attention = 524'288.0 * (512 * 1024 + 512 * 513 / 2) / 989.5e12;
  const double weights = 15'009'316'864.0 / 3.35e12;
  const double decode_attention = 524'288.0 * 10'010 / 989.5e12;
  const double kv = 131'072.0 * (10'010 + 1536) / 3.35e12;
  EXPECT_NEAR(static_cast<double>(price),
              (prefill + attention + weights + decode_attention + kv) * 1e9, 1);
  EXPECT_EQ(ModelOf(s)->EnqueueDelay(512), 0);
}

TEST(PhysicsModel, WhatItsFeaturesDoNotKnow_IsRefused) {
  for (const char* unknown : {"model.quantization=fp8", "engine.kv_cache_dtype=fp8"}) {
    const Issues issues = IssuesOf(Changed({"latency.backend=physics", unknown}));
    ASSERT_FALSE(issues.empty()) << unknown;
    EXPECT_EQ(issues[0].path, "/latency/backend") << unknown;
  }
}

TEST(PhysicsModel, EachCoefficient_WeighsItsFeature) {
  const PrefillChunk chunk{32, 0, 32, true};
  BatchShape shape{32, 3200, {&chunk, 1}, 200, 5, 0.25};
  const auto with = [&shape](std::size_t number) {
    return ModelOf(With({"latency.beta_coefficients=" + List(16, number, "1000")}))
        ->Price(shape)
        .duration;
  };
  EXPECT_EQ(with(16), 1'000'000);
  EXPECT_EQ(with(7), 500'000);     // half of the tokens are prefill
  EXPECT_EQ(with(10), 250'000);    // 8 of 32 heads
  EXPECT_EQ(with(11), 15'625);     // 1 / 64 tokens
  EXPECT_EQ(with(12), 250'000);    // the average of preemptions
  EXPECT_EQ(with(15), 1'000'000);  // mixed
  EXPECT_EQ(with(8), 1);           // not a mixture of experts: the least step
  EXPECT_EQ(
      ModelOf(With({"latency.beta_coefficients=" + List(16, 16, "-5")}))->Price(shape).duration, 1);
}

TEST(PhysicsModel, HostDelay_DependsOnTheLoadWhereItsCoefficientsDo) {
  const auto model = [](std::size_t number) {
    return ModelOf(With({"latency.alpha_coefficients=" + List(11, number, "1000")}));
  };
  const EngineLoad busy{128, 0, 7, 0.5};
  EXPECT_FALSE(model(4)->DelayByLoad());
  EXPECT_EQ(model(4)->DelayUnder(100, busy), 1'000'000);
  EXPECT_TRUE(model(1)->DelayByLoad());
  EXPECT_EQ(model(1)->DelayUnder(100, busy), 500'000);   // of 256 seats
  EXPECT_EQ(model(11)->DelayUnder(100, busy), 500'000);  // the gate
  EXPECT_EQ(model(9)->DelayUnder(100, busy), 250'000);
  EXPECT_EQ(model(1)->EnqueueDelay(100), 0);  // at rest
}

TEST(PhysicsModel, DelayUnderLoad_HoldsRequestsUp) {
  const std::vector<std::string> load = {"workload.arrivals.rate_per_s=50", "workload.requests=200",
                                         R"(latency={"backend":"physics"})"};
  std::vector<std::string> delayed = load;
  delayed.push_back("latency.alpha_coefficients=" + List(11, 1, "1e6"));
  const Report plain = RunToEnd(Changed(load)), held = RunToEnd(Changed(delayed));
  EXPECT_EQ(held.completed, 200);
  EXPECT_GT(held.scheduling_delay_ms.mean, plain.scheduling_delay_ms.mean + 1);
  EXPECT_EQ(held.fingerprint, RunToEnd(Changed(delayed), {}, 1).fingerprint);
  EXPECT_EQ(BrokenConservation(held), "");
}

TEST(PhysicsModel, PrefixBenefit_IsTheCachedShareOfThePrompt) {
  const auto model = ModelOf(With(
      {"latency.alpha_coefficients=" + List(11, 7, "1000"), "engine.max_num_batched_tokens=1000"}));
  EngineLoad half{128, 0, 0, 0};  // of 256 seats
  EXPECT_TRUE(model->DelayByCache());
  EXPECT_EQ(model->DelayUnder(800, half), 0);
  half.cached_tokens = 640;
  EXPECT_EQ(model->DelayUnder(800, half), 320'000);
  EXPECT_FALSE(ModelOf(With({"latency.alpha_coefficients=" + List(11, 6, "1")}))->DelayByCache());
}

// All prompts begin alike; who arrives while others run finds that beginning, if it is kept at all.
TEST(PhysicsModel, PrefixBenefit_AsksTheSimulatedCache) {
  const auto host_ms = [](const char* caching, const std::string& weight) {
    return RunToEnd(Changed({R"(latency={"backend":"physics"})", "workload.requests=100",
                             "workload.arrivals.rate_per_s=500", "engine.request_overhead_ms=0",
                             R"(workload.prefix={"groups":1,"tokens":640})",
                             "engine.num_gpu_blocks_override=200",
                             std::string("engine.enable_prefix_caching=") + caching,
                             "latency.alpha_coefficients=" + List(11, 7, weight)}));
  };
  const Report off = host_ms("false", "1e5"), on = host_ms("true", "1e5");
  EXPECT_DOUBLE_EQ(off.time_split.e2e_ms[0], 0);
  EXPECT_GT(on.time_split.e2e_ms[0], 0.1);
  EXPECT_EQ(on.ColumnOf("host_ms")[0], 0);
  EXPECT_GT(on.prefix_cache.evicted_blocks, 0);
  // To look is not to use: a weight too small to be felt leaves all as it was.
  const Report plain = host_ms("true", "0"), looked = host_ms("true", "1e-9");
  for (const char* column : {"e2e_ms", "cached_tokens", "ttft_ms"}) {
    EXPECT_EQ(looked.ColumnOf(column), plain.ColumnOf(column)) << column;
  }
  EXPECT_EQ(looked.prefix_cache.evicted_blocks, plain.prefix_cache.evicted_blocks);
}

TEST(PhysicsModel, WithBlissRules_IsRefused) {
  EXPECT_NE(Listed(IssuesOf(Changed({R"(latency={"backend":"physics"})", "engine.compat=blis"}))),
            "");
  EXPECT_NE(Listed(IssuesOf(
                Changed({R"(latency={"backend":"physics"})", "latency.beta_coefficients=[1,2]"}))),
            "");
}

// ---- Coefficient files
// ---------------------------------------------------------------------------

std::string File(const std::string& changed = "", const std::string& to = "") {
  std::string text = R"({"physics_coefficients": {"spec_version": "1.0", "variant": "corrected",
    "alpha_target": "arrived_to_queued",
    "trained_on": {"model": "meta-llama/Llama-3.1-8B-Instruct", "hardware": "H100", "tp": 1,
      "engine_version": "0.11.0", "training_date": "2026-02-17", "n_samples_alpha": 5000,
      "n_samples_beta": 12000, "lambda_alpha": 0.1, "lambda_beta": 1.0, "gamma": 0.5,
      "hold_out_rmse_alpha": 12.5, "hold_out_rmse_beta": 45.2},
    "alpha_coefficients": [1,2,3,4,5,6,7,8,9,10,11],
    "beta_coefficients": [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]}})";
  const std::size_t at = changed.empty() ? 0 : text.find(changed);
  return changed.empty() ? text : text.replace(at, changed.size(), to);
}

TEST(PhysicsCoefficientFile, IsAScenariosLatency) {
  const PhysicsCoefficients read = Good(ReadPhysicsCoefficients(File()));
  const Scenario s = Parsed(Changed({"latency=" + read.latency}));
  EXPECT_EQ(s.latency.backend, "physics");
  EXPECT_EQ(s.latency.alpha_coefficients[10], 11);
  EXPECT_EQ(s.latency.beta_coefficients[15], 16);
  EXPECT_EQ(s.latency.preemption_gamma, 0.5);
  EXPECT_EQ(read.trained_on.n_samples_beta, 12000);
}

TEST(PhysicsCoefficientFile, TrainedOnTheQueue_IsNoHostDelay) {
  const PhysicsCoefficients read =
      Good(ReadPhysicsCoefficients(File("arrived_to_queued", "queued_to_scheduled")));
  const Scenario s = Parsed(Changed({"latency=" + read.latency}));
  EXPECT_EQ(s.latency.wait_coefficients[0], 1);
  EXPECT_EQ(s.latency.alpha_coefficients, std::vector<double>(11, 0.0));
}

TEST(PhysicsCoefficientFile, WhatIsNotKnown_IsRefused) {
  const std::pair<const char*, const char*> changes[] = {
      {"\"1.0\"", "\"1.1\""},         {"\"corrected\"", "\"v2\""},
      {"arrived_to_queued", "all"},   {"10,11]", "10]"},
      {"15,16]", "15,16,17]"},        {"15,16]", "15,\"x\"]"},
      {"\"gamma\": 0.5,", ""},        {"\"tp\": 1,", ""},
      {"\"2026-02-17\"", "20260217"}, {"physics_coefficients", "coefficients"},
      {"trained_on", "from"},
  };
  for (const auto& [from, to] : changes) {
    EXPECT_FALSE(ReadPhysicsCoefficients(File(from, to)).ok()) << from << " -> " << to;
  }
  EXPECT_FALSE(ReadPhysicsCoefficients("").ok());
  EXPECT_FALSE(ReadPhysicsCoefficients("[]").ok());
}

TEST(PhysicsCoefficientFile, Mismatches_AreSaid) {
  const PhysicsProvenance p = Good(ReadPhysicsCoefficients(File())).trained_on;
  EXPECT_EQ(Mismatches(p, With({R"(engine={"preset":"vllm-0.11"})"})).size(), 0u);
  EXPECT_EQ(Mismatches(p, With({R"(engine={"preset":"vllm-0.15"})"})).size(), 1u);
  EXPECT_EQ(
      Mismatches(p, With({R"(engine={"preset":"vllm-0.11"})", R"(hardware={"preset":"a100-80gb"})",
                          R"(model={"preset":"qwen2.5-7b"})", "cluster.pools.0.tensor_parallel=2"}))
          .size(),
      3u);
}

TEST(PublishedSets, OfAScenario_AreThoseOfItsModelGpuAndGroup) {
  const auto set = [](const char* id) { return CoefficientSet{id, "", 0}; };
  const Scenario h100 = With({}), a100 = With({R"(hardware={"preset":"a100-80gb"})"});
  EXPECT_TRUE(IsSetOf(set("llama-3.1-8b-instruct/h100/tp1/vllm-0.11.0"), h100));
  EXPECT_FALSE(IsSetOf(set("llama-3.1-8b-instruct/h100/tp2/vllm-0.11.0"), h100));
  EXPECT_FALSE(IsSetOf(set("llama-3.1-70b-instruct/h100/tp1/vllm-0.11.0"), h100));
  EXPECT_FALSE(IsSetOf(set("llama-3.1-8b-instruct/a100-80/tp1/vllm-0.11.0"), h100));
  EXPECT_TRUE(IsSetOf(set("llama-3.1-8b-instruct/a100-80/tp1/vllm-0.11.0"), a100));
  EXPECT_FALSE(IsSetOf(set("llama-3.1-8b-instruct"), h100));
}

// ---- Plausibility
// --------------------------------------------------------------------------------

LightCheck LightOf(const Scenario& s) {
  return CheckSpeedOfLight(s, Good(ComputeModelCost(s)), *ModelOf(s));
}

TEST(Plausibility, CorrectedFeaturesAsTheyAre_AreNeverFasterThanLight) {
  for (const char* model : {"llama-3.1-8b", "mistral-nemo-12b", "mixtral-8x7b", "qwen3-0.6b"}) {
    for (const char* tp : {"2", "4", "8"}) {
      const Scenario s = With({std::string(R"(model={"preset":")") + model + "\"}",
                               std::string("cluster.pools.0.tensor_parallel=") + tp,
                               "engine.max_num_batched_tokens=16384", "engine.max_num_seqs=1024"});
      const LightCheck check = LightOf(s);
      EXPECT_GT(check.batches, 200);
      EXPECT_EQ(check.shorter, 0) << model;
      EXPECT_EQ(check.faster, 0) << model << " tp" << tp << ": " << check.fastest;
    }
  }
}

TEST(Plausibility, FeaturesAsSpecified_AreFasterThanLight) {
  EXPECT_GT(LightOf(With({"latency.variant=seed"})).faster, 0);
  EXPECT_GT(LightOf(With({"latency.beta_coefficients=" + List(16, 16, "1")})).faster, 0);
}

TEST(Plausibility, MoreWorkInLessTime_IsSaid) {
  // The share of the token budget: the fuller a step, the shorter.
  const LightCheck check = LightOf(With({"latency.beta_coefficients=" + List(16, 6, "-1000"),
                                         "latency.beta_coefficients.15=100000"}));
  EXPECT_EQ(check.shorter, check.batches);
}

TEST(Plausibility, NegativeCoefficients_AreSaid) {
  LatencySpec latency;
  EXPECT_EQ(ImplausibleSigns(latency).size(), 1u);  // nothing says what a step costs by itself
  latency.beta_coefficients[10] = 1;
  EXPECT_EQ(ImplausibleSigns(latency).size(), 0u);
  latency.beta_coefficients[0] = latency.beta_coefficients[15] = -1;
  EXPECT_EQ(ImplausibleSigns(latency).size(), 2u);
}

// ---- Estimate
// ------------------------------------------------------------------------------------

Estimate EstimateAt(const Scenario& s, double rate) {
  return EstimateSteadyState(s, Good(ComputeModelCost(s)), *ModelOf(s), {rate, 100, 20, 0});
}

TEST(Estimate, ConstantStep_IsLittlesLaw) {
  // Every step takes 10 ms: 19 of them after the first token.
  const Scenario s =
      With({"latency.beta_coefficients=" + List(16, 16, "10000"), "engine.async_scheduling=false"});
  const Estimate e = EstimateAt(s, 100);
  EXPECT_NEAR(e.running, 100 * 0.19, 1e-9);
  EXPECT_NEAR(e.tpot_ms, 10, 1e-9);
  EXPECT_NEAR(e.ttft_ms, 15, 0.01);
  EXPECT_NEAR(e.most_requests_per_s, 256 / 0.19, 1);
  EXPECT_FALSE(e.overloaded);
  const Estimate more = EstimateAt(s, 1500);
  EXPECT_TRUE(more.overloaded);
  EXPECT_TRUE(std::isinf(more.waiting) && std::isinf(more.ttft_ms));
}

TEST(Estimate, Regression_IsTheFeaturesOfItsState) {
  const Scenario s = With({"latency.beta_coefficients=" + List(16, 16, "10000"),
                           "latency.wait_coefficients=" + List(11, 1, "1000")});
  const Estimate e = EstimateAt(s, 100);
  EXPECT_NEAR(e.regression_ms, e.running / 256, 1e-9);
  // The simulation has none of it.
  EXPECT_EQ(RunToEnd(Changed({R"(latency={"backend":"physics"})"})).completed, 50);
}

TEST(Estimate, OfAModestLoad_IsNearTheSimulation) {
  const std::vector<std::string> load = {
      R"(latency={"backend":"physics"})", "workload.requests=2000",
      "workload.arrivals.rate_per_s=60", R"(workload.prompt_tokens={"value":500})",
      R"(workload.output_tokens={"value":200})"};
  const Scenario s = Parsed(Changed(load));
  const Report r = RunToEnd(Changed(load));
  const Estimate e =
      EstimateSteadyState(s, Good(ComputeModelCost(s)), *ModelOf(s), {60, 500, 200, 0});
  EXPECT_NEAR(e.tpot_ms / r.tpot_ms.mean, 1, 0.1);
  EXPECT_NEAR(e.running / r.mean_batch_size, 1, 0.15);
  EXPECT_NEAR(e.e2e_ms / r.e2e_ms.mean, 1, 0.1);
  for (const double rate : {0.1, 10.0, 60.0, 200.0, 1e5}) {
    const Demand demand = {rate, 500, 200, 0};
    const ModelCost cost = Good(ComputeModelCost(s));
    EXPECT_EQ(SteadyStepMs(s, cost, *ModelOf(s), demand),
              EstimateSteadyState(s, cost, *ModelOf(s), demand).step_ms);
  }
}

}  // namespace
}  // namespace servecast::testing
