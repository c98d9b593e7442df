// Files of measurements: what the readers of core/src/calibrate take and refuse; and measured
// servers, whose runs are forecast from others of theirs.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "calibrate/calibrate.h"
#include "calibrate/server.h"
#include "formats/measured_table.h"
#include "gtest/gtest.h"
#include "io/json_document.h"
#include "testing/data_files.h"

namespace servecast::calibrate_files_test {
namespace {

std::string Joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::string Bench(const std::string& members) {
  return R"({"model_id": "meta-llama/Llama-3.1-8B-Instruct", )" + members + "}";
}

TEST(ReadMeasurements_, DetailedBench_IsReplayedAndItsEndHeldOut) {
  std::string lens, outs, ttfts, itls, starts;
  for (int i = 0; i < 120; ++i) {
    const char* comma = i == 0 ? "" : ",";
    lens += Format("{}{}", comma, 100 + i);
    outs += Format("{}3", comma);
    ttfts += Format("{}0.05", comma);
    itls += Format("{}[0.01, 0.03]", comma);
    starts += Format("{}{}", comma, 1000 + i);
  }
  const auto read = ReadMeasurements(
      Bench(Format(R"("request_rate": "inf", "max_concurrency": 4, "failed": 2, "input_lens": [{}],
                      "output_lens": [{}], "ttfts": [{}], "itls": [{}], "start_times": [{}])",
                   lens, outs, ttfts, itls, starts)),
      "r.json");
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read.value().points.size(), 2U);
  const CalibrationPoint& first = read.value().points[0];
  const CalibrationPoint& last = read.value().points[1];
  EXPECT_FALSE(first.held_out);
  EXPECT_TRUE(last.held_out);
  EXPECT_EQ(last.run->from, 80U);
  EXPECT_EQ(last.run->to, 120U);
  EXPECT_FALSE(first.run->concurrency);  // their own times say more
  ASSERT_EQ(first.run->draws.size(), 1U);
  EXPECT_EQ(first.run->draws[0].rows[7].arrival_ns, 7'000'000'000);
  EXPECT_EQ(first.run->draws[0].rows[7].prompt_tokens, 107);
  ASSERT_EQ(first.figures.size(), 3U);
  EXPECT_NEAR(first.figures[0].ms, 50, 1e-9);
  EXPECT_NEAR(first.figures[1].ms, 20, 1e-9);
  EXPECT_NEAR(first.figures[2].ms, 90, 1e-9);
  EXPECT_EQ(first.run->seen.ttft.size(), 80U);
  EXPECT_EQ(last.run->seen.itl.size(), 80U);
  EXPECT_NEAR(last.run->seen.itl[1], 30, 1e-5);
  EXPECT_NEAR(last.run->seen.e2e[39], 90, 1e-9);
  EXPECT_EQ(read.value().server.model, "meta-llama/Llama-3.1-8B-Instruct");
  EXPECT_NE(Joined(read.value().warnings).find("2 requests failed"), std::string::npos);
}

// Several tokens a chunk: said, as ITL then compares chunks. One gap less than tokens is as it must
// be.
TEST(ReadMeasurements_, FewerGapsThanTokens_AreSaid) {
  const auto warnings = [](const char* tokens) {
    const auto read =
        ReadMeasurements(Bench(Format(R"("request_rate": 1, "input_lens": [9], "output_lens": [{}],
                        "ttfts": [0.1], "itls": [[0.1, 0.1]])",
                                      tokens)),
                         "c.json");
    return read.ok() ? Joined(read.value().warnings) : std::string("refused");
  };
  EXPECT_NE(warnings("9").find("2 gaps in itls for 8 tokens"), std::string::npos) << warnings("9");
  EXPECT_EQ(warnings("3").find("gaps"), std::string::npos) << warnings("3");
}

TEST(ReadMeasurements_, SummaryBench_IsDrawnWithItsMeans) {
  const auto read = ReadMeasurements(
      Bench(R"("request_rate": 5.0, "burstiness": 1.0, "max_concurrency": null, "completed": 50,
              "total_input_tokens": 5000, "total_output_tokens": 1000, "mean_ttft_ms": 40,
              "mean_tpot_ms": 9)"),
      "s.json");
  ASSERT_TRUE(read.ok());
  const CalibrationPoint& point = read.value().points.at(0);
  EXPECT_EQ(point.run->draws.size(), 3U);
  EXPECT_EQ(point.run->draws[0].rows[0].prompt_tokens, 100);
  EXPECT_EQ(point.run->draws[0].rows[0].output_tokens, 20);
  EXPECT_EQ(point.figures.size(), 2U);
}

