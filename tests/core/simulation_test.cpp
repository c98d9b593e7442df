// Whole runs: definitions of the latencies by hand, conservation, and what absurd input gets.
#include "servecast/simulation.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "core/documents.h"
#include "gtest/gtest.h"
#include "serving/cluster/deployment.h"
#include "serving/hooks.h"

namespace servecast::testing::simulation_test {
namespace {

// Step = 1000 us + 10 us a prefill token + 5 us a decode.
const char* const kBlackbox = R"({"schema": 1, "model": {"preset": "llama-3.1-8b"},
  "hardware": {"preset": "h100-sxm"}, "engine": {"async_scheduling": false},
  "latency": {"backend": "blackbox", "alpha": [0, 0, 0], "beta": [1000, 10, 5]},
  "workload": {"arrivals": {"process": "trace"}, "prompt_tokens": {"distribution": "trace"},
               "output_tokens": {"distribution": "trace"}}})";

Trace TraceOf(const std::string& rows) {
  return ParseTrace("arrival_s,input_tokens,output_tokens\n" + rows, "t.csv").value();
}

// A arrives at 0 with 20 tokens in and 3 out, B at 500 us with 40 in and 2 out:
//     0  prefill A         1,200 us   A's first token at 1,200
// 1,200  decode A + prefill B  1,405  A's second and B's first at 2,605
// 2,605  decode A, decode B    1,010  A's third and B's second at 3,615
Trace TwoRequests() { return TraceOf("0,20,3\n0.0005,40,2\n"); }

// What plans go by, of a run that keeps nothing else: bit by bit what a whole report has.
TEST(Totals, OfARunWithoutItsCourse_AreThoseOfAWholeReport) {
  double short_of_seats = 0;
  for (const char* cluster :
       {"cluster.pools.0.replicas=1", "cluster.pools.0.replicas=3",
        R"(cluster.router={"policy":"central_queue"})",
        R"(cluster.pools=[{"role":"prefill"},{"role":"decode","replicas":2}])"}) {
    const std::string document = Changed(
        {cluster, "workload.requests=400", "workload.arrivals.rate_per_s=60",
         "workload.prefix.groups=4", "workload.prefix.tokens=200", "engine.max_num_seqs=2"});
    const Report whole = RunToEnd(document);
    SimulationHooks hooks;
    hooks.recorded = {.series = false, .gaps = false};
    Simulation bare = Good(Simulation::Create(Parsed(document), {}, std::move(hooks)));
    while (!bare.Advance(INT64_MAX)) {
    }
    const Report totals = bare.Snapshot(ReportDetail::kTotals);
    EXPECT_EQ(totals.steps, whole.steps) << cluster;
    EXPECT_EQ(totals.arrived, whole.arrived) << cluster;
    EXPECT_EQ(totals.mean_batch_size, whole.mean_batch_size) << cluster;
    EXPECT_EQ(totals.kv_peak_usage, whole.kv_peak_usage) << cluster;
    EXPECT_EQ(totals.binding.shares, whole.binding.shares) << cluster;
    short_of_seats += totals.binding.shares[1];
    EXPECT_EQ(totals.prefix_cache.hit_tokens, whole.prefix_cache.hit_tokens) << cluster;
    EXPECT_GT(totals.prefix_cache.hit_tokens, 0) << cluster;
  }
  EXPECT_GT(short_of_seats, 0);
}

TEST(Latencies, TwoRequestsByHand_AreExact) {
  const Report r = RunToEnd(kBlackbox, TwoRequests());
  EXPECT_EQ(r.completed, 2);
  EXPECT_EQ(r.steps, 3);
  EXPECT_EQ(r.output_tokens, 5);
  EXPECT_EQ(r.prompt_tokens, 60);
  EXPECT_DOUBLE_EQ(r.simulated_s, 0.003615);
  EXPECT_EQ(r.ColumnOf("ttft_ms"), (std::vector<double>{1.2, 2.105}));
  EXPECT_EQ(r.ColumnOf("e2e_ms"), (std::vector<double>{3.615, 3.115}));
  EXPECT_DOUBLE_EQ(r.ColumnOf("tpot_ms")[0], (3.615 - 1.2) / 2);
  EXPECT_DOUBLE_EQ(r.ColumnOf("tpot_ms")[1], 1.01);
  EXPECT_EQ(r.ColumnOf("scheduling_delay_ms"), (std::vector<double>{0, 0.7}));
  EXPECT_EQ(r.ColumnOf("output_tokens"), (std::vector<double>{3, 2}));
  EXPECT_EQ(r.ColumnOf("arrival_s"), (std::vector<double>{0, 0.0005}));
  EXPECT_EQ(r.ColumnOf("state"), (std::vector<double>{3, 3}));
  // A: 1.405, 1.010; B: 1.010. Over tokens, not requests.
  EXPECT_EQ(r.itl_ms.n, 3);
  EXPECT_DOUBLE_EQ(r.itl_ms.min, 1.01);
  EXPECT_DOUBLE_EQ(r.itl_ms.p50, 1.01);
  EXPECT_DOUBLE_EQ(r.itl_ms.max, 1.405);
  EXPECT_DOUBLE_EQ(r.itl_ms.mean, (1.405 + 1.01 + 1.01) / 3);
  EXPECT_DOUBLE_EQ(r.itl_ms.p90, 1.01 + 0.8 * (1.405 - 1.01));
  EXPECT_DOUBLE_EQ(r.ttft_ms.p50, (1.2 + 2.105) / 2);
  EXPECT_DOUBLE_EQ(r.ttft_ms.p99, 1.2 + 0.99 * (2.105 - 1.2));
  EXPECT_DOUBLE_EQ(r.requests_per_s, 2 / 0.003615);
  EXPECT_DOUBLE_EQ(r.output_tokens_per_s, 5 / 0.003615);
}

