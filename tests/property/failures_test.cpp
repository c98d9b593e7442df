// Replicas that fail and come back. Failures do not depend on what replicas do, so each life of a
// replica is a run of its own: the reference runs it alone, up to the failure. What is left to test
// is when replicas fail, where requests go, and that every attempt ends once.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/math.h"
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

// Three replicas with some load, for about a minute.
std::string Loaded(std::vector<std::string> overrides = {}) {
  std::vector<std::string> all = {"workload.arrivals.rate_per_s=30",
                                  "workload.requests=1800",
                                  "workload.output_tokens.value=100",
                                  "cluster.pools.0.replicas=3",
                                  "cluster.router.policy=least_outstanding"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return Changed(all);
}

constexpr const char* kOneFails = R"(cluster.failures={"schedule":[[20,1]],"restart_s":10})";
constexpr const char* kRetried = R"(workload.retries={"max":3,"backoff_s":0.5})";

std::int64_t Count(const Report& r, double state) {
  const auto& states = r.ColumnOf("state");
  return std::count(states.begin(), states.end(), state);
}

TEST(Failures, ThatNeverCome_ChangeNoBit) {
  for (const char* router : {"round_robin", "random", "least_outstanding"}) {
    for (const char* retries : {"workload.retries=null", kRetried}) {
      const std::string choice = std::string("cluster.router.policy=") + router;
      const Report without = RunToEnd(Loaded({choice, retries}));
      Report with = RunToEnd(
          Loaded({choice, retries, R"(cluster.failures={"schedule":[[1e7,2]],"detect_s":3})"}));
      EXPECT_EQ(with.failures.failures, 0);
      EXPECT_EQ(with.failures.availability, 1);
      EXPECT_EQ(with.fingerprint != without.fingerprint, true);  // that of another scenario
      with.failures = {};
      with.fingerprint = without.fingerprint;
      with.scenario_id = without.scenario_id;
      with.resolved_scenario = without.resolved_scenario;
      EXPECT_EQ(ReportJson(without, ReportParts::kWithSeries),
                ReportJson(with, ReportParts::kWithSeries));
      EXPECT_EQ(without.columns, with.columns);
    }
  }
}

TEST(Failures, Schedule_LosesWhatTheReplicaHas) {
  const Report r = RunToEnd(Loaded({kOneFails}));
  EXPECT_EQ(BrokenConservation(r), "");
  EXPECT_EQ(r.failures.failures, 1);
  EXPECT_DOUBLE_EQ(r.failures.down_s, 10);
  EXPECT_NEAR(r.failures.availability, 1 - 10 / (3 * r.simulated_s), 1e-9);
  EXPECT_GT(r.failures.lost, 0);
  EXPECT_LT(r.failures.lost, 100);
  EXPECT_EQ(r.failures.lost, r.failures.lost_attempts);
  EXPECT_GT(r.failures.tokens_lost, 0);
  EXPECT_EQ(r.failures.lost, Count(r, 7));
  EXPECT_EQ(r.completed + r.failures.lost, r.arrived);
  ASSERT_EQ(r.failures.steps.size(), 3u);
  EXPECT_EQ(r.failures.steps[1].at_s, 20);
  EXPECT_EQ(r.failures.steps[1].up, 2);
  EXPECT_EQ(r.failures.steps[2].at_s, 30);
  EXPECT_EQ(r.failures.steps[2].up, 3);
  const auto &arrival = r.ColumnOf("arrival_s"), &replica = r.ColumnOf("replica");
  std::int64_t after = 0;
  for (std::size_t i = 0; i < arrival.size(); ++i) {
    if (replica[i] != 1) continue;
    EXPECT_FALSE(arrival[i] >= 20 && arrival[i] < 29.99) << arrival[i];
    after += arrival[i] >= 30 ? 1 : 0;
  }
  EXPECT_GT(after, 50);
}

// Until the router knows it sends requests to the one that is down, which looks idle to it.
TEST(Failures, DetectionDelay_LosesRequests) {
  const Report at_once = RunToEnd(Loaded({kOneFails}));
  const Report late = RunToEnd(Loaded(
      {R"(cluster.failures={"schedule":[[20,1]],"restart_s":10,"detect_s":2})"}));
  EXPECT_GT(late.failures.lost, at_once.failures.lost + 30);
  const Report retried = RunToEnd(Loaded(
      {kRetried, R"(cluster.failures={"schedule":[[20,1]],"restart_s":10,"detect_s":2})"}));
  EXPECT_GE(retried.failures.lost_attempts, late.failures.lost);
  EXPECT_LT(retried.failures.lost, late.failures.lost);
  EXPECT_EQ(BrokenConservation(late), "");
}

TEST(Failures, RetriesServeWhatWasLost) {
  const Report r = RunToEnd(Loaded({kOneFails, kRetried}));
  EXPECT_EQ(r.completed, r.arrived);
  EXPECT_EQ(r.failures.lost, 0);
  EXPECT_GT(r.failures.lost_attempts, 0);
  EXPECT_EQ(r.retries.attempts, r.arrived + r.failures.lost_attempts);
  EXPECT_EQ(r.retries.tokens_lost, r.failures.tokens_lost);
}

// All are down at once: requests wait at the gateway for the first to come back.
TEST(Failures, NoneUp_HoldsRequests) {
  const Report r = RunToEnd(Loaded(
      {R"(cluster.failures={"schedule":[[20,0],[20,1],[20,2]],"restart_s":10})"}));
  EXPECT_EQ(r.completed + r.failures.lost, r.arrived);
  EXPECT_LT(r.failures.lost, 200);
  const auto &arrival = r.ColumnOf("arrival_s"), &ttft = r.ColumnOf("ttft_ms");
  for (std::size_t i = 0; i < arrival.size(); ++i) {
    if (arrival[i] > 20.001 && arrival[i] < 30) EXPECT_GT(arrival[i] + ttft[i] / 1e3, 30);
  }
}

// Slices, snapshots, loops and conversations: every request ends once.
TEST(Failures, EveryAttemptEndsOnce_HoweverSliced) {
  const char* const chance = R"(cluster.failures={"mtbf_s":15,"restart_s":4,"detect_s":0.3})";
  const char* const loop = R"(workload.arrivals={"process":"closed_loop","concurrency":40})";
  const std::vector<std::vector<std::string>> cases = {
      {},
      {kRetried},
      {"cluster.pools.0.replicas=1"},
      {kRetried, R"(workload.classes=[{"name":"a","timeout_s":3}])"},
      {loop, "cluster.failures.detect_s=0"},
      {loop, "cluster.failures.detect_s=0", kRetried},
      {R"(workload.sessions={"turns":{"distribution":"fixed","value":3}})", "cluster.router.policy=random"},
      {"engine.async_scheduling=true", kRetried, "measure.horizon_s=40"}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    std::vector<std::string> overrides = cases[i];
    overrides.insert(overrides.begin(), {chance, "workload.requests=900"});
    const std::string document = Loaded(overrides);
    const Report whole = RunToEnd(document);
    EXPECT_GT(whole.failures.failures, 2);
    EXPECT_GT(whole.failures.lost_attempts, 0);
    EXPECT_EQ(BrokenConservation(whole), "");
    EXPECT_TRUE(whole.finished);
    for (const std::int64_t slice : {1, 7}) {
      EXPECT_EQ(ReportJson(whole, ReportParts::kWithSeries),
                ReportJson(RunToEnd(document, {}, slice), ReportParts::kWithSeries));
    }
    Simulation simulation = Good(Simulation::Create(Parsed(document), {}));
    while (!simulation.Advance(500)) EXPECT_LE(simulation.Snapshot().failures.availability, 1);
    EXPECT_EQ(ReportJson(whole, ReportParts::kWithSeries),
              ReportJson(simulation.Snapshot(), ReportParts::kWithSeries));
  }
}

// Up and down times alternate, so a replica is up MTBF / (MTBF + restart) of the time. The share
// that is seen of n cycles deviates by about a (1 - a) / sqrt(n) for exponential lives.
TEST(Failures, ByChance_AvailabilityIsThatOfTheory) {
  for (const double restart : {30.0, 200.0}) {
    const double mtbf = 300, hours = 40, replicas = 8;
    const Report r = RunToEnd(Changed(
        {"workload.arrivals.rate_per_s=0.01", "workload.requests=1000",
         "cluster.pools.0.replicas=8", "measure.horizon_s=" + std::to_string(hours * 3600),
         "cluster.failures={\"mtbf_s\":300,\"restart_s\":" + std::to_string(restart) + "}"}));
    const double share = mtbf / (mtbf + restart);
    const double cycles = replicas * hours * 3600 / (mtbf + restart);
    EXPECT_NEAR(r.failures.availability, share, 4 * share * (1 - share) / std::sqrt(cycles));
    EXPECT_NEAR(static_cast<double>(r.failures.failures), cycles, 4 * std::sqrt(cycles));
  }
}

TEST(Failures, WhatDoesNotCombine_IsRefused) {
  const auto refused_at = [](std::vector<std::string> overrides) {
    const Issues issues = IssuesOf(Loaded(std::move(overrides)));
    return issues.empty() ? "" : issues.front().path;
  };
  EXPECT_EQ(refused_at({kOneFails}), "");
  EXPECT_EQ(refused_at({R"(cluster.failures={"schedule":[[20,3]]})"}),
            "/cluster/failures/schedule/0");
  EXPECT_EQ(refused_at({R"(cluster.failures={"schedule":[[20,0.5]]})"}),
            "/cluster/failures/schedule/0");
  for (const char* other :
       {"cluster.router.policy=prefix_affinity", "scheduler.policy=sglang",
        "cluster.pools.0.pipeline_parallel=2", "engine.speculative.method=ngram",
        R"(cluster.pools=[{"role":"prefill"},{"role":"decode"}])", "cluster.scaling.policy=hpa"}) {
    EXPECT_EQ(refused_at({R"(cluster.failures={"mtbf_s":1000})", other}), "/cluster/failures")
        << other;
  }
}

// --- Against the reference ---

struct NaiveOutage {
  TimeNs down = 0, up = 0;
};

TimeNs NsOf(double seconds) { return static_cast<TimeNs>(std::nearbyint(seconds * 1e9)); }

// One life after another.
std::vector<NaiveOutage> OutagesOf(const FailureSpec& spec, std::int64_t seed,
                                   std::int32_t replica, TimeNs until) {
  std::vector<NaiveOutage> outages;
  TimeNs from = 0;
  for (std::int64_t life = 0;; ++life) {
    TimeNs down = kNever;
    for (const auto& row : spec.schedule) {
      if (row[1] == replica && NsOf(row[0]) >= from) down = std::min(down, NsOf(row[0]));
    }
    if (spec.mtbf_s) {
      const double u = Uniform(seed, Stream::kFailure, replica, life);
      down = std::min(down, from + std::max<TimeNs>(1, NsOf(-Log(u) * *spec.mtbf_s)));
    }
    if (down >= until) return outages;
    outages.push_back({down, down + NsOf(spec.restart_s)});
    from = outages.back().up;
  }
}

// About three failures of a replica in a run of that length.
FailureSpec DrawnFailures(std::uint64_t seed, std::int64_t replicas, TimeNs length) {
  const auto draw = [&](std::int64_t index) {
    return Uniform(static_cast<std::int64_t>(seed), Stream::kRouter, 2'000'000, index);
  };
  const double seconds = static_cast<double>(length) / 1e9;
  FailureSpec spec;
  spec.restart_s = draw(0) * 0.3 * seconds;
  if (seed % 4 == 1) spec.detect_s = draw(1) * 0.2 * seconds;
  if (seed % 3 != 0) spec.mtbf_s = seconds * (0.1 + draw(2));
  for (std::int64_t row = 0; row < 2 * replicas && seed % 3 != 1; ++row) {
    spec.schedule.push_back({draw(10 + 2 * row) * seconds,
                             std::floor(draw(11 + 2 * row) * static_cast<double>(replicas))});
  }
  return spec;
}

// Where requests went and how those ended that no replica had.
struct NaivePlacement {
  std::int32_t replica = -1;
  TimeNs time = kNever;
  bool refused = false;
};

class NaiveGateway {
 public:
  NaiveGateway(const ClusterRun& run, std::vector<std::vector<NaiveOutage>> outages,
               const FailureSpec& spec, const RouterChoice& router)
      : run_(run), outages_(std::move(outages)), detect_(NsOf(spec.detect_s)), router_(router) {
    ends_.assign(run.results.enqueue.size(), kNever);
    for (const auto& steps : run.steps) {
      for (const StepRecord& step : steps) {
        for (const RequestId r : step.finished) ends_[static_cast<std::size_t>(r)] = step.end;
      }
    }
    for (std::size_t r = 0; r < ends_.size(); ++r) {
      if (run.results.state[r] == RequestState::kLost) ends_[r] = run.results.lost_at[r];
    }
  }

  std::vector<NaivePlacement> Place(TimeNs horizon) {
    const std::size_t size = run_.results.enqueue.size();
    std::vector<std::size_t> order;
    for (std::size_t r = 0; r < size; ++r) {
      if (run_.results.enqueue[r] >= 0 && run_.results.enqueue[r] < horizon) order.push_back(r);
    }
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::tuple(run_.results.enqueue[a], run_.requests.arrival[a], a) <
             std::tuple(run_.results.enqueue[b], run_.requests.arrival[b], b);
    });
    places_.assign(size, {});
    for (const std::size_t r : order) {
      TimeNs time = run_.results.enqueue[r];
      for (; Known(time).empty(); time = NextUp(time)) {
      }
      if (time >= horizon) continue;
      if (!run_.requests.timeout.empty() &&
          run_.requests.timeout[r] < time - run_.requests.arrival[r]) {
        continue;  // its client gave up at the gateway
      }
      const std::int32_t replica = Choose(r, time);
      places_[r] = {replica, time, Down(replica, time)};
    }
    return places_;
  }

 private:
  bool Down(std::int32_t replica, TimeNs time) const {
    for (const NaiveOutage& o : outages_[static_cast<std::size_t>(replica)]) {
      if (o.down <= time && time < o.up) return true;
    }
    return false;
  }
  // Those that take requests, as the router sees it.
  std::vector<std::int32_t> Known(TimeNs time) const {
    std::vector<std::int32_t> known;
    for (std::size_t i = 0; i < outages_.size(); ++i) {
      bool seen = false;
      for (const NaiveOutage& o : outages_[i]) seen |= o.down + detect_ <= time && time < o.up;
      if (!seen) known.push_back(static_cast<std::int32_t>(i));
    }
    return known;
  }
  TimeNs NextUp(TimeNs time) const {
    TimeNs next = kNever;
    for (const auto& of_one : outages_) {
      for (const NaiveOutage& o : of_one) {
        if (o.up > time) next = std::min(next, o.up);
      }
    }
    return next;
  }
  std::int32_t Choose(std::size_t r, TimeNs time) {
    const std::vector<std::int32_t> known = Known(time);
    const auto n = static_cast<std::int64_t>(known.size());
    if (router_.name == "round_robin") return known[static_cast<std::size_t>(turn_++ % n)];
    if (router_.name == "random") {
      const double u = Uniform(router_.seed, Stream::kRouter, static_cast<std::int64_t>(r));
      return known[static_cast<std::size_t>(u * static_cast<double>(n))];
    }
    const auto load = [&](std::int32_t i) {
      std::int64_t sum = 0;
      for (std::size_t q = 0; q < places_.size(); ++q) {
        sum += places_[q].replica == i && ends_[q] > time ? 1 : 0;
      }
      return sum;
    };
    return *std::min_element(known.begin(), known.end(), [&](std::int32_t a, std::int32_t b) {
      return load(a) < load(b);
    });
  }

  const ClusterRun& run_;
  std::vector<std::vector<NaiveOutage>> outages_;
  TimeNs detect_;
  RouterChoice router_;
  std::vector<TimeNs> ends_;
  std::vector<NaivePlacement> places_;
  std::int64_t turn_ = 0;
};

