// Reports of runs that are written down here, request by request: what no small scenario brings
// about.
#include "metrics/summarize.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/documents.h"
#include "gtest/gtest.h"

namespace servecast::testing {
namespace {

constexpr TimeNs kMsNs = 1'000'000;

// Four requests of 100 prompt tokens, their times in ms. Nothing ran but for what is said here.
class WrittenRun {
 public:
  explicit WrittenRun(const std::vector<std::string>& changes = {})
      : scenario_(Parsed(Changed(changes))), cost_(ComputeModelCost(scenario_).value()) {
    requests_.arrival = {0, 10 * kMsNs, 5 * kMsNs, -1};  // not sorted; the last never came
    requests_.prompt_tokens.assign(4, 100);
    requests_.output_tokens.assign(4, 3);
    results.Resize(4);
    for (const std::size_t r : {0, 2}) Serve(r, 2, 40, 60);
    results.cached_tokens[2] = 96;
    results.enqueue[1] = requests_.arrival[1];
    results.state[1] = RequestState::kTimedOut;
    cache = {200, 96, 12, 6, 16, 3};
  }

  void Serve(std::size_t r, TimeNs start, TimeNs first_token, TimeNs completion) {
    const TimeNs arrival = requests_.arrival[r];
    results.enqueue[r] = arrival;
    results.first_scheduled[r] = arrival + start * kMsNs;
    results.first_token[r] = arrival + first_token * kMsNs;
    results.completion[r] = completion < 0 ? -1 : arrival + completion * kMsNs;
    results.generated[r] = completion < 0 ? 1 : 3;
    results.state[r] = completion < 0 ? RequestState::kRunning : RequestState::kCompleted;
  }

  Report Summary() const {
    const Recorder recorder(0);
    const std::string trace;
    const TimeNs end = 100 * kMsNs;
    return Summarize({.scenario = scenario_,
                      .cost = cost_,
                      .trace_name = trace,
                      .requests = requests_,
                      .results = results,
                      .recorder = recorder,
                      .prefix_cache = cache,
                      .end = end,
                      .finished = true,
                      .label = {},
                      .pools = {{scenario_, cost_, recorder}}},
                     ReportDetail::kRequests);
  }

  RequestResults results;
  PrefixCacheReport cache;