// With two batches in flight the next step is scheduled before this one's tokens are applied:
//       0  prefill A           1,200 us   scheduled at 0; the next one too: A alone decodes
//   1,200  decode A            1,005      B (at 500) came after that call; joins the next, at 1,200
//   2,205  decode A, prefill B 1,405      A's third and B's first at 3,610
//   3,610  decode B            1,005      B's second at 4,615
TEST(Latencies, TwoRequestsAsyncByHand_AreExact) {
  const Report r = RunToEnd(Changed({"engine.async_scheduling=true"}, kBlackbox), TwoRequests());
  EXPECT_EQ(r.steps, 4);
  EXPECT_EQ(r.ColumnOf("ttft_ms"), (std::vector<double>{1.2, 3.11}));
  EXPECT_EQ(r.ColumnOf("e2e_ms"), (std::vector<double>{3.61, 4.115}));
  EXPECT_EQ(r.ColumnOf("scheduling_delay_ms"), (std::vector<double>{0, 1.705}));
}

// 64 prompt tokens are four full blocks. The second turn's prompt is the first's, its answer and 20
// new ones: 64 + 17 + 20 = 101; five full blocks of what was said are there, 80 tokens: the last
// answered token's KV was never computed.
TEST(Sessions, SecondTurn_FindsWhatWasSaid) {
  const std::vector<std::string> two_turns = {
      R"(workload={"arrivals":{"process":"constant","rate_per_s":1},"requests":2,)"
      R"("sessions":{"turns":2,"think_time_s":0},)"
      R"("prompt_tokens":{"distribution":"empirical","quantiles":[[0,64],[1,64]]},)"
      R"("output_tokens":{"distribution":"fixed","value":17}})"};
  const Report on = RunToEnd(Changed(two_turns, kBlackbox));
  ASSERT_EQ(on.completed, 2);
  EXPECT_EQ(on.ColumnOf("prompt_tokens"), (std::vector<double>{64, 64 + 17 + 64}));
  EXPECT_EQ(on.ColumnOf("cached_tokens"), (std::vector<double>{0, 80}));
  // It arrives as the first is complete: 1,640 us of prefill, then 16 decodes of 1,005 us.
  EXPECT_DOUBLE_EQ(on.ColumnOf("arrival_s")[1], 0.00164 + 16 * 0.001005);
  EXPECT_DOUBLE_EQ(on.ColumnOf("ttft_ms")[1], 1 + 0.01 * (145 - 80));
  std::vector<std::string> off = two_turns;
  off.push_back("engine.enable_prefix_caching=false");
  EXPECT_DOUBLE_EQ(RunToEnd(Changed(off, kBlackbox)).ColumnOf("ttft_ms")[1], 1 + 0.01 * 145);
}

// A decodes for long; B has one seat to wait for and gives up at 10 ms; C is served after A.
TEST(Timeouts, WhoWaitsTooLong_GivesUpAndFreesTheQueue) {
  const std::string document =
      Changed({"engine.max_num_seqs=1", "engine.max_num_batched_tokens=2048",
               R"(workload.classes=[{"name":"all","timeout_s":0.05}])"},
              kBlackbox);
  // A: 1.2 ms + 39 x 1.005 ms = 40.395 ms. B would wait from 1 to 40 ms and run 80 ms: gives up
  // running, at 51 ms. C came at 2 ms and would start at 51 ms or later: its 50 ms end at 52 ms.
  const Report r = RunToEnd(document, TraceOf("0,20,40\n0.001,20,80\n0.002,20,1\n"));
  EXPECT_EQ(r.completed, 1);
  EXPECT_EQ(r.timed_out, 2);
  EXPECT_DOUBLE_EQ(r.ColumnOf("e2e_ms")[0], 40.395);
  EXPECT_GT(r.ColumnOf("output_tokens")[1], 0);
  EXPECT_LT(r.ColumnOf("output_tokens")[1], 80);
  EXPECT_EQ(BrokenConservation(r), "");
}

