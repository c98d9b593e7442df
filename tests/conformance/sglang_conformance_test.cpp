// Engine and reference against what SGLang's real scheduler did, step by step. The data is outside
// the project: SERVECAST_SGLANG_GOLDEN, or ../shared/reference/sglang-golden beside it.
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "gtest/gtest.h"
#include "testing/data_files.h"
#include "testing/engine_run.h"
#include "testing/sglang_golden.h"
#include "testing/sglang_reference.h"

namespace servecast::testing::sglang_conformance_test {
namespace {

std::string GoldenFolder() {
  return DataFolder("SERVECAST_SGLANG_GOLDEN", "reference/sglang-golden");
}

class SglangConformance : public ::testing::Test {
 protected:
  void SetUp() override {
    std::error_code error;
    if (!std::filesystem::exists(GoldenFolder() + "/manifest.json", error)) {
      GTEST_SKIP() << "skipped: no data";
    }
    Result<std::vector<SglangCase>> loaded = LoadSglangCases(GoldenFolder());
    ASSERT_TRUE(loaded.ok()) << loaded.issues()[0].path << ": " << loaded.issues()[0].message;
    cases_ = std::move(loaded.value());
    ASSERT_FALSE(cases_.empty());
  }

  static SglangOutput Reference(const SglangCase& golden) {
    const SglangGoldenLatency latency;
    return RunSglangReference({golden.requests, golden.max_new, golden.settings, latency});
  }

  std::vector<SglangCase> cases_;
};

TEST_F(SglangConformance, EveryCase_ReferenceTakesSglangsSteps) {
  for (const SglangCase& golden : cases_) {
    const SglangOutput output = Reference(golden);
    EXPECT_EQ(FirstDifference(golden, output.steps).value_or(""), "") << golden.name;
    EXPECT_EQ(FirstDifference(golden, output.results).value_or(""), "") << golden.name;
    EXPECT_FALSE(output.would_lose > 0 || output.out_of_memory) << golden.name;
  }
}

TEST_F(SglangConformance, EveryCase_EngineTakesSglangsSteps) {
  for (const SglangCase& golden : cases_) {
    const Result<EngineRun> run =
        RunEngine(EngineCaseOf(golden), std::make_unique<SglangGoldenLatency>(), {});
    ASSERT_TRUE(run.ok()) << golden.name << ": " << run.issues()[0].message;
    EXPECT_EQ(FirstDifference(golden, StepsOf(golden, run.value().steps)).value_or(""), "")
        << golden.name;
    const RequestResults results = ResultsOf(run.value().report, golden.requests);
    EXPECT_EQ(FirstDifference(golden, results).value_or(""), "") << golden.name;
  }
}

// A comparer that sees nothing passes everything: change one thing of a step at a time.
TEST_F(SglangConformance, OneThingOfAStepChanged_IsNamed) {
  const SglangCase& golden = cases_.front();
  const std::vector<SglangStep> steps = Reference(golden).steps;
  ASSERT_GT(steps.size(), 11u);
  const auto named = [&](const char* column, auto change) {
    std::vector<SglangStep> changed = steps;
    change(changed[10]);
    const std::string difference = FirstDifference(golden, changed).value_or("no difference");
    EXPECT_NE(difference.find(std::string("step 10: ") + column), std::string::npos)
        << column << ": " << difference;
  };
  named("sched_s", [](SglangStep& s) { s.scheduled += 1100; });
  named("start_s", [](SglangStep& s) { s.start += 1100; });
  named("end_s", [](SglangStep& s) { s.end += 1100; });
  named("mode", [](SglangStep& s) { s.mode = "mixed"; });
  named("members", [](SglangStep& s) { s.members[0].tokens += 1; });
  named("members", [](SglangStep& s) { s.members[0].kind = 'c'; });
  named("retracted", [](SglangStep& s) { s.retracted.push_back(0); });
  named("preempted", [](SglangStep& s) { s.preempted.push_back(0); });
  named("finished", [](SglangStep& s) { s.finished.push_back(0); });
  named("chunked", [](SglangStep& s) { s.chunked = 0; });
  named("new_token_ratio", [](SglangStep& s) { s.new_token_ratio += 1e-15; });
  named("available_after_schedule", [](SglangStep& s) { s.available_after_schedule -= 1; });
  named("evictable_after_schedule", [](SglangStep& s) { s.evictable_after_schedule -= 1; });
  named("running_after_schedule", [](SglangStep& s) { s.running_after_schedule += 1; });
  named("waiting_after_schedule", [](SglangStep& s) { s.waiting_after_schedule += 1; });
  named("batch_is_full", [](SglangStep& s) { s.batch_is_full = !s.batch_is_full; });
  named("available_after_step", [](SglangStep& s) { s.available_after_step -= 1; });
  named("evictable_after_step", [](SglangStep& s) { s.evictable_after_step -= 1; });
  std::vector<SglangStep> fewer(steps.begin(), steps.end() - 1);
  EXPECT_NE(FirstDifference(golden, fewer).value_or("").find("all steps"), std::string::npos);
}

TEST(SglangGoldenReader, MissingFolder_IsAnIssue) {
  EXPECT_FALSE(LoadSglangCases("/nowhere/at/all").ok());
}

}  // namespace
}  // namespace servecast::testing::sglang_conformance_test
