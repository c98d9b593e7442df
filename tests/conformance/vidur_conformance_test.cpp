// Vidur's schedulers, routers, stages and memory plans against Vidur's own recorded runs. The data
// is outside the project: SERVECAST_VIDUR_GOLDEN, or ../shared/reference/vidur-golden beside it.
#include <filesystem>
#include <string>
#include <system_error>

#include "gtest/gtest.h"
#include "testing/data_files.h"
#include "testing/vidur_golden.h"

namespace servecast::testing {
namespace {

class VidurConformance : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = DataFolder("SERVECAST_VIDUR_GOLDEN", "reference/vidur-golden");
    std::error_code error;
    if (!std::filesystem::is_directory(folder_, error)) GTEST_SKIP() << "skipped: no data";
    loaded_ = LoadVidurCases(folder_);
    for (const Issue& issue : loaded_.issues) ADD_FAILURE() << issue.path << ": " << issue.message;
    ASSERT_FALSE(loaded_.cases.empty());
  }
  std::string folder_;
  VidurCases loaded_;
};

TEST_F(VidurConformance, EveryCase_FormsVidursBatches) {
  for (const VidurCase& golden : loaded_.cases) {
    EXPECT_EQ(FirstDifference(golden).value_or(""), "") << golden.name;
  }
}

TEST_F(VidurConformance, Tables_AreVidurs) {
  std::error_code error;
  std::size_t rows = 0;
  if (std::filesystem::exists(folder_ + "/memory_planner.csv", error)) {
    EXPECT_EQ(PlannerDifference(folder_ + "/memory_planner.csv", &rows), "");
    EXPECT_GT(rows, 0u);
  }
  if (std::filesystem::exists(folder_ + "/zipf_map.csv", error)) {
    EXPECT_EQ(ZipfDifference(folder_ + "/zipf_map.csv", &rows), "");
    EXPECT_GT(rows, 0u);
  }
}

// A comparer that sees nothing passes everything.
TEST_F(VidurConformance, OneThingChanged_IsNamed) {
  const VidurCase& golden = loaded_.cases.front();
  const auto changed = [&](auto change) {
    VidurCase other = golden;
    change(other);
    return FirstDifference(other).value_or("no difference");
  };
  const std::size_t last = golden.batches.size() - 1;
  EXPECT_EQ(changed([&](VidurCase& c) { c.batches[last].time += 3e-6; }).rfind("batch", 0), 0u);
  EXPECT_EQ(changed([&](VidurCase& c) { ++c.batches[last].used_blocks; }).rfind("batch", 0), 0u);
  EXPECT_EQ(changed([&](VidurCase& c) { ++c.batches[last].members[0].second; }).rfind("batch", 0),
            0u);
  EXPECT_EQ(changed([&](VidurCase& c) { c.batches.pop_back(); }).rfind("more than", 0), 0u);
  EXPECT_NE(changed([&](VidurCase& c) { c.batches.push_back(c.batches[0]); }).find("batches"),
            std::string::npos);
  EXPECT_EQ(changed([&](VidurCase& c) { c.requests[0].completed += 3e-6; }).rfind("request", 0),
            0u);
  EXPECT_NE(changed([&](VidurCase& c) { ++c.restarts; }).find("restarts"), std::string::npos);
}

TEST(VidurGoldenReader, MissingFolder_IsAnIssue) {
  EXPECT_FALSE(LoadVidurCases("/nowhere/at/all").issues.empty());
}

}  // namespace
}  // namespace servecast::testing
