// Loads that take long to be new, and runs that tell nothing: where clients begin, how long runs
// are, what a full queue turns away, and experiments that more runs would not help.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "core/documents.h"
#include "experiment/lives.h"
#include "fmt/format.h"
#include "gtest/gtest.h"
#include "servecast/experiment.h"
#include "testing/dice.h"
#include "workload/workload.h"

namespace servecast::testing::thinking_test {
namespace {

double MeanStart(const std::string& arrivals, const std::string& sessions, int clients) {
  const Scenario scenario = Parsed(
      Changed({fmt::format(R"(workload.arrivals={{"process":"closed_loop","concurrency":{},{}}})",
                           clients, arrivals),
               "workload.sessions=" + sessions, fmt::format("workload.requests={}", 4 * clients)}));
  const RequestTable table = Good(MakeRequests(scenario, {}));
  double sum = 0;
  int starts = 0;
  for (const TimeNs arrival : table.arrival) {
    if (arrival < 0) continue;
    sum += static_cast<double>(arrival) / 1e9;
    ++starts;
  }
  return starts == 0 ? -1 : sum / starts;
}

constexpr int kClients = 20'000;

// A cycle of 5 s, then two times 10 s: a fifth of the clients are in the first, and have 5 s to
// come; two fifths each have 10 s or 20 s more than that.
TEST(Thinking, ClientsOfALoop_BeginAtARandomPointOfTheirCycle) {
  const char* const think = R"("think_time_s":5)";
  EXPECT_NEAR(MeanStart(think, R"({"turns":1})", kClients), 5, 0.15);
  EXPECT_NEAR(MeanStart(think, R"({"turns":3,"think_time_s":10})", kClients), 17, 0.4);
  EXPECT_NEAR(MeanStart(R"("think_time_s":0)", R"({"turns":3,"think_time_s":10})", kClients), 15,
              0.4);
  EXPECT_EQ(MeanStart(R"("think_time_s":0)", R"({"turns":3})", 100), 0);
  EXPECT_EQ(MeanStart(R"("think_time_s":5,"start":"together")", R"({"turns":1})", 100), 0);
}

struct Beginnings {
  std::array<double, 5> by_turn{};           // conversations whose first turn of the run is that
  double under_way_s = 0, first_second = 0;  // mean of their arrivals; how many of them come then
};

// Prompts of 100 tokens and outputs of 20: the length of a prompt says which turn it is.
Beginnings BeginningsOf(const std::string& arrivals, int requests, int seed) {
  const Scenario scenario = Parsed(Changed(
      {fmt::format(R"(workload.arrivals={{"process":"poisson","rate_per_s":50{}}})", arrivals),
       R"(workload.sessions={"turns":5,"think_time_s":10})",
       R"(workload.prompt_tokens={"distribution":"fixed","value":100})",
       R"(workload.output_tokens={"distribution":"fixed","value":20})",
       fmt::format("workload.requests={}", requests), fmt::format("seed={}", seed)}));
  const RequestTable table = Good(MakeRequests(scenario, {}));
  Beginnings out;
  TimeNs before = 0;
  for (std::size_t r = 0; r < table.arrival.size(); ++r) {
    const auto turn = static_cast<std::size_t>((table.prompt_tokens[r] - 100) / 120);
    EXPECT_LT(turn, out.by_turn.size());
    if (table.think[r] >= 0) continue;
    EXPECT_GE(table.arrival[r], before);
    before = table.arrival[r];
    ++out.by_turn[turn];
    if (turn == 0) continue;
    out.under_way_s += static_cast<double>(table.arrival[r]) / 1e9;
    out.first_second += table.arrival[r] < 1'000'000'000 ? 1 : 0;
  }
  out.under_way_s /=
      std::max(1.0, std::accumulate(out.by_turn.begin() + 1, out.by_turn.end(), 0.0));
  return out;
}

// 2,000 of them (Little's law), each before one of four turns, with 10 s to come: 190 in the first
// second.
TEST(Thinking, Conversations_AreUnderWayAsInALoadThatHasLasted) {
  Beginnings sum;
  constexpr int kSeeds = 20;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const Beginnings one = BeginningsOf("", 40'000, seed);
    for (std::size_t turn = 1; turn < 5; ++turn) sum.by_turn[turn] += one.by_turn[turn] / kSeeds;
    sum.under_way_s += one.under_way_s / kSeeds;
    sum.first_second += one.first_second / kSeeds;
  }
  for (std::size_t turn = 1; turn < 5; ++turn) EXPECT_NEAR(sum.by_turn[turn], 500, 20) << turn;
  EXPECT_NEAR(sum.under_way_s, 10, 0.2);
  EXPECT_NEAR(sum.first_second, 2000 * (1 - std::exp(-0.1)), 12);

  const Beginnings empty = BeginningsOf(R"(,"start":"together")", 40'000, 1);
  EXPECT_EQ(empty.by_turn, (std::array<double, 5>{8000}));
  // So few that only those come that come first.
  const Beginnings few = BeginningsOf("", 200, 1);
  EXPECT_GT(few.by_turn[1] + few.by_turn[2] + few.by_turn[3] + few.by_turn[4], few.by_turn[0]);
  // The rate changes: how many there are at its beginning, nothing says.
  const Beginnings ramp = BeginningsOf(R"(,"profile":"ramp")", 1000, 1);
  EXPECT_EQ(ramp.by_turn, (std::array<double, 5>{200}));
}

// A server of 8 seats and 4 ms a step, whatever is in it.
std::vector<std::string> Server(const std::vector<std::string>& more) {
  std::vector<std::string> changes = {
      "engine.max_num_seqs=8", "workload.requests=2000",
      R"(latency={"backend":"blackbox","alpha":[0,0,0],"beta":[4000,0,0]})"};
  changes.insert(changes.end(), more.begin(), more.end());
  return changes;
}

Report Answer(const std::vector<std::string>& changes) {
  Experiment experiment = Good(Experiment::Create(Parsed(Changed(Server(changes)))));
  while (!experiment.Advance(INT64_MAX)) {
  }
  return experiment.Snapshot(ReportDetail::kSummary);
}

// All of it in one burst would take 10 s; one in ten clients is served at a time.
TEST(Thinking, ALoopOfManyClients_IsJudgedByWhatLasts) {
  const Report report =
      Answer({R"(workload.arrivals={"process":"closed_loop","concurrency":1000,"think_time_s":20})",
              R"(slo=[{"metric":"ttft","percentile":95,"limit_ms":100}])"});
  EXPECT_EQ(report.verdict.state, VerdictState::kMeets) << report.verdict.sentence;
  EXPECT_GE(report.certainty->requests_per_run, 10'000);
  EXPECT_TRUE(report.certainty->settled);
}

// Conversations of 45 s, of which a run of 2,000 requests sees the first ones begin.
TEST(Thinking, Conversations_AreNoLoadThatPilesUp) {
  for (int seed = 1; seed <= 3; ++seed) {
    const Report report =
        Answer({R"(workload.arrivals={"process":"poisson","rate_per_s":8})",
                R"(workload.sessions={"turns":5,"think_time_s":10})", fmt::format("seed={}", seed),
                R"(slo=[{"metric":"ttft","percentile":95,"limit_ms":100}])"});
    EXPECT_EQ(report.verdict.state, VerdictState::kMeets) << report.verdict.sentence;
    EXPECT_TRUE(report.certainty->settled);
    EXPECT_LT(report.certainty->from_s, report.certainty->until_s);
  }
}

TEST(Thinking, ConversationsThatOutlastAllRuns_AreNotSettled) {
  const Report report = Answer({R"(workload.arrivals={"process":"poisson","rate_per_s":8})",
                                R"(workload.sessions={"turns":1000,"think_time_s":100})",
                                R"(slo=[{"metric":"ttft","percentile":95,"limit_ms":1000}])"});
  EXPECT_EQ(report.verdict.state, VerdictState::kNear) << report.verdict.sentence;
  EXPECT_FALSE(report.certainty->settled);
  EXPECT_FALSE(report.slo[0].low_ms.has_value());
}

// 100 requests/s are all that it serves; of 110 one in ten is turned away.
TEST(Thinking, AFullQueue_IsJudgedByTheShareThatItTurnsAway) {
  for (const bool allowed : {true, false}) {
    const Report report =
        Answer({"workload.arrivals.rate_per_s=110", "engine.max_num_queued_reqs=20",
                fmt::format(R"(slo=[{{"metric":"ttft","percentile":{},"limit_ms":400}}])",
                            allowed ? 80 : 95)});
    EXPECT_NE(report.verdict.state, VerdictState::kOverloaded) << report.verdict.sentence;
    EXPECT_FALSE(report.slo[0].unbounded);
    EXPECT_EQ(report.slo[0].met, allowed) << report.verdict.sentence;
  }
}

// Counted, as no clock says what a run costs: each takes a thousand of the work that there is.
TEST(Thinking, RunsThatCannotGrow_AreAsManyAsTheirSetUpAllows) {
  constexpr std::int64_t kSetUp = 1000;
  for (std::uint64_t number = 1; number <= 12; ++number) {
    Dice dice(number);
    const std::int64_t replicas = dice.Pick({1, 4, 16});
    const Report report = Answer(
        {fmt::format("workload.requests={}", dice.Pick({1, 2, 5})),
         fmt::format("cluster.pools=[{{\"replicas\":{}}}]", replicas),
         dice.Percent(50) ? "measure.horizon_s=5" : "workload.arrivals.profile=\"ramp\"",
         fmt::format(R"(slo=[{{"metric":"{}","percentile":99,"limit_ms":{}}}])",
                     dice.Pick<std::string>({"ttft", "tpot", "e2e"}), dice.Pick({1, 4, 80}))});
    EXPECT_LE(report.certainty->runs * kSetUp * replicas, ExperimentOptions().most_work) << number;
  }
}

// Of conversations that pile up, few of which the first run sees. Counted in steps, likewise.
TEST(Thinking, AnOverloadOfConversations_TakesNotManyTimesTheWorkThereIs) {
  constexpr std::int64_t kSlice = 100'000;
  for (std::uint64_t number = 1; number <= 6; ++number) {
    Dice dice(number);
    const std::int64_t requests = dice.Pick({30, 128, 300}), turns = dice.Pick({2, 4, 6});
    Experiment experiment = Good(Experiment::Create(Parsed(
        Changed(Server({fmt::format("workload.requests={}", requests),
                        fmt::format(R"(workload.arrivals={{"process":"poisson","rate_per_s":{}}})",
                                    dice.Pick({100, 400, 1000})),
                        fmt::format(R"(workload.sessions={{"turns":{},"think_time_s":{}}})", turns,
                                    dice.Pick({1, 4, 10})),
                        fmt::format("cluster.pools=[{{\"replicas\":{}}}]", dice.Pick({1, 4, 9})),
                        R"(workload.output_tokens={"distribution":"fixed","value":200})",
                        R"(slo=[{"metric":"ttft","percentile":90,"limit_ms":1000}])"})))));
    std::int64_t slices = 1;
    while (!experiment.Advance(kSlice)) ++slices;
    EXPECT_LE(slices * kSlice, 6 * ExperimentOptions().most_work) << number;
    EXPECT_EQ(experiment.Snapshot(ReportDetail::kSummary).verdict.state, VerdictState::kOverloaded)
        << number;
  }
}

TEST(Thinking, ATargetWithoutSamples_IsNotWaitedFor) {
  for (const char* load : {"measure.horizon_s=5", "workload.requests=2000"}) {
    const Report report = Answer({load, "workload.output_tokens.value=1",
                                  R"(slo=[{"metric":"tpot","percentile":90,"limit_ms":20}])"});
    EXPECT_EQ(report.certainty->runs, 10) << load;
    EXPECT_LE(report.certainty->requests_per_run, 3000) << load;
    EXPECT_FALSE(report.certainty->settled) << load;
  }
}

}  // namespace
}  // namespace servecast::testing::thinking_test
