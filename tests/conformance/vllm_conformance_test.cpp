// Engine and reference against what the real vLLM scheduler did, step by step. The data is outside
// the project: SERVECAST_VLLM_GOLDEN, or ../shared/reference/vllm-golden beside it; with drafts
// SERVECAST_VLLM_SPEC_GOLDEN, or ../shared/reference/vllm-spec-golden.
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "conformance/case_filter.h"
#include "gtest/gtest.h"
#include "testing/data_files.h"
#include "testing/engine_run.h"
#include "testing/reference_sim.h"
#include "testing/vllm_golden.h"

namespace servecast::testing {
namespace {

class VllmConformance : public ::testing::Test {
 protected:
  virtual std::string Folder() const {
    return DataFolder("SERVECAST_VLLM_GOLDEN", "reference/vllm-golden");
  }

  virtual Result<std::vector<GoldenCase>> Load() const { return LoadGoldenCases(Folder()); }

  void SetUp() override {
    std::error_code error;
    if (!std::filesystem::exists(Folder() + "/manifest.json", error)) {
      GTEST_SKIP() << "skipped: no data";
    }
    Result<std::vector<GoldenCase>> loaded = Load();
    ASSERT_TRUE(loaded.ok()) << loaded.issues()[0].path << ": " << loaded.issues()[0].message;
    cases_ = std::move(loaded.value());
    ASSERT_FALSE(cases_.empty());
  }

  static ReferenceOutput Reference(const GoldenCase& golden) {
    const GoldenLatency latency;
    return RunReference(ReferenceInput{.requests = golden.requests,
                                       .engine = golden.engine,
                                       .scheduler = golden.scheduler,
                                       .pool_blocks = golden.PoolBlocks(),
                                       .model_max_len = golden.MaxModelLen(),
                                       .latency = latency,
                                       .horizon = {},
                                       .most_image_tokens = golden.most_image_tokens});
  }

  void CompareEngine() const {
    for (const GoldenCase& golden : cases_) {
      const Result<EngineRun> run =
          RunEngine(EngineCaseOf(golden), std::make_unique<GoldenLatency>(), {});
      ASSERT_TRUE(run.ok()) << golden.name << ": " << run.issues()[0].message;
      EXPECT_EQ(FirstDifference(golden, run.value().steps).value_or(""), "") << golden.name;
      const RequestResults results = ResultsOf(run.value().report, golden.requests);
      EXPECT_EQ(FirstDifference(golden, results).value_or(""), "") << golden.name;
    }
  }

  void CompareReference() const {
    for (const GoldenCase& golden : cases_) {
      const ReferenceOutput output = Reference(golden);
      EXPECT_EQ(FirstDifference(golden, output.steps).value_or(""), "") << golden.name;
      EXPECT_EQ(FirstDifference(golden, output.results).value_or(""), "") << golden.name;
    }
  }

