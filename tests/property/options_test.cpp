// The options after SFLLM, by hand: a pool of a few blocks, steps of 1 us, and what must happen.
// That they agree with the reference simulator is the differential test's business.
#include <cstdint>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "testing/differential.h"
#include "testing/engine_run.h"
#include "testing/random_cases.h"

namespace servecast::testing {
namespace {

struct Row {
  TimeNs arrival;
  std::int32_t prompt, output;
};

// `blocks` usable blocks of 4 tokens, without prefix caching.
RandomCase CaseOf(const std::vector<Row>& rows, std::int64_t blocks) {
  RandomCase c;
  for (const Row& row : rows) {
    c.requests.arrival.push_back(row.arrival);
    c.requests.prompt_tokens.push_back(row.prompt);
    c.requests.output_tokens.push_back(row.output);
  }
  c.engine.name = "small";
  c.engine.block_size = 4;
  c.engine.num_gpu_blocks_override = blocks + 1;
  c.engine.max_num_seqs = 16;
  c.engine.max_num_batched_tokens = 1000;
  c.engine.enable_prefix_caching = false;
  c.model_max_len = 1 << 20;
  return c;
}

EngineRun RunOf(const RandomCase& c) {
  EXPECT_EQ(FirstMismatch(c, RunReference(c)).value_or(""), "");
  Result<EngineRun> run = RunEngine(EngineCaseOf(c), MakeLatency(c), {});
  EXPECT_TRUE(run.ok());
  return run.ok() ? std::move(run.value()) : EngineRun{};
}

// The first request leaves 2 of 5 blocks as garbage; the second needs all 5.
TEST(GarbageCollection, OfAHalf_TakesTwoPassesForTwoBlocks) {
  RandomCase c = CaseOf({{0, 8, 1}, {5000, 17, 1}}, 5);
  c.engine.gc_pass_us = 3;
  c.engine.gc_fraction = 0.5;  // of 2 blocks 1, of 1 block 1
  EngineRun run = RunOf(c);
  ASSERT_EQ(run.steps.size(), 2u);
  EXPECT_EQ(run.steps[0].end, 1000);
  EXPECT_EQ(run.steps[1].start, 5000);
  EXPECT_EQ(run.steps[1].end, 5000 + 1000 + 2 * 3000);
  EXPECT_EQ(run.report.counts.gc_passes, 2);
  EXPECT_DOUBLE_EQ(run.report.gc_ms, 0.006);

  c.engine.gc_fraction = 1;
  EXPECT_EQ(RunOf(c).report.counts.gc_passes, 1);
  c.requests.prompt_tokens[1] = 12;  // 3 blocks: nothing need be collected
  EXPECT_EQ(RunOf(c).report.counts.gc_passes, 0);
}

// Two run in 5 blocks, the first one's end leaves garbage; the other's next block is collected
// rather than taken from somebody. Its step is the one that takes longer.
TEST(GarbageCollection, ForARunningRequest_ComesBeforePreemption) {
  // 0 holds 2 blocks and ends with its prompt, 1 holds 3 for 12 tokens and needs a fourth next.
  RandomCase c = CaseOf({{0, 8, 1}, {0, 12, 3}}, 5);
  c.engine.gc_pass_us = 3;
  const EngineRun run = RunOf(c);
  ASSERT_EQ(run.steps.size(), 3u);
  EXPECT_EQ(run.steps[1].end - run.steps[1].start, 4000);
  EXPECT_EQ(run.steps[2].end - run.steps[2].start, 1000);
  EXPECT_EQ(run.report.preemptions, 0);
  EXPECT_EQ(run.report.counts.gc_passes, 1);
}

// Nobody is preempted or kept waiting while there is garbage: what is done is what is done without
// it, only later. (All come at once, so that later changes nothing else.)
TEST(GarbageCollection, OfAnyShare_ChangesTimesOnly) {
  std::int64_t passes = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    RandomCase c = MakeRandomCase(seed);
    if (!c.requests.think.empty()) continue;  // a later turn comes when the one before is complete
    c.requests.arrival.assign(c.requests.arrival.size(), 0);
    c.requests.pause.clear();
    c.requests.due.clear();
    c.requests.timeout.clear();
    c.latency.enqueue_base = c.latency.enqueue_per_token = c.latency.enqueue_scramble = 0;
    c.horizon.reset();
    c.stages.clear();  // a pass delays whom it may
    c.slowdowns = {};  // and moves steps into slow periods
    c.engine.gc_pass_us = 0;
    const ReferenceOutput without = RunReference(c);
    for (const double fraction : {0.1, 1.0}) {
      c.engine.gc_pass_us = 7;
      c.engine.gc_fraction = fraction;
      const EngineRun with = RunOf(c);
      passes += with.report.counts.gc_passes;
      ASSERT_EQ(with.steps.size(), without.steps.size()) << Describe(c);
      std::int64_t longer = 0;
      for (std::size_t i = 0; i < with.steps.size(); ++i) {
        const StepRecord &a = with.steps[i], &b = without.steps[i];
        ASSERT_EQ(a.members, b.members) << Describe(c) << i;
        ASSERT_EQ(a.preempted, b.preempted) << Describe(c) << i;
        longer += a.end - a.start - (b.end - b.start);
      }
      ASSERT_EQ(longer, 7000 * with.report.counts.gc_passes) << Describe(c);
    }
  }
  EXPECT_GT(passes, 1000);
}

// The second prompt has 2 blocks; 3 are free while the first one runs.
TEST(AdmissionReserve, OfTwicePrompt_WaitsForFourFreeBlocks) {
  RandomCase c = CaseOf({{0, 8, 4}, {0, 8, 1}}, 5);
  EXPECT_EQ(RunOf(c).steps[0].members.size(), 2u);
  c.engine.admission_reserve = 1.5;  // 3 blocks
  EXPECT_EQ(RunOf(c).steps[0].members.size(), 2u);
  c.engine.admission_reserve = 2;
  const EngineRun run = RunOf(c);
  ASSERT_EQ(run.steps.size(), 5u);
  for (const StepRecord& step : run.steps) EXPECT_EQ(step.members.size(), 1u);
}

TEST(AdmissionReserve, ForWhoComesFirst_DoesNotCount) {
  RandomCase c = CaseOf({{0, 8, 4}}, 5);
  c.engine.admission_reserve = 1000;
  EXPECT_EQ(RunOf(c).report.completed, 1);
}

TEST(LengthBucket, Queue_IsByBucketThenArrival) {
  RandomCase c = CaseOf({{0, 130, 1}, {0, 60, 1}, {0, 70, 1}, {0, 10, 1}, {0, 63, 1}}, 200);
  c.engine.max_num_seqs = 1;
  c.scheduler.order = "length_bucket";
  std::vector<RequestId> order;
  for (const StepRecord& step : RunOf(c).steps) order.push_back(step.members[0].id);
  EXPECT_EQ(order, (std::vector<RequestId>{1, 3, 4, 2, 0}));
  c.scheduler.params["bucket_tokens"] = 1000;
  order.clear();
  for (const StepRecord& step : RunOf(c).steps) order.push_back(step.members[0].id);
  EXPECT_EQ(order, (std::vector<RequestId>{0, 1, 2, 3, 4}));
}

// One step of 130, 60, 70 and 10 tokens: all as long as 130, or 60 and 10 as long as 60.
TEST(Padding, OfAStep_IsToTheLongestOfItsBucket) {
  RandomCase c = CaseOf({{0, 130, 1}, {0, 60, 1}, {0, 70, 1}, {0, 10, 1}}, 200);
  SchedulerCounts counts = RunOf(c).report.counts;
  EXPECT_EQ(counts.prefill_tokens, 270);
  EXPECT_EQ(counts.padding_tokens, 0 + 70 + 60 + 120);
  c.scheduler.order = "length_bucket";
  counts = RunOf(c).report.counts;
  EXPECT_EQ(counts.prefill_tokens, 270);
  EXPECT_EQ(counts.padding_tokens, 50);
}

}  // namespace
}  // namespace servecast::testing
