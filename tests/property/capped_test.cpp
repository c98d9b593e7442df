// Clients that hold back (workload.arrivals.max_concurrency): never more in flight, nothing is sent
// before it is due or while another has to come first, and a cap that never binds changes nothing.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/documents.h"
#include "fmt/format.h"
#include "gtest/gtest.h"
#include "plan/design_search.h"
#include "plan/token_prices.h"
#include "servecast/experiment.h"
#include "servecast/plan.h"
#include "servecast/report.h"
#include "testing/dice.h"
#include "testing/same_bits.h"

namespace servecast::testing::capped_test {
namespace {

std::string Cap(int most) { return fmt::format("workload.arrivals.max_concurrency={}", most); }

// Servers of all kinds, at up to five times what they can serve.
std::vector<std::string> RandomServer(std::uint64_t seed) {
  Dice dice(seed);
  std::vector<std::string> set = {
      "workload.requests=300",
      R"(workload.output_tokens={"distribution":"uniform","min":1,"max":60})",
      fmt::format("workload.arrivals.rate_per_s={}", dice.Pick({5, 50, 300})),
      fmt::format("engine.max_num_seqs={}", dice.Pick({2, 8, 64})), fmt::format("seed={}", seed)};
  switch (dice.Between(0, 5)) {
    case 0:
      set.insert(set.begin(), R"(engine={"preset":"sglang"})");
      set.emplace_back(R"(scheduler.policy="sglang")");
      break;
    case 1:
      set.emplace_back(R"(cluster={"pools":[{"replicas":3}],"router":{"policy":"round_robin"}})");
      break;
    case 2:
      set.emplace_back(R"(cluster={"pools":[{"replicas":2}],"router":{"policy":"kv_aware"}})");
      break;
    case 3:
      set.emplace_back(R"(cluster.pools=[{"role":"prefill"},{"role":"decode"}])");
      break;
    case 4:
      set.emplace_back(R"(cluster.pools=[{"pipeline_parallel":2}])");
      break;
    default:
      set.emplace_back(R"(workload.classes=[{"name":"a"},{"name":"b","timeout_s":0.4}])");
  }
  return set;
}

// Requests in flight at each moment that one is sent, itself included.
std::vector<std::int64_t> InFlight(const std::vector<double>& sent,
                                   const std::vector<double>& ended) {
  std::vector<std::int64_t> counts;
  for (const double at : sent) {
    const auto by = [at](double time) { return time <= at; };
    counts.push_back(std::count_if(sent.begin(), sent.end(), by) -
                     std::count_if(ended.begin(), ended.end(), by));
  }
  return counts;
}

// Whoever is held back is sent when another has ended, and never is one too many in flight.
TEST(Capped, Clients_SendWhenOneIsFree_AndNotBeforeItIsDue) {
  std::int64_t held = 0, waited = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const std::vector<std::string> server = RandomServer(seed);
    const int most = seed % 3 == 0 ? 1 : seed % 3 == 1 ? 4 : 40;
    const std::string open = Changed(server), capped = Changed({Cap(most)}, open);
    SCOPED_TRACE(capped);
    const Report without = RunToEnd(open), r = RunToEnd(capped);
    EXPECT_EQ(BrokenConservation(r), "");
    for (const SanityCheck& check : r.sanity) EXPECT_TRUE(check.ok) << check.name;
    const auto& due = without.ColumnOf("arrival_s");
    const auto& sent = r.ColumnOf("arrival_s");
    const auto& e2e = r.ColumnOf("e2e_ms");
    ASSERT_EQ(due.size(), sent.size());
    if (r.completed < r.arrived) {  // when clients give up no column says
      EXPECT_GT(r.timed_out, 0);
      continue;
    }
    std::vector<double> ended;
    for (std::size_t i = 0; i < sent.size(); ++i) ended.push_back(sent[i] + e2e[i] / 1000 - 1e-9);
    const std::vector<std::int64_t> in_flight = InFlight(sent, ended);
    EXPECT_LE(*std::max_element(in_flight.begin(), in_flight.end()), most);
    for (std::size_t i = 0; i < sent.size(); ++i) {
      EXPECT_GE(sent[i], due[i]);
      if (sent[i] == due[i]) {
        waited += i >= static_cast<std::size_t>(most) ? 1 : 0;
        continue;
      }
      ++held;
      EXPECT_TRUE(std::any_of(ended.begin(), ended.end(),
                              [&](double time) { return std::abs(time - sent[i]) < 1e-8; }))
          << i << " is sent at " << sent[i];
    }
  }
  EXPECT_GT(held, 3000);
  EXPECT_GT(waited, 500);
}

TEST(Capped, CapThatNeverBinds_ChangesNoBit) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    std::vector<std::string> server = RandomServer(seed);
    server.emplace_back("workload.arrivals.rate_per_s=2");
    const std::string open = Changed(server);
    SCOPED_TRACE(open);
    const Report without = RunToEnd(open);
    ExpectSameBits(without, RunToEnd(Changed({Cap(200)}, open)));
  }
}

