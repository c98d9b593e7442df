// Several replicas behind a router. A replica's behaviour follows from what it is sent and when, so
// a cluster is right if each of its replicas does what one alone does on the same requests, and if
// the router chose by what was true at that moment.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/documents.h"
#include "gtest/gtest.h"
#include "serving/cluster.h"
#include "testing/engine_run.h"
#include "testing/random_cases.h"

namespace servecast::testing {
namespace {

struct ClusterRun {
  RequestTable requests;
  RequestResults results;
  std::int64_t steps = 0, completed = 0, timed_out = 0;
  TimeNs now = 0;
};

ClusterRun RunCluster(const RandomCase& random_case, std::int64_t replicas, const char* router,
                      std::int64_t slice = INT64_MAX) {
  const EngineCase engine_case = EngineCaseOf(random_case);
  const std::unique_ptr<LatencyModel> latency = MakeLatency(random_case);
  ClusterRun run;
  run.requests = engine_case.requests;
  run.results.Resize(run.requests.size());
  run.results.replica.assign(run.requests.arrival.size(), -1);
  const std::int64_t pool_blocks = *engine_case.engine.num_gpu_blocks_override;
  const std::int64_t max_model_len =
      EffectiveMaxModelLen(engine_case.engine, engine_case.model_max_len, pool_blocks - 1);
  Clients clients(run.requests, *latency, max_model_len, run.results);
  Inbox unused(clients, run.requests, run.results, true);
  ReplicaScratch scratch(run.requests);
  const std::vector<PipelineStage> stages = MakeStages(engine_case.stages, *latency);
  Recorder recorder(0);
  Cluster cluster(
      {{engine_case.engine, engine_case.scheduler, pool_blocks, max_model_len, run.requests, unused,
        *latency, run.results, recorder, scratch, engine_case.horizon.value_or(kNever), nullptr,
        KvTiersOf(engine_case.engine.kv_offload, static_cast<double>(random_case.KvBlockBytes()),
                  1),
        0, false, stages.empty() ? nullptr : &stages},
       replicas,
       &FindRouter(router),
       7,
       clients});
  while (!cluster.Advance(slice)) {
  }
  cluster.WriteProgress(run.results.generated);
  cluster.WriteRecords(cluster.now(), recorder);
  run.steps = recorder.steps();
  run.completed = cluster.completed();
  run.timed_out = cluster.timed_out();
  run.now = cluster.now();
  return run;
}

bool AnswersBringRequests(const RandomCase& c) {
  const std::unique_ptr<LatencyModel> latency = MakeLatency(c);
  return !c.requests.think.empty() || !c.requests.pause.empty() || latency->DelayByLoad();
}

// The rows that one replica was sent, as a table of their own.
RequestTable PartOf(const RequestTable& all, const std::vector<std::size_t>& rows) {
  RequestTable part;
  part.segments = all.segments;
  const auto copy = [&rows](const auto& from, auto& to) {
    for (const std::size_t row : rows) {
      if (!from.empty()) to.push_back(from[row]);
    }
  };
  copy(all.arrival, part.arrival);
  copy(all.prompt_tokens, part.prompt_tokens);
  copy(all.output_tokens, part.output_tokens);
  copy(all.priority, part.priority);
  copy(all.ttft_deadline, part.ttft_deadline);
  copy(all.timeout, part.timeout);
  copy(all.content, part.content);
  return part;
}

TEST(Cluster, EachReplica_DoesWhatOneAloneDoesOnItsRequests) {
  std::int64_t compared = 0, preempted = 0, timed_out = 0, cached = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    const RandomCase random_case = MakeRandomCase(seed);
    // A segment per request lets a part keep its contents.
    if (AnswersBringRequests(random_case) || random_case.requests.content.empty()) continue;
    for (const RouterEntry& router : Routers()) {
      const std::int64_t replicas = 1 + static_cast<std::int64_t>(seed % 4);
      const ClusterRun run = RunCluster(random_case, replicas, std::string(router.name).c_str());
      for (std::int32_t replica = 0; replica < replicas; ++replica) {
        std::vector<std::size_t> rows;
        for (std::size_t r = 0; r < run.results.replica.size(); ++r) {
          if (run.results.replica[r] == replica) rows.push_back(r);
        }
        if (rows.empty()) continue;
        const RequestTable part = PartOf(run.requests, rows);
        EngineCase alone = EngineCaseOf(random_case);
        const EngineCase engine_case{
            part, alone.engine, alone.scheduler, alone.model_max_len, alone.horizon, alone.stages};
        const ReplicaRun one = RunReplica(engine_case, *MakeLatency(random_case), run.now);
        for (std::size_t i = 0; i < rows.size(); ++i) {
          const std::size_t r = rows[i];
          SCOPED_TRACE(std::to_string(seed) + " " + std::string(router.name));
          ASSERT_EQ(run.results.first_scheduled[r], one.results.first_scheduled[i]);
          ASSERT_EQ(run.results.first_token[r], one.results.first_token[i]);
          ASSERT_EQ(run.results.completion[r], one.results.completion[i]);
          ASSERT_EQ(run.results.state[r], one.results.state[i]);
          ASSERT_EQ(run.results.generated[r], one.results.generated[i]);
          ASSERT_EQ(run.results.preemptions[r], one.results.preemptions[i]);
          ASSERT_EQ(run.results.cached_tokens[r], one.results.cached_tokens[i]);
          ++compared;
          preempted += run.results.preemptions[r];
          cached += run.results.cached_tokens[r];
          timed_out += run.results.state[r] == RequestState::kTimedOut ? 1 : 0;
        }
      }
    }
  }
  // Not hollow.
  EXPECT_GT(compared, 5000);
  EXPECT_GT(preempted, 100);
  EXPECT_GT(cached, 1000);
  EXPECT_GT(timed_out, 20);
}

// With sessions and closed loops, too.
TEST(Cluster, OfOneReplica_IsThatReplica) {
  for (std::uint64_t seed = 1; seed <= 800; ++seed) {
    const RandomCase random_case = MakeRandomCase(seed);
    if (MakeLatency(random_case)->DelayByLoad()) continue;
    SCOPED_TRACE(Describe(random_case));
    const ClusterRun run = RunCluster(random_case, 1, "least_outstanding");
    const ReplicaRun one =
        RunReplica(EngineCaseOf(random_case), *MakeLatency(random_case), run.now);
    ASSERT_EQ(run.requests.arrival, one.requests.arrival);
    ASSERT_EQ(run.results.first_scheduled, one.results.first_scheduled);
    ASSERT_EQ(run.results.first_token, one.results.first_token);
    ASSERT_EQ(run.results.completion, one.results.completion);
    ASSERT_EQ(run.results.generated, one.results.generated);
    ASSERT_EQ(run.results.cached_tokens, one.results.cached_tokens);
    ASSERT_EQ(run.steps, one.step_count);
    ASSERT_EQ(run.now, one.now);
  }
}

TEST(Cluster, Slices_ChangeNothing) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const RandomCase random_case = MakeRandomCase(seed);
    if (MakeLatency(random_case)->DelayByLoad()) continue;
    const char* router = seed % 2 == 0 ? "power_of_two" : "session_affinity";
    SCOPED_TRACE(seed);
    const ClusterRun whole = RunCluster(random_case, 3, router);
    const ClusterRun sliced = RunCluster(random_case, 3, router, 1);
    ASSERT_EQ(whole.results.replica, sliced.results.replica);
    ASSERT_EQ(whole.results.first_token, sliced.results.first_token);
    ASSERT_EQ(whole.results.completion, sliced.results.completion);
    ASSERT_EQ(whole.steps, sliced.steps);
    ASSERT_EQ(whole.now, sliced.now);
  }
}