// A prompt of 50 tokens takes 1.5 ms. Its token counts if the client is there to read it, whoever
// makes the batches, and wherever; behind the engine it may come late, too.
TEST(Timeouts, FirstTokenAfterTheClientGaveUp_IsNotDelivered) {
  const std::string pools = R"(cluster={"pools":[{"role":"prefill"},{"role":"decode"}]})";
  const std::string vidur = "engine.enable_prefix_caching=false";
  const std::vector<std::string> engines[] = {{},
                                              {"engine.async_scheduling=true"},
                                              {"scheduler.policy=sarathi", vidur},
                                              {pools},
                                              {pools, "scheduler.policy=orca", vidur}};
  for (const std::vector<std::string>& engine : engines) {
    for (const auto& [patience, client, in_time] : {std::tuple{"0.0015", "0", true},
                                                    {"0.0014", "0", false},
                                                    {"0.0019", "500", false},
                                                    {"0.002", "500", true}}) {
      std::vector<std::string> changes = engine;
      changes.push_back(std::string(R"(workload.classes=[{"name":"a","timeout_s":)") + patience +
                        "}]");
      changes.push_back(std::string("latency.alpha=[0,0,") + client + "]");
      const Report r = RunToEnd(Changed(changes, kBlackbox), TraceOf("0,50,40\n"));
      EXPECT_EQ(r.timed_out, 1);
      EXPECT_EQ(r.ttft_ms.n, in_time ? 1 : 0) << Parsed(Changed(changes, kBlackbox)).canonical_text;
    }
  }
}

// All wait for one seat: the order of service is that of the queue's key.
TEST(Orders, WhoIsServedNext_IsWhomTheKeyNames) {
  const std::string rows = "0,20,5\n0.0001,90,1\n0.0002,30,1\n0.0003,60,1\n";
  const auto first_of = [&](const std::string& order) {
    const Report r = RunToEnd(
        Changed({"engine.max_num_seqs=1", "scheduler.order=" + order}, kBlackbox), TraceOf(rows));
    std::vector<std::size_t> ids = {1, 2, 3};
    const std::vector<double>&arrival = r.ColumnOf("arrival_s"),
          &delay = r.ColumnOf("scheduling_delay_ms");
    std::sort(ids.begin(), ids.end(), [&](std::size_t a, std::size_t b) {
      return arrival[a] * 1e3 + delay[a] < arrival[b] * 1e3 + delay[b];
    });
    return ids;
  };
  EXPECT_EQ(first_of("fcfs"), (std::vector<std::size_t>{1, 2, 3}));
  EXPECT_EQ(first_of("sjf"), (std::vector<std::size_t>{2, 3, 1}));
  EXPECT_EQ(first_of("priority_fcfs"), (std::vector<std::size_t>{1, 2, 3}));
}

TEST(Latencies, AlphaDelays_AreSeenByTheClient) {
  // Before the queue 100 us + 2 us a prompt token: A enqueues at 140 us, B at 500 + 180 = 680 us,
  // which is within A's prefill. After each output token 30 us, which add up.
  const Report r = RunToEnd(Changed({"latency.alpha=[100,2,30]"}, kBlackbox), TwoRequests());
  const double start = 0.14;
  EXPECT_EQ(r.ColumnOf("scheduling_delay_ms")[0], start);
  EXPECT_DOUBLE_EQ(r.ColumnOf("scheduling_delay_ms")[1], start + 1.2 - 0.5);
  EXPECT_DOUBLE_EQ(r.ColumnOf("ttft_ms")[0], start + 1.2 + 0.03);
  EXPECT_DOUBLE_EQ(r.ColumnOf("ttft_ms")[1], start + 2.605 - 0.5 + 0.03);
  EXPECT_DOUBLE_EQ(r.ColumnOf("e2e_ms")[0], start + 3.615 + 3 * 0.03);
  EXPECT_DOUBLE_EQ(r.ColumnOf("e2e_ms")[1], start + 3.115 + 2 * 0.03);
  EXPECT_DOUBLE_EQ(r.itl_ms.max, 1.435);
  EXPECT_DOUBLE_EQ(r.itl_ms.min, 1.04);
}

