// When a host stands still: how much of the time, the same whoever asks, and what it does to
// latencies.
#include "serving/replica/host_stalls.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/documents.h"
#include "gtest/gtest.h"
#include "testing/reference_stalls.h"

namespace servecast {
namespace {

using testing::Changed;
using testing::ReferenceStall;
using testing::RunToEnd;

constexpr StallTimes kTimes = {10'000'000, 500'000'000};  // 10 ms in each half second

EngineSpec Engine(double ms, double per_s) {
  EngineSpec e;
  e.host_stall_ms = ms;
  e.host_stalls_per_s = per_s;
  return e;
}

TEST(HostStalls, Times_AreTheEngines) {
  EXPECT_EQ(StallsOf(Engine(10, 2)).mean, kTimes.mean);
  EXPECT_EQ(StallsOf(Engine(10, 2)).interval, kTimes.interval);
  for (const auto& [ms, per_s] : {std::pair{0.0, 2.0}, {10.0, 0.0}, {0.0, 0.0}}) {
    EXPECT_FALSE(HostStalls(StallsOf(Engine(ms, per_s)), 1, 0).Any());
  }
  // So seldom that the clock ends before the second.
  EXPECT_EQ(StallsOf(Engine(10, 1e-300)).interval, 1'000'000'000'000'000'000);
  // More than there is time for: it stands still most of the time (5/6, for intervals overlap), and
  // each moment ends.
  const HostStalls most(StallsOf(Engine(1e6, 1000)), 1, 0);
  int hit = 0;
  constexpr int kMoments = 100'000;
  for (int i = 0; i < kMoments; ++i) {
    const TimeNs left = most.LeftAt(i * TimeNs{77'777});
    hit += left > 0;
    ASSERT_LE(left, 1'000'000) << i;
  }
  EXPECT_NEAR(static_cast<double>(hit) / kMoments, 5.0 / 6, 0.01);
}

TEST(HostStalls, AnyTime_IsThatOfAListOfThem) {
  const std::vector<StallTimes> all = {kTimes,     {50, 50},       {900, 1000},
                                       {40, 4000}, {5000, 20'000}, {124, 999}};
  for (const StallTimes& times : all) {
    for (const std::int64_t replica : {0, 1, 7}) {
      const HostStalls stalls(times, 3, replica);
      for (TimeNs i = 0; i < 2000; ++i) {
        const TimeNs time = i * times.interval / 97;
        ASSERT_EQ(stalls.LeftAt(time), ReferenceStall(times, 3, replica, time))
            << times.mean << " in " << times.interval << " at " << time;
      }
    }
  }
}

// By the law of an exponential length, what is left of one is as long on average as all of it.
TEST(HostStalls, ShareOfTime_IsMeanOverInterval) {
  const HostStalls stalls(kTimes, 1, 0);
  constexpr TimeNs kEvery = 1'000'000;
  constexpr int kTimesAsked = 2'000'000;  // 2,000 s, 4,000 stalls
  std::int64_t hit = 0, left = 0, longest = 0;
  for (int i = 0; i < kTimesAsked; ++i) {
    const TimeNs rest = stalls.LeftAt(i * kEvery);
    hit += rest > 0;
    left += rest;
    longest = std::max(longest, rest);
  }
  EXPECT_NEAR(static_cast<double>(hit) / kTimesAsked, 0.02, 0.001);
  EXPECT_NEAR(static_cast<double>(left) / static_cast<double>(hit), 1e7, 1e6);
  EXPECT_GT(longest, 4 * kTimes.mean);
  EXPECT_LE(longest, HostStalls::kLongest * kTimes.mean);
}

TEST(HostStalls, Draws_DifferByReplicaAndSeed) {
  const HostStalls one(kTimes, 1, 0), neighbour(kTimes, 1, 1), other(kTimes, 2, 0);
  int both = 0, seeds = 0, hit = 0;
  for (TimeNs time = 0; time < 100'000'000'000; time += 1'000'000) {
    const bool now = one.LeftAt(time) > 0;
    hit += now;
    both += now && neighbour.LeftAt(time) > 0;
    seeds += now && other.LeftAt(time) > 0;
  }
  EXPECT_GT(hit, 1000);
  EXPECT_LT(both, hit / 4);
  EXPECT_LT(seeds, hit / 4);
}

// The engine does not wait: steps and gaps between tokens are what they were.
TEST(HostStalls, Run_HasLaterFirstTokensAndTheSameSteps) {
  const auto run = [](const char* stalls) {
    return RunToEnd(Changed(
        {"engine.preset=vllm-0.15", "workload.requests=4000", "engine.host_stall_ms=10", stalls}));
  };
  const Report without = run("engine.host_stalls_per_s=0");
  const Report with = run("engine.host_stalls_per_s=20");
  EXPECT_EQ(with.steps, without.steps);
  EXPECT_EQ(with.tpot_ms.mean, without.tpot_ms.mean);
  EXPECT_EQ(with.itl_ms.p99, without.itl_ms.p99);
  EXPECT_GT(with.ttft_ms.mean, without.ttft_ms.mean);
  EXPECT_GT(with.ttft_ms.p99, without.ttft_ms.p99);
  // A fifth of the time, 10 ms each.
  EXPECT_NEAR(with.ttft_ms.mean - without.ttft_ms.mean, 2, 0.7);
  EXPECT_NEAR(with.e2e_ms.mean - without.e2e_ms.mean, with.ttft_ms.mean - without.ttft_ms.mean,
              1e-6);
}

}  // namespace
}  // namespace servecast
