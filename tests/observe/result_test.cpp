// The result of the load generator: what it says of answers and failures, and that calibrate and
// traces read it.
#include <nlohmann/json.hpp>
#include <string>

#include "calibrate/measurements.h"
#include "gtest/gtest.h"
#include "observe/result.h"
#include "servecast/trace.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

Answer Answered(std::int64_t row, TimeNs sent, TimeNs first, TimeNs gap, int tokens) {
  Answer a;
  a.row = row;
  a.due = a.ready = sent - kNsPerMs;
  a.first_sent = a.sent = sent;
  a.tries = 1;
  for (int i = 0; i < tokens; ++i) a.tokens.push_back(sent + first + i * gap);
  a.ended = a.tokens.back();
  a.outcome = Outcome::kAnswered;
  return a;
}

// Two that came whole and one that was refused.
struct Case {
  RequestTable table;
  Observed observed;
  ObserveOptions options;

  Case() {
    table.arrival = {0, kNsPerS, 2 * kNsPerS};
    table.prompt_tokens = {10, 20, 30};
    table.output_tokens = {3, 4, 5};
    observed.answers = {Answered(0, kNsPerMs, 50 * kNsPerMs, 10 * kNsPerMs, 3),
                        Answered(2, 2 * kNsPerS + kNsPerMs, 70 * kNsPerMs, 20 * kNsPerMs, 5)};
    observed.answers[1].prompt_tokens = 31;
    observed.answers[1].output_tokens = 5;
    Answer refused = Answered(1, kNsPerS + kNsPerMs, 1, 1, 1);
    refused.tokens.clear();
    refused.outcome = Outcome::kRefused;
    refused.error = "status 429: queue is full";
    refused.tries = 3;
    observed.answers.insert(observed.answers.begin() + 1, refused);
    observed.duration = 4 * kNsPerS;
    observed.started_at_s = 86'400;
  }
  std::string Text() const { return ObservedJson(observed, {"m", "id", 7}, options, table); }
};

TEST(ObserveResult, Members_AreThoseOfVllm) {
  const Json json = Json::parse(Case().Text());
  EXPECT_EQ(json["completed"], 2);
  EXPECT_EQ(json["failed"], 1);
  EXPECT_EQ(json["num_prompts"], 3);
  EXPECT_EQ(json["date"], "19700102-000000");
  EXPECT_EQ(json["input_lens"], (Json{10, 20, 31}));
  EXPECT_EQ(json["output_lens"], (Json{3, 0, 5}));
  EXPECT_EQ(json["ttfts"], (Json{0.05, 0, 0.07}));
  EXPECT_EQ(json["itls"][0], (Json{0.01, 0.01}));
  EXPECT_TRUE(json["itls"][1].empty());
  EXPECT_EQ(json["errors"], (Json{"", "status 429: queue is full", ""}));
  EXPECT_EQ(json["total_output_tokens"], 8);
  EXPECT_EQ(json["request_throughput"], 0.5);
  EXPECT_EQ(json["mean_ttft_ms"], 60);
  EXPECT_EQ(json["median_ttft_ms"], 60);
  EXPECT_EQ(json["std_ttft_ms"], 10);
  EXPECT_EQ(json["mean_tpot_ms"], 15);
  EXPECT_EQ(json["mean_e2el_ms"], 110);
  EXPECT_EQ(json["request_rate"], 1);
  EXPECT_TRUE(json["max_concurrency"].is_null());
  const Json& ours = json["servecast"];
  EXPECT_EQ(ours["outcomes"], (Json{"answered", "refused", "answered"}));
  EXPECT_EQ(ours["tries"], (Json{1, 3, 1}));
  EXPECT_EQ(ours["late_s"], (Json{0.001, 0.001, 0.001}));
  EXPECT_EQ(ours["asked_input_lens"], (Json{10, 20, 30}));
}

TEST(ObserveResult, Calibrate_ReadsItAtItsOwnTimes) {
  const auto read = ReadMeasurements(Case().Text(), "run.json");
  ASSERT_TRUE(read.ok()) << read.issues()[0].path << ": " << read.issues()[0].message;
  ASSERT_EQ(read.value().points.size(), 1U);
  const CalibrationPoint& point = read.value().points[0];
  EXPECT_EQ(point.form, PointForm::kRun);
  ASSERT_EQ(point.run->draws.size(), 1U);
  EXPECT_EQ(point.run->draws[0].rows.size(), 2U);
  EXPECT_EQ(point.run->draws[0].rows[1].arrival_ns, 2 * kNsPerS);
  EXPECT_EQ(point.run->draws[0].rows[1].prompt_tokens, 31);
  EXPECT_DOUBLE_EQ(point.figures[0].ms, 60);
  EXPECT_EQ(read.value().server.model, "m");
  EXPECT_EQ(read.value().warnings.size(), 1U);
}

// The mean that the file states is of the answers alone.
TEST(ObserveResult, MostRequestsFailed_CalibrateReadsTheOthers) {
  Case of;
  of.observed.answers.erase(of.observed.answers.begin());
  for (const std::int64_t row : {0, 0, 0}) {
    of.observed.answers.push_back(of.observed.answers[0]);
    of.observed.answers.back().row = row;
  }
  const auto read = ReadMeasurements(of.Text(), "run.json");
  ASSERT_TRUE(read.ok()) << read.issues()[0].message;
  EXPECT_EQ(read.value().points[0].run->draws[0].rows.size(), 1U);
}

TEST(ObserveResult, Trace_OfItsRequestsCanBeReplayed) {
  const auto trace = ParseTrace(Case().Text(), "run.json");
  ASSERT_TRUE(trace.ok()) << trace.issues()[0].message;
  EXPECT_EQ(trace.value().format, "vllm_bench");
  EXPECT_EQ(trace.value().rows.size(), 2U);
  EXPECT_EQ(trace.value().failed, 1);
}

TEST(ObserveResult, Summary_SaysFailuresAndWhatToBewareOf) {
  Case of;
  for (Answer& a : of.observed.answers) a.first_sent += 30 * kNsPerMs;
  of.observed.answers[0].output_tokens = 2;
  of.observed.wall_clock_moved_s = -3;
  const std::string text = ObservedSummary(of.observed, of.table);
  for (const char* part :
       {"sent     3 of 3 requests in 4", "2 answered whole", "failed   refused      1: status 429",
        "other prompt tokens", "1 answers had other lengths", "ms late", "wall clock moved by"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(ObserveResult, NothingSent_IsStillWhole) {
  const Case of;
  const Json json = Json::parse(ObservedJson({}, {"m", "id", 0}, of.options, of.table));
  EXPECT_EQ(json["completed"], 0);
  EXPECT_EQ(json["request_rate"], "inf");
  EXPECT_FALSE(ReadMeasurements(json.dump(), "run.json").ok());
}

}  // namespace
}  // namespace servecast