TEST(Latencies, OneOutputToken_HasNoTpot) {
  const Report r = RunToEnd(kBlackbox, TraceOf("0,20,1\n1,20,2\n"));
  EXPECT_EQ(r.tpot_ms.n, 1);
  EXPECT_EQ(r.itl_ms.n, 1);
  EXPECT_EQ(r.ttft_ms.n, 2);
  EXPECT_TRUE(std::isnan(r.ColumnOf("tpot_ms")[0]));
  EXPECT_EQ(r.ColumnOf("ttft_ms")[0], r.ColumnOf("e2e_ms")[0]);
}

TEST(Latencies, Warmup_LeavesEarlyRequestsOut) {
  const std::string document = Changed({"measure.warmup_s=1"}, kBlackbox);
  const Report r = RunToEnd(document, TraceOf("0,20,2\n0.9,20,2\n1,20,2\n3,20,4\n"));
  EXPECT_EQ(r.arrived, 4);
  EXPECT_EQ(r.completed, 4);
  EXPECT_EQ(r.ttft_ms.n, 2);
  EXPECT_EQ(r.e2e_ms.n, 2);
  EXPECT_EQ(r.itl_ms.n, 4);
  // Window: from 1 s to the end, 3 s + 1.2 ms + 3 x 1.005 ms; two requests and six tokens in it.
  EXPECT_DOUBLE_EQ(r.requests_per_s, 2 / 2.004215);
  EXPECT_DOUBLE_EQ(r.output_tokens_per_s, 6 / 2.004215);
}

TEST(Latencies, OneRequest_HasAnAnswer) {
  const Report r = RunToEnd(Changed({"workload.requests=1"}));
  EXPECT_EQ(r.arrived, 1);
  EXPECT_EQ(r.completed, 1);
  EXPECT_EQ(r.ttft_ms.n, 1);
  EXPECT_EQ(r.ttft_ms.p99, r.ttft_ms.min);
  EXPECT_EQ(BrokenConservation(r), "");
  EXPECT_FALSE(r.verdict.sentence.empty());
}

TEST(Slo, ValuesAndMargins_AreThoseOfTheDistributions) {
  const Report r = RunToEnd(Changed({"slo.0.metric=ttft", "slo.0.percentile=50", "slo.0.limit_ms=2",
                                     "slo.1.metric=e2e", "slo.1.percentile=100",
                                     "slo.1.limit_ms=3.5", "slo.2.metric=itl", "slo.2.limit_ms=10"},
                                    kBlackbox),
                            TwoRequests());
  ASSERT_EQ(r.slo.size(), 3u);
  EXPECT_DOUBLE_EQ(*r.slo[0].value_ms, 1.6525);
  EXPECT_DOUBLE_EQ(*r.slo[0].margin, 1 - 1.6525 / 2);
  EXPECT_TRUE(r.slo[0].met);
  EXPECT_DOUBLE_EQ(*r.slo[1].value_ms, 3.615);
  EXPECT_FALSE(r.slo[1].met);
  EXPECT_TRUE(r.slo[2].met);
  // Of the two requests, A (E2E 3.615 ms) and B (TTFT 2.105 ms) each break a limit.
  EXPECT_DOUBLE_EQ(*r.attainment, 0);
  EXPECT_DOUBLE_EQ(r.goodput_per_s, 0);
  EXPECT_EQ(r.verdict.state, VerdictState::kMisses);
  const Report good =
      RunToEnd(Changed({"slo.0.metric=e2e", "slo.0.limit_ms=3.2"}, kBlackbox), TwoRequests());
  EXPECT_DOUBLE_EQ(*good.attainment, 0.5);
  EXPECT_DOUBLE_EQ(good.goodput_per_s, 1 / 0.003615);
}

TEST(Horizon, UnfinishedRequests_AreCountedAndMissed) {
  // At 2 ms A decodes and B prefills: a step that began is finished, then the clock stops.
  const Report r = RunToEnd(
      Changed({"measure.horizon_s=0.002", "slo.0.metric=e2e", "slo.0.limit_ms=1000"}, kBlackbox),
      TraceOf("0,20,3\n0.0005,40,2\n0.0019,40,2\n5,40,2\n"));
  EXPECT_TRUE(r.finished);
  EXPECT_EQ(BrokenConservation(r), "");
  EXPECT_EQ(r.arrived, 3);
  EXPECT_EQ(r.running, 2);
  EXPECT_EQ(r.queued, 1);
  EXPECT_EQ(r.completed, 0);
  EXPECT_DOUBLE_EQ(*r.attainment, 0);
}

