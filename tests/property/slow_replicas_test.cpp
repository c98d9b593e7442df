// Replicas that are slow for a while, run as everybody runs them. That steps last as long as they
// should, the random cases of the differential tests say: one in eight is slow.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/documents.h"
#include "gtest/gtest.h"
#include "servecast/report.h"
#include "servecast/simulation.h"
#include "testing/same_bits.h"

namespace servecast::testing {
namespace {

// Three replicas with some load, for about a minute.
std::string Steady(std::vector<std::string> overrides = {}) {
  std::vector<std::string> all = {"workload.arrivals.rate_per_s=30", "workload.requests=1800",
                                  "workload.output_tokens.value=100", "cluster.pools.0.replicas=3"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return Changed(all);
}

const char* const kSlowRoles =
    R"(cluster={"pools":[{"role":"prefill"},{"role":"decode","replicas":2}]})";

TEST(SlowReplicas, FactorOne_ChangesNoBit) {
  for (const char* cluster :
       {"cluster.pools.0.replicas=1", "cluster.router.policy=least_outstanding",
        "cluster.router.policy=power_of_two", kSlowRoles, "scheduler.policy=sglang"}) {
    const Report without = RunToEnd(Steady({cluster}));
    Report with = RunToEnd(
        Steady({cluster,
                R"(cluster.slowdowns={"schedule":[[5,0]],"mean_gap_s":9,"for_s":2,"factor":1})"}));
    EXPECT_GT(with.scaling.slow.requests, 0) << cluster;
    with.scaling = {};
    with.verdict.note = without.verdict.note;
    ExpectSameBits(without, with);
  }
}

// One request alone: its tokens take exactly so many times as long.
TEST(SlowReplicas, ARequestAlone_TakesTheFactor) {
  const auto tpot = [](const std::string& slow) {
    const Report r = RunToEnd(Changed({"workload.requests=1", slow}));
    return r.ColumnOf("e2e_ms")[0] - r.ColumnOf("ttft_ms")[0];
  };
  const double alone = tpot("cluster.slowdowns=null");
  for (const char* factor : {"2", "8"}) {
    const std::string slow = R"(cluster.slowdowns={"schedule":[[0,0]],"factor":)";
    EXPECT_NEAR(tpot(slow + factor + "}"), std::atof(factor) * alone, 1e-9 * alone);
  }
  EXPECT_EQ(tpot(R"(cluster.slowdowns={"schedule":[[0,0]],"for_s":1e-3})"), alone)
      << "it arrives later";
}

// While one of three is slow its requests take longer, and others as long as ever.
TEST(SlowReplicas, ForAWhile_OnlyItsRequestsAreSlower) {
  const Report without = RunToEnd(Steady());
  const Report r =
      RunToEnd(Steady({R"(cluster.slowdowns={"schedule":[[20,1]],"for_s":10,"factor":3})"}));
  const auto &arrival = r.ColumnOf("arrival_s"), &replica = r.ColumnOf("replica"),
             &e2e = r.ColumnOf("e2e_ms"), &before = without.ColumnOf("e2e_ms");
  double slow = 0, as_ever = 0;
  for (std::size_t i = 0; i < arrival.size(); ++i) {
    if (replica[i] != 1 || arrival[i] < 15) {
      EXPECT_EQ(e2e[i], before[i]);
    } else if (arrival[i] > 20 && arrival[i] < 25) {
      slow += e2e[i];
      as_ever += before[i];
    }
  }
  EXPECT_GT(slow, 2.5 * as_ever);
  EXPECT_EQ(r.scaling.slow.periods, 1);
  EXPECT_DOUBLE_EQ(r.scaling.slow.slow_s, 10);
  EXPECT_NEAR(r.scaling.slow.share, 10. / 180, 0.02);
  EXPECT_EQ(r.scaling.slow.tail_share, 1);
  EXPECT_NE(r.verdict.note.find("100 % of the slowest 1 %"), std::string::npos) << r.verdict.note;
  EXPECT_EQ(BrokenConservation(r), "");
}

// Fast and slow times alternate, so a replica is slow for_s / (mean_gap_s + for_s) of the time.
TEST(SlowReplicas, ByChance_AreSlowAsOftenAsTheorySays) {
  const double gap = 300, length = 200, hours = 40, replicas = 8;
  const Report r = RunToEnd(
      Changed({"workload.arrivals.rate_per_s=0.01", "workload.requests=1000",
               "cluster.pools.0.replicas=8", "measure.horizon_s=" + std::to_string(hours * 3600),
               R"(cluster.slowdowns={"mean_gap_s":300,"for_s":200})"}));
  const double share = length / (gap + length);
  const double cycles = replicas * hours * 3600 / (gap + length);
  EXPECT_NEAR(r.scaling.slow.slow_s / (replicas * r.simulated_s), share,
              4 * share * (1 - share) / std::sqrt(cycles));
  EXPECT_NEAR(static_cast<double>(r.scaling.slow.periods), cycles, 4 * std::sqrt(cycles));
}

TEST(SlowReplicas, Slices_GiveTheSameReport) {
  for (const char* cluster :
       {kSlowRoles, "cluster.router.policy=power_of_two", "engine.async_scheduling=true",
        R"(cluster.failures={"mtbf_s":20,"restart_s":3})", "workload.sessions.turns=3"}) {
    const std::string document =
        Steady({cluster, R"(cluster.slowdowns={"mean_gap_s":9,"for_s":2,"schedule":[[5,0]]})"});
    const Report whole = RunToEnd(document);
    EXPECT_EQ(BrokenConservation(whole), "");
    for (const std::int64_t slice : {1, 7}) {
      EXPECT_EQ(ReportJson(whole, ReportParts::kWithSeries),
                ReportJson(RunToEnd(document, {}, slice), ReportParts::kWithSeries))
          << cluster;
    }
  }
}

TEST(SlowReplicas, WhatDoesNotCombine_IsRefused) {
  const auto refused = [](std::vector<std::string> overrides) {
    const Issues issues = IssuesOf(Steady(std::move(overrides)));
    return issues.empty() ? std::string() : issues.front().path;
  };
  EXPECT_EQ(refused({R"(cluster.slowdowns={"schedule":[[20,2]]})"}), "");
  EXPECT_EQ(refused({R"(cluster.slowdowns={"schedule":[[20,3]]})"}),
            "/cluster/slowdowns/schedule/0");
  EXPECT_EQ(
      refused({R"(cluster.slowdowns={"mean_gap_s":1,"for_s":0.001})", "measure.horizon_s=1e8"}),
      "/cluster/slowdowns/mean_gap_s");
  EXPECT_EQ(refused({R"(cluster.slowdowns={"mean_gap_s":1000})",
                     "cluster.pools.0.pipeline_parallel=2", "engine.async_scheduling=false"}),
            "/cluster/slowdowns");
}

// A run lists its periods and failures, whose number is bounded whatever its load is.
TEST(SlowReplicas, TooManyPeriods_AreRefused) {
  const std::vector<std::pair<std::string, std::string>> often = {
      {R"(cluster.slowdowns={"mean_gap_s":1,"for_s":0.001})", "/cluster/slowdowns/mean_gap_s"},
      {R"(cluster.failures={"mtbf_s":1,"restart_s":0})", "/cluster/failures/mtbf_s"}};
  for (const auto& [chance, path] : often) {
    Trace trace;
    trace.rows = {{0, 10, 10}, {100'000'000'000'000, 10, 10}};  // 100,000 s apart
    const Scenario replay = Parsed(Steady({"workload.arrivals.process=trace", chance}));
    EXPECT_EQ(Simulation::Refusals(replay, trace), Issues());
    trace.rows[1].arrival_ns *= 10;
    const Issues refused = Simulation::Refusals(replay, trace);
    ASSERT_EQ(refused.size(), 1u) << path;
    EXPECT_EQ(refused[0].path, path);
    EXPECT_NE(refused[0].message.find("up to 1,000,000 times in a run"), std::string::npos)
        << refused[0].message;
    for (const char* slow :
         {R"(workload.sessions={"turns":3,"think_time_s":1e6})",
          R"(workload.arrivals={"process":"closed_loop","concurrency":1,"think_time_s":1e4})"}) {
      const Issues issues = IssuesOf(Steady({chance, slow}));
      const auto found = std::find_if(issues.begin(), issues.end(),
                                      [&path = path](const Issue& i) { return i.path == path; });
      EXPECT_NE(found, issues.end()) << path << " " << slow;
    }
  }
}

}  // namespace
}  // namespace servecast::testing
