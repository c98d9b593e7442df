// Where the time goes, what classes get, how far the peaks are used: small cases, counted by hand.
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/documents.h"
#include "cost/model_cost.h"
#include "gtest/gtest.h"
#include "metrics/samples.h"
#include "metrics/words.h"
#include "metrics/work.h"

namespace servecast::testing {
namespace {

// Steps of 1 ms + 10 us per prefill token + 100 us per decode; 0.5 ms before the queue and 0.2 ms
// per output token on the way to the client.
std::vector<std::string> BlackboxOf(std::vector<std::string> more) {
  more.insert(more.begin(),
              R"(latency={"backend":"blackbox","alpha":[500,0,200],"beta":[1000,10,100]})");
  return more;
}

Report RunRows(std::vector<TraceRow> rows, std::vector<std::string> more = {}) {
  Trace trace;
  trace.rows = std::move(rows);
  trace.hash = 1;
  more.insert(more.begin(), {R"(workload={"arrivals":{"process":"trace"},)"
                             R"("prompt_tokens":{"distribution":"trace"},)"
                             R"("output_tokens":{"distribution":"trace"}})"});
  return RunToEnd(Changed(BlackboxOf(std::move(more))), std::move(trace));
}

void ExpectParts(const Report& report, std::size_t request,
                 const std::map<std::string, double>& expected) {
  double sum = 0;
  for (const std::string_view part : TimeSplitReport::kNames) {
    const auto at = expected.find(std::string(part));
    const double value = report.ColumnOf(std::string(part) + "_ms")[request];
    EXPECT_DOUBLE_EQ(value, at == expected.end() ? 0 : at->second) << part;
    sum += value;
  }
  EXPECT_NEAR(sum, report.ColumnOf("e2e_ms")[request], 1e-9);
}

TEST(TimeSplit, TwoRequests_AsCountedByHand) {
  // us: step 1 [500, 2500] prefill of A; 2 [2500, 4100] decode of A (1100 alone), prefill of B;
  // 3 [4100, 5300] both; 4 [5300, 6400] the last of A.
  const Report report =
      RunRows({{0, 100, 4}, {1'000'000, 50, 2}}, {"engine.async_scheduling=false"});
  ExpectParts(report, 0,
              {{"host", 0.5 + 4 * 0.2}, {"prefill", 2}, {"decode", 3.4}, {"interference", 0.5}});
  ExpectParts(report, 1,
              {{"host", 0.5 + 2 * 0.2}, {"queue", 1}, {"prefill", 1.6}, {"decode", 1.2}});
  EXPECT_DOUBLE_EQ(report.ColumnOf("e2e_ms")[0], 7.2);
  EXPECT_DOUBLE_EQ(report.ColumnOf("e2e_ms")[1], 4.7);
  const TimeSplitReport& mean = report.time_split;
  ASSERT_TRUE(mean.on);
  EXPECT_EQ(mean.n, 2);
  EXPECT_DOUBLE_EQ(mean.e2e_ms[0], 1.1);   // host
  EXPECT_DOUBLE_EQ(mean.ttft_ms[0], 0.7);  // host, of one token
  EXPECT_DOUBLE_EQ(mean.ttft_ms[1], 0.5);  // queue
  EXPECT_DOUBLE_EQ(mean.ttft_ms[2], 1.8);  // prefill
}

TEST(TimeSplit, WithAsyncScheduling_AnArrivalJoinsAStepLater) {
  // Step 2 [2500, 3600] was formed before B came; 3 [3600, 5200] has B's prefill.
  const Report report =
      RunRows({{0, 100, 4}, {1'000'000, 50, 2}}, {"engine.async_scheduling=true"});
  ExpectParts(report, 0,
              {{"host", 0.5 + 4 * 0.2}, {"prefill", 2}, {"decode", 3.4}, {"interference", 0.5}});
  ExpectParts(report, 1,
              {{"host", 0.5 + 2 * 0.2}, {"queue", 2.1}, {"prefill", 1.6}, {"decode", 1.2}});
}

TEST(TimeSplit, APreemption_IsItsWaitAndTheRecomputationIsPrefill) {
  // Six blocks of 16 to use. Both prompts take 3; A's and B's next block is due when each has 48
  // tokens, in the same step: B is the last and gives way.
  const Report report = RunRows({{0, 40, 20}, {0, 40, 20}}, {"engine.num_gpu_blocks_override=7",
                                                             "engine.enable_prefix_caching=false"});
  ASSERT_EQ(report.preemptions, 1);
  // Step 1: 1 + 0.8; eight steps of two decodes, 1.2 each; then A alone: 11 of 1.1.
  const double a_alone = 11 * 1.1;
  ExpectParts(report, 0,
              {{"host", 0.5 + 20 * 0.2}, {"prefill", 1.8}, {"decode", 8 * 1.2 + a_alone}});
  // B has 9 tokens, computes 49 again for its tenth, then makes ten more alone.
  ExpectParts(report, 1,
              {{"host", 0.5 + 20 * 0.2},
               {"prefill", 1.8 + 1.49},
               {"decode", 8 * 1.2 + 10 * 1.1},
               {"preempted", a_alone}});
  EXPECT_DOUBLE_EQ(report.time_split.ttft_ms[5], 0);
}

TEST(TimeSplit, ByBlissRules_IsAbsent) {
  const Report report = RunToEnd(Changed(BlackboxOf({"engine.compat=blis"})));
  EXPECT_FALSE(report.time_split.on);
  EXPECT_FALSE(report.mfu.has_value());
  EXPECT_TRUE(std::isnan(report.ColumnOf("queue_ms")[0]));
  EXPECT_EQ(ReportJson(report, ReportParts::kSummary).find("time_split"), std::string::npos);
}

// Whole experts on many GPUs are the same work as slices of each: what the busiest GPU has to do
// more is no use. 16 and 32 GPUs for 8 experts, so that half and more of them have none.
TEST(PeakUse, WholeExperts_CountTheirWorkOnce) {
  for (const int replicas : {1, 8, 16}) {
    const std::vector<std::string> pool = {
        "model.preset=mixtral-8x7b", "workload.arrivals.rate_per_s=400", "workload.requests=600",
        R"(cluster={"pools":[{"tensor_parallel":2,"replicas":)" + std::to_string(replicas) +
            R"(,"attention_data_parallel":)" + std::to_string(replicas) + "}]}"};
    std::vector<std::string> whole = pool;
    whole.push_back("engine.enable_expert_parallel=true");
    const Report a = RunToEnd(Changed(pool)), b = RunToEnd(Changed(whole));
    // Of one replica with slices: 2 FLOPs a parameter that a token meets, and attention.
    const Scenario alone = Parsed(
        Changed({"model.preset=mixtral-8x7b", R"(cluster={"pools":[{"tensor_parallel":2}]})"}));
    const ModelCost cost = ComputeModelCost(alone).value();
    double pairs = 100.0 * 101 / 2;
    for (int i = 1; i <= 19; ++i) pairs += 100 + i;
    const double flops =
        600 * (119 * (cost.dense_flops_per_token + cost.expert_flops_per_token) +
               20 * cost.lm_head_flops_per_token + pairs * cost.attention_flops_per_pair);
    for (const Report* report : {&a, &b}) {
      ASSERT_EQ(report->preemptions, 0);
      const double peak = alone.hardware.peak_bf16_tflops * 1e12 * report->simulated_s * replicas;
      EXPECT_NEAR(*report->mfu, flops / peak, 1e-9 * flops / peak) << replicas;
      EXPECT_LE(*report->mfu, 1);
      EXPECT_LE(*report->bandwidth_use, 1);
    }
  }
}

TEST(PeakUse, OneRequest_IsItsFlopsAndBytesOverThePeaks) {
  const Scenario scenario = Parsed(Changed({"workload.requests=1"}));
  const ModelCost cost = ComputeModelCost(scenario).value();
  const Report report = RunToEnd(Changed({"workload.requests=1"}));
  // A prompt of 100 tokens, then 19 decodes with 100 + 1 .. 100 + 19 keys.
  double pairs = 100 * 101 / 2, keys = 100;
  for (int i = 1; i <= 19; ++i) pairs += 100 + i, keys += 100 + i;
  const double flops = 119 * cost.dense_flops_per_token + 20 * cost.lm_head_flops_per_token +
                       pairs * cost.attention_flops_per_pair;
  const double bytes =
      20 * (cost.dense_bytes + cost.lm_head_bytes) + keys * cost.kv_bytes_per_token;
  const HardwareSpec& gpu = scenario.hardware;
  EXPECT_NEAR(*report.mfu, flops / (gpu.peak_bf16_tflops * 1e12 * report.simulated_s), 1e-12);
  EXPECT_NEAR(*report.bandwidth_use, bytes / (gpu.memory_bandwidth_gb_s * 1e9 * report.simulated_s),
              1e-12);
  EXPECT_LT(*report.bandwidth_use, 1);
  // The bins of the series have the same in all.
  double mean = 0;
  const std::vector<double>& series = report.ColumnOf("series_bandwidth_use");
  const std::vector<double>& start = report.ColumnOf("series_time_s");
  for (std::size_t b = 0; b < series.size(); ++b) {
    const double end = b + 1 < start.size() ? start[b + 1] : report.simulated_s;
    mean += series[b] * (end - start[b]) / report.simulated_s;
  }
  EXPECT_NEAR(mean, *report.bandwidth_use, 1e-6);
}

TEST(PeakUse, Experts_OneTokenReadsItsOwnAndManyReadAll) {
  const Scenario scenario =
      Parsed(Changed({"model.preset=mixtral-8x7b", "cluster.pools.0.tensor_parallel=2"}));
  const std::vector<std::int64_t> read = ExpertsRead(ComputeModelCost(scenario).value(), 8192);
  ASSERT_GT(read.size(), 10u);
  EXPECT_EQ(read[0], 0);
  EXPECT_EQ(read[1], 2 * kStepUnit);
  EXPECT_EQ(read[2], 3.5 * kStepUnit);  // 8 (1 - (3/4)^2)
  EXPECT_EQ(read.back(), 8 * kStepUnit);
  EXPECT_LT(read.size(), 100u);
}

// Sum of the binomial probabilities of [from, to) successes.
double Binomial(int n, double p, int from, int to) {
  double sum = 0;
  for (int k = from; k < to; ++k) {
    sum += std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) +
                    k * std::log(p) + (n - k) * std::log1p(-p));
  }
  return sum;
}