TEST(ReadMeasurements_, BadBenches_SayAllThatIsWrong) {
  const auto issues = [](const std::string& text) {
    const auto read = ReadMeasurements(text, "b.json");
    return read.ok() ? Issues() : read.issues();
  };
  const Issues lists = issues(Bench(R"("request_rate": "fast", "input_lens": [1, "x"],
      "output_lens": [1], "ttfts": [0.1, -1], "itls": [[0.1], 3])"));
  std::string paths;
  for (const Issue& issue : lists) paths += issue.path + ";";
  EXPECT_EQ(paths,
            "b.json, /input_lens/1;b.json, /ttfts/1;b.json, /itls/1;b.json, /output_lens;"
            "b.json, /request_rate;");
  const Issues units = issues(Bench(R"("request_rate": 1, "mean_ttft_ms": 52,
      "input_lens": [9], "output_lens": [2], "ttfts": [52], "itls": [[10]])"));
  ASSERT_EQ(units.size(), 1U);
  EXPECT_EQ(units[0].path, "b.json, /ttfts");
  EXPECT_NE(units[0].message.find("allowed seconds"), std::string::npos);
  EXPECT_EQ(issues(Bench(R"("mean_ttft_ms": 5)")).size(), 3U);
  EXPECT_EQ(issues(Bench(R"("request_rate": 2, "burstiness": 0.5, "completed": 9, "mean_ttft_ms": 5,
      "total_input_tokens": 9, "total_output_tokens": 9)"))
                .size(),
            1U);
}

TEST(ReadMeasurements_, HostileTexts_AreRefused) {
  for (const std::string& text :
       {std::string(), std::string(" \n"), std::string("{"), std::string("[]"), std::string("{}"),
        std::string(5000, '['), std::string("{\"ttfts\": 1}"), std::string("a,b\n1,2\n"),
        std::string("prompt_tokens,ttft_p50_ms\n"), std::string("prompt_tokens,ttft_p50_ms\n1\n"),
        std::string("prompt_tokens,ttft_p50_ms\nnan,inf\n"), std::string(3, '\0'),
        std::string("\xFF\xFE"), std::string(6 << 20, '{'),
        std::string("{\"input_lens\": [], \"output_lens\": [], \"ttfts\": [], \"itls\": []}"),
        std::string("batch,mean_context_tokens,itl_p50_ms\n1e99,1,1\n"),
        std::string("request_rate_rps,input_tokens_mean,output_tokens_mean,ttft_mean_ms\n"
                    "1,5,lots,3\n")}) {
    const auto read = ReadMeasurements(text, "h");
    ASSERT_FALSE(read.ok()) << text.substr(0, 60);
    for (const Issue& issue : read.issues()) EXPECT_FALSE((issue.path + issue.message).empty());
  }
}

TEST(ReadMeasurements_, Tables_NameRowAndColumn) {
  const auto read =
      ReadMeasurements("gpu,prompt_tokens,ttft_p50_ms\nA,128,fast\nA,0,5\nB,128,5\n", "t.csv");
  ASSERT_FALSE(read.ok());
  ASSERT_EQ(read.issues().size(), 3U);
  EXPECT_EQ(read.issues()[0].message,
            "t.csv, row 1, column ttft_p50_ms: found \"fast\", allowed a number above 0");
  EXPECT_EQ(read.issues()[1].message,
            "t.csv, row 2, column prompt_tokens: found \"0\", allowed a number from 1 to 10000000");
  EXPECT_EQ(read.issues()[2].path, "t.csv, row 3");
}

TEST(NumberOf_, FormsOfPeople_AreRead) {
  for (const auto& [text, value] : std::map<std::string, double>{{"5", 5},
                                                                 {"+5", 5},
                                                                 {"-2.5", -2.5},
                                                                 {".5", 0.5},
                                                                 {"5.", 5},
                                                                 {"1e3", 1000},
                                                                 {"1.5E-2", 0.015},
                                                                 {"007", 7},
                                                                 {"-0.5", -0.5},
                                                                 {"-.5", -0.5}}) {
    ASSERT_TRUE(NumberOf(text)) << text;
    EXPECT_EQ(*NumberOf(text), value) << text;
  }
  for (const char* text :
       {"", "+", "-", ".", "e", "1e", "1e999", "nan", "inf", "0x10", "1 2", "--1", "1,5", "+-1"}) {
    EXPECT_FALSE(NumberOf(text)) << text;
  }
  EXPECT_EQ(NumbersIn("lognormal(median=256,sigma=0.8,[16,4096])"),
            (std::vector<double>{256, 0.8, 16, 4096}));
}

// Rows of a table by their numbers from 1, under its header.
std::string RowsOf(const std::string& table, const std::vector<std::size_t>& rows) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  while (begin < table.size()) {
    const std::size_t end = std::min(table.find('\n', begin), table.size());
    lines.push_back(table.substr(begin, end - begin));
    begin = end + 1;
  }
  std::string text = lines.at(0);
  for (const std::size_t row : rows) text += "\n" + lines.at(row);
  return text + "\n";
}

class Measured_ : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::DataFolder("SERVECAST_GROUNDTRUTH", "groundtruth");
    if (!testing::ReadFile(folder_ + "/a100-pcie-llama-3.1-8b/serving_sweep.csv")) {
      GTEST_SKIP() << "skipped: no data";
    }
  }
  std::string Text(const std::string& file) const {
    return testing::ReadFile(folder_ + "/" + file).value_or("");
  }
  // Fits `fitted` and judges by `held_out`.
  static Calibration FitOf(const std::vector<std::string>& fitted, const std::string& held_out) {
    Measurements all;
    for (const std::string& text : fitted) {
      auto read = ReadMeasurements(text, "fitted");
      EXPECT_TRUE(read.ok());
      AddMeasurements(std::move(read.value()), all);
    }
    auto judge = ReadMeasurements(held_out, "judge");
    EXPECT_TRUE(judge.ok());
    for (CalibrationPoint& point : judge.value().points) point.held_out = true;
    AddMeasurements(std::move(judge.value()), all);
    const auto document = ServerDocument(all.server);
    EXPECT_TRUE(document.ok());
    const auto scenario = ParseScenario(document.value());
    EXPECT_TRUE(scenario.ok());
    auto made = Calibrate(scenario.value(), all);
    EXPECT_TRUE(made.ok());
    return std::move(made.value());
  }
  static double Worst(const Calibration& of, Figure figure, bool held_out) {
    double most = 0;
    for (const CalibrationError& e : of.errors) {
      if (e.figure == figure && e.held_out == held_out) most = std::max(most, e.after.most);
    }
    return most;
  }

  std::string folder_;
};