TEST(Simulation, EverySlice_GivesTheSameFingerprint) {
  const std::string document =
      Changed({"engine.num_gpu_blocks_override=40", "workload.arrivals.rate_per_s=200",
               "workload.output_tokens.value=90"});
  const Report whole = RunToEnd(document);
  EXPECT_GT(whole.preemptions, 0);
  for (const std::int64_t slice : {1, 2, 7, 100}) {
    EXPECT_EQ(RunToEnd(document, {}, slice).fingerprint, whole.fingerprint) << slice;
  }
}

TEST(Simulation, InEverySlice_CountsAddUpAndProgressGrows) {
  Result<Simulation> made = Simulation::Create(
      Parsed(Changed({"engine.num_gpu_blocks_override=40", "workload.arrivals.rate_per_s=200",
                      "workload.output_tokens.value=90", "measure.horizon_s=1.5"})));
  ASSERT_TRUE(made.ok());
  Simulation& simulation = made.value();
  double progress = simulation.Progress();
  EXPECT_EQ(simulation.Snapshot().arrived, simulation.Snapshot().queued);
  for (bool finished = false; !finished;) {
    finished = simulation.Advance(5);
    const Report r = simulation.Snapshot();
    EXPECT_EQ(BrokenConservation(r), "");
    EXPECT_EQ(r.finished, finished);
    EXPECT_GE(simulation.Progress(), progress);
    progress = simulation.Progress();
    EXPECT_EQ(progress == 1, finished);
    ASSERT_LE(r.kv_peak_usage, 1);
  }
  EXPECT_TRUE(simulation.Advance(5)) << "a finished run stays finished";
}

TEST(Simulation, Moved_GoesOn) {
  Result<Simulation> a = Simulation::Create(Parsed(SmallDocument()));
  Result<Simulation> b = Simulation::Create(Parsed(SmallDocument()));
  a.value().Advance(10);
  b.value().Advance(3);
  Simulation moved = std::move(a.value());
  a.value() = std::move(b.value());
  while (!moved.Advance(11)) {
  }
  while (!a.value().Advance(13)) {
  }
  EXPECT_EQ(moved.Snapshot().fingerprint, a.value().Snapshot().fingerprint);
}

TEST(Fingerprint, OneNanosecond_ChangesIt) {
  const std::string document = Changed({"workload.arrivals.process=trace"}, SmallDocument());
  const auto fingerprint = [&](const char* second) {
    return RunToEnd(document, TraceOf(std::string("0,1,1\n") + second + ",1,1\n")).fingerprint;
  };
  EXPECT_EQ(fingerprint("0.5"), fingerprint("0.500000000"));
  EXPECT_NE(fingerprint("0.5"), fingerprint("0.500000001"));
}

TEST(Fingerprint, Labels_DoNotChangeItButSeedsDo) {
  const std::uint64_t fingerprint = RunToEnd(SmallDocument()).fingerprint;
  EXPECT_EQ(RunToEnd(Changed({"name=Other", "model.name=X", "workload.name=Y"})).fingerprint,
            fingerprint);
  EXPECT_NE(RunToEnd(Changed({"seed=2"})).fingerprint, fingerprint);
  EXPECT_NE(RunToEnd(Changed({"engine.max_num_seqs=255"})).fingerprint, fingerprint);
}

TEST(Load, FarAboveCapacity_EndsAndIsOverloaded) {
  for (const char* rate : {"2000", "1000000"}) {
    const Report r =
        RunToEnd(Changed({std::string("workload.arrivals.rate_per_s=") + rate,
                          "workload.requests=20000", "slo.0.metric=ttft", "slo.0.limit_ms=1000"}));
    EXPECT_EQ(r.completed, 20000);
    EXPECT_EQ(r.verdict.state, VerdictState::kOverloaded) << rate << ": " << r.saturation.evidence;
    EXPECT_EQ(r.saturation.state, SaturationState::kOverloaded);
    EXPECT_NE(r.verdict.sentence.find("Overloaded"), std::string::npos);
  }
}

// The turns that follow go on long after conversations stopped coming: what counts is whether those
// that came were served as they came.
TEST(Load, SessionsAboveCapacity_AreOverloaded) {
  const Report r =
      RunToEnd(Changed({"workload.arrivals.rate_per_s=8", "engine.enable_prefix_caching=false",
                        "workload.requests=20000", "measure.warmup_s=0", "measure.horizon_s=null"},
                       std::string(*ScenarioPreset("llama-3.1-8b-h100-multi-turn"))));
  EXPECT_EQ(r.verdict.state, VerdictState::kOverloaded) << r.verdict.sentence;
  EXPECT_GT(r.saturation.queue_slope_per_s, 0);
}