// The case of those requests alone.
RandomCase OnlyRows(const RandomCase& all, const ClusterRun& run,
                    const std::vector<std::size_t>& rows) {
  RandomCase part = all;
  part.requests = {};
  part.requests.segments = all.requests.segments;
  const auto copy = [&rows](const auto& from, auto& to) {
    for (const std::size_t row : rows) {
      if (!from.empty()) to.push_back(from[row]);
    }
  };
  copy(run.requests.arrival, part.requests.arrival);
  copy(run.requests.prompt_tokens, part.requests.prompt_tokens);
  copy(run.requests.output_tokens, part.requests.output_tokens);
  copy(run.requests.priority, part.requests.priority);
  copy(run.requests.max_new_tokens, part.requests.max_new_tokens);
  copy(run.requests.timeout, part.requests.timeout);
  copy(run.requests.content, part.requests.content);
  return part;
}

bool IsForIt(const RandomCase& c) {
  return !MakeLatency(c)->DelayByLoad() && !AnswersBringRequests(c) && c.stages.empty() &&
         !c.engine.speculative.On() && c.engine.max_loras == 0 && !c.engine.max_num_queued_reqs &&
         !c.engine.max_num_queued_tokens && c.windows.layers == 0 && !c.requests.content.empty();
}

struct Seen {
  std::int64_t lives = 0, requests = 0, lost = 0, refused = 0, held = 0, retried = 0,
               timed_out = 0, failures = 0;
};