TEST_F(Measured_, H100FromTwoRates_OthersAreWithinFourPerCent) {
  const std::string sweep = Text("h100-qwen3-14b/sweep.csv");
  // Rows 1, 3, 5, 7 are 2, 4, 6 and 8 requests/s.
  const Calibration made = FitOf({RowsOf(sweep, {1, 3})}, RowsOf(sweep, {5, 7, 9}));
  EXPECT_LT(Worst(made, Figure::kTpot, true), 4);
  EXPECT_LT(Worst(made, Figure::kE2e, true), 4);
}

// The card's clock falls under load, which no single request and no run at a low rate shows
// (docs/how-to/calibrate.md): with a run at half of the highest rate the ones around it are right.
TEST_F(Measured_, A100_IsRightUpToWhatWasSeen) {
  const std::string folder = "a100-pcie-llama-3.1-8b/";
  const std::string sweep = Text(folder + "serving_sweep.csv");
  const std::string prompts = Text(folder + "prefill_ttft_vs_prompt.csv");
  const std::string steps = Text(folder + "decode_itl_vs_batch_and_context.csv");
  const Calibration low = FitOf({prompts, steps, RowsOf(sweep, {1})}, RowsOf(sweep, {2}));
  EXPECT_LT(Worst(low, Figure::kTtft, false), 2);
  EXPECT_LT(Worst(low, Figure::kTpot, true), 6.5);
  const Calibration both = FitOf({prompts, steps, RowsOf(sweep, {1, 3})}, RowsOf(sweep, {2, 4}));
  EXPECT_LT(Worst(both, Figure::kTpot, true), 6);
  EXPECT_LT(Worst(both, Figure::kE2e, true), 6);
}

}  // namespace
}  // namespace servecast::calibrate_files_test
