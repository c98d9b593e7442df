// Pipeline stages: what each holds and takes, how batches go through them, and what a user sees.
#include "serving/replica/pipeline.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/documents.h"
#include "cost/model_cost.h"
#include "fmt/format.h"
#include "gtest/gtest.h"
#include "metrics/time_split.h"
#include "testing/engine_run.h"
#include "testing/random_cases.h"

namespace servecast::testing {
namespace {

using Layers = std::vector<std::int64_t>;

TEST(StageLayers, WhatDoesNotDivide_GoesBeforeTheLastFromTheBack) {
  const auto layers = [](std::int64_t all, std::int64_t stages) {
    ModelSpec model;
    model.num_hidden_layers = all;
    return StageLayers(model, stages);
  };
  EXPECT_EQ(layers(32, 1), (Layers{32}));
  EXPECT_EQ(layers(32, 2), (Layers{16, 16}));
  EXPECT_EQ(layers(80, 3), (Layers{27, 27, 26}));
  EXPECT_EQ(layers(10, 4), (Layers{2, 3, 3, 2}));
  EXPECT_EQ(layers(11, 4), (Layers{3, 3, 3, 2}));
  EXPECT_EQ(layers(5, 5), (Layers{1, 1, 1, 1, 1}));
}

std::string Staged(int stages, std::vector<std::string> more = {}) {
  more.push_back(fmt::format("cluster.pools.0.pipeline_parallel={}", stages));
  more.push_back("engine.async_scheduling=false");
  return Changed(more);
}

TEST(PipelineMemory, Pool_IsThatOfTheStageWithTheLeastRoom) {
  const std::vector<std::string> large = {
      "model.preset=llama-3.1-70b", "cluster.pools.0.tensor_parallel=4", "engine.max_num_seqs=128"};
  const ModelCost one = Good(ComputeModelCost(Parsed(Staged(1, large))));
  const ModelCost two = Good(ComputeModelCost(Parsed(Staged(2, large))));
  // Half of the layers each, the embedding here and the LM head there.
  EXPECT_NEAR(2 * two.weight_bytes / one.weight_bytes, 1, 1e-3);
  // Of both, the last one also has the logits of the profile run: 128 rows of 128,256.
  EXPECT_NEAR(two.overhead_gib - one.overhead_gib, 0, 1e-9);
  const double block = one.kv_bytes_per_token / 2 * 16;  // bytes: half of the layers
  EXPECT_NEAR(static_cast<double>(two.pool_blocks),
              (two.usable_gib - two.weights_gib - two.overhead_gib) * std::exp2(30) / block, 1);
  EXPECT_GT(two.pool_blocks, 5 * one.pool_blocks / 2);  // the weights are halved, too
}

TEST(PipelineMemory, TiedTables_AreInBothEndsOfAPipeline) {
  Scenario s = Parsed(Staged(2));
  s.model.tie_word_embeddings = true;
  const ModelCost tied = Good(ComputeModelCost(s));
  s.model.tie_word_embeddings = false;
  EXPECT_EQ(Good(ComputeModelCost(s)).weight_bytes, tied.weight_bytes);
}

TEST(PipelineMemory, StageThatDoesNotFit_IsNamed) {
  const Issues issues = IssuesOf(Staged(2, {"model.preset=llama-3.1-70b", "hardware.memory_gib=70",
                                            R"(model.num_hidden_layers=81)"}));
  ASSERT_EQ(issues.size(), 1u) << Listed(issues);
  EXPECT_EQ(issues[0].path, "/model");
  EXPECT_NE(issues[0].message.find("in stage 1 of 2, which has 41 layers"), std::string::npos)
      << issues[0].message;
}

TEST(Pipeline, WhatItDoesNotGoWith_IsAnIssueThere) {
  const struct {
    std::string document, path;
  } cases[] = {
      {Staged(33), "/cluster/pools/0/pipeline_parallel"},  // layers
      {Changed({"cluster.pools.0.pipeline_parallel=65"}), "/cluster/pools/0/pipeline_parallel"},
      {Changed({"cluster.pools.0.pipeline_parallel=0"}), "/cluster/pools/0/pipeline_parallel"},
      {Changed({"cluster.pools.0.pipeline_parallel=2", "engine.async_scheduling=true"}),
       "/engine/async_scheduling"},
      {Staged(2, {"engine.kv_offload.cpu_gib=10"}), "/engine/kv_offload"},
      {Staged(2, {"engine.compat=blis", "latency.backend=roofline"}),
       "/cluster/pools/0/pipeline_parallel"},
      {Staged(2, {"engine.overlap_scheduling=true"}), "/engine/overlap_scheduling"},
  };
  for (const auto& c : cases) {
    const Issues issues = IssuesOf(c.document);
    ASSERT_EQ(issues.size(), 1u) << c.path << "\n" << Listed(issues);
    EXPECT_EQ(issues[0].path, c.path) << issues[0].message;
  }
}

// A time for every stage, whatever the model; together that of the whole, and what each pays again.
TEST(Pipeline, StagesOfEveryModel_AddUpToTheWhole) {
  for (const LatencyEntry& entry : LatencyModels()) {
    if (entry.name == "trained_physics") continue;  // with a compat only
    std::vector<std::string> set = {"latency.backend=" + std::string(entry.name),
                                    "hardware.interconnect_latency_us=0",
                                    "hardware.interconnect_gb_s=100000"};
    if (entry.name == "blackbox") set.emplace_back("latency.beta=[1000,10,100]");
    const Scenario s = Parsed(Staged(3, set));
    const ModelCost cost = Good(ComputeModelCost(s));
    const auto whole = entry.make(s, cost);
    const std::vector<PipelineStage> stages = MakeStages(s, entry);
    ASSERT_EQ(stages.size(), 3u) << entry.name;
    const PrefillChunk chunks[] = {{300, 100, 400, true}};
    for (const BatchShape& shape : {BatchShape{40, 20000, {}}, BatchShape{7, 900, chunks}}) {
      TimeNs sum = 0;
      for (const PipelineStage& stage : stages) sum += stage.latency->Price(shape).duration;
      // Host time of a step, which every stage has: analytic's by the engine, roofline's 500 us.
      const auto sequences =
          static_cast<double>(shape.decode_seqs) + static_cast<double>(shape.prefill.size());
      double host = 0;
      if (entry.name == "analytic" || entry.name == "operators") {
        host = s.engine.step_overhead_us + s.engine.sequence_overhead_us * sequences;
      } else if (entry.name == "roofline") {
        host = 500;
      }
      const auto expected = static_cast<double>(whole->Price(shape).duration) + 2 * host * 1e3;
      EXPECT_NEAR(static_cast<double>(sum), expected, 1e-6 * expected + 1e3) << entry.name;
    }
  }
}

// With one stage the batch queue has one place: all is as without.
TEST(Pipeline, OfOneStage_IsAReplicaWithout) {
  int compared = 0;
  for (std::uint64_t seed = 700'000; seed < 700'400; ++seed) {
    RandomCase random_case = MakeRandomCase(seed);
    if (random_case.engine.async_scheduling || random_case.engine.kv_offload.On()) continue;
    random_case.stages.clear();
    random_case.slowdowns = {};
    const std::unique_ptr<LatencyModel> latency = MakeLatency(random_case);
    const ReplicaRun without = RunReplica(EngineCaseOf(random_case), *latency, kClockEnd);
    random_case.stages.resize(1);
    const ReplicaRun with = RunReplica(EngineCaseOf(random_case), *latency, kClockEnd);
    ASSERT_EQ(with.steps.size(), without.steps.size()) << Describe(random_case);
    for (std::size_t i = 0; i < with.steps.size(); ++i) {
      StepRecord step = with.steps[i];
      ASSERT_EQ(step.stages, (std::vector<StageSpan>{{step.start, step.end}}));
      step.stages.clear();
      ASSERT_EQ(step, without.steps[i]) << Describe(random_case);
    }
    ASSERT_EQ(with.results.completion, without.results.completion) << Describe(random_case);
    ASSERT_EQ(with.itl, without.itl) << Describe(random_case);
    ASSERT_EQ(with.busy_ns, without.busy_ns);
    ASSERT_EQ(with.output_tokens, without.output_tokens);
    ASSERT_TRUE(with.kv_block_ns == without.kv_block_ns);
    ++compared;
  }
  EXPECT_GT(compared, 100);
}

// 16 layers in half of a step of `step_us` each, and links that cost nothing to speak of.
Report RunHalves(int step_us, const std::vector<std::string>& more) {
  std::vector<std::string> set = {
      fmt::format(R"(latency={{"backend":"blackbox","alpha":[0,0,0],"beta":[{},0,0]}})", step_us),
      R"(workload.arrivals={"process":"static"})", "hardware.interconnect_latency_us=0",
      "hardware.interconnect_gb_s=100000"};
  set.insert(set.end(), more.begin(), more.end());
  return RunToEnd(Staged(2, set));
}

TEST(PipelineTheory, IterationCounts_AreThoseOfOneStage) {
  // A prompt in one step: one prefill and D - 1 decodes, each through both stages.
  const std::string outputs = R"(workload.output_tokens={"distribution":"fixed","value":5})";
  const Report whole = RunHalves(2000, {"workload.requests=1", outputs});
  EXPECT_EQ(whole.steps, 5);
  EXPECT_NEAR(whole.simulated_s, 5 * 0.002, 1e-6);
  // In chunks: ceil(100 / 30) and D - 1. Chunks follow one another from stage to stage, decodes
  // wait for their tokens.
  const Report chunks =
      RunHalves(2000, {"workload.requests=1", outputs, "engine.long_prefill_token_threshold=30"});
  EXPECT_EQ(chunks.steps, 4 + 5 - 1);
  EXPECT_NEAR(chunks.simulated_s, (4 + 1) * 0.001 + 4 * 0.002, 1e-6);
}

TEST(PipelineTheory, Batches_TakeTurns) {
  // 64 tokens are four prompts of 16: two batches of four, each in its own half of the time.
  const std::vector<std::string> eight = {
      "workload.requests=8", R"(workload.prompt_tokens={"distribution":"fixed","value":16})",
      "engine.max_num_seqs=64", "engine.enable_prefix_caching=false"};
  std::vector<std::string> turns = eight, at_once = eight;
  turns.emplace_back("engine.max_num_batched_tokens=64");
  at_once.emplace_back("engine.max_num_batched_tokens=2048");
  const Report two = RunHalves(2000, turns);
  EXPECT_EQ(two.steps, 2 * 20);
  EXPECT_NEAR(two.simulated_s, 20 * 0.002 + 0.001, 1e-6);
  EXPECT_NEAR(two.bubble_share, 1.0 / 41, 1e-4);
  EXPECT_NEAR(two.itl_ms.max, 2, 1e-3);
  EXPECT_NEAR(two.mean_batch_size, 8 - 4.0 / 41, 0.01);
  // All in one batch: one stage is always idle, and nothing is gained nor lost.
  const Report one = RunHalves(2000, at_once);
  EXPECT_EQ(one.steps, 20);
  EXPECT_NEAR(one.simulated_s, 20 * 0.002, 1e-6);
  EXPECT_NEAR(one.bubble_share, 0.5, 1e-4);
}

TEST(Pipeline, Report_CountsGpusOfAllStages) {
  const Report r =
      RunToEnd(Staged(4, {"cluster.pools.0.tensor_parallel=2", "cluster.pools.0.replicas=3",
                          "hardware.price_per_gpu_hour=2"}));
  EXPECT_EQ(r.gpus, 24);
  EXPECT_EQ(r.stages, 4);
  EXPECT_NEAR(r.output_tokens_per_s_per_gpu * 24, r.output_tokens_per_s, 1e-9);
  ASSERT_TRUE(r.cost_per_million_output_tokens);
  EXPECT_NEAR(*r.cost_per_million_output_tokens, 24 * 2 / (r.output_tokens_per_s * 3600) * 1e6,
              1e-6);
  const std::string json = ReportJson(r, ReportParts::kSummary);
  EXPECT_NE(json.find("\"pipeline\""), std::string::npos);
  EXPECT_EQ(ReportJson(RunToEnd(Staged(1)), ReportParts::kSummary).find("\"pipeline\""),
            std::string::npos);
}

// The work against the peaks of all GPUs: two stages in turn use at most as much as one.
TEST(Pipeline, Use_IsOfAllGpus) {
  const std::vector<std::string> load = {"workload.requests=400",
                                         R"(workload.arrivals={"process":"static"})"};
  const Report one = RunToEnd(Staged(1, load)), two = RunToEnd(Staged(2, load));
  ASSERT_TRUE(one.mfu && two.mfu);
  EXPECT_GT(*two.mfu, 0);
  EXPECT_LT(*two.mfu, *one.mfu);
  // The work itself is the same, as far as batches are.
  EXPECT_NEAR(*two.mfu * 2 * two.simulated_s / (*one.mfu * one.simulated_s), 1, 0.02);
}

}  // namespace
}  // namespace servecast::testing
