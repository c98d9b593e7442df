// Replicas that come and go, in a cluster. A replica serves what it was sent as one alone does, so
// what is left to test is which replicas there are and that requests are nowhere else. The naive
// membership below reads the run's records and says for every moment who was there.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "core/documents.h"
#include "gtest/gtest.h"
#include "servecast/report.h"
#include "servecast/simulation.h"
#include "serving/scaling/hpa.h"
#include "testing/asked.h"
#include "testing/cluster_run.h"
#include "testing/random_cases.h"
#include "testing/reference_router.h"
#include "testing/same_bits.h"
#include "testing/warm_reference.h"

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
    EXPECT_EQ(scaled.scaling.starts, 0);
    EXPECT_DOUBLE_EQ(scaled.scaling.gpu_hours, 2 * scaled.simulated_s / 3600);
    EXPECT_EQ(scaled.scaling.mean_gpus, 2);
    Report same = scaled;  // but for what says that there is a scaler
    same.scaling = {};
    ExpectSameBits(fixed, same);
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

// One of two replicas is woken, the other one starts cold, as does the next one that is to sleep.
TEST(Scaling, WarmReplicas_ServeSooner) {
  std::vector<std::string> warm = kScheduled;
  warm.insert(warm.end(), {"cluster.scaling.warm_replicas=1", "cluster.scaling.wake_s=2",
                           "cluster.scaling.warm_gpu_share=0.25"});
  const Report cold = RunToEnd(Busy(kScheduled)), r = RunToEnd(Busy(warm));
  EXPECT_EQ(BrokenConservation(r), "");
  const auto up_at = [&](double s) {
    std::int64_t up = 0;
    for (const ScalingReport::Step& step : r.scaling.steps) up = step.at_s <= s ? step.up : up;
    return up;
  };
  EXPECT_EQ(up_at(11.9), 1);
  EXPECT_EQ(up_at(12.1), 2);
  EXPECT_EQ(up_at(14.9), 2);
  EXPECT_EQ(up_at(15.1), 3);
  EXPECT_EQ(r.scaling.starts, 2);
  EXPECT_EQ(r.scaling.wakes, 1);
  const double cold_s = r.scaling.cold_start_s;
  EXPECT_DOUBLE_EQ(r.scaling.mean_asleep, (r.simulated_s - cold_s) / r.simulated_s);
  EXPECT_NEAR(r.scaling.gpu_hours * 3600,
              r.scaling.replica_s + cold_s + 0.25 * (r.simulated_s - cold_s), 1e-6);
  EXPECT_LT(r.ttft_ms.mean, cold.ttft_ms.mean);
  const auto refused = [](std::vector<std::string> overrides) {
    const Issues issues = IssuesOf(Busy(std::move(overrides)));
    return issues.empty() ? std::string() : issues.front().path;
  };
  const auto says = [](const Report& report) {
    return report.verdict.note.find("A warm replica takes 6 s to wake (wake_s), longer than the") !=
           std::string::npos;
  };
  EXPECT_FALSE(says(r)) << r.verdict.note;
  warm[warm.size() - 2] = "cluster.scaling.wake_s=6";
  EXPECT_TRUE(says(RunToEnd(Busy(warm))));
  std::vector<std::string> apart = warm;
  apart[apart.size() - 2] = "cluster.scaling.wake_s=1";
  apart.push_back(R"(cluster.pools=[{},{"scaling":{"wake_s":6}}])");
  EXPECT_TRUE(says(RunToEnd(Busy(apart))));
  warm[warm.size() - 2] = "cluster.scaling.wake_s=null";
  EXPECT_EQ(refused(warm), "/cluster/scaling/wake_s");
}

