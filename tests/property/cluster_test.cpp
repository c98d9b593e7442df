// Several replicas behind a router. A replica's behaviour follows from what it is sent and when, so
// a cluster is right if each of its replicas does what one alone does on the same requests, and if
// the router chose by what was true at that moment.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/documents.h"
#include "gtest/gtest.h"
#include "serving/cluster/cluster.h"
#include "testing/asked.h"
#include "testing/cluster_run.h"
#include "testing/engine_run.h"
#include "testing/random_cases.h"
#include "testing/reference_router.h"

namespace servecast::testing {
namespace {

// The share of these seeds that SERVECAST_CASES is of 1,000.
std::uint64_t Seeds(std::uint64_t all) {
  return all * static_cast<std::uint64_t>(Asked("SERVECAST_CASES", 1000)) / 1000;
}
// Whether there are enough of them for all that can happen to happen.
bool AllSeeds() { return Asked("SERVECAST_CASES", 1000) >= 1000; }

bool DelaysByLoad(const RandomCase& c) { return MakeLatency(c)->DelayByLoad(); }

TEST(Cluster, EachReplica_DoesWhatOneAloneDoesOnItsRequests) {
  std::int64_t compared = 0, preempted = 0, timed_out = 0, cached = 0, by_gateway = 0;
  for (std::uint64_t seed = 1; seed <= Seeds(600); ++seed) {
    RandomCase random_case = MakeRandomCase(seed);
    if (DelaysByLoad(random_case)) continue;
    random_case.latency.stalls = {};          // each replica has its own
    random_case.engine.api_server_count = 0;  // they share what comes before
    for (const RouterEntry& entry : Routers()) {
      const std::int64_t replicas = 1 + static_cast<std::int64_t>(seed % 4);
      RouterChoice router;
      router.name = entry.name;
      const ClusterRun run = RunCluster(random_case, replicas, router);
      std::string mismatch;
      const std::int64_t requests = CompareEachAlone(random_case, replicas, router, run, mismatch);
      ASSERT_EQ(mismatch, "") << seed << " " << router.name;
      compared += requests;
      by_gateway += entry.holds ? requests : 0;
      for (std::size_t r = 0; r < run.results.state.size() && requests > 0; ++r) {
        preempted += run.results.preemptions[r];
        cached += run.results.cached_tokens[r];
        timed_out += run.results.state[r] == RequestState::kTimedOut ? 1 : 0;
      }
    }
  }
  if (!AllSeeds()) return;
  // Not hollow.
  EXPECT_GT(compared, 5000);
  EXPECT_GT(preempted, 100);
  EXPECT_GT(cached, 1000);
  EXPECT_GT(timed_out, 20);
  EXPECT_GT(by_gateway, 100);
}

// With sessions and closed loops, too.
TEST(Cluster, OfOneReplica_IsThatReplica) {
  for (std::uint64_t seed = 1; seed <= Seeds(800); ++seed) {
    const RandomCase random_case = MakeRandomCase(seed);
    if (DelaysByLoad(random_case)) continue;
    SCOPED_TRACE(Describe(random_case));
    const ClusterRun run = RunCluster(random_case, 1, {"least_outstanding", {}});
    const ReplicaRun one =
        RunReplica(EngineCaseOf(random_case), *MakeLatency(random_case), run.now);
    ASSERT_EQ(run.requests.arrival, one.requests.arrival);
    ASSERT_EQ(run.results.first_scheduled, one.results.first_scheduled);
    ASSERT_EQ(run.results.first_token, one.results.first_token);
    ASSERT_EQ(run.results.completion, one.results.completion);
    ASSERT_EQ(run.results.generated, one.results.generated);
    ASSERT_EQ(run.results.cached_tokens, one.results.cached_tokens);
    ASSERT_EQ(run.step_count, one.step_count);
    ASSERT_EQ(run.now, one.now);
  }
}

// A queue at the gateway instead of the engine's: who leaves it has a seat, in the same order.
TEST(Cluster, CentralQueueOfOneReplica_IsThatReplica) {
  std::int64_t compared = 0;
  for (std::uint64_t seed = 1; seed <= Seeds(1500); ++seed) {
    const RandomCase random_case = MakeRandomCase(seed);
    const bool loses_clients = !random_case.requests.timeout.empty();
    if (DelaysByLoad(random_case) || loses_clients || random_case.scheduler.order != "fcfs") {
      continue;
    }
    SCOPED_TRACE(Describe(random_case));
    const ClusterRun run = RunCluster(random_case, 1, {"central_queue", {}});
    const ReplicaRun one =
        RunReplica(EngineCaseOf(random_case), *MakeLatency(random_case), run.now);
    // In a pipeline others pass a victim that is in flight, and all that wait in the engine may.
    const auto preempted = [](std::int32_t times) { return times > 0; };
    if (!random_case.stages.empty() &&
        std::any_of(one.results.preemptions.begin(), one.results.preemptions.end(), preempted)) {
      continue;
    }
    ASSERT_EQ(run.requests.arrival, one.requests.arrival);
    ASSERT_EQ(run.results.first_scheduled, one.results.first_scheduled);
    ASSERT_EQ(run.results.first_token, one.results.first_token);
    ASSERT_EQ(run.results.completion, one.results.completion);
    ASSERT_EQ(run.results.generated, one.results.generated);
    ASSERT_EQ(run.results.cached_tokens, one.results.cached_tokens);
    ASSERT_EQ(run.step_count, one.step_count);
    // Who waits is counted once, here or there. Behind a horizon a gateway takes nobody in.
    if (!random_case.horizon) {
      ASSERT_TRUE(run.waiting_ns == one.waiting_ns);
    }
    compared += one.requests.size();
  }
  if (!AllSeeds()) return;
  EXPECT_GT(compared, 5000);
}

TEST(Cluster, Slices_ChangeNothing) {
  for (std::uint64_t seed = 1; seed <= Seeds(400); ++seed) {
    const RandomCase random_case = MakeRandomCase(seed);
    if (DelaysByLoad(random_case)) continue;
    const RouterChoice router = MakeRouterChoice(seed + 1, random_case.latency.base);
    SCOPED_TRACE(std::to_string(seed) + " " + router.name);
    const ClusterRun whole = RunCluster(random_case, 3, router);
    const ClusterRun sliced = RunCluster(random_case, 3, router, 1);
    ASSERT_EQ(whole.results.replica, sliced.results.replica);
    ASSERT_EQ(whole.results.first_token, sliced.results.first_token);
    ASSERT_EQ(whole.results.completion, sliced.results.completion);
    ASSERT_EQ(whole.results.state, sliced.results.state);
    ASSERT_EQ(whole.step_count, sliced.step_count);
    ASSERT_EQ(whole.now, sliced.now);
    ASSERT_TRUE(whole.waiting_ns == sliced.waiting_ns);
  }
}

// Turns come after the answer before them, on whichever replica; affinity keeps them together.
TEST(Cluster, Conversations_GoOnAcrossReplicas) {
  std::int64_t turns = 0, moved = 0;
  for (std::uint64_t seed = 1; seed <= Seeds(400); ++seed) {
    const RandomCase random_case = MakeRandomCase(seed);
    if (random_case.requests.think.empty() || DelaysByLoad(random_case)) continue;
    for (const char* router : {"round_robin", "session_affinity", "central_queue"}) {
      const ClusterRun run = RunCluster(random_case, 3, {router, {}});
      for (std::size_t r = 1; r < run.requests.think.size(); ++r) {
        const TimeNs think = run.requests.think[r];
        if (think < 0 || run.results.replica[r] < 0) continue;
        ++turns;
        ASSERT_EQ(run.requests.arrival[r], run.results.completion[r - 1] + think) << seed;
        const bool moves = run.results.replica[r] != run.results.replica[r - 1];
        moved += moves ? 1 : 0;
        if (router == std::string("session_affinity")) {
          ASSERT_FALSE(moves) << seed;
        }
      }
    }
  }
  if (!AllSeeds()) return;
  EXPECT_GT(turns, 200);
  EXPECT_GT(moved, 50);
}

// The choice of each router, against loads, prompts sent and engines' signals counted anew from the
// results: with sessions, closed loops, horizons, clients that give up at the gateway.
TEST(Cluster, EveryRouter_ChoosesAsTheReferenceDoes) {
  std::map<std::string, std::int64_t> placed;
  std::int64_t held = 0, gave_up = 0, stale = 0;
  for (std::uint64_t seed = 1; seed <= Seeds(3000); ++seed) {
    const RouterComparison comparison = CompareRouter(seed);
    ASSERT_EQ(comparison.mismatch, "") << "seed " << seed << ", " << comparison.router.name;
    if (!comparison.told) continue;
    placed[comparison.router.name] += comparison.placed;
    held += comparison.held;
    gave_up += comparison.gave_up;
    stale += comparison.router.Period() > 0 ? comparison.placed : 0;
  }
  if (!AllSeeds()) return;
  for (const RouterEntry& router : Routers()) {
    if (router.name == "epp") continue;  // below
    EXPECT_GT(placed[std::string(router.name)], 2000) << router.name;
  }
  EXPECT_GT(held, 1000);
  EXPECT_GT(gave_up, 20);
  EXPECT_GT(stale, 5000);
}

// Shipped and random profiles, with metrics that are polled: the picker's facts counted anew from
// the run, its plugins and index by the slow reference.
TEST(Cluster, EndpointPicker_ChoosesAsTheReferenceDoes) {
  std::int64_t placed = 0, shipped = 0, polled = 0;
  for (std::uint64_t seed = 1; seed <= Seeds(400); ++seed) {
    const RouterComparison comparison = CompareEppRouter(seed);
    ASSERT_EQ(comparison.mismatch, "") << "seed " << seed << ", " << comparison.router.epp.profile;
    if (!comparison.told) continue;
    placed += comparison.placed;
    shipped += comparison.router.epp.profile == kOwnEppProfile ? 0 : comparison.placed;
    polled += comparison.router.Param("poll_ms") > 0 ? comparison.placed : 0;
  }
  if (!AllSeeds()) return;
  EXPECT_GT(placed, 1500);
  EXPECT_GT(shipped, 500);
  EXPECT_GT(polled, 1000);
}

// Flow control at random: who waits, goes and is turned away when, and all that the engine leaves
// out of the reference's cycles changes nothing.
TEST(Cluster, FlowControl_GoesAsTheReferenceDoes) {
  RouterComparison all;
  for (std::uint64_t seed = 1; seed <= Seeds(400); ++seed) {
    const RouterComparison one = CompareFlowRouter(seed);
    ASSERT_EQ(one.mismatch, "") << "seed " << seed;
    if (!one.told) continue;
    all.placed += one.placed;
    all.held += one.held;
    all.gave_up += one.gave_up;
    all.rejected += one.rejected;
    all.expired += one.expired;
  }
  if (!AllSeeds()) return;
  EXPECT_GT(all.placed, 2000);
  EXPECT_GT(all.held, 400);
  EXPECT_GT(all.gave_up, 0);
  EXPECT_GT(all.rejected, 300);
  EXPECT_GT(all.expired, 60);
}

// A session behind each answer: whoever waits at the gateway when its client gives up is counted,
// and in a closed loop the client goes on.
TEST(Cluster, EveryRequest_IsAccountedFor) {
  std::int64_t gave_up = 0;
  for (std::uint64_t seed = 1; seed <= Seeds(1500); ++seed) {
    const RandomCase random_case = MakeRandomCase(seed);
    if (DelaysByLoad(random_case) || random_case.requests.timeout.empty()) continue;
    const ClusterRun run = RunCluster(random_case, 2, {"central_queue", {{"max_outstanding", 1}}});
    std::int64_t completed = 0, timed_out = 0, waiting = 0, running = 0;
    for (std::size_t r = 0; r < run.results.state.size(); ++r) {
      const RequestState state = run.results.state[r];
      completed += state == RequestState::kCompleted ? 1 : 0;
      timed_out += state == RequestState::kTimedOut ? 1 : 0;
      running += state == RequestState::kRunning ? 1 : 0;
      const bool came = run.results.enqueue[r] >= 0 && run.results.enqueue[r] <= run.now;
      waiting +=
          state == RequestState::kQueued || (state == RequestState::kPending && came) ? 1 : 0;
      if (state == RequestState::kTimedOut && run.results.replica[r] < 0) ++gave_up;
      if (run.results.replica[r] < 0) {
        ASSERT_LT(run.results.first_scheduled[r], 0) << seed;
      }
      // In a loop of clients without a horizon nobody is left out.
      if (!random_case.horizon && run.requests.think.empty()) {
        ASSERT_GE(run.requests.arrival[r], 0) << seed;
        ASSERT_TRUE(state == RequestState::kCompleted || state == RequestState::kTimedOut ||
                    run.results.enqueue[r] < 0)
            << seed << " " << r;
      }
    }
    ASSERT_EQ(completed, run.completed) << seed;
    ASSERT_EQ(timed_out, run.timed_out) << seed;
    if (!random_case.horizon) {
      ASSERT_EQ(waiting + running + run.queued, 0) << seed;
    }
  }
  if (!AllSeeds()) return;
  EXPECT_GT(gave_up, 100);
}

TEST(Routers, Shares_AreAsExpected) {
  ReplicaLoads loads(4);
  const RoutedReplica four[4] = {};
  for (const char* name : {"round_robin", "random", "session_affinity"}) {
    const std::unique_ptr<Router> router = FindRouter(name).make({.seed = 3, .replicas = four});
    std::vector<int> got(4, 0);
    for (std::int32_t i = 0; i < 4000; ++i) {
      RoutedRequest request;
      request.number = i;
      request.session = i;
      ++got[static_cast<std::size_t>(router->Choose(request, loads))];
    }
    for (const int count : got) EXPECT_NEAR(count, 1000, 120) << name;  // 4 standard deviations
  }
  loads.Change(2, 5);
  loads.Change(0, 1);
  EXPECT_EQ(loads.Least(), 1);
  loads.Change(1, 2);
  loads.Change(3, 2);
  EXPECT_EQ(loads.Least(), 0);
}

// Three conversations that begin alike: each stays where it is, and together they do not fill one
// replica.
TEST(Routers, PrefixAffinity_KeepsConversationsAndBoundsLoad) {
  const double params[] = {1.25, 0};
  const RoutedReplica three[3] = {};
  const std::unique_ptr<Router> router =
      FindRouter("prefix_affinity").make({.replicas = three, .params = params});
  ReplicaLoads loads(3);
  std::vector<std::int32_t> home;
  for (std::int32_t conversation = 0; conversation < 9; ++conversation) {
    const ContentRange content[] = {{0, 0, 4}, {1 + conversation, 4, 6}};
    home.push_back(router->Choose({conversation, conversation, 100, content}, loads));
    loads.Change(home.back(), 1);
  }
  for (std::int32_t replica = 0; replica < 3; ++replica) {
    EXPECT_GE(std::count(home.begin(), home.end(), replica), 2);
    EXPECT_LE(loads.Outstanding(replica), 4);  // 1.25 times the mean, rounded up
  }
  for (std::int32_t conversation = 0; conversation < 9; ++conversation) {
    loads.Change(home[static_cast<std::size_t>(conversation)], -1);
    const ContentRange content[] = {{0, 0, 4}, {1 + conversation, 4, 9}};
    EXPECT_EQ(router->Choose({9 + conversation, conversation, 150, content}, loads),
              home[static_cast<std::size_t>(conversation)]);
    loads.Change(home[static_cast<std::size_t>(conversation)], 1);
  }
}

// By hand: a prompt of 10 blocks goes to the replica that had it until that one has 20 blocks more.
TEST(Routers, KvAware_WeighsOverlapAgainstLoad) {
  const double params[] = {1, 0};
  const RoutedReplica two[2] = {{1, 1000}, {1, 1000}};
  const std::unique_ptr<Router> router =
      FindRouter("kv_aware").make({.replicas = two, .params = params, .block_size = 16});
  const ReplicaLoads loads(2);
  const ContentRange shared[] = {{0, 0, 10}};
  auto choose = [&, number = 0](std::int64_t tokens,
                                std::span<const ContentRange> content) mutable {
    return router->Choose({number++, 0, tokens, content}, loads);
  };
  EXPECT_EQ(choose(161, shared), 0);  // 11 blocks on both: the lowest number; 0 has 11
  EXPECT_EQ(choose(161, shared), 0);  // 1 + 12 against 11 + 11; 0 has 12
  EXPECT_EQ(choose(16 * 3, {}), 1);   // 3 + 15 against 3 + 3; 1 has 3
  router->Left(2, 1);                 // 1 has none
  const ContentRange other[] = {{1, 0, 9}};
  EXPECT_EQ(choose(16 * 9 + 1, other), 1);  // 10 + 22 against 10 + 10; 1 has 10
  EXPECT_EQ(choose(161, shared), 0);        // 1 + 13 against 11 + 21
  router->Left(3, 1);                       // 1 has none, but knows `other`
  EXPECT_EQ(choose(16 * 9 + 1, other), 1);  // 10 + 23 against 1 + 1
}

// Whoever has room by his own limit; of several the one with the fewest.
TEST(Routers, CentralQueue_GoesByEachOnesLimit) {
  const double params[] = {0};
  const RoutedReplica two[2] = {{1, 0}, {3, 0}};
  const std::unique_ptr<Router> router =
      FindRouter("central_queue").make({.replicas = two, .params = params});
  ReplicaLoads loads(2);
  std::vector<std::int32_t> places;
  for (int i = 0; i < 5; ++i) {
    places.push_back(router->Choose({}, loads));
    if (places.back() != Router::kHold) loads.Change(places.back(), 1);
  }
  EXPECT_EQ(places, (std::vector<std::int32_t>{0, 1, 1, 1, Router::kHold}));
  loads.Change(1, -2);
  EXPECT_EQ(router->Choose({}, loads), 1);
}

TEST(Routers, JumpHash_MovesFewKeys) {
  std::int64_t moved = 0;
  for (std::uint64_t key = 0; key < 10000; ++key) {
    const std::int32_t before = ReplicaOfKey(key * 0x9E3779B97F4A7C15ULL, 9);
    const std::int32_t after = ReplicaOfKey(key * 0x9E3779B97F4A7C15ULL, 10);
    if (before == after) continue;
    EXPECT_EQ(after, 9);
    ++moved;
  }
  EXPECT_NEAR(static_cast<double>(moved), 1000, 130);
}

TEST(ClusterReport, CountsAllReplicas) {
  const std::string document = R"({
    "schema": 1, "model": {"preset": "llama-3.1-8b"}, "hardware": {"preset": "h100-sxm"},
    "engine": {"host_stalls_per_s": 0},
    "cluster": {"pools": [{"replicas": 4}], "router": {"policy": "round_robin"}},
    "workload": {"arrivals": {"process": "constant", "rate_per_s": 40},
                 "prompt_tokens": {"distribution": "fixed", "value": 300},
                 "output_tokens": {"distribution": "fixed", "value": 50}, "requests": 400}})";
  const Report four = RunToEnd(document);
  EXPECT_EQ(four.gpus, 4);
  EXPECT_EQ(four.completed, 400);
  std::string single = document;
  single.replace(single.find("\"replicas\": 4"), 13, "\"replicas\": 1");
  single.replace(single.find("\"rate_per_s\": 40"), 16, "\"rate_per_s\": 10");
  single.replace(single.find("\"requests\": 400"), 15, "\"requests\": 100");
  const Report one = RunToEnd(single);
  // Constant arrivals dealt in turn: each replica is the single one, a little later.
  EXPECT_DOUBLE_EQ(four.ttft_ms.p50, one.ttft_ms.p50);
  EXPECT_EQ(four.steps, 4 * one.steps);
  EXPECT_NEAR(four.kv_mean_usage, one.kv_mean_usage, 0.01 * one.kv_mean_usage);
  EXPECT_DOUBLE_EQ(four.kv_peak_usage, one.kv_peak_usage);
  EXPECT_NEAR(four.binding.busy_share, one.binding.busy_share, 0.02);
  EXPECT_NEAR(four.output_tokens_per_s_per_gpu, one.output_tokens_per_s_per_gpu, 5);
  EXPECT_EQ(four.ColumnOf("replica")[5], 1);
}

