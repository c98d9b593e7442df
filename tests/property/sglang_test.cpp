// SGLang's scheduler: equal to its reference on random cases, to the nanosecond, whatever the
// slices and whether observed or not. SERVECAST_CASES sets how many.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "cost/model_cost.h"
#include "gtest/gtest.h"
#include "metrics/time_split.h"
#include "servecast/scenario.h"
#include "testing/asked.h"
#include "testing/cluster_run.h"
#include "testing/dice.h"
#include "testing/engine_run.h"
#include "testing/sglang_cases.h"
#include "testing/sglang_golden.h"
#include "testing/sglang_reference.h"

namespace servecast::testing::sglang_test {
namespace {

std::uint64_t Cases() { return static_cast<std::uint64_t>(Asked("SERVECAST_CASES", 3000)); }

std::unique_ptr<LatencyModel> LatencyFor(std::uint64_t seed) {
  RandomCase priced;
  priced.latency = MakeSglangLatency(seed);
  return MakeLatency(priced);
}

// Between tokens of a request -> how often; from a step of it to its next -> how often.
using Times = std::map<TimeNs, std::int64_t>;

Times GapsOf(const SglangOutput& output) {
  Times gaps;
  for (const SglangResult& result : output.results) {
    for (std::size_t i = 1; i < result.tokens.size(); ++i) {
      ++gaps[result.tokens[i] - result.tokens[i - 1]];
    }
  }
  return gaps;
}

Times DelaysOf(const SglangOutput& output) {
  Times delays;
  std::map<RequestId, TimeNs> last;
  for (const SglangStep& step : output.steps) {
    for (const SglangMember& member : step.members) {
      const auto at = last.find(member.id);
      if (at != last.end()) ++delays[step.start - at->second];
      last[member.id] = step.end;
    }
  }
  return delays;
}

// A case whose rows are the reference's.
SglangCase Answered(SglangCase random_case, const SglangOutput& output) {
  random_case.steps = output.steps;
  random_case.results = output.results;
  return random_case;
}

// The rows before and at a difference.
std::string Around(const SglangCase& c, const std::vector<SglangStep>& found) {
  std::size_t at = 0;
  SglangCase upto = c;
  for (; at < std::min(found.size(), c.steps.size()); ++at) {
    upto.steps = {c.steps[at]};
    if (FirstDifference(upto, std::vector<SglangStep>{found[at]})) break;
  }
  std::string text;
  for (std::size_t i = at - std::min<std::size_t>(at, 3); i <= at; ++i) {
    for (const std::vector<SglangStep>* steps : {&c.steps, &found}) {
      if (i >= steps->size()) continue;
      const SglangStep& s = (*steps)[i];
      text += steps == &found ? "\n  engine    " : "\n  reference ";
      text += std::to_string(i) + " at " + std::to_string(s.scheduled) + " " + s.mode;
      for (const SglangMember& m : s.members) {
        text += " " + std::to_string(m.id) + m.kind + std::to_string(m.prefix) + "+" +
                std::to_string(m.tokens);
      }
      text += " chunked " + std::to_string(s.chunked) + " full " + std::to_string(s.batch_is_full) +
              " waiting " + std::to_string(s.waiting_after_schedule) + " free " +
              std::to_string(s.available_after_schedule) + "+" +
              std::to_string(s.evictable_after_schedule) + " preempted";
      for (const RequestId id : s.preempted) text += " " + std::to_string(id);
      for (const RequestId id : s.retracted) text += " r" + std::to_string(id);
      text += " finished";
      for (const RequestId id : s.finished) text += " " + std::to_string(id);
    }
  }
  return text;
}

void CheckTimes(const SglangCase& c, const ReplicaRun& run) {
  for (std::size_t r = 0; r < c.max_new.size(); ++r) {
    TimeAfterFirst after;
    const TimeSplit split = SplitOf(run.requests, run.results, 0, r, after);
    ASSERT_EQ(split.Sum(), run.results.completion[r] - run.requests.arrival[r]) << "request " << r;
    for (const TimeNs part : {split.host, split.queue, split.prefill, split.decode,
                              split.interference, split.preempted, split.transfer}) {
      ASSERT_GE(part, 0) << "request " << r;
    }
  }
}

TEST(DifferentialSglang, RandomCases_EqualTheReference) {
  std::int64_t loops = 0, turns = 0, steps = 0, retracted = 0, preempted = 0, chunks = 0, mixed = 0,
               hits = 0, lost = 0, stopped = 0, forever = 0, images = 0, image_hits = 0,
               images_evicted = 0, images_too_large = 0;
  for (std::uint64_t seed = 1; seed <= Cases(); ++seed) {
    const SglangCase drawn = MakeSglangCase(seed);
    const std::unique_ptr<LatencyModel> latency = LatencyFor(seed);
    const SglangOutput reference =
        RunSglangReference({drawn.requests, drawn.max_new, drawn.settings, *latency});
    const SglangCase c = Answered(drawn, reference);
    const ReplicaRun run = RunReplica(EngineCaseOf(c), *latency, kClockEnd);
    const std::vector<SglangStep> found = StepsOf(c, run.steps);
    ASSERT_EQ(FirstDifference(c, found).value_or(""), "") << Describe(c) << Around(c, found);
    ASSERT_EQ(FirstDifference(c, run.results).value_or(""), "") << Describe(c);
    ASSERT_EQ(run.itl, GapsOf(reference)) << Describe(c);
    ASSERT_EQ(run.step_delays, DelaysOf(reference)) << Describe(c);
    ASSERT_NO_FATAL_FAILURE(CheckTimes(c, run)) << Describe(c);
    for (const SglangStep& step : reference.steps) {
      retracted += static_cast<std::int64_t>(step.retracted.size());
      preempted += static_cast<std::int64_t>(step.preempted.size());
      chunks += step.chunked != kNoRequest ? 1 : 0;
      mixed += step.mode == "mixed" ? 1 : 0;
    }
    for (const TimeNs pause : drawn.requests.pause) loops += pause >= 0 ? 1 : 0;
    for (const TimeNs think : drawn.requests.think) turns += think >= 0 ? 1 : 0;
    for (const SglangResult& result : reference.results) hits += result.cached_tokens > 0 ? 1 : 0;
    steps += static_cast<std::int64_t>(reference.steps.size());
    ASSERT_EQ(run.counts.lost_victims, reference.would_lose) << Describe(c);
    ASSERT_EQ(run.counts.encoded_images, reference.encoded_images) << Describe(c);
    ASSERT_EQ(run.counts.image_hits, reference.image_hits) << Describe(c);
    images += reference.encoded_images;
    image_hits += reference.image_hits;
    images_evicted += reference.images_evicted;
    images_too_large += reference.images_too_large;
    lost += reference.would_lose > 0 ? 1 : 0;
    stopped += reference.out_of_memory ? 1 : 0;
    forever += reference.waits_for_ever ? 1 : 0;
  }
  std::printf(
      "%lld steps, %lld retracted, %lld preempted, %lld chunks, %lld mixed, %lld hits, "
      "%lld cases in which SGLang loses requests, %lld in which it stops, %lld in which it waits "
      "for ever\n",
      static_cast<long long>(steps), static_cast<long long>(retracted),
      static_cast<long long>(preempted), static_cast<long long>(chunks),
      static_cast<long long>(mixed), static_cast<long long>(hits), static_cast<long long>(lost),
      static_cast<long long>(stopped), static_cast<long long>(forever));
  if (Cases() < 1000) return;
  EXPECT_GT(forever, 0);
  EXPECT_GT(images_too_large, 0);
  for (const std::int64_t count : {loops, turns, retracted, preempted, chunks, mixed, hits, images,
                                   image_hits, images_evicted})
    EXPECT_GT(count, static_cast<std::int64_t>(Cases() / 40));
}

TEST(DifferentialSglang, SlicesAndObservers_ChangeNothing) {
  for (std::uint64_t seed = 1; seed <= std::min<std::uint64_t>(Cases() / 5, 2000); ++seed) {
    const SglangCase c = MakeSglangCase(seed);
    const auto run = [&](const RunOptions& options) {
      return RunEngine(EngineCaseOf(c), LatencyFor(seed), options).value().report.fingerprint;
    };
    const auto whole = run({});
    ASSERT_EQ(run({.slice = 1}), whole) << Describe(c);
    ASSERT_EQ(run({.slice = 7, .observe = false}), whole) << Describe(c);
    ASSERT_EQ(run({.observe = false}), whole) << Describe(c);
  }
}

// Behind a router each replica does with its requests what one alone does.
TEST(DifferentialSglang, Replicas_DoWhatOneAloneDoes) {
  std::int64_t compared = 0;
  for (std::uint64_t seed = 1; seed <= std::min<std::uint64_t>(Cases() / 5, 2000); ++seed) {
    const SglangCase c = MakeSglangCase(seed);
    // An answer may bring a request elsewhere.
    if (!c.requests.think.empty() || !c.requests.pause.empty()) continue;
    const EngineCase whole = EngineCaseOf(c);
    const RandomCase random_case{.seed = seed,
                                 .requests = c.requests,
                                 .engine = whole.engine,
                                 .scheduler = whole.scheduler,
                                 .model_max_len = whole.model_max_len,
                                 .latency = MakeSglangLatency(seed),
                                 .horizon = {},
                                 .stages = {},
                                 .windows = {}};
    const ClusterRun run =
        RunCluster(random_case, 3, {seed % 2 == 0 ? "round_robin" : "least_outstanding", {}});
    for (std::int32_t replica = 0; replica < 3; ++replica) {
      RequestTable own;
      own.segments = c.requests.segments;
      std::vector<std::size_t> ids;
      for (std::size_t r = 0; r < c.max_new.size(); ++r) {
        if (run.results.replica[r] != replica) continue;
        ids.push_back(r);
        own.arrival.push_back(c.requests.arrival[r]);
        own.prompt_tokens.push_back(c.requests.prompt_tokens[r]);
        own.output_tokens.push_back(c.requests.output_tokens[r]);
        own.max_new_tokens.push_back(c.requests.max_new_tokens[r]);
        own.priority.push_back(c.requests.priority[r]);
        if (!c.requests.content.empty()) own.content.push_back(c.requests.content[r]);
        if (c.requests.images_until.empty()) continue;
        for (const PromptImage& image : c.requests.ImagesOf(static_cast<RequestId>(r))) {
          own.images.push_back(image);
        }
        own.images_until.push_back(static_cast<std::int64_t>(own.images.size()));
      }
      const ReplicaRun alone =
          RunReplica({own, whole.engine, whole.scheduler, whole.model_max_len, std::nullopt},
                     *LatencyFor(seed), kClockEnd);
      ASSERT_EQ(run.steps[static_cast<std::size_t>(replica)].size(), alone.steps.size())
          << Describe(c);
      for (std::size_t i = 0; i < ids.size(); ++i) {
        ASSERT_EQ(run.results.first_token[ids[i]], alone.results.first_token[i]) << Describe(c);
        ASSERT_EQ(run.results.completion[ids[i]], alone.results.completion[i]) << Describe(c);
        ASSERT_EQ(run.results.cached_tokens[ids[i]], alone.results.cached_tokens[i]) << Describe(c);
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, Cases() >= 1000 ? 500 : 0);
}

// Rows with arrivals, lengths, and some beginnings that are those of the row before.
Trace RowsOf(std::uint64_t seed) {
  Dice dice(seed);
  Trace rows;
  rows.name = "rows.csv";
  rows.format = "servecast_csv";
  std::int64_t arrival = 0;
  for (std::int32_t i = 0; i < 120; ++i) {
    const auto prompt = static_cast<std::int32_t>(dice.Between(1, 2000));
    rows.rows.push_back({arrival, prompt, static_cast<std::int32_t>(dice.Between(1, 300))});
    const bool shares = i > 0 && dice.Percent(30);
    const std::int32_t before =
        shares ? rows.rows[static_cast<std::size_t>(i) - 1].prompt_tokens : 0;
    rows.prefixes.push_back({shares ? i - 1 : -1, std::min(prompt, before)});
    arrival += dice.Between(0, 20'000'000);
  }
  return rows;
}

Report Ran(const std::vector<std::string>& set, Trace trace) {
  trace.hash = 1;
  const auto text = ApplyOverrides(
      R"({"schema": 1, "model": {"preset": "llama-3.1-8b"}, "hardware": {"preset": "h100-sxm"},
          "engine": {"host_stalls_per_s": 0, "prompt_token_overhead_us": 0},
          "workload": {"arrivals": {"process": "trace"}, "prompt_tokens": {"distribution": "trace"},
                       "output_tokens": {"distribution": "trace"}}})",
      set);
  Simulation run =
      std::move(Simulation::Create(ParseScenario(text.value()).value(), std::move(trace)).value());
  while (!run.Advance(INT64_MAX)) {
  }
  return run.Snapshot(ReportDetail::kRequests);
}

// Pools of SGLang and of vLLM behind one router: each replica does with its requests what it does
// alone, a server of its kind. (Prompts take no time before the router, whose servers all share.)
TEST(SglangScenario, PoolsBesideVllms_DoWhatEachAloneDoes) {
  const std::string sglang =
      R"("engine":{"preset":"sglang","num_gpu_blocks_override":20001,"host_stalls_per_s":0,"prompt_token_overhead_us":0})";
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const Trace trace = RowsOf(seed);
    const std::string router = seed % 2 == 0 ? "round_robin" : "least_outstanding";
    const Report all = Ran({R"(cluster.pools=[{"name":"a"},{"name":"b","replicas":2,)" + sglang +
                                R"(,"scheduler":{"policy":"sglang"}}])",
                            "cluster.router.policy=" + router},
                           trace);
    const std::vector<double>& replica = all.ColumnOf("replica");
    for (std::int32_t at = 0; at < 3; ++at) {
      Trace own = trace;
      own.rows.clear();
      own.prefixes.clear();
      std::vector<std::size_t> ids;
      std::map<std::int32_t, std::int32_t> rows;  // of the trace -> of its own
      for (std::size_t r = 0; r < trace.rows.size(); ++r) {
        // What shares with a row that is elsewhere finds nothing, but for what is shared there,
        // too.
        if (static_cast<std::int32_t>(replica[r]) != at) continue;
        TracePrefix prefix = trace.prefixes[r];
        while (prefix.row >= 0 && rows.count(prefix.row) == 0) {
          const TracePrefix& before = trace.prefixes[static_cast<std::size_t>(prefix.row)];
          prefix = {before.row, std::min(prefix.tokens, before.tokens)};
        }
        if (prefix.row >= 0) prefix.row = rows[prefix.row];
        rows[static_cast<std::int32_t>(r)] = static_cast<std::int32_t>(ids.size());
        ids.push_back(r);
        own.rows.push_back(trace.rows[r]);
        own.prefixes.push_back(prefix);
      }
      ASSERT_GT(ids.size(), 10u);
      // The first arrival of a file is its time 0.
      const std::int64_t first = own.rows[0].arrival_ns;
      for (TraceRow& row : own.rows) row.arrival_ns -= first;
      const Report alone =
          Ran(at == 0 ? std::vector<std::string>{}
                      : std::vector<std::string>{"cluster.pools=[{" + sglang +
                                                 R"(,"scheduler":{"policy":"sglang"}}])"},
              own);
      for (const char* column : {"ttft_ms", "e2e_ms", "cached_tokens", "preemptions"}) {
        for (std::size_t i = 0; i < ids.size(); ++i) {
          ASSERT_EQ(all.ColumnOf(column)[ids[i]], alone.ColumnOf(column)[i])
              << "seed " << seed << " replica " << at << " row " << ids[i] << " " << column;
        }
      }
    }
  }
}

TEST(SglangScenario, WhatItsLoopIsNotModelledFor_IsRefusedByPathWithTheReason) {
  const auto refused = [](const std::vector<std::string>& set) {
    std::vector<std::string> all = {"engine.preset=sglang"};
    all.insert(all.end(), set.begin(), set.end());
    const auto text = ApplyOverrides(*ScenarioPreset("llama-3.1-8b-h100-chat"), all);
    if (!text.ok()) return text.issues()[0].path + " cannot be set";
    const Result<Scenario> scenario = ParseScenario(text.value());
    return scenario.ok() ? std::string()
                         : scenario.issues()[0].path + " " + scenario.issues()[0].message;
  };
  EXPECT_EQ(refused({}), "");
  EXPECT_EQ(refused({R"(workload.sessions={"turns":5,"think_time_s":5})",
                     R"(workload.prefix={"groups":8,"tokens":1000})",
                     R"(workload.classes=[{"name":"a","priority":1},{"name":"b"}])",
                     "cluster.pools.0.replicas=3"}),
            "");
  const auto names = [&](const char* path, const char* reason,
                         const std::vector<std::string>& set) {
    const std::string said = refused(set);
    EXPECT_EQ(said.rfind(path, 0), 0u) << said;
    EXPECT_NE(said.find(reason), std::string::npos) << said;
  };
  names("/cluster/pools/0/pipeline_parallel", "several stages is not modelled",
        {"cluster.pools.0.pipeline_parallel=2"});
  names("/cluster/pools/0/role", "prefill and decode servers are not modelled",
        {R"(cluster.pools=[{"role":"prefill"},{"role":"decode"}])"});
  names("/scheduler/order", "schedule_policy", {"scheduler.order=sjf"});
  names("/workload/classes/0/timeout_s", "aborts requests",
        {R"(workload.classes=[{"name":"a","timeout_s":5}])"});
  names("/scheduler/schedule_policy", "for ever",
        {"scheduler.schedule_policy=lpm", "scheduler.enable_priority_scheduling=true"});
  names("/engine/max_num_batched_tokens", "whole pages",
        {"engine.block_size=64", "engine.max_num_batched_tokens=32"});
}

// Tokens that are no whole pages let a request ask for more than is ever admitted: its scheduler
// waits for ever, and the engine's ended with a broken invariant.
TEST(SglangScenario, LimitThatIsNeverAdmitted_IsLowered) {
  for (const char* version : {"0.5.9", "0.5.16"}) {
    for (const char* radix : {"true", "false"}) {
      const auto text = ApplyOverrides(
          *ScenarioPreset("llama-3.1-8b-h100-chat"),
          {"engine.preset=sglang", "scheduler.page_size=16", "scheduler.max_total_tokens=900",
           "scheduler.max_new_tokens=5000", "scheduler.ignore_eos=true",
           std::string("scheduler.disable_radix_cache=") + radix,
           std::string("scheduler.version=") + version, "workload.requests=30",
           R"(workload.prompt_tokens={"distribution":"uniform","min":1,"max":99})",
           R"(workload.output_tokens={"distribution":"uniform","min":1,"max":20})"});
      Simulation run = std::move(Simulation::Create(ParseScenario(text.value()).value()).value());
      while (!run.Advance(INT64_MAX)) {
      }
      EXPECT_EQ(run.Snapshot(ReportDetail::kSummary).completed, 30) << version << " " << radix;
    }
  }
}

// SGLang's names of what the engine has by vLLM's.
TEST(SglangScenario, ItsOwnNames_AreTheEnginesMembers) {
  const auto read = [](std::vector<std::string> set) {
    set.insert(set.begin(), "engine.preset=sglang");
    return ParseScenario(ApplyOverrides(*ScenarioPreset("llama-3.1-8b-h100-chat"), set).value());
  };
  const Result<Scenario> own =
      read({"scheduler.max_running_requests=77", "scheduler.chunked_prefill_size=4096",
            "scheduler.page_size=16", "scheduler.context_length=5000",
            "scheduler.disable_radix_cache=true", "scheduler.disable_overlap_schedule=true"});
  const Result<Scenario> engines =
      read({"engine.max_num_seqs=77", "engine.max_num_batched_tokens=4096", "engine.block_size=16",
            "engine.max_model_len=5000", "engine.enable_prefix_caching=false",
            "engine.async_scheduling=false"});
  ASSERT_TRUE(own.ok() && engines.ok());
  EXPECT_EQ(own.value().canonical_text, engines.value().canonical_text);
  EXPECT_EQ(read({"scheduler.chunked_prefill_size=-1"}).value().canonical_text,
            read({"engine.enable_chunked_prefill=false"}).value().canonical_text);
  EXPECT_EQ(
      read({R"(cluster.pools=[{"scheduler":{"policy":"sglang","page_size":4}}])"}).value().id,
      read({R"(cluster.pools=[{"scheduler":"sglang","engine":{"block_size":4}}])"}).value().id);
  const auto issue = [&](std::vector<std::string> set) {
    const Result<Scenario> scenario = read(std::move(set));
    return scenario.ok() ? std::string()
                         : scenario.issues()[0].path + " " + scenario.issues()[0].message;
  };
  EXPECT_NE(issue({"scheduler.page_size=4", "engine.block_size=4"}).find("allowed one of them"),
            std::string::npos);
  EXPECT_NE(issue({"scheduler.disable_radix_cache=7"}).find("allowed true or false"),
            std::string::npos);
  EXPECT_EQ(issue({"engine.preset=vllm", "scheduler.page_size=4"}).rfind("/scheduler/page_size", 0),
            0u);
}

// The cache has what is left of the share behind the weights; all else is beside it.
TEST(SglangScenario, ItsShareOfMemory_IsOfWeightsAndCache) {
  const auto memory = [](std::vector<std::string> set) {
    set.insert(set.begin(), "engine.preset=sglang");
    const auto text = ApplyOverrides(*ScenarioPreset("llama-3.1-8b-h100-chat"), set);
    return ComputeModelCost(ParseScenario(text.value()).value());
  };
  const ModelCost c = memory({"scheduler.mem_fraction_static=0.85"}).value();
  EXPECT_NEAR(c.weights_gib + c.kv_gib, 0.85 * c.total_gib, 1e-9);
  EXPECT_NEAR(c.usable_gib, c.weights_gib + c.kv_gib + c.overhead_gib, 1e-9);
  EXPECT_NEAR(static_cast<double>(c.pool_blocks) * c.kv_bytes_per_token / std::exp2(30), c.kv_gib,
              1e-3);
  EXPECT_EQ(memory({"scheduler.max_total_tokens=5000"}).value().usable_blocks, 5000);
  EXPECT_EQ(
      memory({"scheduler.max_total_tokens=5000", "engine.block_size=16"}).value().usable_blocks,
      5000 / 16);
  EXPECT_EQ(memory({"scheduler.max_total_tokens=900000000"}).value().pool_blocks,
            memory({}).value().pool_blocks);
  const auto all = memory({"scheduler.mem_fraction_static=1"});
  ASSERT_FALSE(all.ok());
  EXPECT_EQ(all.issues()[0].path, "/scheduler/mem_fraction_static");
  const auto little = memory({"scheduler.mem_fraction_static=0.1"});
  ASSERT_FALSE(little.ok());
  EXPECT_NE(little.issues()[0].message.find("mem_fraction_static 0.1"), std::string::npos);
}

}  // namespace
}  // namespace servecast::testing::sglang_test