// Turns come after the answer before them, on whichever replica; affinity keeps them together.
TEST(Cluster, Conversations_GoOnAcrossReplicas) {
  std::int64_t turns = 0, moved = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const RandomCase random_case = MakeRandomCase(seed);
    if (random_case.requests.think.empty() || MakeLatency(random_case)->DelayByLoad()) continue;
    for (const char* router : {"round_robin", "session_affinity"}) {
      const ClusterRun run = RunCluster(random_case, 3, router);
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
  EXPECT_GT(turns, 200);
  EXPECT_GT(moved, 50);
}

// What was outstanding when a request was placed, counted anew from the results.
std::vector<std::int64_t> OutstandingAt(const ClusterRun& run, std::size_t request,
                                        std::int64_t replicas) {
  std::vector<std::int64_t> outstanding(static_cast<std::size_t>(replicas), 0);
  const TimeNs now = run.results.enqueue[request];
  for (std::size_t r = 0; r < run.results.replica.size(); ++r) {
    if (r == request || run.results.replica[r] < 0) continue;
    const TimeNs enqueue = run.results.enqueue[r], end = run.results.completion[r];
    const bool placed = enqueue < now || (enqueue == now && r < request);
    if (placed && (end < 0 || end > now)) {
      ++outstanding[static_cast<std::size_t>(run.results.replica[r])];
    }
  }
  return outstanding;
}

TEST(Cluster, LeastOutstanding_IsWhatItSays) {
  constexpr std::int64_t kReplicas = 3;
  std::int64_t placed = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const RandomCase random_case = MakeRandomCase(seed);
    const std::unique_ptr<LatencyModel> latency = MakeLatency(random_case);
    // So that completion is when the engine was done with it.
    if (!random_case.requests.timeout.empty() || latency->OutputTokenDelay() > 0 ||
        random_case.horizon || AnswersBringRequests(random_case)) {
      continue;
    }
    const ClusterRun run = RunCluster(random_case, kReplicas, "least_outstanding");
    for (std::size_t r = 0; r < run.results.replica.size(); ++r) {
      if (run.results.replica[r] < 0) continue;
      const std::vector<std::int64_t> outstanding = OutstandingAt(run, r, kReplicas);
      const auto least = std::min_element(outstanding.begin(), outstanding.end());
      ASSERT_EQ(run.results.replica[r], least - outstanding.begin()) << seed << " " << r;
      ++placed;
    }
  }
  EXPECT_GT(placed, 500);
}

TEST(Routers, Shares_AreAsExpected) {
  ReplicaLoads loads(4);
  for (const char* name : {"round_robin", "random", "session_affinity"}) {
    const std::unique_ptr<Router> router = FindRouter(name).make(3);
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

}  // namespace
}  // namespace servecast::testing