TEST(ConfidenceRanks, CoverAtLeast95PercentAndNotMuchMore) {
  for (const double percent : {50.0, 90.0, 99.0}) {
    for (const int n : {368, 500, 1000, 5000, 40'000, 60'000}) {
      const auto ranks = ConfidenceRanks(n, percent);
      ASSERT_TRUE(ranks.has_value()) << n;
      // The percentile is between them when more than `low` and at most `high` samples are below.
      const double covered = Binomial(n, percent / 100, static_cast<int>(ranks->low) + 1,
                                      static_cast<int>(ranks->high) + 1);
      EXPECT_GE(covered, 0.95) << percent << " of " << n;
      EXPECT_LE(covered, n >= 1000 ? 0.98 : 0.99) << percent << " of " << n;
    }
  }
  EXPECT_FALSE(ConfidenceRanks(367, 99).has_value());
  EXPECT_EQ(ConfidenceRanks(368, 99)->high, 367u);
  EXPECT_FALSE(ConfidenceRanks(1, 50).has_value());
}

const char* const kAAndB = R"(workload.classes=[{"name":"a"},{"name":"b"}])";

TEST(Fairness, AClassThatIsServedNothing_HalvesTheIndex) {
  const Report fair = RunToEnd(Changed({kAAndB, "workload.requests=2000"}));
  ASSERT_TRUE(fair.fairness.has_value());
  EXPECT_GT(*fair.fairness, 0.999);
  const Report unfair = RunToEnd(Changed(
      {kAAndB, R"(workload.classes.1.prompt_tokens={"distribution":"fixed","value":200000})",
       "workload.requests=2000"}));
  EXPECT_EQ(*unfair.classes[1].served_share, 0);
  EXPECT_EQ(unfair.classes[1].dropped, unfair.classes[1].arrived);
  EXPECT_NEAR(*unfair.fairness, 0.5, 1e-12);
  EXPECT_FALSE(RunToEnd(SmallDocument()).fairness.has_value());
}

