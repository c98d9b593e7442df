// Clients that send a request twice and keep the attempt whose first token comes first.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/documents.h"
#include "gtest/gtest.h"
#include "servecast/report.h"
#include "servecast/scenario.h"
#include "servecast/simulation.h"
#include "testing/asked.h"
#include "testing/hedge_reference.h"
#include "testing/same_bits.h"

namespace servecast::testing {
namespace {

TEST(Hedges, RandomCases_AreAsTheReferenceHasThem) {
  constexpr std::int64_t kUsual = 500;
  const std::int64_t cases = Asked("SERVECAST_CASES", 2 * kUsual) / 2;
  const auto first = static_cast<std::uint64_t>(Asked("SERVECAST_SEED", 1));
  HedgeComparison seen;
  for (std::int64_t i = 0; i < std::max<std::int64_t>(1, cases); ++i) {
    const HedgeComparison one = CompareHedges(first + static_cast<std::uint64_t>(i));
    ASSERT_EQ(one.mismatch, "");
    seen.hedged += one.hedged;
    seen.won += one.won;
    seen.cancelled += one.cancelled;
    seen.over_budget += one.over_budget;
    seen.placed += one.placed;
  }
  if (cases < kUsual) return;
  EXPECT_GT(seen.hedged, 500);
  EXPECT_GT(seen.won, 100);
  EXPECT_GT(seen.cancelled, 300);
  EXPECT_GT(seen.over_budget, 30);
  EXPECT_GT(seen.placed, 2000);
}

// Two replicas with more load than they serve, now and then.
std::string Spiky(std::vector<std::string> overrides) {
  std::vector<std::string> all = {
      R"(workload.arrivals={"process":"poisson","rate_per_s":25,"spikes":[[10,3,8]]})",
      "engine.max_num_seqs=32", "workload.requests=1500", "workload.output_tokens.value=200",
      "cluster.pools.0.replicas=3"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return Changed(all);
}

TEST(Hedges, ThatNeverHappen_ChangeNoBit) {
  for (const char* router : {"round_robin", "random", "least_outstanding"}) {
    const std::string choice = std::string("cluster.router.policy=") + router;
    const Report without = RunToEnd(Spiky({choice}));
    Report with = RunToEnd(Spiky({choice, "workload.retries.hedge_after_s=1e4"}));
    EXPECT_EQ(with.retries.attempts, with.retries.requests);
    with.retries = {};
    with.rate_times_time = without.rate_times_time;  // not known where clients try again
    with.sanity = without.sanity;
    ExpectSameBits(without, with);
  }
}

// One request after another, on two replicas at random, of which the first one hardly moves: a
// client that waits a second for it has from the other what it would have had at once.
TEST(Hedges, FromAReplicaThatHardlyMoves_AddTheirWait) {
  const auto run = [](const char* hedge) {
    return RunToEnd(Changed({R"(workload.arrivals={"process":"constant","rate_per_s":0.05})",
                             "workload.requests=40", "cluster.pools.0.replicas=2",
                             "cluster.router.policy=random", "engine.enable_prefix_caching=false",
                             "measure.horizon_s=900",
                             R"(cluster.slowdowns={"schedule":[[0,0]],"factor":1000})", hedge}));
  };
  const Report r = run("workload.retries.hedge_after_s=1");
  const auto &replica = r.ColumnOf("replica"), &ttft = r.ColumnOf("ttft_ms"),
             &attempts = r.ColumnOf("attempts");
  std::vector<double> at_once, hedged;
  constexpr double kStall = 2;  // ms, of the server's host
  for (std::size_t i = 0; i < ttft.size(); ++i) {
    EXPECT_EQ(replica[i], 1);
    (attempts[i] == 1 ? at_once : hedged).push_back(ttft[i]);
  }
  ASSERT_GT(at_once.size(), 10u);
  ASSERT_GT(hedged.size(), 10u);
  EXPECT_EQ(r.retries.hedges_won, static_cast<std::int64_t>(hedged.size()));
  for (const double each : at_once) EXPECT_NEAR(each, at_once[0], kStall);
  for (const double each : hedged) EXPECT_NEAR(each, 1000 + at_once[0], kStall);
  EXPECT_EQ(r.completed, 40);
  const Report budget = run(R"(workload.retries={"hedge_after_s":1,"hedge_budget":0.1})");
  EXPECT_LE(budget.retries.attempts - budget.retries.requests, 4);
  EXPECT_GT(budget.retries.attempts - budget.retries.requests, 2);
  EXPECT_GT(budget.retries.over_budget, 5);
}

// Requests are counted once, attempts all, and slices change nothing.
TEST(Hedges, EveryRequestEndsOnce_HoweverSliced) {
  const char* const hedged = "workload.retries.hedge_after_s=0.3";
  const std::vector<std::vector<std::string>> cases = {
      {},
      {R"(workload.classes=[{"name":"a","share":1,"timeout_s":2}])"},
      {"workload.sessions.turns=3", "cluster.router.policy=random"},
      {"engine.async_scheduling=true", "cluster.router.policy=least_outstanding"},
      {R"(cluster.failures={"mtbf_s":20,"restart_s":5,"detect_s":1})"},
      {R"(cluster.failures={"schedule":[[12,0],[12,1],[12,2]],"restart_s":5})"},
      {R"(cluster.rolling_update={"at_s":8,"start_s":4,"termination_grace_period_s":1})"},
      {R"(cluster.scaling={"policy":"schedule","schedule":[[8,5],[30,2]],"engine_s":3})"},
      {R"(cluster.slowdowns={"mean_gap_s":20,"for_s":5,"factor":10})", "measure.horizon_s=30"}};
  for (std::size_t c = 0; c < cases.size(); ++c) {
    SCOPED_TRACE(c);
    std::vector<std::string> overrides = cases[c];
    overrides.push_back(hedged);
    const std::string document = Spiky(overrides);
    const Report r = RunToEnd(document);
    EXPECT_EQ(BrokenConservation(r), "");
    EXPECT_GT(r.retries.attempts, r.retries.requests);
    EXPECT_GT(r.retries.hedges_won, 0);
    EXPECT_GE(r.retries.tokens_lost, 0);
    double attempts = 0;
    for (const double of_request : r.ColumnOf("attempts")) attempts += of_request;
    EXPECT_EQ(attempts, static_cast<double>(r.retries.attempts));
    for (const std::int64_t slice : {1, 7}) {
      EXPECT_EQ(ReportJson(r, ReportParts::kWithSeries),
                ReportJson(RunToEnd(document, {}, slice), ReportParts::kWithSeries));
    }
  }
}

// Both attempts may be complete before their client sees a token, and a first attempt may have one
// while the front end would take up the second too late for its client.
TEST(Hedges, BehindASlowHost_EndOnce) {
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"workload.sessions={\"turns\":3,\"think_time_s\":0.5}",
            "workload.output_tokens.value=1",
            "workload.prompt_tokens={\"distribution\":\"fixed\",\"value\":1500}",
            "engine.delivery_overhead_us=20000", "workload.retries.hedge_after_s=0.02"},
           {"engine.request_overhead_ms=40", "workload.retries.hedge_after_s=0.3",
            R"(workload.classes=[{"name":"a","share":1,"timeout_s":2}])"}}) {
    std::vector<std::string> overrides = {
        R"(workload.arrivals={"process":"poisson","rate_per_s":25,"spikes":[[10,3,8]]})",
        R"(workload.output_tokens={"distribution":"fixed","value":90})", "engine.max_num_seqs=32",
        "workload.requests=1500", "cluster.pools.0.replicas=3"};
    overrides.insert(overrides.end(), more.begin(), more.end());
    const Report r =
        RunToEnd(Changed(overrides, std::string(*ScenarioPreset("llama-3.1-8b-h100-chat"))));
    EXPECT_EQ(BrokenConservation(r), "");
    EXPECT_GT(r.retries.attempts, r.retries.requests + 100);
    EXPECT_EQ(r.completed + r.timed_out, 1500);
    for (const double waiting : r.ColumnOf("series_waiting")) EXPECT_GE(waiting, 0);
  }
}

TEST(Hedges, NotModelled_AreRefused) {
  const auto refused_at = [](std::vector<std::string> overrides) {
    overrides.push_back("workload.retries.hedge_after_s=1");
    const Issues issues = IssuesOf(Spiky(std::move(overrides)));
    return issues.empty() ? "" : issues.front().path;
  };
  EXPECT_EQ(refused_at({}), "");
  EXPECT_EQ(refused_at({"workload.retries.budget=0.1"}), "/workload/retries/budget");
  for (const char* other :
       {R"(workload.arrivals={"process":"closed_loop","concurrency":9})",
        "workload.arrivals.max_concurrency=9", "workload.retries.max=1",
        "cluster.router.policy=power_of_two", "scheduler.policy=sglang",
        R"(engine.speculative={"method":"eagle","num_speculative_tokens":2,"acceptance_length":2})",
        R"(cluster.pools=[{"role":"prefill"},{"role":"decode"}])"}) {
    EXPECT_EQ(refused_at({other}), "/workload/retries/hedge_after_s") << other;
  }
}

}  // namespace
}  // namespace servecast::testing