TEST(Load, QueueThatIsLeft_IsOverloadedToo) {
  const Report r = RunToEnd(
      Changed({"workload.arrivals.rate_per_s=2000", "workload.requests=4000",
               "engine.max_num_seqs=8", R"(workload.classes=[{"name":"a","timeout_s":0.5}])"}));
  ASSERT_GT(r.timed_out, r.completed);
  EXPECT_EQ(r.saturation.state, SaturationState::kOverloaded) << r.saturation.evidence;
}

TEST(Load, FarBelowCapacity_IsStable) {
  const Report r = RunToEnd(Changed({"workload.arrivals.rate_per_s=0.5", "workload.requests=300",
                                     "slo.0.metric=ttft", "slo.0.limit_ms=10000"}));
  EXPECT_EQ(r.saturation.state, SaturationState::kStable) << r.saturation.evidence;
  EXPECT_EQ(r.verdict.state, VerdictState::kMeets) << r.verdict.sentence;
}

TEST(Load, ManySeeds_AreJudgedTheSame) {
  // Of forty seeds each, far from capacity on either side none may be misjudged.
  for (int seed = 1; seed <= 40; ++seed) {
    const std::string number = "seed=" + std::to_string(seed);
    EXPECT_EQ(RunToEnd(Changed({number, "workload.requests=500"})).saturation.state,
              SaturationState::kStable)
        << seed;
    EXPECT_EQ(
        RunToEnd(Changed({number, "workload.requests=2000", "workload.arrivals.rate_per_s=500"}))
            .saturation.state,
        SaturationState::kOverloaded)
        << seed;
  }
}

TEST(Verdict, EveryRequestDropped_SaysSo) {
  const Report r = RunToEnd(Changed({"engine.max_model_len=50"}));
  EXPECT_EQ(r.dropped, 50);
  EXPECT_EQ(BrokenConservation(r), "");
  EXPECT_NE(r.verdict.sentence.find("Serves nothing"), std::string::npos) << r.verdict.sentence;
}

TEST(Verdict, CapsAndDrops_AreInTheNote) {
  const Report r =
      RunToEnd(Changed({"engine.max_model_len=110", "workload.prompt_tokens.distribution=uniform",
                        "workload.prompt_tokens.min=80", "workload.prompt_tokens.max=130"}));
  EXPECT_GT(r.dropped, 0);
  EXPECT_GT(r.length_capped, 0);
  EXPECT_EQ(r.dropped + r.completed, 50);
  EXPECT_NE(r.verdict.note.find("dropped"), std::string::npos) << r.verdict.note;
  EXPECT_NE(r.verdict.note.find("ended at the longest"), std::string::npos) << r.verdict.note;
}

TEST(Rates, ClientsThatSeeTokensLate_AreWaitedFor) {
  const Report r = RunToEnd(Changed({"latency.alpha=[0,0,1000000]"}, kBlackbox), TwoRequests());
  // Three tokens a second apart: the last is seen 3 s after the engine made it.
  EXPECT_GT(r.e2e_ms.max, 3000);
  EXPECT_LE(r.requests_per_s, 2 / 3.0);
}

TEST(Verdict, DropsBeyondTheTarget_AreMisses) {
  const std::vector<std::string> changes = {"engine.max_model_len=110",
                                            "workload.prompt_tokens.distribution=uniform",
                                            "workload.prompt_tokens.min=80",
                                            "workload.prompt_tokens.max=130",
                                            "slo.0.metric=ttft",
                                            "slo.0.limit_ms=1000000"};
  const Report r = RunToEnd(Changed(changes));
  ASSERT_GT(r.dropped, 0);
  ASSERT_EQ(r.slo.size(), 1u);
  EXPECT_GT(*r.slo[0].margin, 0);
  EXPECT_FALSE(r.slo[0].met);
  EXPECT_EQ(r.verdict.state, VerdictState::kMisses) << r.verdict.sentence;
}

// Time-outs make what is left look fast; those who left have no answer, whatever the metric.
TEST(Verdict, TimeOutsBeyondTheTarget_AreMissesOfEveryMetric) {
  for (const char* metric : {"ttft", "tpot", "itl", "e2e"}) {
    const Report r = RunToEnd(
        Changed({"engine.max_num_seqs=1", R"(workload.classes=[{"name":"a","timeout_s":0.2}])",
                 std::string("slo.0.metric=") + metric, "slo.0.limit_ms=1000000"}));
    ASSERT_GT(r.timed_out, r.arrived / 50);
    ASSERT_GT(r.completed, 0);
    EXPECT_FALSE(r.slo[0].met) << metric;
    EXPECT_TRUE(r.verdict.state == VerdictState::kMisses ||
                r.verdict.state == VerdictState::kOverloaded)
        << r.verdict.sentence;
  }
}