TEST(Scaling, WarmReplicas_AreAsTheReferenceHasThem) {
  WarmComparison seen;
  const auto cases = static_cast<std::uint64_t>(Asked("SERVECAST_CASES", 1000)) / 2;
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    const WarmComparison one = CompareWarm(seed);
    ASSERT_EQ(one.mismatch, "");
    seen.starts += one.starts;
    seen.wakes += one.wakes;
  }
  if (cases < 500) return;
  EXPECT_GT(seen.wakes, 300);
  EXPECT_GT(seen.starts, seen.wakes + 100);
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
  EXPECT_NEAR(up, r.scaling.mean_up * r.simulated_s, 1e-6);
  EXPECT_DOUBLE_EQ(r.scaling.gpu_hours, r.scaling.replica_s / 3600);

  // So are the columns over time.
  const std::vector<double>&begin = r.ColumnOf("series_time_s"),
        &serving = r.ColumnOf("series_replicas_up"),
        &starting = r.ColumnOf("series_replicas_starting");
  ASSERT_EQ(serving.size(), begin.size());
  ASSERT_EQ(starting.size(), begin.size());
  double columns = 0;
  for (std::size_t b = 0; b < begin.size(); ++b) {
    const double end = b + 1 < begin.size() ? begin[b + 1] : r.simulated_s;
    columns += (end - begin[b]) * (serving[b] + starting[b]);
  }
  EXPECT_NEAR(columns, r.scaling.replica_s, 1e-6);
  EXPECT_GT(*std::max_element(starting.begin(), starting.end()), 0);
  EXPECT_TRUE(RunToEnd(SmallDocument()).ColumnOf("series_replicas_up").empty());
}

TEST(Scaling, Slices_GiveTheSameReport) {
  for (const char* policy : {"hpa", "keda", "wva", "schedule"}) {
    SCOPED_TRACE(policy);
    std::vector<std::string> scaled = {std::string("cluster.scaling.policy=") + policy,
                                       "cluster.scaling.engine_s=3",
                                       "workload.requests=1500",
                                       "engine.max_num_seqs=32",
                                       "cluster.scaling.scrape_period_s=2",
                                       "cluster.scaling.scrape_delay_s=1"};
    if (std::string(policy) == "schedule") {
      scaled.push_back("cluster.scaling.schedule=[[4, 3], [9, 2], [12, 4], [18, 1]]");
    } else {
      scaled.push_back(std::string(policy) == "wva" ? "cluster.scaling.interval_s=4"
                                                    : "cluster.scaling.sync_s=4");
    }
    const Report whole = RunToEnd(Busy(scaled));
    EXPECT_GT(whole.scaling.starts, 0);
    EXPECT_EQ(BrokenConservation(whole), "");
    for (const std::int64_t slice : {1, 7}) {
      EXPECT_EQ(ReportJson(whole, ReportParts::kWithSeries),
                ReportJson(RunToEnd(Busy(scaled), {}, slice), ReportParts::kWithSeries))
          << slice;
    }
  }
}

// What a report says while the run goes on changes nothing of it.
TEST(Scaling, Snapshots_ChangeNothing) {
  const Report whole = RunToEnd(Busy(kScheduled));
  Simulation simulation = Good(Simulation::Create(Parsed(Busy(kScheduled)), {}));
  while (!simulation.Advance(500)) EXPECT_LE(simulation.Snapshot().scaling.peak_up, 3);
  EXPECT_EQ(ReportJson(whole, ReportParts::kWithSeries),
            ReportJson(simulation.Snapshot(), ReportParts::kWithSeries));
}