// Each life of the replica alone, by the reference.
void CompareLives(const RandomCase& random_case, const ClusterRun& run, std::int32_t replica,
                  const std::vector<NaiveOutage>& outages,
                  const std::vector<NaivePlacement>& places, Seen& seen) {
  for (std::size_t life = 0; life <= outages.size(); ++life) {
    const TimeNs from = life == 0 ? 0 : outages[life - 1].up;
    const TimeNs to = life < outages.size() ? outages[life].down : kNever;
    std::vector<std::size_t> rows;
    bool held = false;
    for (std::size_t r = 0; r < places.size(); ++r) {
      const NaivePlacement& p = places[r];
      if (p.replica != replica || p.refused || p.time < from || p.time >= to) continue;
      rows.push_back(r);
      held |= p.time != run.results.enqueue[r];
    }
    seen.held += held ? 1 : 0;
    if (rows.empty() || held) continue;  // who was held comes later than a request alone would
    const std::optional<TimeNs> dies =
        life < outages.size() ? std::optional<TimeNs>(to) : std::nullopt;
    const ReferenceOutput alone = RunReference(OnlyRows(random_case, run, rows), dies);
    ++seen.lives;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::size_t r = rows[i];
      const RequestResults &a = run.results, &b = alone.results;
      ++seen.requests;
      seen.timed_out += dies && a.state[r] == RequestState::kTimedOut ? 1 : 0;
      ASSERT_EQ(a.state[r], b.state[i]) << "request " << r << ", life " << life;
      ASSERT_EQ(a.first_scheduled[r], b.first_scheduled[i]) << r;
      ASSERT_EQ(a.first_token[r], b.first_token[i]) << r;
      ASSERT_EQ(a.completion[r], b.completion[i]) << r;
      ASSERT_EQ(a.generated[r], b.generated[i]) << r;
      ASSERT_EQ(a.preemptions[r], b.preemptions[i]) << r;
      ASSERT_EQ(a.cached_tokens[r], b.cached_tokens[i]) << r;
      if (a.state[r] == RequestState::kLost) ASSERT_EQ(a.lost_at[r], to);
    }
  }
}

