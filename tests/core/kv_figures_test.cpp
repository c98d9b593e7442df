// Fragmentation, allocation failures and delays between steps, with numbers that can be followed by
// hand: each step takes 1 ms.
#include <string>
#include <vector>

#include "core/documents.h"
#include "gtest/gtest.h"
#include "serving/hooks.h"

namespace servecast::testing {
namespace {

struct Row {
  std::int32_t prompt = 1, output = 1;
};

// All come at once, to blocks of 16 tokens of which `blocks` are usable.
Report RunRows(const std::vector<Row>& rows, std::int64_t blocks,
               const std::vector<std::string>& set = {}) {
  std::vector<std::string> all = {
      R"(latency={"backend":"blackbox","alpha":[0,0,0],"beta":[1000,0,0]})",
      "engine.enable_prefix_caching=false", "engine.async_scheduling=false",
      "engine.num_gpu_blocks_override=" + std::to_string(blocks + 1)};
  all.insert(all.end(), set.begin(), set.end());
  SimulationHooks hooks;
  hooks.requests.emplace();
  for (const Row& row : rows) {
    hooks.requests->arrival.push_back(0);
    hooks.requests->prompt_tokens.push_back(row.prompt);
    hooks.requests->output_tokens.push_back(row.output);
  }
  Simulation simulation = Good(Simulation::Create(Parsed(Changed(all)), {}, std::move(hooks)));
  while (!simulation.Advance(2)) {
  }
  return simulation.Snapshot();
}

TEST(KvFigures, LastBlock_HasRoomThatNoTokenIsIn) {
  // 20, 21 and 22 tokens in two blocks.
  const Report r = RunRows({{20, 3}}, 10);
  EXPECT_EQ(r.steps, 3);
  EXPECT_DOUBLE_EQ(r.kv_mean_fragmentation, (12 + 11 + 10) / 3.0 / 160);
  EXPECT_DOUBLE_EQ(r.kv_peak_fragmentation, 12.0 / 160);
  EXPECT_DOUBLE_EQ(r.kv_mean_usage, 0.2);
}

TEST(KvFigures, WhatOrcaReserves_IsFragmentation) {
  // Of 64 tokens 20, 21 and 22.
  const Report r = RunRows({{20, 3}}, 10, {"scheduler.policy=orca", "engine.max_model_len=64"});
  EXPECT_DOUBLE_EQ(r.kv_mean_fragmentation, (44 + 43 + 42) / 3.0 / 160);
  EXPECT_DOUBLE_EQ(r.kv_peak_fragmentation, 44.0 / 160);
}

// Three blocks: both prompts have one, the first decode takes the third, the second finds none and
// gives way. It needs two to come back, in vain in the third and fourth step.
TEST(KvFigures, BlocksThatWereNotThere_AreCountedWithTheDelayThatTheyCost) {
  const Report r = RunRows({{16, 4}, {16, 4}}, 3);
  EXPECT_EQ(r.completed, 2);
  EXPECT_EQ(r.preemptions, 1);
  EXPECT_EQ(r.steps, 7);
  EXPECT_EQ(r.allocation_failures, 3);
  // Three steps each after the first; the second's wait of three.
  EXPECT_EQ(r.step_delay_ms.n, 6);
  EXPECT_DOUBLE_EQ(r.step_delay_ms.max, 3);
  EXPECT_DOUBLE_EQ(r.step_delay_ms.mean, 0.5);
  EXPECT_DOUBLE_EQ(r.step_delay_ms.p50, 0);
}

TEST(KvFigures, PromptCutByTheBudget_IsNotLate) {
  const Report r =
      RunRows({{40, 1}}, 10, {"engine.max_num_batched_tokens=16", "engine.max_num_seqs=4"});
  EXPECT_EQ(r.steps, 3);
  EXPECT_EQ(r.step_delay_ms.n, 2);
  EXPECT_EQ(r.step_delay_ms.max, 0);
  EXPECT_EQ(r.allocation_failures, 0);
}

}  // namespace
}  // namespace servecast::testing