TEST(Scaling, Hpa_AddsReplicasUnderLoadAndServesAll) {
  const Report one = RunToEnd(Busy());
  const Report r = RunToEnd(Busy({"cluster.scaling.policy=hpa", "cluster.scaling.max_replicas=4",
                                  "cluster.scaling.metric=outstanding", "cluster.scaling.target=64",
                                  "cluster.scaling.engine_s=5"}));
  EXPECT_GT(r.scaling.peak_up, 1);
  EXPECT_LE(r.scaling.peak_up, 4);
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

// --- The naive membership ---

struct NaiveLife {
  TimeNs from = 0, up = 0, drain = kNever;
};

// A list of all replicas that is gone through at each decision.
class NaiveFleet {
 public:
  NaiveFleet(std::int64_t first, TimeNs cold_start)
      : lives(static_cast<std::size_t>(first)), cold_start_(cold_start) {}

  std::int64_t Present() const {
    return std::count_if(lives.begin(), lives.end(),
                         [](const NaiveLife& life) { return life.drain == kNever; });
  }
  // The last to come go first.
  void Want(std::int64_t wanted, TimeNs time) {
    while (Present() < wanted) lives.push_back({time, time + cold_start_, kNever});
    while (Present() > wanted) {
      NaiveLife* youngest = nullptr;
      for (NaiveLife& life : lives) {
        if (life.drain != kNever) continue;
        if (youngest == nullptr || life.up >= youngest->up) youngest = &life;
      }
      youngest->drain = time;
    }
  }

  std::vector<NaiveLife> lives;

 private:
  TimeNs cold_start_;
};

std::vector<NaiveLife> LivesBySchedule(const ClusterScaling& scaling, std::int64_t first) {
  NaiveFleet fleet(first, scaling.cold_start);
  for (const auto& row : scaling.spec.schedule) {
    fleet.Want(static_cast<std::int64_t>(row[1]),
               static_cast<TimeNs>(std::nearbyint(row[0] * 1e9)));
  }
  return fleet.lives;
}

// When each request's last step ends.
std::vector<TimeNs> EndsOf(const ClusterRun& run) {
  std::vector<TimeNs> ends(run.results.enqueue.size(), kNever);
  for (const auto& steps : run.steps) {
    for (const StepRecord& step : steps) {
      for (const RequestId r : step.finished) ends[static_cast<std::size_t>(r)] = step.end;
    }
  }
  return ends;
}

// The HPA's rules, which recordings hold, on requests that are outstanding at each sync.
std::vector<NaiveLife> LivesByHpa(const ClusterRun& run, const ClusterScaling& scaling,
                                  std::int64_t first) {
  const auto ns = [&](const char* name) {
    return static_cast<TimeNs>(std::nearbyint(scaling.spec.params.at(name) * 1e9));
  };
  HpaSpec spec;
  spec.min = scaling.spec.min_replicas;
  spec.max = scaling.spec.max_replicas;
  spec.metrics = {{HpaMetricKind::kExternal, HpaTarget::kAverageValue,
                   static_cast<std::int64_t>(scaling.spec.params.at("target") * 1000)}};
  HpaBehavior behavior;
  behavior.up = {.window = 0,
                 .policies = {{false, 4, 15 * kNsPerS}, {true, 100, 15 * kNsPerS}},
                 .tolerance = {}};
  behavior.down = {
      .window = ns("down_window_s"), .policies = {{true, 100, 15 * kNsPerS}}, .tolerance = {}};
  spec.behavior = behavior;
  Hpa hpa(spec);
  NaiveFleet fleet(first, scaling.cold_start);
  const std::vector<TimeNs> ends = EndsOf(run);
  std::int64_t wanted = first;
  for (TimeNs now = ns("sync_s"); now <= run.now; now += ns("sync_s")) {
    std::int64_t outstanding = 0;
    for (std::size_t r = 0; r < ends.size(); ++r) {
      if (run.results.replica[r] < 0 || run.results.enqueue[r] >= now || ends[r] < now) continue;
      const NaiveLife& life = fleet.lives[static_cast<std::size_t>(run.results.replica[r])];
      outstanding += life.up <= now && life.drain == kNever ? 1 : 0;
    }
    std::vector<HpaReading> readings(1);
    readings[0].total = 1000 * outstanding;
    wanted = hpa.Sync({now, wanted, fleet.Present(), {}, readings}).desired;
    fleet.Want(wanted, now);
  }
  return fleet.lives;
}

// The report's steps, replica for replica.
void ExpectSteps(const ScalingReport& report, const std::vector<NaiveLife>& lives) {
  for (const ScalingReport::Step& step : report.steps) {
    const auto time = static_cast<TimeNs>(std::nearbyint(step.at_s * 1e9));
    std::int64_t starting = 0, up = 0;
    for (const NaiveLife& life : lives) {
      starting += life.from <= time && time < std::min(life.up, life.drain) ? 1 : 0;
      up += life.up <= time && time < life.drain ? 1 : 0;
    }
    ASSERT_EQ(step.starting, starting) << step.at_s;
    ASSERT_EQ(step.up, up) << step.at_s;
  }
}

// Where each request must be: chosen among those up at its moment; held while there is none.
std::vector<std::int32_t> NaivePlaces(const ClusterRun& run, const std::vector<NaiveLife>& lives,
                                      const RouterChoice& router, TimeNs horizon) {
  const std::size_t size = run.results.enqueue.size();
  const std::vector<TimeNs> ends = EndsOf(run);
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

// A scaler that acts some times in a run of that length, as cases are drawn.
ClusterScaling DrawnScaling(std::uint64_t seed, TimeNs length) {
  ClusterScaling scaling;
  const auto draw = [&](std::int64_t index) {
    return Uniform(static_cast<std::int64_t>(seed), Stream::kRouter, 1'000'000, index);
  };
  const double seconds = static_cast<double>(length) / 1e9;
  scaling.cold_start = static_cast<TimeNs>(draw(0) * 0.2 * static_cast<double>(length));
  scaling.spec.max_replicas = 5;
  if (seed % 2 == 0) {
    const double period = std::max(1e-6, seconds * (0.03 + 0.1 * draw(1)));
    scaling.spec.policy = "hpa";
    scaling.spec.metric = ScalingMetric::kOutstanding;
    scaling.spec.scrape_period_s = period;
    scaling.spec.params = {{"target", std::floor(1 + 4 * draw(2))},
                           {"sync_s", period},
                           {"down_window_s", period * std::floor(3 * draw(3))}};
    return scaling;
  }
  scaling.spec.policy = "schedule";
  scaling.spec.min_replicas = seed % 3 == 0 ? 0 : 1;
  double at = 0;
  for (std::int64_t row = 1; row < 12; row += 2) {
    at += (0.02 + 0.3 * draw(row)) * seconds;
    const auto least = static_cast<double>(scaling.spec.min_replicas);
    scaling.spec.schedule.push_back({std::max(at, 1e-6), least + std::floor(draw(row + 1) * 5)});
  }
  return scaling;
}

TEST(Scaling, RandomCases_AreAsTheNaiveMembershipHasThem) {
  std::int64_t compared = 0, alone = 0;
  std::map<std::string, std::int64_t> started;
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
    SCOPED_TRACE(std::to_string(seed) + " " + router.name + " " + scaling.spec.policy);
    const ClusterRun run = RunCluster(random_case, 2, router, INT64_MAX, &scaling);
    const std::vector<NaiveLife> lives =
        scaling.spec.policy == "hpa" ? LivesByHpa(run, scaling, 2) : LivesBySchedule(scaling, 2);
    const TimeNs horizon = random_case.horizon.value_or(kClockEnd);
    ExpectSteps(run.scaling, lives);
    ASSERT_EQ(run.results.replica, NaivePlaces(run, lives, router, horizon));
    for (const std::int64_t slice : {1, 7}) {
      const ClusterRun sliced = RunCluster(random_case, 2, router, slice, &scaling);
      ASSERT_EQ(run.results.completion, sliced.results.completion);
      ASSERT_EQ(run.scaling.replica_s, sliced.scaling.replica_s);
      ASSERT_EQ(run.scaling.steps.size(), sliced.scaling.steps.size());
    }
    if (scaling.spec.min_replicas > 0) {
      std::string mismatch;
      alone += CompareEachAlone(random_case, static_cast<std::int64_t>(run.steps.size()), router,
                                run, mismatch);
      ASSERT_EQ(mismatch, "");
    }
    compared += run.requests.size();
    started[scaling.spec.policy] += run.scaling.starts;
  }
  if (cases < 600) return;
  EXPECT_GT(compared, 1000);
  EXPECT_GT(started["schedule"], 100);
  EXPECT_GT(started["hpa"], 100);
  EXPECT_GT(alone, 500);
}

// Two pools of equal replicas, of which the first stays, are one whose schedule has as many more;
// failures of the second's, and drains that are cut off, among it.
TEST(Scaling, PoolBesideAFixedOne_IsAsOnePool) {
  std::int64_t started = 0, lost = 0, failed = 0;
  const auto cases = static_cast<std::uint64_t>(Asked("SERVECAST_CASES", 1000)) * 2;
  for (std::uint64_t seed = 1; seed <= cases; seed += 2) {  // schedules
    RandomCase random_case = MakeRandomCase(seed);
    if (MakeLatency(random_case)->DelayByLoad()) continue;
    if (!random_case.stages.empty() || random_case.engine.speculative.On()) continue;
    RouterChoice router;
    router.name = seed % 3 == 0 ? "round_robin" : seed % 3 == 1 ? "random" : "least_outstanding";
    router.seed = static_cast<std::int64_t>(seed);
    const TimeNs length = RunCluster(random_case, 4, router).now;
    ClusterScaling apart = DrawnScaling(seed, length);
    if (seed % 4 == 1) apart.spec.termination_grace_period_s = 0.02 * Seconds(length);
    FailureSpec failures;
    failures.restart_s = 0.1 * Seconds(length);
    for (const double at : {0.1, 0.25, 0.5}) {
      failures.schedule.push_back({at * Seconds(length), at == 0.25 ? 3.0 : 2.0});
    }
    const FailureSpec* fails = seed % 8 < 4 ? &failures : nullptr;
    ClusterScaling one = apart;
    apart.fixed = 2;
    one.spec.min_replicas += 2;
    one.spec.max_replicas += 2;
    for (auto& row : one.spec.schedule) row[1] += 2;
    SCOPED_TRACE(seed);
    const ClusterRun a = RunCluster(random_case, 4, router, seed % 3 ? 7 : 1, &apart, fails),
                     b = RunCluster(random_case, 4, router, INT64_MAX, &one, fails);
    ASSERT_EQ(a.results.replica, b.results.replica);
    ASSERT_EQ(a.results.completion, b.results.completion);
    ASSERT_EQ(a.results.state, b.results.state);
    ASSERT_EQ(a.results.generated, b.results.generated);
    ASSERT_EQ(a.scaling.replica_s, b.scaling.replica_s);
    ASSERT_EQ(a.scaling.starts, b.scaling.starts);
    ASSERT_EQ(a.scaling.stops, b.scaling.stops);
    ASSERT_EQ(a.scaling.steps.size(), b.scaling.steps.size());
    ASSERT_EQ(a.scaling.failures.lost_attempts, b.scaling.failures.lost_attempts);
    ASSERT_EQ(a.scaling.failures.tokens_lost, b.scaling.failures.tokens_lost);
    ASSERT_EQ(a.scaling.pools.size(), 2u);
    ASSERT_EQ(a.scaling.pools[0].starts + a.scaling.pools[0].stops, 0);
    ASSERT_EQ(a.scaling.pools[1].starts, a.scaling.starts);
    started += a.scaling.starts;
    failed += a.scaling.failures.failures;
    lost += a.scaling.failures.lost_attempts;
  }
  if (cases < 2000) return;
  EXPECT_GT(started, 500);
  EXPECT_GT(failed, 200);
  EXPECT_GT(lost, 200);
}

// Prefill by its queue, decode by its KV, and mixed pools that fail beside.
const std::vector<std::string> kApart = {
    R"(cluster.pools=[{"role":"prefill","scaling":{"metric":"outstanding","target":4}},)"
    R"({"role":"decode","scaling":{"metric":"running","target":40,"max_replicas":3,"node_s":2}}])",
    "cluster.scaling.policy=hpa",
    "cluster.scaling.max_replicas=6",
    "cluster.scaling.engine_s=3",
    "cluster.scaling.sync_s=2",
    "cluster.scaling.scrape_period_s=1",
    "cluster.scaling.down_window_s=4",
    "workload.prompt_tokens.value=1500",
    "cluster.decode_router.policy=least_outstanding"};

TEST(Scaling, PrefillAndDecode_ScaleApart) {
  const Report r = RunToEnd(Busy(kApart));
  EXPECT_EQ(r.completed, r.arrived);
  EXPECT_EQ(BrokenConservation(r), "");
  ASSERT_EQ(r.scaling.pools.size(), 2u);
  const ScalingReport &prefill = r.scaling.pools[0], &decode = r.scaling.pools[1];
  EXPECT_GT(prefill.peak_up, 3);
  EXPECT_GT(decode.peak_up, 1);
  EXPECT_LE(decode.peak_up, 3);
  EXPECT_NEAR(decode.cold_start_s, prefill.cold_start_s + 2, 1e-9);
  EXPECT_DOUBLE_EQ(r.scaling.cold_start_s, decode.cold_start_s);
  EXPECT_EQ(r.scaling.starts, prefill.starts + decode.starts);
  EXPECT_DOUBLE_EQ(r.scaling.gpu_hours, prefill.gpu_hours + decode.gpu_hours);
  EXPECT_DOUBLE_EQ(r.scaling.gpu_hours, r.scaling.replica_s / 3600);
  EXPECT_DOUBLE_EQ(r.scaling.mean_gpus, prefill.mean_gpus + decode.mean_gpus);
  for (const std::string which : {"up", "starting"}) {
    const std::vector<double>&all = r.ColumnOf("series_replicas_" + which),
          &own = r.ColumnOf("series_prefill_replicas_" + which),
          &other = r.ColumnOf("series_decode_replicas_" + which);
    ASSERT_EQ(own.size(), all.size());
    ASSERT_EQ(other.size(), all.size());
    ASSERT_GT(*std::max_element(own.begin(), own.end()), 0);
    for (std::size_t b = 0; b < all.size(); ++b) EXPECT_NEAR(own[b] + other[b], all[b], 1e-9);
  }
  for (const std::int64_t slice : {1, 7}) {
    EXPECT_EQ(ReportJson(r, ReportParts::kWithSeries),
              ReportJson(RunToEnd(Busy(kApart), {}, slice), ReportParts::kWithSeries));
  }
}

// A pool's scaler is the cluster's but for what it says.
TEST(Scaling, PoolsOwn_OverrideTheClusters) {
  const auto issue = [](const char* pools, std::vector<std::string> more = {}) {
    more.insert(more.begin(), std::string("cluster.pools=") + pools);
    more.insert(more.begin(), R"(cluster.scaling={"policy":"hpa","target":7,"engine_s":9})");
    return Listed(IssuesOf(Busy(more)));
  };
  const std::string document =
      Busy({R"(cluster.scaling={"policy":"hpa","target":7,"engine_s":9})",
            R"(cluster.pools=[{"scaling":{"max_replicas":3}},{"scaling":"none"},{},)"
            R"({"scaling":{"policy":"schedule","schedule":[[5,2]]}}])"});
  const Scenario once = Parsed(document);
  for (const Scenario& s : {once, Parsed(once.canonical_text), Parsed(once.resolved_text)}) {
    const std::vector<PoolSpec>& pools = s.cluster.pools;
    EXPECT_EQ(pools[0].scaling->params.at("target"), 7);
    EXPECT_EQ(pools[0].scaling->engine_s, 9);
    EXPECT_EQ(pools[0].scaling->max_replicas, 3);
    EXPECT_FALSE(s.cluster.ScalingOf(pools[1]).On());
    EXPECT_FALSE(pools[2].scaling);
    EXPECT_EQ(pools[3].scaling->policy, "schedule");
    EXPECT_EQ(pools[3].scaling->engine_s, 9);
    EXPECT_EQ(s.content_hash, once.content_hash);
  }
  EXPECT_EQ(issue("[{},{}]"), "");
  EXPECT_NE(issue(R"([{},{"replicas":3,"scaling":{"max_replicas":2}}])")
                .find("/cluster/pools/1/replicas: found 3, allowed 1 to 2, the limits of its scal"),
            std::string::npos);
  EXPECT_NE(issue(R"([{},{"scaling":{"min_replicas":0}}])").find("/cluster/pools/1/scaling/min_re"),
            std::string::npos);
  constexpr const char* kRoles = R"([{"role":"prefill"},{"role":"decode"}])";
  EXPECT_NE(issue(kRoles, {"cluster.decode_router.policy=weighted"}).find("/cluster/decode_router"),
            std::string::npos);
  EXPECT_EQ(issue(kRoles, {"cluster.scaling.termination_grace_period_s=5"}), "");
  constexpr const char* kOrca =
      R"([{"role":"prefill","scaling":{"max_replicas":5,"termination_grace_period_s":5}},
          {"role":"decode","scheduler":{"policy":"orca"},"scaling":{"policy":"none"}}])";
  EXPECT_NE(issue(kOrca).find("/cluster/pools/0/scaling/termination_grace_period_s: found 5, all"),
            std::string::npos)
      << issue(kOrca);
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
