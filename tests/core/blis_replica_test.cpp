// BLIS's rules one at a time, with numbers that can be followed by hand: a step takes 1,000 us, 10
// us per prefill token and 5 us per decode, unless a test says otherwise.
#include "serving/blis/blis_replica.h"

#include <cmath>
#include <string>
#include <vector>

#include "core/blis_case.h"
#include "core/documents.h"
#include "gtest/gtest.h"
#include "serving/hooks.h"

namespace servecast::testing {
namespace {

// blis.md 2.4, case A.
const std::vector<Row> kTwo = {{0, 20, 3}, {500, 40, 2}};

TEST(BlisReplica, TwoRequests_Today) {
  const Report r = Case(kToday, kTwo).Run();
  EXPECT_EQ(Us(r, "ttft_ms"), (Times{1200, 2105}));
  EXPECT_EQ(Us(r, "e2e_ms"), (Times{3615, 3115}));
  EXPECT_EQ(Us(r, "scheduling_delay_ms"), (Times{0, 700}));
  EXPECT_EQ(EndUs(r), 3615);
  EXPECT_EQ(r.output_tokens, 5);
  EXPECT_EQ(r.itl_ms.n, 3);
  EXPECT_DOUBLE_EQ(r.itl_ms.max, 1.405);
}

TEST(BlisReplica, TwoRequests_InFebruaryAGapTooManyAndTheFirstTokenUncounted) {
  const Report r = Case(kFebruary, kTwo).Run();
  EXPECT_EQ(Us(r, "ttft_ms"), (Times{1200, 2105}));
  EXPECT_EQ(Us(r, "e2e_ms"), (Times{4625, 4125}));
  EXPECT_EQ(EndUs(r), 3615);
  EXPECT_EQ(r.output_tokens, 3);
  EXPECT_EQ(r.itl_ms.n, 5);
}

// The steps of case A: prefill of the first, a decode of it beside the prefill of the second, two
// decodes together, and the last.
TEST(BlisReplica, Observer_IsShownEachStepAndItsMembers) {
  class Steps final : public StepObserver {
   public:
    void OnStep(const StepRecord& step) override { steps.push_back(step); }
    std::vector<StepRecord> steps;
  };
  Steps seen;
  const Case c(kToday, kTwo);
  SimulationHooks hooks;
  hooks.requests = c.table;
  hooks.observer = &seen;
  Simulation simulation = Good(Simulation::Create(c.scenario, {}, std::move(hooks)));
  while (!simulation.Advance(1)) {
  }
  using Members = std::vector<StepMember>;
  ASSERT_EQ(seen.steps.size(), 3U);
  const TimeNs ends[] = {1200, 2605, 3615};
  const Members members[] = {
      {{0, 20, 0, MemberKind::kNew, true}},
      {{0, 1, 20, MemberKind::kContinued, true}, {1, 40, 0, MemberKind::kNew, true}},
      {{0, 1, 21, MemberKind::kContinued, true}, {1, 1, 40, MemberKind::kContinued, true}}};
  for (std::size_t i = 0; i < 3; ++i) {
    const StepRecord& step = seen.steps[i];
    EXPECT_EQ(step.index, static_cast<std::int64_t>(i));
    EXPECT_EQ(step.start, i == 0 ? 0 : ends[i - 1] * 1000);
    EXPECT_EQ(step.end, ends[i] * 1000);
    EXPECT_EQ(step.members, members[i]) << i;
    EXPECT_EQ(step.prefill_tokens, (std::vector<std::int64_t>{20, 40, 0})[i]);
  }
  EXPECT_EQ(seen.steps[2].finished, (std::vector<RequestId>{0, 1}));
  EXPECT_EQ(seen.steps[2].free_after_schedule, 1000 - 2 - 3);
  EXPECT_EQ(seen.steps[2].free_after_step, 1000);
}

// Case B: an arrival before the drained batch's end starts at once, beside its tail.
TEST(BlisReplica, BatchThatDrained_DoesNotKeepTheDeviceBusy) {
  for (const Compat compat : {kFebruary, kToday}) {
    const Report r = Case(compat, {{0, 16, 1}, {500, 16, 1}}).Run();
    EXPECT_EQ(Us(r, "ttft_ms"), (Times{1160, 1160}));
    EXPECT_EQ(EndUs(r), 1660);
    EXPECT_DOUBLE_EQ(r.binding.busy_share, 1);  // not 1.4
  }
}

TEST(BlisReplica, Delays_AreAtTheClientAndDoNotHoldTheDevice) {
  Case c(kToday, kTwo);
  c.scenario.latency.alpha = {100.9, 1, 50.9};
  const Report r = c.Run();
  // In the queue after 120.9 us, cut to 120; 50 us per token.
  EXPECT_EQ(Us(r, "scheduling_delay_ms"), (Times{120, 820}));
  EXPECT_EQ(Us(r, "ttft_ms"), (Times{1370, 2275}));
  EXPECT_EQ(Us(r, "e2e_ms"), (Times{1370 + 1455 + 1060, 2275 + 1060}));
  EXPECT_EQ(EndUs(r), 120 + 3615);
}

TEST(BlisReplica, AfterTheLastToken_TrainedPhysicsAddsItsDelay) {
  Case c(kToday, {{0, 1, 1}});
  c.scenario.latency.backend = "trained_physics";
  const Report r = c.Run();
  EXPECT_EQ(Us(r, "e2e_ms")[0] - Us(r, "ttft_ms")[0], 777);
}

TEST(BlisReplica, PartsOfAMicrosecond_AreCutOff) {
  Case c(kToday, {{10, 1, 2}});
  c.table.arrival[0] += 999;
  c.scenario.latency.beta = {1000.9, 0.05, 0.05};
  const Report r = c.Run();
  EXPECT_EQ(r.ColumnOf("arrival_s")[0], 10e-6);
  EXPECT_EQ(Us(r, "e2e_ms"), (Times{2000}));
}

TEST(BlisReplica, StepOfNoTime_TakesAMicrosecondToday) {
  for (const Compat compat : {kFebruary, kToday}) {
    Case c(compat, {{0, 1, 4}});
    c.scenario.latency.beta = {0, 0, 0.5};
    EXPECT_EQ(Us(c.Run(), "e2e_ms"), (Times{compat == kToday ? 4 : 0}));
  }
}

TEST(BlisReplica, ThresholdAndBudget_CutPrompts) {
  Case c(kToday, {{0, 50, 1}, {0, 30, 1}});
  c.scenario.engine.max_num_batched_tokens = 40;
  c.scenario.engine.long_prefill_token_threshold = 25;
  // 25 + 15, then 25 + 15.
  EXPECT_EQ(Us(c.Run(), "ttft_ms"), (Times{2800, 2800}));
}

TEST(BlisReplica, Seats_AreLimited) {
  Case c(kToday, {{0, 1, 3}, {0, 1, 1}});
  c.scenario.engine.max_num_seqs = 1;
  EXPECT_EQ(Us(c.Run(), "scheduling_delay_ms"), (Times{0, 3020}));
}

TEST(BlisReplica, TwoQueuedAtOnce_StartedTwoChainsOfStepsInFebruary) {
  const std::vector<Row> rows = {{0, 20, 3}, {0, 40, 2}};
  const Report today = Case(kToday, rows).Run();
  EXPECT_EQ(Us(today, "e2e_ms"), (Times{3615, 2610}));
  EXPECT_EQ(EndUs(today), 3615);
  // Prefill and the first decode both at 0, by one chain each; the last decode at 1,010.
  const Report february = Case(kFebruary, rows).Run();
  EXPECT_EQ(Us(february, "ttft_ms"), (Times{1600, 1600}));
  EXPECT_EQ(Us(february, "e2e_ms"), (Times{1600 + 1010 + 2 * 1005, 1600 + 2 * 1010}));
  EXPECT_EQ(EndUs(february), 2015);
}

TEST(BlisReplica, WholePromptCached_CostsNoTokens) {
  for (const Compat compat : {kFebruary, kToday}) {
    const Report r = Case(compat, {{0, 32, 1, 32}, {5000, 32, 1, 32}, {9000, 33, 1, 32}}).Run();
    EXPECT_EQ(Us(r, "ttft_ms"), (Times{1320, 1000, 1010}));
    EXPECT_EQ(r.ColumnOf("cached_tokens"), (std::vector<double>{0, 32, 32}));
    // Fresh blocks: three for the first prompt and the token after it, one for the token after the
    // second, one for the third. Only the third, which had something to compute, claims the two.
    EXPECT_EQ(r.prefix_cache.hit_blocks, 2);
    EXPECT_EQ(r.prefix_cache.query_blocks, 2 + 5);
  }
}

TEST(BlisReplica, DecodesOfAContentThatAnotherAsksFor_AreFoundAtOnce) {
  for (const Compat compat : {kFebruary, kToday}) {
    // At 41,500 the first has computed 56 tokens, in three full blocks; the second begins with
    // them.
    Case c(compat, {{0, 16, 100}, {41'500, 80, 1}});
    c.table.content = {1, 1};
    EXPECT_EQ(c.Run().ColumnOf("cached_tokens"), (std::vector<double>{0, 48}));
  }
}

TEST(BlisReplica, UnscheduledDecode_AdvancedInFebruary) {
  // Two tokens a step. The first request fills the cache while the others wait; then three that are
  // all cached take seats but no tokens, and two more one token each: five decodes for two tokens.
  const std::vector<Row> rows = {{0, 16, 1, 16}, {1, 16, 2, 16}, {2, 16, 2, 16},
                                 {3, 16, 2, 16}, {4, 17, 2, 16}, {5, 17, 2, 16}};
  for (const Compat compat : {kFebruary, kToday}) {
    Case c(compat, rows);
    c.scenario.engine.max_num_batched_tokens = 2;
    const Report r = c.Run();
    const std::int64_t start = 8 * 1020;
    const Times ttft = Us(r, "ttft_ms"), e2e = Us(r, "e2e_ms");
    for (std::size_t i = 1; i < 6; ++i) {
      EXPECT_EQ(ttft[i] + static_cast<std::int64_t>(i), start + 1020) << i;
    }
    if (compat == kToday) {
      // Two by two, and each gap is its own step's.
      for (std::size_t i = 1; i < 5; ++i) EXPECT_EQ(e2e[i] - ttft[i], 1010) << i;
      EXPECT_EQ(e2e[5] - ttft[5], 1005);
      EXPECT_EQ(EndUs(r), start + 1020 + 1010 + 1010 + 1005);
    } else {
      // All advance; billed are two, and the last two by the tokens of their last step. And the gap
      // too many.
      for (std::size_t i = 1; i < 6; ++i) EXPECT_EQ(e2e[i] - ttft[i], 2 * 1020) << i;
      EXPECT_EQ(EndUs(r), start + 1020 + 1020);
    }
  }
}

TEST(BlisReplica, ArrivalOnAStepsStart_JoinsItToday) {
  const std::vector<Row> rows = {{0, 20, 3}, {1200, 40, 2}};
  EXPECT_EQ(Us(Case(kToday, rows).Run(), "scheduling_delay_ms"), (Times{0, 0}));
  // In February the heap, which knows times only, happens to have the step first.
  EXPECT_EQ(Us(Case(kFebruary, rows).Run(), "scheduling_delay_ms"), (Times{0, 1005}));
}

// Three blocks: A and B have one each for their prompts, A takes the third to decode into, B finds
// none and gives way to itself, again and again, until A is done.
TEST(BlisReplica, Preempted_IsForgottenTodayAndWasCountedTwiceInFebruary) {
  for (const Compat compat : {kFebruary, kToday}) {
    Case c(compat, {{0, 16, 8}, {1, 16, 8}});
    c.scenario.engine.num_gpu_blocks_override = 3;
    c.scenario.engine.enable_prefix_caching = false;
    const Report r = c.Run();
    EXPECT_EQ(r.completed, 2);
    EXPECT_GT(r.preemptions, 0);
    const Times ttft = Us(r, "ttft_ms"), e2e = Us(r, "e2e_ms");
    EXPECT_EQ(ttft[0], 1160);
    // Its prompt was computed at once, in the step from 1,160 to 2,325: February keeps that time.
    if (compat == kFebruary) {
      EXPECT_EQ(ttft[1], 2324);
    } else {
      EXPECT_GT(ttft[1], 2324);
      EXPECT_EQ(e2e[1] + 1, EndUs(r));  // nothing is counted twice
      EXPECT_EQ(r.itl_ms.n, 14);
    }
  }
}

TEST(BlisReplica, Victim_IsTheTailOrTheLeastUrgent) {
  Case c(kToday, {{0, 16, 40}, {1, 16, 40}});
  c.table.priority = {1, 0};
  c.scenario.engine.num_gpu_blocks_override = 4;
  c.scenario.scheduler.preemption = "priority";
  const Report r = c.Run();
  EXPECT_GT(r.ColumnOf("preemptions")[0], 0);
  EXPECT_EQ(r.ColumnOf("preemptions")[1], 0);
  c.scenario.scheduler.preemption = "auto";  // BLIS's default
  const Report tail = c.Run();
  EXPECT_EQ(tail.ColumnOf("preemptions")[0], 0);
  EXPECT_GT(tail.ColumnOf("preemptions")[1], 0);
  // February knew the tail only. It went on to visit the victim, which then had the first
  // preempted.
  c.scenario.engine.compat = kFebruary;
  const std::vector<double> february = c.Run().ColumnOf("preemptions");
  EXPECT_GT(february[0], 0);
  c.scenario.scheduler.preemption = "priority";
  EXPECT_EQ(c.Run().ColumnOf("preemptions"), february);
}

TEST(BlisReplica, VictimThatHadTokens_ReturnsThemToTheStep) {
  // Five blocks of 64. At 4,000 A takes the last one and a token; B needs a block, A, less urgent,
  // gives way; C's chunk is then 100 tokens less B's one.
  Case c(kToday, {{0, 128, 2}, {1, 64, 2}, {2, 300, 1}});
  c.table.priority = {1, 0, 0};
  c.scenario.engine.block_size = 64;
  c.scenario.engine.num_gpu_blocks_override = 5;
  c.scenario.engine.max_num_batched_tokens = 100;
  c.scenario.scheduler.preemption = "priority";
  const Report r = c.Run();
  EXPECT_EQ(r.completed, 3);
  EXPECT_EQ(r.ColumnOf("preemptions")[0], 1);
  EXPECT_EQ(Us(r, "ttft_ms")[1], 3999);
  EXPECT_EQ(Us(r, "e2e_ms")[1], 3999 + 1000 + 10 * 99 + 5);
}

TEST(BlisReplica, ClaimedBlocks_CountTodayOnly) {
  const BlisEra &february = EraOf(kFebruary), &today = EraOf(kToday);
  EXPECT_NE(february.counts_claimed_blocks, today.counts_claimed_blocks);
  EXPECT_TRUE(today.counts_claimed_blocks);
}

TEST(BlisReplica, LonelyRequestThatOutgrowsTheCache_IsDroppedNotRunForEver) {
  Case c(kFebruary, {{0, 16, 100}, {1, 16, 2}});
  c.scenario.engine.num_gpu_blocks_override = 3;
  const Report r = c.Run();
  EXPECT_EQ(r.dropped, 1);
  EXPECT_EQ(r.completed, 1);
  // Today the sequence is capped at what the cache holds.
  c.scenario.engine.compat = kToday;
  const Report today = c.Run();
  EXPECT_EQ(today.completed, 2);
  EXPECT_EQ(today.length_capped, 1);
  EXPECT_EQ(today.ColumnOf("output_tokens")[0], 48 - 1 - 16 + 1);
}

// It outgrew the cache, too, but comes back with all of its prompt cached, which then holds
// nothing.
TEST(BlisReplica, LonelyRequestWhosePromptIsAllCached_ComesBackAndCompletes) {
  Case c(kFebruary, {{0, 16, 14}});
  c.scenario.engine.num_gpu_blocks_override = 1;
  const Report r = c.Run();
  EXPECT_EQ(r.completed, 1);
  EXPECT_EQ(r.preemptions, 1);
}

TEST(BlisReplica, PromptBeyondTheCacheOrTheModel_IsDropped) {
  Case c(kFebruary, {{0, 49, 1}, {0, 48, 1}});
  c.scenario.engine.num_gpu_blocks_override = 3;
  EXPECT_EQ(c.Run().dropped, 1);
  c.scenario.engine.compat = kToday;
  EXPECT_EQ(c.Run().dropped, 2);  // nor does one fit that leaves no room for a token
  c.scenario.engine.num_gpu_blocks_override = 1000;
  EXPECT_EQ(c.Run().dropped, 0);
  c.scenario.engine.max_model_len = 49;
  EXPECT_EQ(c.Run().dropped, 1);
  c.scenario.engine.compat = kFebruary;  // which did not look at it
  EXPECT_EQ(c.Run().dropped, 0);
}

TEST(BlisReplica, MaxModelLen_CapsAnswers) {
  Case c(kToday, {{0, 10, 50}});
  c.scenario.engine.max_model_len = 20;
  const Report r = c.Run();
  EXPECT_EQ(r.length_capped, 1);
  EXPECT_EQ(r.completed, 1);
  EXPECT_EQ(r.ColumnOf("output_tokens")[0], 10);
  EXPECT_EQ(r.output_tokens, 10);
}

TEST(BlisReplica, TimeOuts_MoveTheClockOnlyWhenTheyHit) {
  Case c(kToday, {{0, 10, 3}, {0, 10, 500}, {100, 10, 3}});
  c.scenario.engine.max_num_seqs = 1;
  c.table.timeout = {900'000'000, 5'000'000, 150'000};
  const Report r = c.Run();
  EXPECT_EQ(r.timed_out, 2);
  EXPECT_EQ(r.ColumnOf("state"), (std::vector<double>{3, 5, 5}));
  EXPECT_EQ(EndUs(r), 5215);  // the step that was due when the second gave up, now without it
  c.scenario.engine.compat = kFebruary;
  EXPECT_EQ(c.Run().timed_out, 0);
}

TEST(BlisReplica, Orders_SortTheQueueAndPreemptedRequestsToo) {
  Case c(kToday, {{0, 16, 3}, {1, 30, 1}, {2, 20, 1}, {3, 25, 1}});
  c.scenario.engine.max_num_seqs = 1;
  const auto order = [&c](const char* name) {
    c.scenario.scheduler.order = name;
    const Times delay = Us(c.Run(), "scheduling_delay_ms");
    return std::vector<bool>{delay[2] < delay[3], delay[3] < delay[1]};
  };
  EXPECT_EQ(order("sjf"), (std::vector<bool>{true, true}));
  c.table.priority = {0, 0, 2, 1};
  EXPECT_EQ(order("priority_fcfs"), (std::vector<bool>{false, false}));
  EXPECT_EQ(order("fcfs"), (std::vector<bool>{true, false}));
}

TEST(BlisReplica, NextTurn_ArrivesAfterTheStepNotAfterTheClientsDelays) {
  Case c(kToday, {{0, 16, 1}, {-1, 32, 1}});
  c.table.think = {-1, 7'000'500};
  c.table.content = {1, 1};  // the second turn begins with the first
  c.scenario.latency.alpha = {0, 0, 400};
  const Report r = c.Run();
  EXPECT_EQ(r.ColumnOf("arrival_s")[1], 8160e-6);
  EXPECT_EQ(r.ColumnOf("cached_tokens")[1], 16);
  EXPECT_EQ(Us(r, "ttft_ms"), (Times{1560, 1560}));
}

TEST(BlisReplica, NextTurnOfADroppedRequest_NeverArrives) {
  Case c(kToday, {{0, 17, 1}, {-1, 5, 1}});
  c.table.think = {-1, 1000};
  c.scenario.engine.num_gpu_blocks_override = 1;
  const Report r = c.Run();
  EXPECT_EQ(r.arrived, 1);
  EXPECT_EQ(r.dropped, 1);
}

TEST(BlisReplica, Horizon_StopsTheClock) {
  Case c(kToday, {{0, 10, 10}, {1, 10, 10}, {5000, 10, 1}});
  c.scenario.measure.horizon_s = 3000e-6;
  const Report r = c.Run();
  EXPECT_EQ(EndUs(r), 3000);
  EXPECT_EQ(r.running, 2);
  EXPECT_EQ(r.arrived, 2);
  EXPECT_LE(r.kv_mean_usage, r.kv_peak_usage);
  EXPECT_DOUBLE_EQ(r.binding.busy_share, 1);
}

TEST(BlisReplica, Slices_ChangeNothing) {
  for (const Compat compat : {kFebruary, kToday}) {
    std::vector<Row> rows;
    for (std::int32_t i = 0; i < 60; ++i) {
      rows.push_back({i * 300, 5 + i * 37 % 90, 1 + i * 11 % 40, i % 3 == 0 ? 5 : 0});
    }
    Case c(compat, rows);
    c.scenario.engine.num_gpu_blocks_override = 12;
    const Report whole = c.Run();
    EXPECT_GT(whole.preemptions, 0);
    for (const std::int64_t slice : {1, 7}) EXPECT_EQ(c.Run(slice).fingerprint, whole.fingerprint);
  }
}

TEST(BlisReplica, MoreBlocksThanListsHold_AreAnIssue) {
  Case c(kToday, kTwo);
  c.scenario.engine.num_gpu_blocks_override = 1'000'000'000;
  SimulationHooks hooks;
  hooks.requests = c.table;
  const Result<Simulation> simulation = Simulation::Create(c.scenario, {}, std::move(hooks));
  ASSERT_FALSE(simulation.ok());
  EXPECT_EQ(simulation.issues()[0].path, "/engine/num_gpu_blocks_override");
  const Issues issues =
      IssuesOf(Changed({"engine.compat=blis", "engine.kv_offload.cpu_gib=32769"}));  // 2 MiB each
  ASSERT_EQ(issues.size(), 1u);
  EXPECT_EQ(issues[0].path, "/engine/kv_offload/cpu_gib");
  EXPECT_NE(issues[0].message.find("found 16777728 KV blocks"), std::string::npos)
      << issues[0].message;
}

TEST(BlisReplica, TimeOutsInFebruary_AreAnIssue) {
  const std::string document =
      Changed({"engine.compat=blis-2026-02", R"(workload.classes=[{"name":"a","timeout_s":1}])"});
  ASSERT_EQ(IssuesOf(document).size(), 1u);
  EXPECT_EQ(IssuesOf(document)[0].path, "/workload/classes/0/timeout_s");
}

// Whatever a document says, a run ends and adds up.
TEST(BlisReplica, AnyScenario_Ends) {
  const std::vector<std::vector<std::string>> cases = {
      {"engine.num_gpu_blocks_override=2"},
      {"engine.num_gpu_blocks_override=8", "workload.requests=400",
       "workload.arrivals.rate_per_s=100000"},
      {"engine.num_gpu_blocks_override=20", "workload.arrivals.rate_per_s=1e6",
       "scheduler.order=sjf", "engine.long_prefill_token_threshold=7"},
      {"engine.num_gpu_blocks_override=20", "workload.arrivals.rate_per_s=1e6",
       "scheduler.preemption=priority", "scheduler.priority=inverted_slo"},
      {"engine.num_gpu_blocks_override=20", "workload.prefix.groups=2", "workload.prefix.tokens=40",
       "workload.arrivals.rate_per_s=10000"},
      {"engine.num_gpu_blocks_override=16", "workload.sessions.turns=3",
       "workload.arrivals.rate_per_s=10000"},
      {"engine.num_gpu_blocks_override=9", "engine.block_size=16", "engine.max_num_seqs=2",
       "engine.max_num_batched_tokens=2"},
      {"latency.backend=blackbox", "latency.beta=[0,0,1e-6]", "engine.num_gpu_blocks_override=30"},
      {"latency.backend=blackbox", "latency.beta=[1e9,1e9,1e9]", "latency.alpha=[1e9,1e9,1e9]"},
      {"workload.output_tokens.value=1000000000", "engine.num_gpu_blocks_override=100"},
      {"measure.horizon_s=1e-9"},
      {"measure.horizon_s=2", "measure.warmup_s=1"},
      {"engine.enable_prefix_caching=false", "engine.num_gpu_blocks_override=10"},
      {"engine.kv_offload.cpu_gib=0.05", "engine.num_gpu_blocks_override=16",
       "workload.sessions.turns=3", "workload.arrivals.rate_per_s=10000"},
      {"engine.kv_offload.cpu_gib=0.05", "engine.num_gpu_blocks_override=6"},
      {"engine.kv_offload.cpu_gib=30000", "engine.kv_offload.cpu_bandwidth_gb_s=0.001",
       "engine.kv_offload.cpu_latency_us=1e6", "engine.num_gpu_blocks_override=20",
       "workload.prefix.groups=2", "workload.prefix.tokens=40",
       "workload.arrivals.rate_per_s=10000"},
      {"engine.kv_offload.cpu_gib=1e-9", "workload.output_tokens.value=1000000000",
       "engine.num_gpu_blocks_override=30", "workload.requests=5"},
      {"engine.kv_offload.cpu_gib=1", "workload.output_tokens.value=1000000000",
       "engine.num_gpu_blocks_override=30", "workload.requests=5"},
  };
  for (const std::vector<std::string>& changes : cases) {
    for (const char* compat : {"blis", "blis-2026-02"}) {
      std::vector<std::string> all = {std::string("engine.compat=") + compat};
      all.insert(all.end(), changes.begin(), changes.end());
      const Report r = RunToEnd(Changed(all));
      EXPECT_TRUE(r.finished) << changes[0] << " " << compat;
      EXPECT_EQ(BrokenConservation(r), "") << changes[0] << " " << compat;
      if (changes[0].find("horizon") != std::string::npos) continue;
      EXPECT_EQ(r.queued + r.running, 0) << changes[0] << " " << compat;
      EXPECT_LE(r.kv_peak_usage, 1) << changes[0] << " " << compat;
      EXPECT_LE(r.binding.busy_share, 1 + 1e-12) << changes[0] << " " << compat;
    }
  }
}

}  // namespace
}  // namespace servecast::testing
