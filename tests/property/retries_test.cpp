// Clients that try again, alone and in fleets: every attempt ends once, and retries that never
// happen change nothing.
#include <cstdint>
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

const char* const kImpatient = R"(workload.classes=[{"name":"a","share":1,"timeout_s":2}])";
const char* const kTwice = R"(workload.retries={"max":2,"backoff_s":1})";

// More load than the replicas serve.
std::string Impatiently(std::vector<std::string> overrides) {
  std::vector<std::string> all = {"workload.arrivals.rate_per_s=60", "workload.requests=1500",
                                  "workload.output_tokens.value=200"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return Changed(all);
}

// But for what says that clients would try again.
void ExpectSame(const Report& without, Report with) {
  with.retries = {};
  with.rate_times_time = without.rate_times_time;  // not known where clients try again
  with.sanity = without.sanity;
  ExpectSameBits(without, with);
}

TEST(Retries, ThatNeverHappen_ChangeNoBit) {
  for (
      const char* cluster :
      {"cluster.pools.0.replicas=1", "cluster.pools.0.replicas=3",
       R"(cluster={"pools":[{"replicas":2}],"router":{"policy":"least_outstanding"},"scaling":{"policy":"hpa","min_replicas":1,"max_replicas":4}})"}) {
    ExpectSame(RunToEnd(Impatiently({cluster, "workload.output_tokens.value=20"})),
               RunToEnd(Impatiently({cluster, "workload.output_tokens.value=20", kTwice})));
  }
}

Report InSlices(const std::string& document, std::int64_t slice) {
  Result<Simulation> simulation = Simulation::Create(Parsed(document), Trace{});
  EXPECT_TRUE(simulation.ok());
  while (!simulation.value().Advance(slice)) {
  }
  return simulation.value().Snapshot();
}

// In fleets, too: attempts are counted from the requests' columns, and slices change nothing.
TEST(Retries, EveryAttemptEndsOnce) {
  for (
      const char* cluster :
      {"cluster.pools.0.replicas=1", "cluster.router.policy=central_queue",
       R"(cluster={"pools":[{"replicas":3}],"router":{"policy":"round_robin"}})",
       R"(cluster={"pools":[{"replicas":2}],"router":{"policy":"power_of_two"}})",
       R"(cluster={"router":{"policy":"least_outstanding"},"scaling":{"policy":"schedule","schedule":[[5,3]],"max_replicas":3,"engine_s":5}})"}) {
    const std::string document =
        Impatiently({"workload.arrivals.rate_per_s=400", cluster, kImpatient, kTwice});
    const Report r = InSlices(document, INT64_MAX);
    ASSERT_TRUE(r.retries.on);
    EXPECT_GT(r.retries.given_up, 0) << cluster;
    EXPECT_EQ(r.arrived, 1500);
    EXPECT_EQ(r.arrived, r.completed + r.timed_out) << cluster;
    EXPECT_EQ(r.retries.given_up, r.timed_out);
    double attempts = 0;
    for (std::size_t i = 0; i < 1500; ++i) {
      const double of_request = r.ColumnOf("attempts")[i];
      attempts += of_request;
      EXPECT_GE(of_request, 1);
      // Only its last attempt may have been answered: whoever gave up had all three.
      const bool timed_out = r.ColumnOf("state")[i] == 5;
      EXPECT_TRUE(!timed_out || of_request == 3);
      EXPECT_FALSE(r.ColumnOf("e2e_ms")[i] < 2000 * (of_request - 1));
    }
    EXPECT_EQ(attempts, static_cast<double>(r.retries.attempts));
    EXPECT_DOUBLE_EQ(r.retries.amplification, attempts / 1500);
    EXPECT_GE(r.retries.tokens_lost, 0);
    for (const std::int64_t slice : {1, 7}) {
      EXPECT_EQ(InSlices(document, slice).fingerprint, r.fingerprint) << cluster;
    }
  }
}

// Retries are at most the budget's share of requests, and fewer attempts leave more for answers.
TEST(Retries, Budget_LimitsThem) {
  const std::vector<std::string> storm = {"workload.arrivals.rate_per_s=400", kImpatient};
  std::vector<std::string> free = storm, limited = storm;
  free.emplace_back(R"(workload.retries={"max":5,"backoff_s":0.5})");
  limited.emplace_back(R"(workload.retries={"max":5,"backoff_s":0.5,"budget":0.1})");
  const Report without = RunToEnd(Impatiently(free)), with = RunToEnd(Impatiently(limited));
  EXPECT_GT(without.retries.amplification, 2);
  EXPECT_LE(with.retries.amplification, 1.1);
  EXPECT_GT(with.retries.over_budget, 0);
  EXPECT_EQ(with.arrived, with.completed + with.timed_out);
  EXPECT_EQ(with.retries.given_up, with.timed_out);
}

TEST(Retries, NotModelled_AreRefused) {
  const auto refused_at = [](std::vector<std::string> overrides) {
    const Issues issues = IssuesOf(Impatiently(std::move(overrides)));
    return issues.empty() ? "" : issues.front().path;
  };
  EXPECT_EQ(refused_at({kTwice}), "");
  EXPECT_EQ(refused_at({kTwice, R"(cluster.pools=[{"role":"prefill"},{"role":"decode"}])"}), "");
  EXPECT_EQ(
      refused_at({kTwice, "engine.max_num_queued_reqs=9", "cluster.router.policy=central_queue"}),
      "/workload/retries/max");
  EXPECT_EQ(refused_at({R"(workload.retries={"max":2,"budget":0.1})",
                        R"(workload.arrivals={"process":"closed_loop","concurrency":4})"}),
            "/workload/retries/budget");
  EXPECT_EQ(refused_at({R"(workload.retries={"max":2,"backoff_s":9})"}),
            "/workload/retries/max_backoff_s");
}

}  // namespace
}  // namespace servecast::testing