TEST(Classes, ATargetOfOne_IsJudgedByItsRequests) {
  const std::vector<std::string> set = {
      kAAndB, R"(workload.classes.1.prompt_tokens={"distribution":"fixed","value":20000})",
      R"(slo=[{"metric":"ttft","limit_ms":300,"class":"a","percentile":50},)"
      R"({"metric":"ttft","limit_ms":300,"class":"b","percentile":50},)"
      R"({"metric":"e2e","limit_ms":100000}])",
      "workload.arrivals.rate_per_s=1"};
  const Report report = RunToEnd(Changed(set));
  ASSERT_EQ(report.slo.size(), 3u);
  EXPECT_DOUBLE_EQ(*report.slo[0].value_ms, report.classes[0].ttft_ms.p50);
  EXPECT_DOUBLE_EQ(*report.slo[1].value_ms, report.classes[1].ttft_ms.p50);
  EXPECT_TRUE(report.slo[0].met);
  EXPECT_FALSE(report.slo[1].met);
  EXPECT_EQ(report.verdict.state, VerdictState::kMisses);
  EXPECT_NE(report.verdict.sentence.find("of b"), std::string::npos) << report.verdict.sentence;
  EXPECT_EQ(report.classes[0].arrived + report.classes[1].arrived, report.arrived);
  EXPECT_NEAR(*report.attainment * static_cast<double>(report.arrived),
              *report.classes[0].attainment * static_cast<double>(report.classes[0].arrived) +
                  *report.classes[1].attainment * static_cast<double>(report.classes[1].arrived),
              1e-9);
  EXPECT_EQ(
      IssuesOf(Changed({R"(slo=[{"metric":"itl","limit_ms":9,"class":"a"}])", kAAndB}))[0].path,
      "/slo/0/metric");
}

