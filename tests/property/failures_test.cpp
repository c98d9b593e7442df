// Replicas that fail and come back, run as everybody runs them: every attempt ends once, and
// failures that never come change nothing. failures_differential_test.cpp has the reference.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/documents.h"
#include "gtest/gtest.h"
#include "servecast/experiment.h"
#include "servecast/report.h"
#include "servecast/simulation.h"
#include "testing/same_bits.h"

namespace servecast::testing {
namespace {

// Three replicas with some load, for about a minute.
std::string Loaded(std::vector<std::string> overrides = {}) {
  std::vector<std::string> all = {"workload.arrivals.rate_per_s=30", "workload.requests=1800",
                                  "workload.output_tokens.value=100", "cluster.pools.0.replicas=3",
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
      EXPECT_EQ(with.scaling.failures.failures, 0);
      EXPECT_EQ(with.scaling.failures.availability, 1);
      with.scaling = {};
      EXPECT_NE(with.verdict.note.find("before the failure at"), std::string::npos);
      with.verdict.note = without.verdict.note;
      ExpectSameBits(without, with);
    }
  }
}

TEST(Failures, BesideAScaler_ThatNeverCome_ChangeNoBit) {
  const std::vector<std::string> scaled = {
      "cluster.scaling.policy=hpa", "cluster.scaling.metric=outstanding",
      "cluster.scaling.target=4",   "cluster.scaling.engine_s=3",
      "cluster.scaling.sync_s=5",   "cluster.scaling.scrape_period_s=5"};
  std::vector<std::string> failing = scaled;
  failing.push_back(R"(cluster.failures={"schedule":[[1e7,0]],"detect_s":3})");
  const Report without = RunToEnd(Loaded(scaled));
  EXPECT_GT(without.scaling.starts, 0);
  Report with = RunToEnd(Loaded(failing));
  EXPECT_EQ(with.scaling.failures.availability, 1);
  with.scaling.failures = {};
  EXPECT_NE(with.verdict.note.find("before the failure at"), std::string::npos);
  with.verdict.note = without.verdict.note;
  ExpectSameBits(without, with);
}

// However far it came, who was lost counts once, against every target.
TEST(Failures, WhoIsLost_CountsOnceAgainstEachTarget) {
  const Report r =
      RunToEnd(Loaded({kOneFails, R"(slo=[{"metric":"tpot","percentile":99,"limit_ms":1e6},
                          {"metric":"e2e","percentile":99,"limit_ms":1e6}])"}));
  const std::int64_t lost = r.scaling.failures.lost;
  ASSERT_GT(lost, 0);
  for (const SloResult& result : r.slo) {
    EXPECT_DOUBLE_EQ(result.unserved_share,
                     static_cast<double>(lost) / static_cast<double>(r.arrived));
  }
}

// As a Deployment does: the pod stays, and is not ready.
TEST(Failures, BesideAScaler_RestartInTheirPlace) {
  const Report r =
      RunToEnd(Loaded({kOneFails, "cluster.scaling.policy=hpa", "cluster.scaling.min_replicas=3",
                       "cluster.scaling.max_replicas=3"}));
  EXPECT_EQ(BrokenConservation(r), "");
  EXPECT_EQ(r.scaling.starts, 0);
  EXPECT_EQ(r.scaling.failures.failures, 1);
  EXPECT_DOUBLE_EQ(r.scaling.failures.down_s, 10);
  EXPECT_DOUBLE_EQ(r.scaling.mean_gpus, 3);  // its GPU is not given back
  const Report fixed = RunToEnd(Loaded({kOneFails}));
  EXPECT_EQ(r.ColumnOf("completion_ms"), fixed.ColumnOf("completion_ms"));
}

// What is lost for a while is made up for where the load of the others asks for it.
TEST(Failures, BesideAScaler_OthersStartForTheLoad) {
  std::vector<std::string> scaled = {R"(cluster.failures={"schedule":[[20,0]],"restart_s":1000})",
                                     "cluster.scaling.policy=hpa",
                                     "cluster.scaling.metric=outstanding",
                                     "cluster.scaling.target=60",
                                     "cluster.scaling.max_replicas=4",
                                     "cluster.scaling.engine_s=3",
                                     "cluster.scaling.sync_s=5",
                                     "cluster.scaling.scrape_period_s=5",
                                     "cluster.pools.0.replicas=1"};
  const Report r = RunToEnd(Loaded(scaled));
  EXPECT_EQ(BrokenConservation(r), "");
  EXPECT_GT(r.scaling.starts, 0);
  EXPECT_EQ(r.scaling.failures.failures, 1);
  EXPECT_EQ(r.completed + r.scaling.failures.lost, r.arrived);
}

const std::vector<std::string> kUpdated = {
    R"(cluster.rolling_update={"at_s":20,"start_s":5,"max_surge":1,"max_unavailable":0})"};

TEST(RollingUpdate, ThatNeverComes_ChangesNoBit) {
  const Report without = RunToEnd(Loaded());
  Report with = RunToEnd(Loaded({R"(cluster.rolling_update={"at_s":1e7})"}));
  EXPECT_FALSE(with.scaling.rolling_update_s);
  EXPECT_DOUBLE_EQ(with.scaling.mean_gpus, 3);
  with.scaling = {};
  with.verdict.note = "";  // which says that it never came
  ExpectSameBits(without, with);
}

TEST(RollingUpdate, Surge_ReplacesOneAfterAnother) {
  const Report r = RunToEnd(Loaded(kUpdated));
  EXPECT_EQ(BrokenConservation(r), "");
  EXPECT_EQ(r.completed, r.arrived);
  EXPECT_EQ(r.scaling.starts, 3);
  EXPECT_EQ(r.scaling.stops, 3);
  for (const ScalingReport::Step& step : r.scaling.steps) {
    EXPECT_EQ(step.up, 3) << step.at_s;
    EXPECT_LE(step.starting + step.draining, 1) << step.at_s;
  }
  ASSERT_TRUE(r.scaling.rolling_update_s);
  EXPECT_GE(*r.scaling.rolling_update_s, 15);  // three starts, and what drains between them
  EXPECT_NEAR(r.scaling.replica_s, 3 * r.simulated_s + *r.scaling.rolling_update_s, 5);
}

TEST(RollingUpdate, WithoutMoreGpus_HasFewerThatServe) {
  const Report r = RunToEnd(Loaded(
      {R"(cluster.rolling_update={"at_s":20,"start_s":5,"max_surge":0,"max_unavailable":1})"}));
  EXPECT_EQ(r.completed, r.arrived);
  std::int64_t least = 3;
  for (const ScalingReport::Step& step : r.scaling.steps) {
    EXPECT_LE(step.starting + step.up + step.draining, 3) << step.at_s;
    least = std::min(least, step.up);
  }
  EXPECT_EQ(least, 2);
  EXPECT_DOUBLE_EQ(r.scaling.mean_gpus, 3);
}

// Answers of some ten seconds: what is on a replica that drains is done, or cut off after two.
TEST(RollingUpdate, GracePeriod_CutsOffWhatIsLeft) {
  const std::vector<std::string> updated = {
      "workload.output_tokens.value=1000",
      R"(cluster.rolling_update={"at_s":20,"start_s":5,"termination_grace_period_s":2})"};
  const Report r = RunToEnd(Loaded(updated));
  EXPECT_EQ(BrokenConservation(r), "");
  EXPECT_EQ(r.scaling.failures.failures, 0);
  EXPECT_EQ(r.scaling.failures.availability, 1);
  EXPECT_GT(r.scaling.failures.lost, 100);
  EXPECT_EQ(r.completed + r.scaling.failures.lost, r.arrived);
  double since = 0;
  for (std::size_t i = 0; i < r.scaling.steps.size(); ++i) {
    const ScalingReport::Step& step = r.scaling.steps[i];
    since = step.draining > 0 && i > 0 && r.scaling.steps[i - 1].draining == 0 ? step.at_s : since;
    if (step.draining == 0 && since > 0) {
      EXPECT_NEAR(step.at_s, since + 2, 0.05);
      since = 0;
    }
  }
  std::vector<std::string> retried = updated;
  retried.push_back(kRetried);
  EXPECT_EQ(RunToEnd(Loaded(retried)).scaling.failures.lost, 0);
  std::vector<std::string> patient = {
      updated[0],
      R"(cluster.rolling_update={"at_s":20,"start_s":5,"termination_grace_period_s":1000})"};
  const Report all = RunToEnd(Loaded(patient));
  EXPECT_EQ(all.completed, all.arrived);
  const Report unlimited =
      RunToEnd(Loaded({updated[0], R"(cluster.rolling_update={"at_s":20,"start_s":5})"}));
  EXPECT_EQ(all.ColumnOf("completion_ms"), unlimited.ColumnOf("completion_ms"));
}

TEST(RollingUpdate, Defaults_AreKubernetes) {
  const RollingUpdateSpec update;
  for (const auto& [replicas, surge, unavailable] :
       {std::array{1, 1, 0}, {3, 1, 0}, {4, 1, 1}, {5, 2, 1}, {10, 3, 2}}) {
    EXPECT_EQ(update.Surge(replicas), surge);
    EXPECT_EQ(update.Unavailable(replicas), unavailable);
  }
  RollingUpdateSpec within;  // where both would be 0
  within.max_surge = 0;
  EXPECT_EQ(within.Unavailable(3), 1);
  EXPECT_EQ(within.Unavailable(8), 2);
}

// As Kubernetes cleans up: old replicas that fail are replaced at once only where that many may be
// down; else they restart in their place.
TEST(RollingUpdate, OldReplicasThatFail_AreReplacedWithinTheLimit) {
  const auto down_for = [](int max_unavailable) {
    const std::string update =
        R"(cluster.rolling_update={"at_s":20,"start_s":15,"max_surge":1,"max_unavailable":)" +
        std::to_string(max_unavailable) + "}";
    const Report r =
        RunToEnd(Loaded({update, R"(cluster.failures={"schedule":[[25,0]],"restart_s":4})"}));
    double seconds = 0;
    for (std::size_t i = 0; i + 1 < r.scaling.steps.size(); ++i) {
      const ScalingReport::Step& step = r.scaling.steps[i];
      if (step.up < 3 - max_unavailable) seconds += r.scaling.steps[i + 1].at_s - step.at_s;
    }
    EXPECT_EQ(r.scaling.failures.failures, 1);
    return seconds;
  };
  EXPECT_NEAR(down_for(0), 4, 1e-6);
  EXPECT_NEAR(down_for(1), 4, 1e-6);
}

TEST(RollingUpdate, IsJudgedWhole) {
  const std::string all_at_once =
      R"(cluster.rolling_update={"at_s":10,"start_s":5,"max_surge":0,"max_unavailable":3})";
  Experiment experiment = Good(Experiment::Create(
      Parsed(Loaded({all_at_once, R"(slo=[{"metric":"ttft","percentile":95,"limit_ms":500}])"}))));
  while (!experiment.Advance(100'000)) {
  }
  const Report r = experiment.Snapshot();
  EXPECT_FALSE(r.certainty && r.certainty->long_warmup);
  EXPECT_EQ(r.verdict.state, VerdictState::kMisses) << r.verdict.sentence;
}

TEST(RollingUpdate, ThatIsNotOver_IsSaid) {
  const Report never = RunToEnd(Loaded({R"(cluster.rolling_update={"at_s":1e6})"}));
  EXPECT_NE(never.verdict.note.find("before the rolling update at"), std::string::npos);
  const Report some = RunToEnd(Loaded({R"(cluster.rolling_update={"at_s":20,"start_s":600})"}));
  EXPECT_NE(some.verdict.note.find("was not over"), std::string::npos);
  EXPECT_EQ(RunToEnd(Loaded(kUpdated)).verdict.note.find("update"), std::string::npos);
}

// A replica that comes hours later is waited for.
TEST(RollingUpdate, LongStarts_AreWaitedFor) {
  const Report r = RunToEnd(Loaded(
      {"cluster.pools.0.replicas=1",
       R"(cluster.rolling_update={"at_s":20,"start_s":86400,"max_surge":0,"max_unavailable":1})"}));
  EXPECT_EQ(r.completed, r.arrived);
  const Report scheduled = RunToEnd(
      Loaded({"cluster.pools.0.replicas=1", "cluster.scaling.policy=schedule",
              "cluster.scaling.min_replicas=0", "cluster.scaling.schedule=[[10, 0], [50000, 1]]"}));
  EXPECT_EQ(scheduled.completed, scheduled.arrived);
}

TEST(RollingUpdate, Slices_GiveTheSameReport) {
  std::vector<std::string> updated = kUpdated;
  updated[0].insert(updated[0].size() - 1, R"(,"termination_grace_period_s":0.5)");
  updated.push_back(R"(cluster.failures={"mtbf_s":40,"restart_s":4,"detect_s":1})");
  updated.push_back(kRetried);
  const Report whole = RunToEnd(Loaded(updated));
  EXPECT_EQ(BrokenConservation(whole), "");
  EXPECT_GT(whole.scaling.failures.failures, 0);
  for (const std::int64_t slice : {1, 7}) {
    EXPECT_EQ(ReportJson(whole, ReportParts::kWithSeries),
              ReportJson(RunToEnd(Loaded(updated), {}, slice), ReportParts::kWithSeries));
  }
}

TEST(RollingUpdate, WhatCannotBe_IsRefused) {
  const auto refused = [](std::vector<std::string> overrides) {
    const Issues issues = IssuesOf(Loaded(std::move(overrides)));
    return issues.empty() ? std::string() : issues.front().path;
  };
  EXPECT_EQ(refused(kUpdated), "");
  EXPECT_EQ(refused({R"(cluster.rolling_update={"at_s":1,"max_surge":0,"max_unavailable":0})"}),
            "/cluster/rolling_update/max_unavailable");
  EXPECT_EQ(refused({R"(cluster.rolling_update={"at_s":1,"max_unavailable":4})"}),
            "/cluster/rolling_update/max_unavailable");
  EXPECT_EQ(refused({R"(cluster.rolling_update={"at_s":1})", "cluster.scaling.policy=hpa"}),
            "/cluster/rolling_update");
  EXPECT_EQ(refused({R"(cluster.rolling_update={"at_s":1})",
                     R"(cluster.pools=[{"replicas":1},{"replicas":2}])"}),
            "/cluster/rolling_update");
  EXPECT_EQ(refused({R"(cluster.rolling_update={"at_s":1})",
                     R"(cluster.failures={"mtbf_s":1000,"domain_replicas":3})"}),
            "/cluster/failures/domain_replicas");
}

TEST(Failures, Schedule_LosesWhatTheReplicaHas) {
  const Report r = RunToEnd(Loaded({kOneFails}));
  EXPECT_EQ(BrokenConservation(r), "");
  EXPECT_EQ(r.scaling.failures.failures, 1);
  EXPECT_DOUBLE_EQ(r.scaling.failures.down_s, 10);
  EXPECT_NEAR(r.scaling.failures.availability, 1 - 10 / (3 * r.simulated_s), 1e-9);
  EXPECT_GT(r.scaling.failures.lost, 0);
  EXPECT_LT(r.scaling.failures.lost, 100);
  EXPECT_EQ(r.scaling.failures.lost, r.scaling.failures.lost_attempts);
  EXPECT_GT(r.scaling.failures.tokens_lost, 0);
  EXPECT_EQ(r.scaling.failures.lost, Count(r, 7));
  EXPECT_EQ(r.completed + r.scaling.failures.lost, r.arrived);
  ASSERT_EQ(r.scaling.steps.size(), 3u);
  EXPECT_EQ(r.scaling.steps[1].at_s, 20);
  EXPECT_EQ(r.scaling.steps[1].up, 2);
  EXPECT_EQ(r.scaling.steps[2].at_s, 30);
  EXPECT_EQ(r.scaling.steps[2].up, 3);
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
  const Report late =
      RunToEnd(Loaded({R"(cluster.failures={"schedule":[[20,1]],"restart_s":10,"detect_s":2})"}));
  EXPECT_GT(late.scaling.failures.lost, at_once.scaling.failures.lost + 30);
  const Report retried = RunToEnd(
      Loaded({kRetried, R"(cluster.failures={"schedule":[[20,1]],"restart_s":10,"detect_s":2})"}));
  EXPECT_GE(retried.scaling.failures.lost_attempts, late.scaling.failures.lost);
  EXPECT_LT(retried.scaling.failures.lost, late.scaling.failures.lost);
  EXPECT_EQ(BrokenConservation(late), "");
}

TEST(Failures, RetriesServeWhatWasLost) {
  const Report r = RunToEnd(Loaded({kOneFails, kRetried}));
  EXPECT_EQ(r.completed, r.arrived);
  EXPECT_EQ(r.scaling.failures.lost, 0);
  EXPECT_GT(r.scaling.failures.lost_attempts, 0);
  EXPECT_EQ(r.retries.attempts, r.arrived + r.scaling.failures.lost_attempts);
  EXPECT_EQ(r.retries.tokens_lost, r.scaling.failures.tokens_lost);
}

// All are down at once: requests wait at the gateway for the first to come back.
TEST(Failures, NoneUp_HoldsRequests) {
  const Report r =
      RunToEnd(Loaded({R"(cluster.failures={"schedule":[[20,0],[20,1],[20,2]],"restart_s":10})"}));
  EXPECT_EQ(r.completed + r.scaling.failures.lost, r.arrived);
  EXPECT_LT(r.scaling.failures.lost, 200);
  const auto &arrival = r.ColumnOf("arrival_s"), &ttft = r.ColumnOf("ttft_ms");
  for (std::size_t i = 0; i < arrival.size(); ++i) {
    if (arrival[i] > 20.001 && arrival[i] < 30) {
      EXPECT_GT(arrival[i] + ttft[i] / 1e3, 30);
    }
  }
}

// Slices, snapshots, loops and conversations: every request ends once.
TEST(Failures, EveryAttemptEndsOnce_HoweverSliced) {
  const char* const chance = R"(cluster.failures={"mtbf_s":8,"restart_s":3,"detect_s":0.3})";
  const char* const loop = R"(workload.arrivals={"process":"closed_loop","concurrency":40})";
  const std::vector<std::vector<std::string>> cases = {
      {},
      {kRetried},
      {"cluster.pools.0.replicas=1"},
      {kRetried, R"(workload.classes=[{"name":"a","timeout_s":3}])"},
      {loop, "cluster.failures.detect_s=0"},
      {loop, "cluster.failures.detect_s=0", kRetried},
      {"workload.sessions.turns=3", "cluster.router.policy=random"},
      {"engine.async_scheduling=true", kRetried, "measure.horizon_s=15"}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    std::vector<std::string> overrides = cases[i];
    overrides.insert(overrides.begin(), {chance, "workload.requests=500"});
    const std::string document = Loaded(overrides);
    const Report whole = RunToEnd(document);
    EXPECT_GT(whole.scaling.failures.failures, 1);
    EXPECT_GT(whole.scaling.failures.lost_attempts, 0);
    EXPECT_EQ(BrokenConservation(whole), "");
    EXPECT_TRUE(whole.finished);
    for (const std::int64_t slice : {1, 7}) {
      EXPECT_EQ(ReportJson(whole, ReportParts::kWithSeries),
                ReportJson(RunToEnd(document, {}, slice), ReportParts::kWithSeries));
    }
    Simulation simulation = Good(Simulation::Create(Parsed(document), {}));
    while (!simulation.Advance(500))
      EXPECT_LE(simulation.Snapshot().scaling.failures.availability, 1);
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
    EXPECT_NEAR(r.scaling.failures.availability, share,
                4 * share * (1 - share) / std::sqrt(cycles));
    EXPECT_NEAR(static_cast<double>(r.scaling.failures.failures), cycles, 4 * std::sqrt(cycles));
  }
}

// Of a node of four: one row, and one life by chance, is that of all of them.
TEST(Failures, OfADomain_AreOfAllItsReplicas) {
  const auto loaded = [](const std::string& failures, const std::string& replicas) {
    return RunToEnd(Loaded({"cluster.pools.0.replicas=" + replicas,
                            "cluster.failures={" + failures + R"(,"restart_s":10})"}));
  };
  const FailureReport one =
      loaded(R"("schedule":[[20,5]],"domain_replicas":4)", "8").scaling.failures;
  EXPECT_EQ(one.failures, 4);
  EXPECT_DOUBLE_EQ(one.down_s, 40);
  const FailureReport rest =
      loaded(R"("schedule":[[20,5]],"domain_replicas":4)", "6").scaling.failures;
  EXPECT_EQ(rest.failures, 2) << "the last domain may be smaller";
  const FailureReport chance = loaded(R"("mtbf_s":30,"domain_replicas":3)", "9").scaling.failures;
  EXPECT_GT(chance.failures, 0);
  EXPECT_EQ(chance.failures % 3, 0);
}

// A row at the moment at which the replica is up again is none, also where that is the same moment.
TEST(Failures, AtOnceUpAgain_FailOnce) {
  for (const char* rows : {"[[20,1]]", "[[0,1]]", "[[20,1],[20,1]]"}) {
    const std::string failures = R"(cluster.failures={"restart_s":0,"schedule":)";
    const Report r = RunToEnd(Loaded({failures + rows + "}"}));
    EXPECT_EQ(r.scaling.failures.failures, 1) << rows;
  }
  const Report back =
      RunToEnd(Loaded({R"(cluster.failures={"schedule":[[20,1],[30,1]],"restart_s":10})"}));
  EXPECT_EQ(back.scaling.failures.failures, 1);
}

// Ten runs, not one: what an outage does is not cut away as a beginning, nor is what is lost
// called overload.
TEST(Failures, InAVerdict_AreCountedAndNoOverload) {
  const auto report_of = [](std::vector<std::string> overrides) {
    Result<Experiment> run = Experiment::Create(Parsed(Loaded(std::move(overrides))));
    while (!run.value().Advance(INT64_MAX)) {
    }
    return run.value().Snapshot(ReportDetail::kSummary);
  };
  const char* const target = R"(slo=[{"metric":"tpot","percentile":99,"limit_ms":10000}])";
  const Report outage =
      report_of({target, R"(cluster.failures={"schedule":[[20,1]],"restart_s":10,"detect_s":10})"});
  EXPECT_GT(outage.slo[0].unserved_share, 0.01);
  EXPECT_EQ(outage.verdict.state, VerdictState::kMisses) << outage.verdict.sentence;
  const Report chance =
      report_of({target, R"(cluster.failures={"mtbf_s":60,"restart_s":10,"detect_s":3})"});
  EXPECT_NE(chance.verdict.state, VerdictState::kOverloaded) << chance.verdict.sentence;
}

TEST(Failures, WhatDoesNotCombine_IsRefused) {
  const auto refused_at = [](std::vector<std::string> overrides) {
    const Issues issues = IssuesOf(Loaded(std::move(overrides)));
    for (const Issue& issue : issues) {
      if (issue.path.starts_with("/cluster/failures")) return issue.path;
    }
    return issues.empty() ? std::string() : issues.front().path;
  };
  EXPECT_EQ(refused_at({kOneFails}), "");
  EXPECT_EQ(refused_at({R"(cluster.failures={"mtbf_s":1,"restart_s":0})", "measure.horizon_s=1e8"}),
            "/cluster/failures/mtbf_s");
  EXPECT_EQ(refused_at({R"(cluster.failures={"schedule":[[20,3]]})"}),
            "/cluster/failures/schedule/0");
  EXPECT_EQ(refused_at({R"(cluster.failures={"schedule":[[20,0.5]]})"}),
            "/cluster/failures/schedule/0");
  EXPECT_EQ(refused_at({R"(cluster.failures={"mtbf_s":1000,"detect_s":1})",
                        R"(workload.arrivals={"process":"closed_loop","concurrency":4})"}),
            "/cluster/failures/detect_s");
  for (const char* other :
       {"cluster.router.policy=prefix_affinity", "scheduler.policy=sglang",
        "cluster.pools.0.pipeline_parallel=2", "engine.speculative.method=ngram"}) {
    EXPECT_EQ(refused_at({R"(cluster.failures={"mtbf_s":1000})", other}), "/cluster/failures")
        << other;
  }
  const std::string roles = R"(cluster.pools=[{"role":"prefill"},{"role":"decode"}])";
  EXPECT_EQ(refused_at({R"(cluster.failures={"schedule":[[20,1]]})", roles}), "");
  EXPECT_EQ(refused_at({R"(cluster.failures={"schedule":[[20,2]]})", roles}),
            "/cluster/failures/schedule/0");
  EXPECT_EQ(refused_at({R"(cluster.failures={"schedule":[[20,1]]})", roles,
                        "cluster.decode_router.policy=weighted"}),
            "/cluster/decode_router/policy");
}

}  // namespace
}  // namespace servecast::testing