TEST(Verdict, TurnsThatNeverCome_AreInTheNote) {
  const Report r = RunToEnd(Changed({"engine.max_num_seqs=1", R"(workload.sessions={"turns":5})",
                                     R"(workload.classes=[{"name":"a","timeout_s":0.2}])"}));
  ASSERT_GT(r.timed_out, 0);
  const std::string never = std::to_string(r.workload_requests - r.arrived) + " turns never came";
  EXPECT_NE(r.verdict.note.find(never), std::string::npos) << r.verdict.note;
}

TEST(Verdict, WarmUpBeyondTheRun_IsEmpty) {
  const Report r =
      RunToEnd(Changed({"measure.warmup_s=1000000", "slo.0.metric=ttft", "slo.0.limit_ms=1000"}));
  EXPECT_EQ(r.verdict.state, VerdictState::kEmpty) << r.verdict.sentence;
}

TEST(Report, EverySliceAndSnapshot_GivesTheSameReport) {
  const std::string document =
      Changed({"engine.num_gpu_blocks_override=40", "workload.arrivals.rate_per_s=200"});
  const std::string whole = ReportJson(RunToEnd(document), ReportParts::kWithSeries);
  for (const std::int64_t slice : {1, 3, 100}) {
    Result<Simulation> simulation = Simulation::Create(Parsed(document));
    ASSERT_TRUE(simulation.ok());
    while (!simulation.value().Advance(slice)) simulation.value().Snapshot();
    EXPECT_EQ(ReportJson(simulation.value().Snapshot(), ReportParts::kWithSeries), whole) << slice;
  }
}

TEST(AbsurdInput, EachGetsAnIssueAtItsField) {
  const struct {
    const char* change;
    const char* path;
  } cases[] = {
      {"workload.arrivals.rate_per_s=0", "/workload/arrivals/rate_per_s"},
      {"workload.arrivals.rate_per_s=-1", "/workload/arrivals/rate_per_s"},
      {"workload.arrivals.rate_per_s=NaN", "/workload/arrivals/rate_per_s"},
      {"workload.requests=0", "/workload/requests"},
      {"workload.requests=-5", "/workload/requests"},
      {"workload.requests=1.5", "/workload/requests"},
      {"workload.requests=1e9", "/workload/requests"},
      {"workload.requests=1e300", "/workload/requests"},
      {"workload.prompt_tokens.value=0", "/workload/prompt_tokens/value"},
      {"workload.prompt_tokens.value=1e12", "/workload/prompt_tokens/value"},
      {"engine.max_num_seqs=0", "/engine/max_num_seqs"},
      {"engine.max_num_batched_tokens=255", "/engine/max_num_batched_tokens"},
      {"engine.gpu_memory_utilization=1.5", "/engine/gpu_memory_utilization"},
      {"cluster.pools.0.tensor_parallel=3", "/cluster/pools/0/tensor_parallel"},
      {"hardware.memory_gib=10", "/model"},
      {"engine.gpu_memory_utilization=0.1", "/model"},
      {"model.preset=llama-3.1-70b", "/model"},
      {"workload.arrivals.process=trace", "/workload"},
  };
  for (const auto& c : cases) {
    const Issues issues = IssuesOf(Changed({c.change}));
    ASSERT_EQ(issues.size(), 1u) << c.change << "\n" << Listed(issues);
    EXPECT_EQ(issues[0].path, c.path) << c.change;
    EXPECT_FALSE(issues[0].message.empty());
  }
}

