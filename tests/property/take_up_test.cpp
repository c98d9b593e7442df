// The front end of a server: who comes first is in the queue first, and waits grow with the load.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/math.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "serving/take_up.h"
#include "testing/asked.h"
#include "testing/cluster_run.h"
#include "testing/engine_run.h"
#include "testing/pd_cases.h"
#include "testing/random_cases.h"
#include "testing/scheduled_differential.h"

namespace servecast::testing {
namespace {

std::uint64_t Cases(std::int64_t all) {
  return static_cast<std::uint64_t>(std::min(all, Asked("SERVECAST_CASES", all)));
}

TEST(TakeUp, OneServer_WorksOnOneAfterAnother) {
  TakeUp front_end(1);
  EXPECT_EQ(front_end.Enter(0, {30 * kNsPerMs, 2 * kNsPerMs}), 32 * kNsPerMs);
  EXPECT_EQ(front_end.Enter(0, {1 * kNsPerMs, 2 * kNsPerMs}),
            33 * kNsPerMs);  // behind it, though short
  EXPECT_EQ(front_end.Enter(32 * kNsPerMs, {1 * kNsPerMs, 2 * kNsPerMs}), 35 * kNsPerMs);
  EXPECT_EQ(front_end.Enter(33 * kNsPerMs, {0, 0}),
            35 * kNsPerMs);  // what passes besides keeps the order
  EXPECT_EQ(front_end.Enter(90 * kNsPerMs, {1 * kNsPerMs, 2 * kNsPerMs}), 93 * kNsPerMs);
}

TEST(TakeUp, SeveralServers_PassALongOne) {
  TakeUp front_end(2);
  EXPECT_EQ(front_end.Enter(0, {30 * kNsPerMs, 0}), 30 * kNsPerMs);
  EXPECT_EQ(front_end.Enter(0, {1 * kNsPerMs, 0}), 1 * kNsPerMs);
  EXPECT_EQ(front_end.Enter(0, {1 * kNsPerMs, 0}), 2 * kNsPerMs);
  EXPECT_EQ(front_end.Enter(10 * kNsPerMs, {1 * kNsPerMs, 0}), 11 * kNsPerMs);
  TakeUp all(0);
  EXPECT_EQ(all.Enter(5, {30, 1}), 36);
  EXPECT_EQ(all.Enter(5, {1, 1}), 7);
}

// Of arrivals at random and equal times: work x busy / (2 (1 - busy)), by Pollaczek and Khinchine.
TEST(TakeUp, WaitOfArrivalsAtRandom_IsThatOfAQueue) {
  constexpr std::int64_t kRequests = 400'000;
  for (const double busy : {0.2, 0.5, 0.8}) {
    TakeUp front_end(1);
    double arrival = 0, waited = 0;
    for (std::int64_t i = 0; i < kRequests; ++i) {
      const std::uint64_t bits = Mix64(static_cast<std::uint64_t>(i) + 1);
      const double uniform = (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;
      arrival -= Log(uniform) * 1e6 / busy;
      const auto at = static_cast<TimeNs>(arrival);
      waited += static_cast<double>(front_end.Enter(at, {kNsPerMs, 0}) - at - kNsPerMs);
    }
    const double mean = waited / static_cast<double>(kRequests) / 1e6;
    EXPECT_NEAR(mean, busy / (2 * (1 - busy)), 0.03 * busy / (1 - busy)) << busy;
  }
}

// All at once, in bunches of a gamma process with a coefficient of variation of 4, or as drawn.
void Bunch(std::uint64_t seed, RequestTable& requests) {
  std::uint64_t bits = seed;
  TimeNs time = 0;
  for (std::size_t r = 0; r < requests.arrival.size(); ++r) {
    if (requests.arrival[r] < 0) continue;
    bits = Mix64(bits);
    if (seed % 3 == 0) requests.arrival[r] = 0;
    if (seed % 3 == 1) {  // shape 1/16: mostly together, seldom far apart
      time += bits % 16 == 0 ? static_cast<TimeNs>(bits % 1'000'000) : 0;
      requests.arrival[r] = time;
    }
  }
}

// The first request that is in the queue before one that arrived earlier, or with it and a lower
// number; -1: none is.
std::int64_t FirstOvertaking(const RequestTable& requests, const RequestResults& results) {
  std::vector<std::size_t> rows(requests.arrival.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  std::stable_sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
    return requests.arrival[a] < requests.arrival[b];
  });
  TimeNs latest = 0;
  for (const std::size_t r : rows) {
    // Of some it is not known: they never arrived, or gave up before or as they came.
    const TimeNs delay = results.enqueue[r] - requests.arrival[r];
    if (requests.arrival[r] < 0 || delay < 0) continue;
    if (!requests.timeout.empty() && delay >= requests.timeout[r]) continue;
    if (results.enqueue[r] < latest) return static_cast<std::int64_t>(r);
    latest = results.enqueue[r];
  }
  return -1;
}

// Where the delay before the queue grows with the prompt.
RandomLatencySpec Tokenizing(RandomLatencySpec latency) {
  latency.enqueue_base += 700;
  latency.enqueue_per_token += 300;
  return latency;
}

TEST(TakeUp, OneServer_NothingOvertakes) {
  std::int64_t delayed = 0, together = 0;
  for (std::uint64_t seed = 1; seed <= Cases(600); ++seed) {
    RandomCase c = MakeRandomCase(seed);
    Bunch(seed, c.requests);
    c.horizon.reset();
    c.latency = Tokenizing(c.latency);
    c.engine.api_server_count = 1;
    const std::unique_ptr<LatencyModel> latency = MakeLatency(c);
    const ReplicaRun run = RunReplica(EngineCaseOf(c), *latency, kClockEnd);
    ASSERT_EQ(FirstOvertaking(run.requests, run.results), -1) << Describe(c);
    if (!latency->DelayByLoad()) {
      const ClusterRun one = RunCluster(c, 1, {"round_robin", {}});
      ASSERT_EQ(FirstOvertaking(one.requests, one.results), -1) << Describe(c);
    }
    for (std::size_t r = 0; r < run.requests.arrival.size(); ++r) {
      const TimeNs alone = latency->EnqueueDelay(run.requests.prompt_tokens[r]);
      delayed += run.results.enqueue[r] > run.requests.arrival[r] + alone ? 1 : 0;
      together += r > 0 && run.requests.arrival[r] == run.requests.arrival[r - 1] ? 1 : 0;
    }
  }
  EXPECT_GT(delayed, 0);
  EXPECT_GT(together, 0);
}

TEST(TakeUp, OneServer_NothingOvertakesWithOtherSchedulersAndRoles) {
  for (std::uint64_t seed = 1; seed <= Cases(400); ++seed) {
    if (std::optional<ScheduledCase> c = MakeScheduledCase(seed)) {
      Bunch(seed, c->base.requests);
      c->base.latency = Tokenizing(c->base.latency);
      c->base.engine.api_server_count = 1;
      const ScheduledReferenceOutput run = RunScheduledEngine(*c, {});
      ASSERT_EQ(FirstOvertaking(run.requests, run.results), -1) << Describe(c->base);
    }
    if (std::optional<PdCase> c = MakePdCase(seed)) {
      Bunch(seed, c->base.requests);
      c->base.engine.api_server_count = 1;
      const PdRun run = RunPdCase(*c);
      ASSERT_EQ(FirstOvertaking(run.requests, run.results), -1) << Describe(c->base);
    }
  }
}

}  // namespace
}  // namespace servecast::testing