// An attempt that was lost is followed by the next one after its back-off, if it has any left.
void CheckRetries(const ClusterRun& run, Seen& seen) {
  const RequestTable& t = run.requests;
  for (std::size_t r = 0; r < t.arrival.size(); ++r) {
    const RequestId next = t.NextAttempt(static_cast<RequestId>(r));
    if (next == kNoRequest) continue;
    const auto n = static_cast<std::size_t>(next);
    if (run.results.state[r] == RequestState::kLost) {
      ASSERT_EQ(t.arrival[n], run.results.lost_at[r] + t.backoff[n - t.requests()]);
      ++seen.retried;
    } else if (run.results.state[r] == RequestState::kCompleted) {
      ASSERT_EQ(t.arrival[n], -1);
    }
  }
}

void CompareCase(std::uint64_t seed, Seen& seen) {
  RandomCase random_case = seed % 2 == 0 ? MakeRandomCase(seed) : MakeRandomRetryCase(seed);
  random_case.latency.stalls = {};
  random_case.engine.api_server_count = 0;
  if (!IsForIt(random_case)) return;
  RouterChoice router;
  const bool by_load = random_case.requests.timeout.empty();  // of an abort there is no record
  router.name = seed % 3 == 0 ? "round_robin" : seed % 3 == 1 || !by_load ? "random"
                                                                         : "least_outstanding";
  router.seed = static_cast<std::int64_t>(seed);
  const auto replicas = static_cast<std::int64_t>(1 + seed % 8);
  const TimeNs length = std::max<TimeNs>(RunCluster(random_case, replicas, router).now, 1000);
  const FailureSpec spec = DrawnFailures(seed, replicas, length);
  SCOPED_TRACE(std::to_string(seed) + " " + router.name);
  const auto run_in = [&](std::int64_t slice) {
    return RunCluster(random_case, replicas, router, slice, nullptr, &spec);
  };
  const ClusterRun run = run_in(INT64_MAX);
  const TimeNs horizon = random_case.horizon.value_or(kClockEnd);
  std::vector<std::vector<NaiveOutage>> outages;
  for (std::int32_t i = 0; i < replicas; ++i) {
    outages.push_back(OutagesOf(spec, router.seed, i, std::min(horizon, run.now + 1)));
    seen.failures += static_cast<std::int64_t>(outages.back().size());
  }
  const std::vector<NaivePlacement> places =
      NaiveGateway(run, outages, spec, router).Place(horizon);
  for (std::size_t r = 0; r < places.size(); ++r) {
    ASSERT_EQ(run.results.replica[r], places[r].replica) << r;
    if (run.results.state[r] == RequestState::kLost) ++seen.lost;
    if (!places[r].refused) continue;
    ++seen.refused;
    ASSERT_EQ(run.results.state[r], RequestState::kLost);
    ASSERT_EQ(run.results.lost_at[r], places[r].time);
  }
  std::int64_t failures = 0;
  for (std::int32_t i = 0; i < replicas; ++i) {
    const auto& of_one = outages[static_cast<std::size_t>(i)];
    failures += static_cast<std::int64_t>(of_one.size());
    CompareLives(random_case, run, i, of_one, places, seen);
    if (::testing::Test::HasFatalFailure()) return;
  }
  ASSERT_EQ(run.failures.failures, failures);
  CheckRetries(run, seen);
  ASSERT_EQ(run.lost, std::count(run.results.state.begin(), run.results.state.end(),
                                 RequestState::kLost));
  for (const std::int64_t slice : {1, 7}) {
    const ClusterRun sliced = run_in(slice);
    ASSERT_EQ(run.results.completion, sliced.results.completion);
    ASSERT_EQ(run.results.state, sliced.results.state);
    ASSERT_EQ(run.results.lost_at, sliced.results.lost_at);
    ASSERT_EQ(run.waiting_ns, sliced.waiting_ns);
    ASSERT_EQ(run.now, sliced.now);
  }
}

TEST(Failures, RandomCases_AreAsTheReferenceHasThem) {
  Seen seen;
  const auto cases = static_cast<std::uint64_t>(Asked("SERVECAST_CASES", 1000)) * 600 / 1000;
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    CompareCase(seed, seen);
    if (HasFatalFailure()) return;
  }
  if (cases < 600) return;
  EXPECT_GT(seen.lives, 500);
  EXPECT_GT(seen.requests, 1000);
  EXPECT_GT(seen.failures, 500);
  EXPECT_GT(seen.lost, 300);
  EXPECT_GT(seen.refused, 30);
  EXPECT_GT(seen.held, 10);
  EXPECT_GT(seen.retried, 50);
  EXPECT_GT(seen.timed_out, 10);
}

}  // namespace
}  // namespace servecast::testing