TEST(AbsurdInput, ExtremeButAllowedValues_GiveAnAnswer) {
  const std::vector<std::string> cases[] = {
      {"hardware.peak_bf16_tflops=0.01", "hardware.memory_bandwidth_gb_s=0.1"},
      {"hardware.peak_bf16_tflops=1000000", "hardware.memory_bandwidth_gb_s=1000000"},
      {"engine.block_size=1"},
      {"engine.block_size=1024"},
      {"engine.max_num_seqs=1", "engine.max_num_batched_tokens=1"},
      // More tokens a step leave no room beside its activations.
      {"engine.max_num_seqs=65536", "engine.max_num_batched_tokens=400000",
       "model.vocab_size=10000"},
      {"engine.num_gpu_blocks_override=2"},
      {"engine.num_gpu_blocks_override=1000000000"},
      {"engine.watermark=0.99"},
      {"engine.long_prefill_token_threshold=1"},
      {"engine.request_overhead_ms=1000000", "engine.step_overhead_us=10000000"},
      {"workload.prompt_tokens.value=1000000000"},
      {"workload.output_tokens.value=1000000000"},
      {"measure.horizon_s=1e-9"},
      {"measure.horizon_s=100000000"},
      {"measure.warmup_s=100000000"},
      {"measure.horizon_s=1e-9", "measure.warmup_s=100000000"},
      {"seed=9007199254740991"},
      {"workload.arrivals.rate_per_s=1e6", "workload.arrivals.process=poisson"},
      {"slo.0.metric=tpot", "slo.0.percentile=0", "slo.0.limit_ms=1e-6"},
      {"slo.0.metric=tpot", "slo.0.percentile=100", "slo.0.limit_ms=1e9",
       "workload.output_tokens.value=1"},
      {"hardware.price_per_gpu_hour=0"},
      {"latency.backend=blackbox", "latency.beta=[0,0,1e-6]"},  // steps of a nanosecond
      {"latency.backend=blackbox", "latency.beta=[1000000000,1000000000,1000000000]",
       "latency.alpha=[1000000000,1000000000,1000000000]"},
  };
  for (const std::vector<std::string>& changes : cases) {
    const std::string document = Changed(changes);
    const Issues issues = IssuesOf(document);
    ASSERT_TRUE(issues.empty()) << changes[0] << "\n" << Listed(issues);
    const Report r = RunToEnd(document);
    EXPECT_TRUE(r.finished) << changes[0];
    EXPECT_EQ(BrokenConservation(r), "") << changes[0];
    EXPECT_FALSE(r.verdict.sentence.empty()) << changes[0];
    for (const double value :
         {r.ttft_ms.p99, r.e2e_ms.max, r.itl_ms.mean, r.requests_per_s, r.output_tokens_per_s,
          r.kv_mean_usage, r.saturation.utilization, r.simulated_s}) {
      EXPECT_TRUE(std::isfinite(value)) << changes[0];
      EXPECT_GE(value, 0) << changes[0];
    }
  }
}

TEST(AbsurdInput, ClockThatWouldOverflow_DoesNot) {
  // Ten million steps of 1,000 s each are more than 2^63 ns.
  const Report r = RunToEnd(Changed(
      {"latency.backend=blackbox", "latency.beta=[1000000000,0,0]",
       "model.max_position_embeddings=1000000000", "engine.num_gpu_blocks_override=1000000000",
       "workload.requests=1", "workload.output_tokens.value=10000000"}));
  EXPECT_GT(r.simulated_s, 6e9);
  EXPECT_EQ(r.running, 1);
  EXPECT_EQ(BrokenConservation(r), "");
  // Nor do delays that add up at the client.
  const Report delayed = RunToEnd(Changed(
      {"latency.backend=blackbox", "latency.alpha=[0,0,1000000000]", "latency.beta=[1,0,0]",
       "model.max_position_embeddings=1000000000", "engine.num_gpu_blocks_override=1000000000",
       "workload.requests=1", "workload.output_tokens.value=10000000"}));
  EXPECT_EQ(delayed.completed, 1);
  EXPECT_GT(delayed.e2e_ms.max, 0);
}

TEST(Trace, LatestTimesThatAFileCanSay_AreServed) {
  const Report r = RunToEnd(Changed({"workload.arrivals.process=trace"}),
                            TraceOf("0,1,1\n4611686018.427387904,1,1\n"));
  EXPECT_EQ(r.completed, 2);
  EXPECT_DOUBLE_EQ(r.ColumnOf("arrival_s")[1], 4611686018.427387904);
}

// As plans run them: other replicas, rate and seed on the step times of a run before.
TEST(Redeploy, RunsAreThoseOfADeploymentOfTheirOwn) {
  for (const char* change : {"hardware.preset=h100-sxm", "hardware.preset=a100-80gb",
                             "cluster.pools.0.pipeline_parallel=2",
                             R"(cluster.pools=[{"role":"prefill"},{"role":"decode"}])"}) {
    Scenario first = Parsed(Changed({change}));
    if (first.cluster.pools.size() == 1) first.UsePool(0);
    const Deployment like = Good(Deploy(first));
    const std::string document = Changed(
        {change, "seed=9", "workload.arrivals.rate_per_s=500", "cluster.pools.0.replicas=3"});
    SimulationHooks hooks;
    hooks.deployment = std::make_shared<Deployment>(Redeploy(like, Parsed(document)));
    Simulation shared = Good(Simulation::Create(Parsed(document), {}, std::move(hooks)));
    while (!shared.Advance(INT64_MAX)) {
    }
    EXPECT_EQ(shared.Snapshot().fingerprint, RunToEnd(document).fingerprint) << change;
  }
}

}  // namespace
}  // namespace servecast::testing::simulation_test
