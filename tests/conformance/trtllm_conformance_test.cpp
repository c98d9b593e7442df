// Engine and reference against what TensorRT-LLM's real scheduler did, step by step. The data is
// outside the project: SERVECAST_TRTLLM_GOLDEN, or ../shared/reference/trtllm-golden beside it.
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "gtest/gtest.h"
#include "testing/data_files.h"
#include "testing/trtllm_golden.h"
#include "testing/trtllm_reference.h"

namespace servecast::testing::trtllm_conformance_test {
namespace {

std::string GoldenFolder() {
  return DataFolder("SERVECAST_TRTLLM_GOLDEN", "reference/trtllm-golden");
}

class TrtllmConformance : public ::testing::Test {
 protected:
  void SetUp() override {
    std::error_code error;
    if (!std::filesystem::exists(GoldenFolder() + "/manifest.json", error)) {
      GTEST_SKIP() << "skipped: no data";
    }
    Result<std::vector<TrtllmCase>> loaded = LoadTrtllmCases(GoldenFolder());
    ASSERT_TRUE(loaded.ok()) << loaded.issues()[0].path << ": " << loaded.issues()[0].message;
    cases_ = std::move(loaded.value());
    ASSERT_FALSE(cases_.empty());
  }

  static TrtllmOutput Reference(const TrtllmCase& golden) {
    const TrtllmGoldenLatency latency;
    return RunTrtllmReference({golden.requests, golden.max_new, golden.settings, latency});
  }

  std::vector<TrtllmCase> cases_;
};

TEST_F(TrtllmConformance, EveryCase_ReferenceTakesItsSteps) {
  for (const TrtllmCase& golden : cases_) {
    const TrtllmOutput output = Reference(golden);
    EXPECT_EQ(FirstDifference(golden, output.steps).value_or(""), "") << golden.name;
    EXPECT_EQ(FirstDifference(golden, output.results).value_or(""), "") << golden.name;
    EXPECT_FALSE(output.would_stop) << golden.name;
  }
}

TEST_F(TrtllmConformance, EveryCase_EngineTakesItsSteps) {
  for (const TrtllmCase& golden : cases_) {
    if (!golden.OfEngine()) continue;
    EXPECT_EQ(FirstDifference(golden).value_or(""), "") << golden.name;
  }
}

// A comparer that sees nothing passes everything: change one thing of a step at a time.
TEST_F(TrtllmConformance, OneThingOfAStepChanged_IsNamed) {
  const TrtllmCase& golden = cases_.front();
  const std::vector<TrtllmStep> steps = Reference(golden).steps;
  ASSERT_GT(steps.size(), 11u);
  const auto named = [&](const char* column, auto change) {
    std::vector<TrtllmStep> changed = steps;
    change(changed[10]);
    const std::string difference = FirstDifference(golden, changed).value_or("no difference");
    EXPECT_NE(difference.find(std::string("row 10: ") + column), std::string::npos)
        << column << ": " << difference;
  };
  named("step", [](TrtllmStep& s) { ++s.step; });
  named("rank", [](TrtllmStep& s) { ++s.rank; });
  named("sched_s", [](TrtllmStep& s) { s.scheduled += 1100; });
  named("start_s", [](TrtllmStep& s) { s.start += 1100; });
  named("end_s", [](TrtllmStep& s) { s.end += 1100; });
  named("T", [](TrtllmStep& s) { ++s.T; });
  named("K", [](TrtllmStep& s) { ++s.K; });
  named("Q", [](TrtllmStep& s) { s.Q += 0.5; });
  named("context", [](TrtllmStep& s) { s.context.push_back({}); });
  named("generation", [](TrtllmStep& s) { s.generation.push_back(0); });
  named("draft", [](TrtllmStep& s) { s.draft.push_back(1); });
  named("paused", [](TrtllmStep& s) { s.paused.push_back(0); });
  named("finished", [](TrtllmStep& s) { s.finished.push_back(0); });
  named("fitting", [](TrtllmStep& s) { ++s.fitting; });
  named("free_after_schedule", [](TrtllmStep& s) { --s.free_after_schedule; });
  named("free_after_step", [](TrtllmStep& s) { --s.free_after_step; });
  named("active_after_schedule", [](TrtllmStep& s) { ++s.active_after_schedule; });
  named("waiting_after_schedule", [](TrtllmStep& s) { ++s.waiting_after_schedule; });
  named("active_after_step", [](TrtllmStep& s) { ++s.active_after_step; });
  const std::vector<TrtllmStep> fewer(steps.begin(), steps.end() - 1);
  EXPECT_NE(FirstDifference(golden, fewer).value_or("").find("all rows"), std::string::npos);
}

TEST(TrtllmGoldenReader, MissingFolder_IsAnIssue) {
  EXPECT_FALSE(LoadTrtllmCases("/nowhere/at/all").ok());
}

}  // namespace
}  // namespace servecast::testing::trtllm_conformance_test