  std::vector<GoldenCase> cases_;
};

TEST_F(VllmConformance, EveryCase_EngineTakesVllmsSteps) { CompareEngine(); }
TEST_F(VllmConformance, EveryCase_ReferenceTakesVllmsSteps) { CompareReference(); }

// The set with drafts.
class VllmSpecConformance : public VllmConformance {
 protected:
  std::string Folder() const override {
    return DataFolder("SERVECAST_VLLM_SPEC_GOLDEN", "reference/vllm-spec-golden");
  }
};

TEST_F(VllmSpecConformance, EveryCase_EngineTakesVllmsSteps) { CompareEngine(); }
TEST_F(VllmSpecConformance, EveryCase_ReferenceTakesVllmsSteps) { CompareReference(); }

// Runs with images, of a set of its own (SERVECAST_VLLM_HYBRID_GOLDEN).
class VllmEncoderConformance : public VllmConformance {
 protected:
  std::string Folder() const override {
    return DataFolder("SERVECAST_VLLM_HYBRID_GOLDEN", "reference/vllm-hybrid-golden");
  }
  Result<std::vector<GoldenCase>> Load() const override { return LoadEncoderCases(Folder()); }
};

TEST_F(VllmEncoderConformance, EveryCase_EngineTakesVllmsSteps) { CompareEngine(); }
TEST_F(VllmEncoderConformance, EveryCase_ReferenceTakesVllmsSteps) { CompareReference(); }

class VllmGroupedEncoderConformance : public VllmEncoderConformance {
 protected:
  Result<std::vector<GoldenCase>> Load() const override {
    return LoadGroupedEncoderCases(Folder());
  }
};

TEST_F(VllmGroupedEncoderConformance, EveryCase_EngineTakesVllmsSteps) { CompareEngine(); }

// A comparer that sees nothing passes everything: change one thing of a step at a time.
TEST_F(VllmConformance, OneThingOfAStepChanged_IsNamed) {
  const GoldenCase& golden = cases_.front();
  const std::vector<StepRecord> steps = Reference(golden).steps;
  ASSERT_GT(steps.size(), 11u);
  const auto named = [&](const char* column, auto change) {
    std::vector<StepRecord> changed = steps;
    change(changed[10]);
    const std::string difference = FirstDifference(golden, changed).value_or("no difference");
    EXPECT_NE(difference.find(std::string("step 10: ") + column), std::string::npos)
        << column << ": " << difference;
  };
  named("step", [](StepRecord& s) { s.index = 11; });
  named("scheduled", [](StepRecord& s) { s.members[0].tokens += 1; });
  named("scheduled", [](StepRecord& s) { s.members.push_back(s.members[0]); });
  named("kind", [](StepRecord& s) { s.members[0].kind = MemberKind::kResumed; });
  named("computed_before", [](StepRecord& s) { s.members[0].computed_before += 1; });
  named("sampled", [](StepRecord& s) { s.members[0].sampled = 1 - s.members[0].sampled; });
  named("preempted", [](StepRecord& s) { s.preempted.push_back(0); });
  named("finished", [](StepRecord& s) { s.finished.push_back(0); });
  named("free_after_schedule", [](StepRecord& s) { s.free_after_schedule -= 1; });
  named("free_after_step", [](StepRecord& s) { s.free_after_step -= 1; });
  named("running_after_schedule", [](StepRecord& s) { s.running_after_schedule += 1; });
  named("waiting_after_schedule", [](StepRecord& s) { s.waiting_after_schedule += 1; });
  named("running_after_step", [](StepRecord& s) { s.running_after_step += 1; });
  named("waiting_after_step", [](StepRecord& s) { s.waiting_after_step += 1; });
  named("sched_s", [](StepRecord& s) { s.scheduled += 1100; });
  named("start_s", [](StepRecord& s) { s.start += 1100; });
  named("end_s", [](StepRecord& s) { s.end += 1100; });

  std::vector<StepRecord> fewer(steps.begin(), steps.end() - 1);
  EXPECT_NE(FirstDifference(golden, fewer).value_or("").find("all steps"), std::string::npos);
}

TEST(GoldenReader, MissingFolder_IsAnIssue) {
  EXPECT_FALSE(LoadGoldenCases("/nowhere/at/all").ok());
}

TEST(GoldenReader, DecimalSeconds_RoundToNanosecondsExactly) {
  EXPECT_EQ(DecimalSecondsToNs("0.0139"), 13'900'000);
  EXPECT_EQ(DecimalSecondsToNs("7"), 7'000'000'000);
  EXPECT_EQ(DecimalSecondsToNs("5e-05"), 50'000);
  EXPECT_EQ(DecimalSecondsToNs("1.5e2"), 150'000'000'000);
  EXPECT_EQ(DecimalSecondsToNs("0.023987179999999997"), 23'987'180);
  EXPECT_EQ(DecimalSecondsToNs("0.0000000005"), 0);  // half to even
  EXPECT_EQ(DecimalSecondsToNs("0.0000000015"), 2);  // half to even
  EXPECT_EQ(DecimalSecondsToNs("0.00000000050001"), 1);
  EXPECT_EQ(DecimalSecondsToNs("1e-20"), 0);
  for (const char* text : {"", ".", "abc", "1.2.3", "1e", "--1", "1 ", "1e30", "nan"}) {
    EXPECT_FALSE(DecimalSecondsToNs(text)) << text;
  }
}

GoldenCase CaseWith(std::map<std::string, std::string> settings) {
  GoldenCase golden;
  golden.name = settings["name"];
  golden.settings = std::move(settings);
  return golden;
}

TEST(CaseFilter, Terms_SelectBySettings) {
  const std::vector<GoldenCase> cases = {
      CaseWith({{"name", "a"}, {"policy", "fcfs"}, {"async_scheduling", "false"}, {"blocks", "5"}}),
      CaseWith({{"name", "b"}, {"policy", "fcfs"}, {"async_scheduling", "true"}, {"blocks", "7"}}),
      CaseWith(
          {{"name", "c"}, {"policy", "priority"}, {"async_scheduling", "false"}, {"blocks", "7"}}),
  };
  const auto selected = [&](const std::vector<std::string>& terms) {
    const Result<CaseFilter> filter = CaseFilter::Parse(terms, cases);
    if (!filter.ok()) return std::string("issue");
    std::string names;
    for (const GoldenCase& golden : cases) {
      if (filter.value().Accepts(golden)) names += golden.name;
    }
    return names;
  };
  EXPECT_EQ(selected({}), "abc");
  EXPECT_EQ(selected({"policy=fcfs"}), "ab");
  EXPECT_EQ(selected({"policy=fcfs", "async_scheduling=false"}), "a");
  EXPECT_EQ(selected({"async"}), "b");
  EXPECT_EQ(selected({"no_async"}), "ac");
  EXPECT_EQ(selected({"async=off"}), "ac");
  EXPECT_EQ(selected({"blocks=7.0"}), "bc");
  EXPECT_EQ(selected({"blocks=5", "blocks=7"}), "abc");
  EXPECT_EQ(selected({"c"}), "c");
  EXPECT_EQ(selected({"priority"}), "c");
  EXPECT_EQ(selected({"name=b", "name=c"}), "bc");
  EXPECT_EQ(selected({"blocks=6"}), "");
  EXPECT_EQ(selected({"colour=red"}), "issue");
}

}  // namespace
}  // namespace servecast::testing