// At a rate that no server keeps clients always have as many in flight.
TEST(Capped, Overload_IsThatOfAClosedLoop_AndSaid) {
  const std::string open = Changed({"workload.arrivals.rate_per_s=1000", "workload.requests=400",
                                    R"(slo=[{"metric":"ttft","percentile":99,"limit_ms":200}])"});
  const Report capped = RunToEnd(Changed({Cap(16)}, open));
  const Report loop =
      RunToEnd(Changed({R"(workload.arrivals={"process":"closed_loop","concurrency":16})"}, open));
  EXPECT_NEAR(capped.requests_per_s / loop.requests_per_s, 1, 0.03);
  EXPECT_NEAR(capped.e2e_ms.mean / loop.e2e_ms.mean, 1, 0.03);
  Experiment experiment = Good(Experiment::Create(Parsed(Changed({Cap(16)}, open))));
  while (!experiment.Advance(INT64_MAX)) {
  }
  const Report r = experiment.Snapshot(ReportDetail::kSummary);
  EXPECT_NE(r.verdict.state, VerdictState::kOverloaded) << r.verdict.sentence;
  EXPECT_NE(r.verdict.sentence.find("with at most 16 in flight ("), std::string::npos)
      << r.verdict.sentence;
}

TEST(Capped, WhatACapHasNoMeaningFor_IsRefused) {
  const auto refused = [](const std::vector<std::string>& with) {
    std::vector<std::string> all = {Cap(8)};
    all.insert(all.end(), with.begin(), with.end());
    return Listed(IssuesOf(Changed(all)));
  };
  EXPECT_EQ(refused({}), "");
  EXPECT_EQ(refused({R"(workload.sessions={"turns":3})"}),
            "/workload/arrivals/max_concurrency: found 8, allowed none with sessions of several "
            "turns\n");
  EXPECT_NE(refused({R"(workload.arrivals={"process":"static","max_concurrency":8})"}), "");
  EXPECT_NE(refused({R"(engine.compat="blis")", "engine.async_scheduling=false"}), "");
  // A client that is refused would ask again at once.
  EXPECT_NE(refused({"engine.max_num_queued_reqs=9"}), "");
  EXPECT_NE(refused({R"(workload.retries={"max":2,"budget":0.1})"}), "");
  EXPECT_EQ(refused({R"(workload.retries={"max":2})"}), "");
  EXPECT_NE(refused({R"(cluster.failures={"schedule":[[1,0]],"detect_s":2})"}), "");
  const auto plan = Plan::Create(
      Parsed(Changed({Cap(8), R"(slo=[{"metric":"ttft","percentile":99,"limit_ms":200}])"})), {},
      {});
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.issues()[0].path, "/workload/arrivals/max_concurrency");
  const auto search = DesignSearch::Create(
      Changed({Cap(8), R"(slo=[{"metric":"ttft","percentile":99,"limit_ms":200}])"}), {}, {});
  ASSERT_FALSE(search.ok());
  EXPECT_EQ(search.issues()[0].path, "/workload/arrivals/max_concurrency");
  const auto cost = CostOfLoad(Parsed(Changed({Cap(8)})), {}, {});
  ASSERT_FALSE(cost.ok());
  EXPECT_EQ(cost.issues()[0].path, "/workload/arrivals/max_concurrency");
}

}  // namespace
}  // namespace servecast::testing::capped_test
