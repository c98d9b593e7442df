// LoRA adapters: who asks for which, what they take, whom they make wait, and what they do not go
// with.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/documents.h"
#include "cost/model_cost.h"
#include "gtest/gtest.h"
#include "serving/policy.h"
#include "testing/engine_run.h"
#include "testing/random_drafts.h"
#include "workload/adapters.h"
#include "workload/workload.h"

namespace servecast::testing {
namespace {

RequestTable TableOf(std::vector<std::string> set) {
  set.push_back("engine.max_loras=4");
  return Good(MakeRequests(Parsed(Changed(set)), {}));
}

TEST(Adapters, Popularity_IsZipfs) {
  constexpr std::int64_t kAdapters = 20, kDraws = 200'000;
  for (const double theta : {0.0, 0.6, 1.5}) {
    const AdapterDrawer drawer({kAdapters, theta});
    std::vector<double> drawn(kAdapters + 1);
    for (std::int64_t i = 0; i < kDraws; ++i) ++drawn[static_cast<std::size_t>(drawer.Draw(7, i))];
    double sum = 0;
    for (std::int64_t k = 1; k <= kAdapters; ++k) sum += std::pow(static_cast<double>(k), -theta);
    EXPECT_EQ(drawn[0], 0);
    for (std::int64_t k = 1; k <= kAdapters; ++k) {
      const double share = std::pow(static_cast<double>(k), -theta) / sum;
      EXPECT_NEAR(drawn[static_cast<std::size_t>(k)] / kDraws, share, 5 * std::sqrt(share / kDraws))
          << theta << " " << k;
    }
  }
  EXPECT_EQ(AdapterDrawer({0, 1}).Draw(7, 3), 0);
  EXPECT_EQ(AdapterDrawer({1, 1}).Draw(7, 3), 1);
}

// Of each class its own, or the workload's, which several share; drawn beside all else.
TEST(Adapters, Classes_HaveTheirOwnOrTheWorkloads) {
  const std::string classes =
      R"(workload.classes=[{"name":"a"},{"name":"b"},{"name":"c","adapters":3},)"
      R"({"name":"d","adapters":0},{"name":"e","adapters":2,"adapter_theta":8}])";
  const RequestTable before = TableOf({classes, "workload.requests=3000"});
  const RequestTable table =
      TableOf({classes, "workload.requests=3000", "workload.adapters.count=5"});
  std::vector<std::set<std::int32_t>> seen(5);
  for (std::size_t i = 0; i < 3000; ++i) seen[table.of_class[i]].insert(table.lora[i]);
  const std::set<std::int32_t> shared = {1, 2, 3, 4, 5};
  EXPECT_EQ(seen[0], shared);
  EXPECT_EQ(seen[1], shared);
  EXPECT_EQ(seen[2], (std::set<std::int32_t>{6, 7, 8}));
  EXPECT_EQ(seen[3], std::set<std::int32_t>{0});
  EXPECT_EQ(*seen[4].begin(), 9);  // 256 times as often as the other one
  EXPECT_EQ(table.arrival, before.arrival);
  EXPECT_EQ(table.prompt_tokens, before.prompt_tokens);
  EXPECT_EQ(table.of_class, before.of_class);
  EXPECT_TRUE(TableOf({"workload.requests=10"}).lora.empty());
}

TEST(Adapters, Conversation_KeepsItsOwnAndSharesPrefixesWithItAlone) {
  const RequestTable table =
      TableOf({"workload.adapters.count=3", R"(workload.sessions={"turns":4})",
               R"(workload.prefix={"groups":2,"tokens":64})", "workload.requests=400"});
  std::set<std::set<std::int32_t>> of_prefix;
  std::map<std::int32_t, std::set<std::int32_t>> adapters;  // by the segment of a shared prefix
  for (std::size_t i = 0; i < 400; ++i) {
    if (i % 4 > 0) {
      EXPECT_EQ(table.lora[i], table.lora[i - 1]);
      EXPECT_EQ(table.content[i], table.content[i - 1]);
    }
    const auto segment = static_cast<std::size_t>(table.content[i]);
    adapters[table.segments[segment].parent].insert(table.lora[i]);
  }
  EXPECT_EQ(adapters.size(), 6u);
  for (const auto& [prefix, of] : adapters) EXPECT_EQ(of.size(), 1u) << prefix;
}

TEST(Adapters, Trace_SaysWhoAsksForWhich) {
  const Trace trace = Good(ParseTrace(
      "arrival_s,input_tokens,output_tokens,adapter_id\n0,100,25,7\n1,100,9,0\n2,100,9,3\n", "t"));
  const std::vector<std::string> replayed = {"engine.max_loras=1", "workload.adapters.count=2",
                                             R"(workload.arrivals={"process":"trace","repeat":2})",
                                             R"(workload.prompt_tokens={"distribution":"trace"})",
                                             R"(workload.output_tokens={"distribution":"trace"})"};
  const RequestTable table = Good(MakeRequests(Parsed(Changed(replayed)), trace));
  EXPECT_EQ(table.lora, (std::vector<std::int32_t>{7, 0, 3, 7, 0, 3}));
  std::vector<std::string> without = replayed;
  without.erase(without.begin(), without.begin() + 2);
  EXPECT_TRUE(Good(MakeRequests(Parsed(Changed(without)), trace)).lora.empty());
  std::vector<std::string> mixed = without;
  mixed.push_back(R"(cluster.pools=[{"engine":{"max_loras":1}},{"name":"b"}])");
  const Result<RequestTable> refused = MakeRequests(Parsed(Changed(mixed)), trace);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.issues()[0].path, "/cluster/pools/1/engine/max_loras");
}

// Llama-3.1-8B: rank 16 on all its linear layers has 41,943,040 parameters.
TEST(Adapters, Seats_TakeTheirMatricesFromTheCache) {
  constexpr double kMib = 1024.0 * 1024;
  const auto cost = [](std::vector<std::string> set) {
    return Good(ComputeModelCost(Parsed(Changed(set))));
  };
  const ModelCost none = cost({}), two = cost({"engine.max_loras=2"});
  EXPECT_EQ(two.adapter_bytes, 80 * kMib);
  EXPECT_EQ(two.adapter_flops_per_token, 2.0 * 41'943'040);
  EXPECT_NEAR((two.weights_gib - none.weights_gib) * 1024, 160, 1e-6);
  EXPECT_NEAR((none.kv_gib - two.kv_gib) * 1024, 160, 1e-6);
  EXPECT_EQ(none.adapter_bytes, 0);
  // On four GPUs A of q, k, v, gate, up and B of o, down are whole, the rest is in slices.
  const ModelCost four =
      cost({"engine.max_loras=2", "engine.max_lora_rank=64", "cluster.pools.0.tensor_parallel=4"});
  const double whole = 7 * 4096, sliced = 2 * 4096 + 2 * 1024 + 3 * 14336;
  EXPECT_EQ(four.adapter_bytes, 2 * 64 * 32 * (whole + sliced / 4));
}

TEST(Adapters, Step_ReadsEachDifferentOneOnceAndComputesItsTokens) {
  for (const char* backend : {"analytic", "operators"}) {
    SCOPED_TRACE(backend);
    const Scenario s = Parsed(Changed({"engine.max_loras=8", "engine.lora_overhead_us=50"}));
    const ModelCost cost = Good(ComputeModelCost(s));
    const auto model = FindLatencyModel(backend).make(s, cost);
    const auto more = [&model](std::int64_t adapters, std::int64_t tokens) {
      BatchShape shape{32, 32'000, {}};
      const TimeNs without = model->Price(shape).duration;
      shape.lora = {adapters, tokens};
      return static_cast<double>(model->Price(shape).duration - without);
    };
    const HardwareSpec& h = s.hardware;
    const double read = cost.adapter_bytes / (h.memory_bandwidth_gb_s * h.bandwidth_efficiency);
    const double token =
        cost.adapter_flops_per_token / (h.peak_bf16_tflops * 1e3 * h.compute_efficiency);
    EXPECT_EQ(more(0, 0), 0);
    EXPECT_NEAR(more(1, 1), 50'000 + read, 2);
    EXPECT_NEAR(more(8, 32), 50'000 + 8 * read, 2);
    EXPECT_NEAR(more(1, 8192), 50'000 + 8192 * token, 2);
    Scenario slow = s;
    slow.engine.lora_overhead_us = 50'000;
    BatchShape shape{32, 32'000, {}};
    shape.lora = {1, 1};
    EXPECT_EQ(FindLatencyModel(backend).make(slow, cost)->Price(shape).bound, StepBound::kOverhead);
    EXPECT_EQ(model->Price(shape).bound, StepBound::kBandwidth);
  }
}

// A ladder of seats compares steps of one model.
TEST(Adapters, Auto_IsTheModelThatItIsWithout) {
  for (const char* gpu : {"h100-sxm", "a100-80gb", "rtx-pro-6000"}) {
    const auto model_of = [gpu](const char* seats) {
      return RunToEnd(Changed({std::string("hardware.preset=") + gpu,
                               std::string("engine.max_loras=") + seats, "workload.requests=20"}))
          .latency_model;
    };
    const LatencyLabel with = model_of("2");
    EXPECT_EQ(with.backend, model_of("0").backend) << gpu;
    EXPECT_EQ(with.evidence.of, EvidenceClass::kUntested) << gpu;
  }
}

ReplicaRun Ran(const RandomCase& c) { return RunReplica(EngineCaseOf(c), *MakeLatency(c), 0); }

TEST(Adapters, RandomScenarios_NeverHaveMoreInAStepThanSeats) {
  std::int64_t full = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    RandomCase c = MakeRandomDraftCase(seed);
    if (c.requests.lora.empty()) continue;
    for (const StepRecord& step : Ran(c).steps) {
      std::set<std::int32_t> adapters;
      for (const StepMember& member : step.members) {
        adapters.insert(c.requests.lora[static_cast<std::size_t>(member.id)]);
      }
      adapters.erase(0);
      const auto count = static_cast<std::int64_t>(adapters.size());
      EXPECT_LE(count, c.engine.max_loras) << seed;
      full += count == c.engine.max_loras ? 1 : 0;
    }
  }
  EXPECT_GT(full, 1000);
}

// And as the scheduler without drafts, in which no request is looked at by itself.
TEST(Adapters, RandomScenarios_WithOneForAllThatCostsNothingAreAsWithout) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    RandomCase c = MakeRandomDraftCase(seed);
    c.engine.speculative = {};
    c.engine.max_num_queued_reqs.reset();
    c.engine.max_num_queued_tokens.reset();
    c.requests.accepted_drafts.clear();
    c.requests.proposed_drafts.clear();
    c.requests.acceptance_length.clear();
    c.engine.max_loras = 0;
    c.requests.lora.clear();
    c.latency.per_adapter = c.latency.per_adapter_token = 0;
    const ReplicaRun without = Ran(c);
    c.engine.max_loras = 1;
    c.requests.lora.assign(c.requests.arrival.size(), 1);
    const ReplicaRun one = Ran(c);
    EXPECT_EQ(one.results.first_token, without.results.first_token) << seed;
    EXPECT_EQ(one.results.completion, without.results.completion) << seed;
    for (std::size_t r = 0; r < c.requests.arrival.size(); ++r) {
      if (one.results.completion[r] < 0) continue;  // of others it is not said
      EXPECT_EQ(one.results.interference[r], without.results.interference[r]) << seed;
    }
    EXPECT_EQ(one.itl, without.itl) << seed;
    EXPECT_EQ(one.steps.size(), without.steps.size()) << seed;
    EXPECT_EQ(one.preemptions, without.preemptions) << seed;
  }
}

TEST(Adapters, ZeroRank_CostsNothing) {
  Scenario with = Parsed(
      Changed({"engine.max_loras=1", "workload.adapters.count=1", "latency.backend=analytic"}));
  const Scenario without = Parsed(Changed({"latency.backend=analytic"}));
  with.engine.max_lora_rank = 0;
  const auto run = [](const Scenario& s) {
    Simulation simulation = Good(Simulation::Create(s, {}));
    while (!simulation.Advance(INT64_MAX)) {
    }
    return simulation.Snapshot();
  };
  const Report a = run(with), b = run(without);
  EXPECT_EQ(a.kv_tokens, b.kv_tokens);
  EXPECT_EQ(a.steps, b.steps);
  EXPECT_EQ(a.e2e_ms.mean, b.e2e_ms.mean);
  EXPECT_EQ(a.ttft_ms.p99, b.ttft_ms.p99);
  with.engine.max_lora_rank = 16;
  EXPECT_GT(run(with).e2e_ms.mean, b.e2e_ms.mean);
}

TEST(Adapters, MoreThanSeats_Wait) {
  const auto ttft = [](const char* seats) {
    return RunToEnd(Changed({std::string("engine.max_loras=") + seats, "workload.adapters.count=8",
                             "workload.arrivals.rate_per_s=100"}))
        .ttft_ms.mean;
  };
  EXPECT_GT(ttft("1"), 2 * ttft("8"));
}

TEST(Adapters, EnoughSeats_AreNotTheLimit) {
  const auto may_lack = [](const char* seats, const char* adapters) {
    return MayLackSeats(Parsed(Changed(
        {std::string("engine.max_loras=") + seats, std::string("workload.adapters=") + adapters})));
  };
  EXPECT_TRUE(may_lack("2", R"({"count":3})"));
  EXPECT_FALSE(may_lack("3", R"({"count":3})"));
  EXPECT_FALSE(may_lack("0", "null"));
}

TEST(Adapters, WhatDoesNotGoTogether_IsRefusedWithReasons) {
  const auto path_of = [](std::vector<std::string> set, Trace trace = {}) {
    set.push_back("workload.adapters.count=2");
    const Issues issues = IssuesOf(Changed(set), std::move(trace));
    EXPECT_LE(issues.size(), 1u) << Listed(issues);
    return issues.empty() ? std::string() : issues[0].path;
  };
  const std::string seats = "engine.max_loras=2";
  EXPECT_EQ(path_of({seats}), "");
  EXPECT_EQ(path_of({}), "/engine/max_loras");
  EXPECT_EQ(path_of({seats, "engine.max_lora_rank=24"}), "/engine/max_lora_rank");
  EXPECT_EQ(path_of({seats, "engine.compat=blis"}), "/engine/max_loras");
  EXPECT_EQ(path_of({seats, "scheduler.policy=sarathi"}), "/engine/max_loras");
  EXPECT_EQ(path_of({seats, "engine.preset=sglang"}), "/engine/max_loras");
  EXPECT_EQ(path_of({seats, "cluster.pools.0.pipeline_parallel=2"}), "/engine/max_loras");
  EXPECT_EQ(path_of({seats, "model.preset=mixtral-8x7b", "cluster.pools.0.tensor_parallel=2"}),
            "/engine/max_loras");
  EXPECT_EQ(path_of({seats, "engine.kv_offload.cpu_gib=4"}), "");
  EXPECT_EQ(path_of({seats, "engine.gc_pass_us=20", "engine.admission_reserve=1"}), "");
  EXPECT_EQ(path_of({seats, "latency.backend=operators"}), "");
  EXPECT_EQ(path_of({seats, "latency.backend=roofline"}), "/latency/backend");
  const std::string trace =
      R"({"timestamp":0,"input_length":600,"output_length":5,"hash_ids":[1,2]})";
  EXPECT_EQ(path_of({seats, R"(workload.arrivals={"process":"trace"})",
                     R"(workload.prompt_tokens={"distribution":"trace"})",
                     R"(workload.output_tokens={"distribution":"trace"})"},
                    Good(ParseTrace(trace + "\n", "t.jsonl"))),
            "/workload/adapters/count");
}

TEST(Adapters, Evidence_IsUntested) {
  const Report report = RunToEnd(Changed({"engine.max_loras=2", "workload.adapters.count=2"}));
  EXPECT_EQ(report.latency_model.evidence.of, EvidenceClass::kUntested);
  EXPECT_NE(report.latency_model.evidence.sentence.find("LoRA adapters"), std::string::npos);
}

}  // namespace
}  // namespace servecast::testing
