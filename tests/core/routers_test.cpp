// What random cases are too short for: windows, intervals and trees of routers that remember.
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "serving/cluster/router.h"

namespace servecast::testing {
namespace {

std::unique_ptr<Router> Made(const char* name, const ParamMap& params, std::size_t replicas) {
  const RouterEntry& entry = FindRouter(name);
  const std::vector<RoutedReplica> all(replicas, {.seats = 8, .cached_blocks = 1000});
  return entry.make({.seed = 7, .replicas = all, .params = ParamValues(entry.params, params)});
}

std::int32_t Ask(Router& router, RequestId number, const std::vector<ContentRange>& content,
                 std::int64_t tokens, TimeNs time, const ReplicaLoads& loads) {
  return router.Choose(
      {.number = number, .prompt_tokens = tokens, .content = content, .time = time}, loads);
}

// Two replicas have had a request each. The first one's is 60 s old, and counts; a nanosecond
// later it does not.
TEST(Routers, KvLookup_CountsRequestsOfTheLast60Seconds) {
  for (const TimeNs late : {0, 1}) {
    const auto router = Made("kv_lookup", {}, 2);
    const ReplicaLoads loads(2);
    EXPECT_EQ(Ask(*router, 0, {}, 100, 0, loads), 0);
    EXPECT_EQ(Ask(*router, 1, {}, 100, 10, loads), 1);  // never used
    EXPECT_EQ(Ask(*router, 2, {}, 100, 60 * kNsPerS - 1, loads), 0);
    EXPECT_EQ(Ask(*router, 3, {}, 100, 60 * kNsPerS + late, loads), late == 0 ? 1 : 0);
  }
}

// Blocks of 16: 10 of them are there, and 2,000 tokens are left, or one more.
TEST(Routers, KvLookup_GoesToTheMatchThatLeaves2000Tokens) {
  for (const std::int64_t more : {0, 1}) {
    const auto router = Made("kv_lookup", {}, 2);
    const ReplicaLoads loads(2);
    EXPECT_EQ(Ask(*router, 0, {{0, 0, 10}}, 170, 0, loads), 0);
    const std::vector<ContentRange> grown = {{0, 0, 10}, {1, 10, 135}};
    EXPECT_EQ(Ask(*router, 1, grown, 2160 + more, 1, loads), more == 0 ? 0 : 1);
  }
}

// Trees of 100 tokens, cut every second: a tree keeps more until then, and loses the text that was
// used the longest ago.
TEST(Routers, CacheAware_CutsTreesAtItsInterval) {
  for (const TimeNs time : {kNsPerS - 1, kNsPerS}) {
    const auto router =
        Made("cache_aware", {{"max_tree_size", 400}, {"eviction_interval_s", 1}}, 2);
    const ReplicaLoads loads(2);
    EXPECT_EQ(Ask(*router, 0, {{0, 0, 80}}, 80, 0, loads), 0);
    EXPECT_EQ(Ask(*router, 1, {{1, 0, 90}}, 90, 1, loads), 1);
    EXPECT_EQ(Ask(*router, 2, {{2, 0, 70}}, 70, 2, loads), 0);
    // The tree of 0 had 150 tokens and has 70 from the cut on: less than that of 1.
    EXPECT_EQ(Ask(*router, 3, {{3, 0, 50}}, 50, time, loads), time < kNsPerS ? 1 : 0);
    EXPECT_EQ(Ask(*router, 4, {{0, 0, 80}}, 80, time, loads), time < kNsPerS ? 0 : 1);
  }
}

// 65 requests apart and more than 1.5 times as many: the least loaded. Else the match, which has to
// be more than 0.3 of the prompt.
TEST(Routers, CacheAware_LeavesTheMatchWhileLoadsAreOutOfBalance) {
  const auto chosen = [](std::int64_t on_first, std::int64_t on_second, std::int64_t tokens) {
    const auto router = Made("cache_aware", {}, 2);
    ReplicaLoads loads(2);
    EXPECT_EQ(Ask(*router, 0, {{0, 0, 30}}, 30, 0, loads), 0);
    loads.Change(0, on_first);
    loads.Change(1, on_second);
    const std::vector<ContentRange> grown = {{0, 0, 30}, {1, 30, tokens}};
    return Ask(*router, 1, grown, tokens, 1, loads);
  };
  EXPECT_EQ(chosen(64, 0, 99), 0);
  EXPECT_EQ(chosen(65, 0, 99), 1);
  EXPECT_EQ(chosen(240, 160, 99), 0);
  EXPECT_EQ(chosen(241, 160, 99), 1);
  EXPECT_EQ(chosen(0, 0, 100), 1);  // 0.3, to the smaller tree
}

// A short last chunk is equal in equal prompts alone.
TEST(Routers, PrefixAware_GoesWhereTheSameChunksWent) {
  const auto router = Made("prefix_aware", {}, 64);
  const ReplicaLoads loads(64);
  const std::int32_t first = Ask(*router, 0, {{0, 0, 40}}, 40, 0, loads);
  EXPECT_EQ(Ask(*router, 1, {{0, 0, 40}}, 40, 1, loads), first);
  EXPECT_EQ(Ask(*router, 2, {{0, 0, 32}, {1, 32, 90}}, 90, 2, loads), first);
  EXPECT_NE(Ask(*router, 3, {{2, 0, 20}}, 20, 3, loads), first);
}

// 4 x waiting + running, with what was sent since the counts came.
TEST(Routers, VllmDp_CountsWhatItSentAsWaitingUntilNewCounts) {
  const auto router = Made("vllm_dp", {}, 2);
  ReplicaLoads loads(2);
  loads.SetEngine(0, {.waiting = 1, .running = 3});
  loads.SetEngine(1, {.waiting = 0, .running = 8});
  const auto ask = [&](TimeNs signals) {
    return router->Choose({.prompt_tokens = 10, .signals = signals}, loads);
  };
  EXPECT_EQ(ask(0), 0);  // 7 against 8
  EXPECT_EQ(ask(0), 1);  // 11 against 8
  EXPECT_EQ(ask(0), 0);  // 11 against 12
  EXPECT_EQ(ask(100 * kNsPerMs), 0);
}

}  // namespace
}  // namespace servecast::testing