std::string Shared(const std::string& router) {
  return R"({
    "schema": 1, "model": {"preset": "llama-3.1-8b"}, "hardware": {"preset": "h100-sxm"},
    "engine": {"delivery_overhead_us": 0, "host_stalls_per_s": 0},
    "cluster": {"pools": [{"replicas": 4}], "router": )" +
         router + R"(},
    "workload": {"arrivals": {"process": "poisson", "rate_per_s": 40},
                 "prompt_tokens": {"distribution": "uniform", "min": 50, "max": 2000},
                 "output_tokens": {"distribution": "uniform", "min": 10, "max": 400},
                 "prefix": {"groups": 1, "tokens": 1000}, "requests": 800}})";
}

// All prompts begin alike: with a bound of the load as good as none one replica gets them all, and
// the verdict says so; with the default it does not.
TEST(ClusterReport, NamesTheReplicaThatHasTooMuch) {
  const Report uneven = RunToEnd(Shared(R"({"policy": "prefix_affinity", "load_factor": 1000})"));
  ASSERT_EQ(uneven.replicas.size(), 4u);
  EXPECT_EQ(uneven.replicas[0].requests, 800);
  EXPECT_EQ(uneven.replicas[1].requests, 0);
  EXPECT_FALSE(uneven.replicas[1].ttft_mean_ms.has_value());
  EXPECT_DOUBLE_EQ(*uneven.replicas[0].ttft_mean_ms, uneven.ttft_ms.mean);
  EXPECT_NE(uneven.verdict.limit.find("Replicas are loaded unevenly: of 4 replicas, number 0 has"),
            std::string::npos)
      << uneven.verdict.limit;
  EXPECT_NE(uneven.verdict.limit.find("4 times the mean, and was sent 100 % of all"),
            std::string::npos);
  const std::string json = ReportJson(uneven, ReportParts::kWithScenario);
  EXPECT_NE(json.find(R"("replicas":{"requests":[800,0,0,0],"busy_share":[)"), std::string::npos);

  const Report even = RunToEnd(Shared(R"({"policy": "prefix_affinity"})"));
  EXPECT_EQ(even.verdict.limit.find("unevenly"), std::string::npos) << even.verdict.limit;
  EXPECT_LT(even.ttft_ms.p99, 0.5 * uneven.ttft_ms.p99);
  std::int64_t requests = 0;
  double busy = 0, outstanding = 0;
  for (const ReplicaReport& replica : even.replicas) {
    requests += replica.requests;
    busy += replica.busy_share;
    outstanding += replica.mean_outstanding;
  }
  EXPECT_EQ(requests, 800);
  EXPECT_NEAR(busy / 4, even.binding.busy_share, 1e-12);
  // Little's law, but for the time before the queue.
  EXPECT_NEAR(outstanding, even.e2e_ms.mean / 1e3 * 800 / even.simulated_s, 0.1 * outstanding);
}

// A load that is old news sends many to where there were few.
TEST(ClusterReport, OldNews_CostLatency) {
  const auto p99 = [](const char* staleness) {
    return RunToEnd(Shared(std::string(R"({"policy": "weighted", "prefix_weight": 0,
                                           "queue_depth_weight": 0, "staleness_ms": )") +
                           staleness + "}"))
        .ttft_ms.p99;
  };
  EXPECT_LT(p99("0"), p99("1000"));
}

TEST(ClusterReport, CentralQueue_CountsTimeAtTheGatewayAsQueueing) {
  const Report report = RunToEnd(Shared(R"({"policy": "central_queue", "max_outstanding": 2})"));
  EXPECT_EQ(report.completed, 800);
  EXPECT_GT(report.time_split.ttft_ms[1], 1000);
  EXPECT_NEAR(report.scheduling_delay_ms.mean,
              report.time_split.ttft_ms[0] + report.time_split.ttft_ms[1], 1e-6);
  EXPECT_EQ(report.saturation.state, SaturationState::kOverloaded);
  for (const ReplicaReport& replica : report.replicas) EXPECT_LE(replica.requests, 220);
}

}  // namespace
}  // namespace servecast::testing
