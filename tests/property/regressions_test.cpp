// Bugs that simulators of this kind are known to have had, one test each: what has to hold so that
// none of them can be here.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "testing/differential.h"
#include "testing/engine_run.h"
#include "testing/random_cases.h"

namespace servecast::testing {
namespace {

// `count` requests, `gap` apart, in a pool of `blocks` usable blocks of 4 tokens; a step takes 1
// us.
RandomCase Small(std::int64_t count, std::int32_t prompt, std::int32_t output, TimeNs gap,
                 std::int64_t blocks) {
  RandomCase small;
  for (std::int64_t i = 0; i < count; ++i) {
    small.requests.arrival.push_back(i * gap);
    small.requests.prompt_tokens.push_back(prompt);
    small.requests.output_tokens.push_back(output);
  }
  small.engine.name = "small";
  small.engine.block_size = 4;
  small.engine.num_gpu_blocks_override = blocks + 1;
  small.engine.max_num_seqs = 16;
  small.engine.max_num_batched_tokens = 64;
  small.model_max_len = 1 << 20;
  return small;
}

EngineRun RunSmall(const RandomCase& small) {
  Result<EngineRun> run = RunEngine(EngineCaseOf(small), MakeLatency(small), {});
  EXPECT_TRUE(run.ok());
  return run.ok() ? std::move(run.value()) : EngineRun{};
}

// Room for hardly more than one request: they push each other out, and all get done in the end.
TEST(Regressions, PreemptionUnderTinyKv_IsNoLivelock) {
  for (const char* preemption : {"tail", "priority"}) {
    for (const bool async : {false, true}) {
      RandomCase small = Small(12, 9, 20, 1, 9);
      small.scheduler.preemption = preemption;
      small.engine.async_scheduling = async;
      const EngineRun run = RunSmall(small);
      EXPECT_EQ(run.report.completed, 12) << preemption << async;
      EXPECT_GT(run.report.preemptions, 0) << preemption << async;
      EXPECT_LT(run.report.steps, 2000) << preemption << async;
    }
  }
}

// By vLLM's rule for equals, two requests of one arrival could take the blocks from each other
// without end.
TEST(Regressions, EqualRequestsOfOneArrival_DoNotPreemptEachOtherForEver) {
  // One token each, and so many that the fight would begin anew after each of them.
  for (const auto& [async, output, blocks] :
       {std::tuple{false, 1, 4}, {true, 1, 4}, {false, 200, 54}, {true, 200, 54}}) {
    RandomCase small = Small(2, 15, output, 0, blocks);
    small.engine.enable_prefix_caching = false;
    small.engine.long_prefill_token_threshold = 4;
    small.engine.scheduler_reserve_full_isl = false;
    small.engine.async_scheduling = async;
    small.scheduler.preemption = "priority";
    const EngineRun run = RunSmall(small);
    EXPECT_EQ(run.report.completed, 2) << async;
    EXPECT_GT(run.report.preemptions, 500) << async;
    EXPECT_LT(run.report.steps, 30'000) << async;
    EXPECT_EQ(FirstMismatch(small, RunReference(small)).value_or(""), "") << async;
  }
}

// A request as long as the pool asks for its last block when it has all others: nobody else is
// there, so it need not go itself.
TEST(Regressions, RequestThatFillsThePool_DoesNotPreemptItselfForEver) {
  for (const bool async : {false, true}) {
    RandomCase small = Small(2, 8, 40, 0, 9);  // 36 tokens at most
    small.engine.async_scheduling = async;
    const EngineRun run = RunSmall(small);
    EXPECT_EQ(run.report.completed, 2);
    EXPECT_EQ(run.report.length_capped, 2);
    EXPECT_EQ(run.report.output_tokens, 2 * 28);
    EXPECT_LT(run.report.steps, 200);
  }
}

// 7 computes a block that 3 computes too, is preempted, and its copy, the older one, is overwritten
// by a decode while 7 waits: now it finds 3's, which costs no free block, and fits. (Made of a
// random case.)
TEST(Regressions, OverwrittenCopyOfAHeldBlock_LetsTheHeadIn) {
  RandomCase c;
  c.engine.block_size = 13;
  c.engine.num_gpu_blocks_override = 32;
  c.engine.max_num_seqs = 64;
  c.engine.long_prefill_token_threshold = 20;
  c.engine.enable_chunked_prefill = false;
  c.engine.free_contentless_first = false;
  c.engine.async_scheduling = false;
  c.model_max_len = 159;
  c.latency.base = 1000;
  c.latency.per_decode_context = 3;
  c.requests.arrival.assign(6, 3549);
  c.requests.prompt_tokens = {47, 33, 154, 58, 66, 36};
  c.requests.output_tokens = {30, 10, 20, 23, 49, 18};
  c.requests.content = {0, 1, 2, 3, 4, 5};
  c.requests.segments = {{}, {0, 33}, {}, {}, {0, 39}, {3, 36}};
  const ReferenceOutput reference = RunReference(c);
  ASSERT_GT(reference.preemptions, 0);
  EXPECT_EQ(FirstMismatch(c, reference).value_or(""), "");
}

// A preemption does not take back what the client has seen: its first token stays the first, and
// the gaps between tokens add up to the time between the first and the last.
TEST(Regressions, LatenciesOfPreemptedRequests_AreCountedOnce) {
  const RandomCase small = Small(12, 9, 20, 1, 9);
  const EngineRun run = RunSmall(small);
  ASSERT_GT(run.report.preemptions, 0);
  EXPECT_EQ(run.report.ttft_ms.n, 12);
  EXPECT_EQ(run.report.e2e_ms.n, 12);
  EXPECT_EQ(run.report.itl_ms.n, 12 * 19);
  const RequestResults results = ResultsOf(run.report, small.requests);
  double decode_ns = 0;
  for (std::size_t i = 0; i < 12; ++i) {
    TimeNs first = -1;
    for (const StepRecord& step : run.steps) {
      for (const StepMember& member : step.members) {
        const bool is_first =
            first < 0 && member.sampled && static_cast<std::size_t>(member.id) == i;
        if (is_first) first = step.end;
      }
    }
    EXPECT_EQ(results.first_token[i], first) << i;
    decode_ns += static_cast<double>(results.completion[i] - first);
  }
  EXPECT_NEAR(run.report.itl_ms.mean * 12 * 19 * 1e6, decode_ns, 1);
}

// Work that comes as the replica wakes up, or just before a step ends, starts no second chain of
// steps beside the first.
TEST(Regressions, ArrivalsAtStepEnds_StartNoSecondChainOfSteps) {
  for (const TimeNs gap : {0, 500, 999, 1000, 1001, 25'000}) {
    const EngineRun run = RunSmall(Small(10, 5, 5, gap, 100));
    TimeNs end = 0;
    for (const StepRecord& step : run.steps) {
      EXPECT_GE(step.start, end) << gap;
      end = step.end;
    }
  }
}

// As many tokens as were asked for: none more in a resumed request, in a chunk that ends a prompt,
// or in flight as the last one comes.
TEST(Regressions, TokensDelivered_AreThoseAskedFor) {
  for (const bool async : {false, true}) {
    RandomCase small = Small(12, 9, 20, 1, 9);
    small.engine.async_scheduling = async;
    small.engine.enable_prefix_caching = false;
    small.engine.long_prefill_token_threshold = 4;
    const EngineRun run = RunSmall(small);
    ASSERT_GT(run.report.preemptions, 0);
    std::vector<std::int64_t> sampled(12, 0);
    for (const StepRecord& step : run.steps) {
      for (const StepMember& member : step.members) {
        sampled[static_cast<std::size_t>(member.id)] += member.sampled ? 1 : 0;
      }
    }
    EXPECT_EQ(sampled, std::vector<std::int64_t>(12, 20)) << async;
    EXPECT_EQ(run.report.output_tokens, 12 * 20) << async;
  }
}

// A prompt that can never be served is dropped and says so; those behind it are served.
TEST(Regressions, RequestsThatCannotBeServed_AreCounted) {
  RandomCase small = Small(6, 9, 4, 10, 9);
  small.requests.prompt_tokens[2] = 40;
  const EngineRun run = RunSmall(small);
  EXPECT_EQ(run.report.arrived, 6);
  EXPECT_EQ(run.report.dropped, 1);
  EXPECT_EQ(run.report.completed, 5);
  EXPECT_EQ(ResultsOf(run.report, small.requests).state[2], RequestState::kDropped);
}

}  // namespace
}  // namespace servecast::testing
