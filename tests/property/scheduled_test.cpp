// The schedulers after Vidur: equal to their reference on random cases, to the nanosecond; the
// iteration counts that theory knows; the same with compat vidur whether observed or not; behind
// routers what one alone does.
#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "core/documents.h"
#include "gtest/gtest.h"
#include "metrics/time_split.h"
#include "servecast/simulation.h"
#include "serving/cluster/router.h"
#include "testing/asked.h"
#include "testing/scheduled_differential.h"

namespace servecast::testing {
namespace {

std::int64_t Cases() { return Asked("SERVECAST_CASES", 1500); }

std::string Name(std::uint64_t seed, const ScheduledCase& c) {
  return "seed " + std::to_string(seed) + "\n" + Describe(c.base);
}

TEST(DifferentialSchedulers, RandomScenarios_EqualTheReference) {
  std::int64_t steps = 0, preempted = 0, self = 0, partial = 0, overlapping = 0, chunked = 0;
  std::int64_t timed_out = 0, in_flight = 0, capped = 0, interfered = 0, recomputed = 0, turns = 0;
  std::int64_t overtaken = 0, urgent = 0, hits = 0, resumed_hits = 0, evicted = 0, middle = 0;
  for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(Cases()); ++seed) {
    const std::optional<ScheduledCase> c = MakeScheduledCase(seed);
    if (!c) continue;
    const ScheduledReferenceOutput reference = RunScheduledReference(*c);
    const std::optional<std::string> mismatch = FirstScheduledMismatch(*c, reference);
    ASSERT_FALSE(mismatch) << *mismatch << "\n" << Name(seed, *c);
    steps += static_cast<std::int64_t>(reference.steps.size());
    preempted += reference.preemptions;
    self += reference.self_restarts;
    partial += reference.partial_restarts;
    overlapping += reference.overlapping;
    chunked += reference.chunked;
    timed_out += reference.timed_out;
    in_flight += reference.aborted_in_flight;
    capped += reference.length_capped;
    turns += c->base.requests.think.empty() ? 0 : 1;
    overtaken += reference.overtaken;
    middle += reference.from_the_middle;
    urgent += reference.urgent_restarts;
    hits += reference.prefix_cache.hit_blocks;
    resumed_hits += reference.prefix_cache.resumed_hit_tokens;
    evicted += reference.prefix_cache.evicted_blocks;
    for (std::size_t r = 0; r < reference.results.state.size(); ++r) {
      interfered += reference.results.interference[r] > 0 ? 1 : 0;
      recomputed +=
          !reference.results.setbacks.empty() && reference.results.setbacks[r].recompute > 0 ? 1
                                                                                             : 0;
    }
  }
  const std::pair<const char*, std::int64_t> contents[] = {
      {"steps", steps},
      {"preemptions", preempted},
      {"of the request that asked", self},
      {"of prompts in part", partial},
      {"batches beside others", overlapping},
      {"prompts in chunks", chunked},
      {"time-outs", timed_out},
      {"of them in flight", in_flight},
      {"length-capped", capped},
      {"requests that prefills held up", interfered},
      {"recomputed", recomputed},
      {"conversations", turns},
      {"enqueued before others", overtaken},
      {"preempted as the least urgent", urgent},
      {"admitted from the middle of the queue", middle},
      {"blocks found in the prefix cache", hits},
      {"tokens found after a preemption", resumed_hits},
      {"blocks whose content was overwritten", evicted},
  };
  std::string line;
  for (const auto& [what, count] : contents) line += std::to_string(count) + " " + what + ", ";
  std::printf("%s\n", line.c_str());
  if (Cases() < 1500) return;
  for (const auto& [what, count] : contents) EXPECT_GT(count, 0) << what;
}

// Many at once, whose tokens to come are as many or not, up to the limit of the memory.
TEST(DifferentialSchedulers, LightLlmWithManySeats_EqualsTheReference) {
  for (std::int64_t blocks : {40, 300, 2000}) {
    ScheduledCase c;
    c.policy = "lightllm";
    for (std::int32_t i = 0; i < 250; ++i) {
      c.base.requests.arrival.push_back(i / 50 * 30'000);
      c.base.requests.prompt_tokens.push_back(1 + i * 37 % 60);
      c.base.requests.output_tokens.push_back(1 + i * 53 % 90);
    }
    c.base.engine.name = "many seats";
    c.base.engine.block_size = 4;
    c.base.engine.num_gpu_blocks_override = blocks + 1;
    c.base.engine.max_num_seqs = 1000;
    c.base.engine.max_num_batched_tokens = 400;
    c.base.model_max_len = 120;  // of some it cuts what they may make
    const ScheduledReferenceOutput reference = RunScheduledReference(c);
    EXPECT_EQ(FirstScheduledMismatch(c, reference).value_or(""), "") << blocks;
    EXPECT_GT(reference.steps.size(), 100u);
  }
}

// The invariants that a request's record must keep, I5 and I14.
TEST(Scheduleds, PartsOfTheTime_AddUp) {
  std::int64_t completed = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    const std::optional<ScheduledCase> c = MakeScheduledCase(seed);
    if (!c) continue;
    ScheduledRunOptions options;
    options.observe = false;
    const ScheduledReferenceOutput run = RunScheduledEngine(*c, options);
    const TimeNs delay = MakeLatency(c->base)->OutputTokenDelay();
    for (std::size_t r = 0; r < run.results.state.size(); ++r) {
      if (run.results.state[r] != RequestState::kCompleted) continue;
      SCOPED_TRACE(Name(seed, *c));
      ++completed;
      const RequestTimes times = TimesOf(run.requests, run.results, delay, r);
      const TimeNs arrival = run.requests.arrival[r];
      ASSERT_EQ(times.e2e.Sum(), run.results.completion[r] - arrival) << r;
      ASSERT_EQ(times.ttft.Sum(), run.results.first_token[r] - arrival) << r;
      for (const TimeSplit& split : {times.e2e, times.ttft}) {
        for (const TimeNs TimeSplit::*part : kTimeParts) ASSERT_GE(split.*part, 0) << r;
      }
      ASSERT_LE(arrival, run.results.enqueue[r]);
      ASSERT_LE(run.results.enqueue[r], run.results.first_scheduled[r]);
      ASSERT_LT(run.results.first_scheduled[r], run.results.first_token[r]);
      ASSERT_LE(run.results.first_token[r], run.results.completion[r]);
    }
  }
  EXPECT_GT(completed, 5000);
}

// With Vidur's faults the recorded runs are observed ones, so these have no decode runs.
TEST(Scheduleds, AsVidur_ObserverChangesNothing) {
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    const std::optional<ScheduledCase> c = MakeScheduledCase(seed);
    if (!c || !c->base.requests.timeout.empty()) continue;
    ScheduledRunOptions options;
    options.as_vidur = true;
    const ScheduledReferenceOutput observed = RunScheduledEngine(*c, options);
    options.observe = false;
    const ScheduledReferenceOutput run = RunScheduledEngine(*c, options);
    SCOPED_TRACE(Name(seed, *c));
    ASSERT_EQ(observed.results.first_token, run.results.first_token);
    ASSERT_EQ(observed.results.completion, run.results.completion);
    ASSERT_EQ(observed.results.preemptions, run.results.preemptions);
    ASSERT_EQ(observed.itl, run.itl);
    ASSERT_EQ(observed.now, run.now);
  }
}