 private:
  Scenario scenario_;
  ModelCost cost_;
  RequestTable requests_;
};

TEST(Summary, TurnThatNeverArrived_CountsNowhere) {
  const Report r = WrittenRun().Summary();
  EXPECT_EQ(r.arrived, 3);
  EXPECT_EQ(r.completed, 2);
  EXPECT_EQ(r.queued, 0);
  EXPECT_EQ(r.workload_requests, 4);
  EXPECT_EQ(BrokenConservation(r), "");
  EXPECT_EQ(r.e2e_ms.n, 2);
  EXPECT_TRUE(std::isnan(r.ColumnOf("arrival_s")[3]));
  EXPECT_TRUE(std::isnan(r.ColumnOf("ttft_ms")[3]));
  EXPECT_EQ(r.ColumnOf("state")[3], 0);
  EXPECT_DOUBLE_EQ(r.ColumnOf("arrival_s")[2], 0.005);
}

TEST(Summary, TimedOut_IsUnservedAndNotCensored) {
  const Report r = WrittenRun({"slo.0.metric=ttft", "slo.0.percentile=50", "slo.0.limit_ms=50",
                               "slo.1.metric=e2e", "slo.1.limit_ms=100"})
                       .Summary();
  EXPECT_EQ(r.timed_out, 1);
  EXPECT_EQ(r.ttft_ms.n, 2);
  EXPECT_EQ(r.ttft_ms.censored + r.e2e_ms.censored + r.tpot_ms.censored, 0);
  EXPECT_DOUBLE_EQ(*r.attainment, 2 / 3.0);
  EXPECT_DOUBLE_EQ(r.slo[0].unserved_share, 1 / 3.0);
  EXPECT_TRUE(r.slo[0].met);
  EXPECT_DOUBLE_EQ(r.slo[1].unserved_share, 1 / 3.0);
  EXPECT_FALSE(r.slo[1].met);
  EXPECT_EQ(r.verdict.state, VerdictState::kMisses) << r.verdict.sentence;
  EXPECT_NE(r.verdict.note.find("1 of 3 requests timed out."), std::string::npos) << r.verdict.note;
}

TEST(Summary, TimedOutAfterItsFirstToken_HasATtft) {
  WrittenRun run({"slo.0.metric=ttft", "slo.0.limit_ms=100"});
  run.Serve(1, 1, 70, -1);
  run.results.state[1] = RequestState::kTimedOut;
  const Report r = run.Summary();
  EXPECT_EQ(r.timed_out, 1);
  EXPECT_EQ(r.ttft_ms.n, 3);
  EXPECT_DOUBLE_EQ(r.ttft_ms.max, 70);
  EXPECT_EQ(r.e2e_ms.n, 2);
  EXPECT_EQ(r.e2e_ms.censored, 0);
  EXPECT_EQ(r.slo[0].unserved_share, 0);
  EXPECT_EQ(r.verdict.state, VerdictState::kNear) << "a lost request is no clean success";
  EXPECT_EQ(BrokenConservation(r), "");
}

TEST(Summary, Sentence_HasTheUnitThatKeepsTimesBelow1000) {
  const std::pair<const char*, const char*> limits[] = {
      {"999.4", "999 ms"},     {"999.6", "1 s"},       {"20000", "20 s"},
      {"4660000", "77.7 min"}, {"59971000", "16.7 h"}, {"900000000", "250 h"},
  };
  for (const auto& [limit, text] : limits) {
    const Report r = WrittenRun({"slo.0.metric=ttft", "slo.0.percentile=50",
                                 std::string("slo.0.limit_ms=") + limit})
                         .Summary();
    const std::string words = std::string("TTFT p50 <= ") + text + " with";
    EXPECT_NE(r.verdict.sentence.find(words), std::string::npos) << r.verdict.sentence;
  }
}

TEST(Summary, EverybodyTimedOut_ServesNothing) {
  WrittenRun run;
  for (const std::size_t r : {0, 2}) {
    run.results.first_scheduled[r] = run.results.first_token[r] = run.results.completion[r] = -1;
    run.results.state[r] = RequestState::kTimedOut;
  }
  const Report r = run.Summary();
  EXPECT_EQ(r.verdict.state, VerdictState::kMisses);
  EXPECT_EQ(r.verdict.sentence, "Serves nothing: every request timed out.");
}

TEST(Summary, PrefixCache_IsReportedWithItsRates) {
  WrittenRun run;
  const Report r = run.Summary();
  EXPECT_EQ(r.ColumnOf("cached_tokens"), (std::vector<double>{0, 0, 96, 0}));
  const std::string json = ReportJson(r, ReportParts::kSummary);
  EXPECT_NE(json.find(R"("hit_rate": 0.48)"), std::string::npos) << json;
  EXPECT_NE(json.find(R"("block_hit_rate": 0.5)"), std::string::npos);
  run.cache = {};
  EXPECT_NE(ReportJson(run.Summary(), ReportParts::kSummary).find(R"("hit_rate": null)"),
            std::string::npos);
}

TEST(Summary, CacheTimeOutsAndLateTurns_AreInTheFingerprint) {
  const std::uint64_t fingerprint = WrittenRun().Summary().fingerprint;
  EXPECT_EQ(WrittenRun().Summary().fingerprint, fingerprint);
  WrittenRun hit, state, counter;
  hit.results.cached_tokens[0] = 16;
  EXPECT_NE(hit.Summary().fingerprint, fingerprint);
  state.results.state[1] = RequestState::kDropped;
  EXPECT_NE(state.Summary().fingerprint, fingerprint);
  std::vector<PrefixCacheReport> changed(6, counter.cache);
  ++changed[0].query_tokens;
  ++changed[1].hit_tokens;
  ++changed[2].query_blocks;
  ++changed[3].hit_blocks;
  ++changed[4].resumed_hit_tokens;
  ++changed[5].evicted_blocks;
  for (const PrefixCacheReport& cache : changed) {
    counter.cache = cache;
    EXPECT_NE(counter.Summary().fingerprint, fingerprint);
  }
}

}  // namespace
}  // namespace servecast::testing