TEST(Saturation, ClosedLoop_IsNeverOverloaded) {
  const Report report =
      RunToEnd(Changed({R"(workload.arrivals={"process":"closed_loop","concurrency":64})",
                        "workload.requests=4000", "engine.max_num_seqs=4"}));
  EXPECT_GT(report.saturation.queue_p95, 50);
  EXPECT_EQ(report.saturation.state, SaturationState::kNear) << report.saturation.evidence;
  const Report idle = RunToEnd(
      Changed({R"(workload.arrivals={"process":"closed_loop","concurrency":4,"think_time_s":1})",
               "workload.requests=500"}));
  EXPECT_EQ(idle.saturation.state, SaturationState::kStable) << idle.saturation.evidence;
}

// Without it a horizon would make slow answers vanish from the target that they miss.
TEST(Slo, UnfinishedAnswersOlderThanALimit_AreBeyondIt) {
  std::vector<TraceRow> rows(9, TraceRow{0, 100, 2});
  for (int i = 0; i < 3; ++i) rows.push_back({0, 100, 30'000});
  const auto verdict = [&rows](const char* limit) {
    return RunRows(
        rows, {"measure.horizon_s=1",
               std::string(R"(slo=[{"metric":"e2e","percentile":90,"limit_ms":)") + limit + "}]"});
  };
  const Report judged = verdict("500");
  EXPECT_EQ(judged.completed, 9);
  EXPECT_DOUBLE_EQ(judged.slo[0].unserved_share, 0.25);
  EXPECT_FALSE(judged.slo[0].met);
  // Younger than this limit, they may still meet it.
  EXPECT_DOUBLE_EQ(verdict("5000").slo[0].unserved_share, 0);
}

TEST(Series, LastBin_IsNoSliver) {
  for (std::int32_t outputs = 200; outputs < 260; ++outputs) {
    const Report r = RunRows({{0, 100, outputs}, {3'000'000, 50, outputs / 2}});
    const std::vector<double>& start = r.ColumnOf("series_time_s");
    ASSERT_GT(start.size(), 2u);
    EXPECT_GE(r.simulated_s - start.back(), 0.4999 * (start[1] - start[0])) << outputs;
    // Nothing is lost with it.
    double tokens = 0;
    for (std::size_t b = 0; b < start.size(); ++b) {
      const double end = b + 1 < start.size() ? start[b + 1] : r.simulated_s;
      tokens += r.ColumnOf("series_output_tokens_per_s")[b] * (end - start[b]);
    }
    EXPECT_NEAR(tokens, static_cast<double>(r.output_tokens), 1e-6) << outputs;
  }
}

TEST(Words, Measured_HasThreeDigits) {
  // Of no end, there is an end to the text.
  constexpr double kEndless = std::numeric_limits<double>::infinity();
  for (const std::string& text :
       {ThreeDigits(kEndless), ThreeDigits(-kEndless), ThreeDigits(std::nan("")), Beyond(kEndless),
        Ms(kEndless), MeasuredMs(kEndless), Percent(kEndless), Dollars(kEndless)}) {
    EXPECT_LT(text.size(), 1000U);
  }
  EXPECT_EQ(ThreeDigits(12), "12.0");
  EXPECT_EQ(ThreeDigits(9), "9.00");
  EXPECT_EQ(ThreeDigits(0.15), "0.150");
  EXPECT_EQ(ThreeDigits(9.999), "10.0");
  EXPECT_EQ(ThreeDigits(-4), "-4.00");
  EXPECT_EQ(ThreeDigits(200), "200");
  EXPECT_EQ(ThreeDigits(15903), "15,900");
  EXPECT_EQ(ThreeDigits(999.6), "1,000");
  EXPECT_EQ(ThreeDigits(4383), "4,380");
  EXPECT_EQ(ThreeDigits(-1234567), "-1,230,000");
  EXPECT_EQ(ThreeDigits(0), "0");
  EXPECT_EQ(MeasuredMs(12), "12.0 ms");
  EXPECT_EQ(MeasuredMs(15903), "15.9 s");
  EXPECT_EQ(Ms(20), "20 ms");
}

TEST(Words, BeyondALimit_IsPercentThenTimes) {
  EXPECT_EQ(Beyond(1.012), "1.2 % over");
  EXPECT_EQ(Beyond(1.05), "5.0 % over");
  EXPECT_EQ(Beyond(1.343), "34 % over");
  EXPECT_EQ(Beyond(1.995), "100 % over");
  EXPECT_EQ(Beyond(2.3), "2.3 times the limit");
  EXPECT_EQ(Beyond(79.5), "80 times the limit");
  EXPECT_EQ(Beyond(784), "780 times the limit");
}

}  // namespace
}  // namespace servecast::testing
