// Replicas that come and go, in a cluster. A replica serves what it was sent as one alone does, so
// what is left to test is which replicas there are and that requests are nowhere else. The naive
// membership below reads the run's records and says for every moment who was there.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "core/documents.h"
#include "gtest/gtest.h"
#include "servecast/report.h"
#include "servecast/simulation.h"
#include "testing/asked.h"
#include "testing/cluster_run.h"
#include "testing/random_cases.h"
#include "testing/reference_router.h"

namespace servecast::testing {
namespace {

// A minute of load that one replica cannot serve, then little.
std::string Busy(std::vector<std::string> overrides = {}) {
  std::vector<std::string> all = {"workload.arrivals.rate_per_s=60", "workload.requests=4000",
                                  "workload.output_tokens.value=200",
                                  "cluster.router.policy=least_outstanding"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return Changed(all);
}

const std::vector<std::string> kScheduled = {
    "cluster.scaling.policy=schedule", "cluster.scaling.schedule=[[10, 3], [40, 1]]",
    "cluster.scaling.engine_s=5", "cluster.scaling.weights_gb_s=1e6"};

TEST(Scaling, ScalerThatNeverActs_ChangesNoBit) {
  for (const char* router : {"round_robin", "random", "least_outstanding"}) {
    const std::string choice = std::string("cluster.router.policy=") + router;
    const Report fixed = RunToEnd(Busy({choice, "cluster.pools.0.replicas=2"}));
    const Report scaled =
        RunToEnd(Busy({choice, "cluster.pools.0.replicas=2", "cluster.scaling.policy=hpa",
                       "cluster.scaling.min_replicas=2", "cluster.scaling.max_replicas=2"}));
    EXPECT_EQ(fixed.fingerprint, scaled.fingerprint) << router;
    EXPECT_EQ(fixed.steps, scaled.steps);
    EXPECT_EQ(scaled.scaling.starts, 0);
    EXPECT_DOUBLE_EQ(scaled.scaling.gpu_s, 2 * scaled.simulated_s);
    EXPECT_EQ(fixed.cost_per_million_output_tokens, scaled.cost_per_million_output_tokens);
  }
}

TEST(Scaling, Schedule_StartsAndDrainsOnTime) {
  const Report r = RunToEnd(Busy(kScheduled));
  ASSERT_GE(r.scaling.steps.size(), 3u);
  const auto at = [&](double s) {
    ScalingReport::Step now;
    for (const ScalingReport::Step& step : r.scaling.steps) now = step.at_s <= s ? step : now;
    return now;
  };
  EXPECT_EQ(at(9.9).up, 1);
  EXPECT_EQ(at(10).starting, 2);
  EXPECT_EQ(at(14.9).up, 1);
  EXPECT_NEAR(r.scaling.cold_start_s, 5, 0.1);
  EXPECT_EQ(at(15.1).up, 3);
  EXPECT_EQ(at(40).up, 1);
  EXPECT_EQ(r.scaling.starts, 2);
  EXPECT_EQ(r.scaling.stops, 2);
  EXPECT_EQ(r.arrived, r.completed);
}

// GPU time is the area below the steps.
TEST(Scaling, GpuTime_IsTheIntegralOfTheSteps) {
  const Report r = RunToEnd(Busy(kScheduled));
  double area = 0, up = 0;
  const auto& steps = r.scaling.steps;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double until = i + 1 < steps.size() ? steps[i + 1].at_s : r.simulated_s;
    const auto all = steps[i].starting + steps[i].up + steps[i].draining;
    area += (until - steps[i].at_s) * static_cast<double>(all);
    up += (until - steps[i].at_s) * static_cast<double>(steps[i].up);
  }
  EXPECT_NEAR(area, r.scaling.replica_s, 1e-6);
  EXPECT_NEAR(up, r.scaling.up_s, 1e-6);
  EXPECT_DOUBLE_EQ(r.scaling.gpu_s, r.scaling.replica_s);
}

TEST(Scaling, Slices_ChangeNothing) {
  const Report whole = RunToEnd(Busy(kScheduled)), sliced = RunToEnd(Busy(kScheduled), {}, 1);
  EXPECT_EQ(whole.fingerprint, sliced.fingerprint);
  EXPECT_EQ(whole.scaling.replica_s, sliced.scaling.replica_s);
}

TEST(Scaling, Hpa_AddsReplicasUnderLoadAndServesAll) {
  const Report one = RunToEnd(Busy());
  const Report r = RunToEnd(Busy({"cluster.scaling.policy=hpa", "cluster.scaling.max_replicas=4",
                                  "cluster.scaling.metric=outstanding", "cluster.scaling.target=64",
                                  "cluster.scaling.engine_s=5"}));
  EXPECT_GT(r.scaling.most_up, 1);
  EXPECT_LE(r.scaling.most_up, 4);
  EXPECT_EQ(r.completed, one.completed);
}

// An outage of three minutes: the last replica stops, and one starts for the first request after.
TEST(Scaling, Keda_GoesToZeroAndStartsFromZero) {
  const Report r =
      RunToEnd(Busy({"workload.arrivals.spikes=[[20, 180, 0]]", "cluster.scaling.policy=keda",
                     "cluster.scaling.min_replicas=0", "cluster.scaling.metric=outstanding",
                     "cluster.scaling.target=64", "cluster.scaling.down_window_s=0",
                     "cluster.scaling.polling_s=5", "cluster.scaling.cooldown_s=30",
                     "cluster.scaling.scrape_period_s=5", "cluster.scaling.engine_s=5"}));
  EXPECT_EQ(r.completed, r.arrived);
  EXPECT_GE(r.scaling.starts, 1);
  const auto& steps = r.scaling.steps;
  EXPECT_TRUE(std::any_of(steps.begin(), steps.end(), [](const ScalingReport::Step& step) {
    return step.starting + step.up + step.draining == 0;
  }));
}

// --- The naive membership
// -------------------------------------------------------------------------

struct NaiveLife {
  TimeNs from = 0, up = 0, drain = kNever, down = kNever;
};

// Who starts, is up and drains when a schedule decides: a list that is gone through at each row.
std::vector<NaiveLife> LivesOf(const ClusterScaling& scaling, std::int64_t first) {
  std::vector<NaiveLife> lives(static_cast<std::size_t>(first));
  for (const auto& row : scaling.spec.schedule) {
    const auto time = static_cast<TimeNs>(std::nearbyint(row[0] * 1e9));
    const auto wanted = static_cast<std::int64_t>(row[1]);
    const auto present = [&] {
      return std::count_if(lives.begin(), lives.end(),
                           [](const NaiveLife& life) { return life.drain == kNever; });
    };
    while (present() < wanted) lives.push_back({time, time + scaling.cold_start, kNever, kNever});
    while (present() > wanted) {
      NaiveLife* youngest = nullptr;
      for (NaiveLife& life : lives) {
        if (life.drain != kNever) continue;
        const bool later = youngest == nullptr || life.up >= youngest->up;
        if (later) youngest = &life;
      }
      youngest->drain = time;
    }
  }
  return lives;
}

// Where each request must be: chosen among those up at its moment; held while there is none.
std::vector<std::int32_t> NaivePlaces(const ClusterRun& run, const std::vector<NaiveLife>& lives,
                                      const RouterChoice& router, TimeNs horizon) {
  const std::size_t size = run.results.enqueue.size();
  std::vector<TimeNs> ends(size, kNever);
  for (const auto& steps : run.steps) {
    for (const StepRecord& step : steps) {
      for (const RequestId r : step.finished) ends[static_cast<std::size_t>(r)] = step.end;
    }
  }
  std::vector<std::size_t> order;
  for (std::size_t r = 0; r < size; ++r) {
    if (run.results.enqueue[r] >= 0 && run.results.enqueue[r] < horizon) order.push_back(r);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(run.results.enqueue[a], run.requests.arrival[a]) <
           std::pair(run.results.enqueue[b], run.requests.arrival[b]);
  });
  std::vector<std::int32_t> places(size, -1);
  std::int64_t turn = 0;
  for (const std::size_t r : order) {
    std::vector<std::int32_t> up;
    const auto look = [&](TimeNs time) {
      up.clear();
      for (std::size_t i = 0; i < lives.size(); ++i) {
        if (lives[i].up <= time && time < lives[i].drain) up.push_back(static_cast<int>(i));
      }
    };
    TimeNs time = run.results.enqueue[r];
    look(time);
    while (up.empty() && time != kNever) {  // the next that comes up, if one stays
      TimeNs next = kNever;
      for (const NaiveLife& life : lives) {
        if (life.up > time && life.up < life.drain) next = std::min(next, life.up);
      }
      time = next;
      if (time != kNever) look(time);
    }
    if (up.empty() || time >= horizon) continue;
    const auto n = static_cast<std::int64_t>(up.size());
    if (router.name == "round_robin") {
      places[r] = up[static_cast<std::size_t>(turn++ % n)];
    } else if (router.name == "random") {
      const double u = Uniform(router.seed, Stream::kRouter, static_cast<std::int64_t>(r));
      places[r] = up[static_cast<std::size_t>(u * static_cast<double>(n))];
    } else {
      const auto load = [&](std::int32_t i) {
        std::int64_t sum = 0;
        for (std::size_t q = 0; q < size; ++q) sum += places[q] == i && ends[q] > time ? 1 : 0;
        return sum;
      };
      places[r] = *std::min_element(
          up.begin(), up.end(), [&](std::int32_t a, std::int32_t b) { return load(a) < load(b); });
    }
  }
  return places;
}

// A schedule about the length of a run, as cases are drawn.
ClusterScaling DrawnScaling(std::uint64_t seed, TimeNs length) {
  ClusterScaling scaling;
  scaling.spec.policy = "schedule";
  scaling.spec.min_replicas = seed % 3 == 0 ? 0 : 1;
  scaling.spec.max_replicas = 5;
  const auto draw = [&](std::int64_t index) {
    return Uniform(static_cast<std::int64_t>(seed), Stream::kRouter, 1'000'000, index);
  };
  scaling.cold_start = static_cast<TimeNs>(draw(0) * 0.2 * static_cast<double>(length));
  double at = 0;
  for (std::int64_t row = 1; row < 12; row += 2) {
    at += (0.02 + 0.3 * draw(row)) * static_cast<double>(length) / 1e9;
    const auto least = static_cast<double>(scaling.spec.min_replicas);
    scaling.spec.schedule.push_back({std::max(at, 1e-6), least + std::floor(draw(row + 1) * 5)});
  }
  return scaling;
}

TEST(Scaling, RandomCases_AreAsTheNaiveMembershipHasThem) {
  std::int64_t compared = 0, started = 0, alone = 0;
  const auto cases = static_cast<std::uint64_t>(Asked("SERVECAST_CASES", 1000)) * 600 / 1000;
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    RandomCase random_case = MakeRandomCase(seed);
    random_case.latency.stalls = {};
    random_case.engine.api_server_count = 0;
    if (MakeLatency(random_case)->DelayByLoad() || !random_case.requests.timeout.empty() ||
        AnswersBringRequests(random_case)) {
      continue;
    }
    RouterChoice router;
    router.name = seed % 3 == 0 ? "round_robin" : seed % 3 == 1 ? "random" : "least_outstanding";
    router.seed = static_cast<std::int64_t>(seed);
    const ClusterRun fixed = RunCluster(random_case, 2, router);
    const ClusterScaling scaling = DrawnScaling(seed, fixed.now);
    SCOPED_TRACE(std::to_string(seed) + " " + router.name);
    const ClusterRun run = RunCluster(random_case, 2, router, INT64_MAX, &scaling);
    const std::vector<NaiveLife> lives = LivesOf(scaling, 2);
    const TimeNs horizon = random_case.horizon.value_or(kClockEnd);
    ASSERT_EQ(run.results.replica, NaivePlaces(run, lives, router, horizon));
    const ClusterRun sliced = RunCluster(random_case, 2, router, 1, &scaling);
    ASSERT_EQ(run.results.completion, sliced.results.completion);
    ASSERT_EQ(run.scaling.replica_s, sliced.scaling.replica_s);
    if (scaling.spec.min_replicas > 0) {
      std::string mismatch;
      alone += CompareEachAlone(random_case, static_cast<std::int64_t>(run.steps.size()), router,
                                run, mismatch);
      ASSERT_EQ(mismatch, "");
    }
    compared += run.requests.size();
    started += run.scaling.starts;
  }
  if (cases < 600) return;
  EXPECT_GT(compared, 1000);
  EXPECT_GT(started, 100);
  EXPECT_GT(alone, 500);
}

TEST(Scaling, WhatDoesNotCombine_IsRefused) {
  const auto issue = [](std::vector<std::string> overrides) {
    return Listed(IssuesOf(Busy(std::move(overrides))));
  };
  EXPECT_NE(issue({"cluster.scaling.policy=hpa", "cluster.scaling.min_replicas=9"}), "");
  EXPECT_NE(issue({"cluster.scaling.policy=hpa", "cluster.pools.0.replicas=9"}), "");
  EXPECT_NE(issue({"cluster.scaling.policy=hpa", "cluster.scaling.min_replicas=0"}), "");
  EXPECT_NE(issue({"cluster.scaling.policy=hpa", "cluster.router.policy=prefix_affinity"}), "");
  EXPECT_NE(issue({"cluster.scaling.policy=schedule"}), "");
  EXPECT_NE(
      issue({"cluster.scaling.policy=schedule", "cluster.scaling.schedule=[[10, 2], [5, 1]]"}), "");
}

}  // namespace
}  // namespace servecast::testing