RequestTable PartOf(const RequestTable& all, const std::vector<std::size_t>& rows) {
  RequestTable part;
  const auto copy = [&rows](const auto& from, auto& to) {
    for (const std::size_t row : rows) {
      if (!from.empty()) to.push_back(from[row]);
    }
  };
  copy(all.arrival, part.arrival);
  copy(all.prompt_tokens, part.prompt_tokens);
  copy(all.output_tokens, part.output_tokens);
  copy(all.timeout, part.timeout);
  copy(all.priority, part.priority);
  copy(all.ttft_deadline, part.ttft_deadline);
  copy(all.content, part.content);
  part.segments = all.segments;
  return part;
}

TEST(Scheduleds, BehindARouter_EachDoesWhatOneAloneDoes) {
  std::int64_t compared = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    std::optional<ScheduledCase> c = MakeScheduledCase(seed);
    if (!c || !c->base.requests.think.empty() || !c->base.requests.pause.empty()) continue;
    c->base.latency.stalls = {};          // each replica has its own
    c->base.engine.api_server_count = 0;  // they share what comes before
    for (const char* router : {"round_robin", "least_outstanding"}) {
      ScheduledRunOptions options;
      options.observe = false;
      options.router = router;
      options.replicas = 1 + static_cast<std::int64_t>(seed % 3);
      const ScheduledReferenceOutput whole = RunScheduledEngine(*c, options);
      options.slice = 3;
      const ScheduledReferenceOutput sliced = RunScheduledEngine(*c, options);
      SCOPED_TRACE(Name(seed, *c));
      ASSERT_EQ(whole.results.completion, sliced.results.completion);
      ASSERT_EQ(whole.now, sliced.now);
      for (std::int32_t replica = 0; replica < options.replicas; ++replica) {
        std::vector<std::size_t> rows;
        for (std::size_t r = 0; r < whole.results.replica.size(); ++r) {
          if (whole.results.replica[r] == replica) rows.push_back(r);
        }
        if (rows.empty()) continue;
        const RequestTable part = PartOf(whole.requests, rows);
        ScheduledRunOptions one;
        one.observe = false;
        one.requests = &part;
        const ScheduledReferenceOutput alone = RunScheduledEngine(*c, one);
        for (std::size_t i = 0; i < rows.size(); ++i) {
          const std::size_t r = rows[i];
          ASSERT_EQ(whole.results.first_scheduled[r], alone.results.first_scheduled[i]);
          ASSERT_EQ(whole.results.completion[r], alone.results.completion[i]);
          ASSERT_EQ(whole.results.state[r], alone.results.state[i]);
          ASSERT_EQ(whole.results.generated[r], alone.results.generated[i]);
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 3000);
}

// Conversations and closed loops across replicas end, whatever the slices.
TEST(Scheduleds, Conversations_GoOnAcrossReplicas) {
  std::int64_t turns = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const std::optional<ScheduledCase> c = MakeScheduledCase(seed);
    if (!c || (c->base.requests.think.empty() && c->base.requests.pause.empty())) continue;
    ScheduledRunOptions options;
    options.observe = false;
    options.router = "least_outstanding";
    options.replicas = 3;
    const ScheduledReferenceOutput run = RunScheduledEngine(*c, options);
    options.slice = 1;
    const ScheduledReferenceOutput sliced = RunScheduledEngine(*c, options);
    SCOPED_TRACE(Name(seed, *c));
    ASSERT_EQ(run.results.completion, sliced.results.completion);
    ASSERT_EQ(run.results.replica, sliced.results.replica);
    for (std::size_t r = 1; r < run.requests.think.size(); ++r) {
      if (run.requests.think[r] < 0 || run.requests.arrival[r] < 0) continue;
      ASSERT_EQ(run.requests.arrival[r], run.results.completion[r - 1] + run.requests.think[r]);
      ++turns;
    }
  }
  EXPECT_GT(turns, 50);
}

// ---- Scenarios -----------------------------------------------------------------------------

Report RunWith(const std::vector<std::string>& changes) { return RunToEnd(Changed(changes)); }

std::vector<std::string> One(const char* policy, int prompt, int output) {
  return {
      std::string("scheduler.policy=") + policy, "engine.max_num_batched_tokens=512",
      "workload.requests=1",
      R"(workload.prompt_tokens={"distribution":"fixed","value":)" + std::to_string(prompt) + "}",
      R"(workload.output_tokens={"distribution":"fixed","value":)" + std::to_string(output) + "}"};
}

// A prefill and a decode for each token but the first; sarathi's prefill in ceil(P/C) chunks.
TEST(Scheduleds, IterationCounts_AreTheOnesOfTheory) {
  for (const char* policy : {"vllm_v0", "orca", "lightllm", "faster_transformer"}) {
    for (const int output : {1, 2, 100}) {
      EXPECT_EQ(RunWith(One(policy, 300, output)).steps, output) << policy;
    }
  }
  for (const int prompt : {1, 511, 512, 513, 1024, 1500}) {
    EXPECT_EQ(RunWith(One("sarathi", prompt, 100)).steps, (prompt + 511) / 512 + 99) << prompt;
  }
}

TEST(Scheduleds, PipelineStages_EachHasItsShare) {
  const auto run = [](const char* stages) {
    std::vector<std::string> set = One("sarathi", 512, 100);
    set.push_back(std::string("cluster.pools.0.pipeline_parallel=") + stages);
    return RunWith(set);
  };
  const Report one = run("1"), two = run("2"), four = run("4");
  EXPECT_EQ(two.steps, one.steps);
  EXPECT_EQ(two.gpus, 2);
  // One request gains nothing: its layers are as many, each stage launches and sends, too.
  EXPECT_GT(two.e2e_ms.mean, one.e2e_ms.mean);
  EXPECT_LT(two.e2e_ms.mean, 1.2 * one.e2e_ms.mean);
  EXPECT_GT(four.e2e_ms.mean, two.e2e_ms.mean);
  EXPECT_LT(four.e2e_ms.mean, 1.5 * one.e2e_ms.mean);
  EXPECT_FALSE(four.departures.empty());
}

// All prompts begin with the same 256 tokens.
TEST(Scheduleds, PrefixCaching_IsThatOfPagedMemory) {
  for (const char* policy : {"vllm_v0", "sarathi", "orca", "lightllm", "faster_transformer"}) {
    const std::string name = policy;
    const bool paged = name == "vllm_v0" || name == "sarathi";
    const auto run = [&](const char* compat) {
      return RunWith({"scheduler.policy=" + name, "engine.max_num_batched_tokens=8192",
                      std::string("engine.compat=") + compat, "workload.requests=50",
                      R"(workload.prefix={"groups":1,"tokens":256})"});
    };
    const auto says = [](const Report& report) {
      return std::any_of(report.departures.begin(), report.departures.end(),
                         [](const auto& rule) { return rule.find("prefix caching: none") == 0; });
    };
    const Report report = run("none");
    EXPECT_EQ(report.prefix_cache.hit_tokens > 40 * 256, paged) << name;
    EXPECT_EQ(report.prefix_cache.query_tokens > 0, paged) << name;
    EXPECT_EQ(says(report), !paged) << name;
    if (name == "faster_transformer") continue;
    const Report vidur = run("vidur");
    EXPECT_EQ(vidur.prefix_cache.query_tokens, 0) << name;
    EXPECT_TRUE(says(vidur)) << name;
  }
}

TEST(Scheduleds, ShortestFirst_GoesWithEach) {
  for (const char* policy : {"vllm_v0", "sarathi", "orca", "lightllm", "faster_transformer"}) {
    const auto mean_ttft = [&](const char* order) {
      return RunWith({std::string("scheduler.policy=") + policy,
                      std::string("scheduler.order=") + order, "engine.max_num_seqs=4",
                      "engine.max_num_batched_tokens=8192", "workload.requests=100",
                      "engine.prompt_token_overhead_us=0",
                      R"(workload.arrivals={"process":"static"})",
                      R"(workload.prompt_tokens={"distribution":"uniform","min":10,"max":4000})",
                      R"(workload.output_tokens={"distribution":"fixed","value":4})"})
          .ttft_ms.mean;
    };
    EXPECT_LT(mean_ttft("sjf"), 0.9 * mean_ttft("fcfs")) << policy;
  }
}

TEST(Scheduleds, WhatTheyDoNotKnow_IsNamed) {
  const std::pair<const char*, std::vector<std::string>> wrong[] = {
      {"/scheduler/order", {"engine.compat=vidur", "scheduler.policy=orca", "scheduler.order=sjf"}},
      {"/scheduler/priority",
       {"engine.compat=vidur", "scheduler.policy=orca", "scheduler.priority=constant"}},
      {"/scheduler/preemption",
       {"engine.compat=vidur", "scheduler.policy=sarathi", "scheduler.preemption=priority"}},
      {"/scheduler/preemption", {"scheduler.policy=orca", "scheduler.preemption=tail"}},
      {"/engine/kv_offload", {"scheduler.policy=orca", "engine.kv_offload.cpu_gib=10"}},
      {"/engine/gc_pass_us", {"scheduler.policy=orca", "engine.gc_pass_us=10"}},
      {"/engine/admission_reserve", {"scheduler.policy=orca", "engine.admission_reserve=2"}},
      {"/engine/long_prefill_token_threshold",
       {"scheduler.policy=sarathi", "engine.long_prefill_token_threshold=5"}},
      {"/engine/enable_chunked_prefill",
       {"scheduler.policy=sarathi", "engine.enable_chunked_prefill=false"}},
      {"/cluster/pools/0/pipeline_parallel",
       {"scheduler.policy=lightllm", "cluster.pools.0.pipeline_parallel=2"}},
      {"/latency/backend", {"scheduler.policy=orca", R"(latency={"backend":"physics"})"}},
      {"/scheduler/policy", {"engine.compat=vidur"}},
      {"/scheduler/policy", {"engine.compat=blis", "scheduler.policy=orca"}},
      {"/scheduler/policy", {"engine.compat=vidur", "scheduler.policy=faster_transformer"}},
      {"/cluster/router/policy",
       {"engine.compat=vidur", "scheduler.policy=orca", "cluster.router.policy=power_of_two"}},
  };
  for (const auto& [path, set] : wrong) {
    const Result<Scenario> scenario = ParseScenario(Changed(set));
    ASSERT_FALSE(scenario.ok()) << path;
    EXPECT_EQ(scenario.issues()[0].path, path) << scenario.issues()[0].message;
  }
}

// Memory in whole requests: 4,096 tokens of Llama-2-7B on an A100 of 80 GiB, 29 of them.
TEST(Scheduleds, CompatVidur_PlansMemoryAsVidur) {
  const Report report = RunWith({"engine.compat=vidur", "scheduler.policy=sarathi",
                                 R"(model={"preset":"llama-2-7b"})",
                                 R"(hardware={"preset":"a100-80gb","memory_gib":80})",
                                 "engine.max_model_len=4096", "engine.gpu_memory_utilization=0.9"});
  EXPECT_EQ(report.kv_blocks, 7424);
  EXPECT_GE(report.departures.size(), 4u);
}

// What holds of any rules, those that no reference has included.
TEST(Schedulers, EachThatIsRegistered_ServesAllRequests_WhateverTheSlices) {
  for (const SchedulerEntry& entry : Schedulers()) {
    const std::string caches = entry.no_prefix_caching.empty() ? "true" : "false";
    const Scenario scenario =
        Parsed(Changed({"engine.enable_prefix_caching=" + caches, "engine.async_scheduling=false",
                        "engine.max_num_seqs=24", "scheduler.policy=" + std::string(entry.name),
                        "workload.requests=400", "workload.arrivals.rate_per_s=60"},
                       std::string(*ScenarioPreset("llama-3.1-8b-h100-chat"))));
    const auto run = [&](std::int64_t slice) {
      Simulation simulation = Good(Simulation::Create(scenario));
      while (!simulation.Advance(slice)) {
      }
      return simulation.Snapshot();
    };
    const Report report = run(INT64_MAX);
    EXPECT_EQ(report.arrived, 400) << entry.name;
    EXPECT_EQ(report.completed + report.Lost(), 400) << entry.name;
    EXPECT_GT(report.completed, entry.whole_prompts ? 300 : 399) << entry.name;
    EXPECT_EQ(report.fingerprint, run(7).fingerprint) << entry.name;
  }
}

}  // namespace
}  // namespace servecast::testing
