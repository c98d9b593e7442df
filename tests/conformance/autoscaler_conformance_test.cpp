// Scalers against what real ones decided, tick by tick. The data is outside the project:
// SERVECAST_AUTOSCALER_GOLDEN, or ../shared/reference/autoscaler-golden beside it.
#include <optional>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "testing/autoscaler_golden.h"
#include "testing/data_files.h"

namespace servecast::testing {
namespace {

std::string Folder() {
  return DataFolder("SERVECAST_AUTOSCALER_GOLDEN", "reference/autoscaler-golden");
}

TEST(AutoscalerConformance, EveryRow_IsDecidedAsRecorded) {
  if (!ReadFile(Folder() + "/manifest.json")) GTEST_SKIP() << "skipped: no data";
  const ScalerCases all = CompareAutoscalers(Folder());
  EXPECT_TRUE(all.issues.empty()) << all.issues.front().path << all.issues.front().message;
  ASSERT_FALSE(all.cases.empty());
  for (const ScalerCase& one : all.cases) {
    EXPECT_EQ(one.difference.value_or(""), "") << one.name;
  }
}

TEST(AutoscalerGoldenReader, MissingFolder_IsAnIssue) {
  EXPECT_FALSE(CompareAutoscalers("/nowhere/at/all").issues.empty());
}

constexpr char kHpaCase[] = R"([{"id": "a", "tolerance_rule": "band", "tolerance": 0.1,
  "downscale_stabilization_s": 300, "cpu_initialization_period_s": 300,
  "initial_readiness_delay_s": 30, "minReplicas": 1, "maxReplicas": 9, "behavior": {},
  "metrics": [{"kind": "External", "target": "AverageValue", "value": 1000}]}])";
constexpr char kHpaHeader[] =
    "case,tick,t_s,spec,status,pods,metrics,proposals,wanted,stabilised,desired,limited,active\n";

std::string HpaDifference(const std::string& row) {
  const ScalerCases all = CompareHpa(kHpaCase, std::string(kHpaHeader) + row + "\n");
  return all.cases.size() == 1 ? all.cases[0].difference.value_or("") : "not one case";
}

// A comparer that sees nothing passes everything: change one cell at a time.
TEST(AutoscalerGoldenReader, OneCellChanged_IsNamed) {
  EXPECT_EQ(HpaDifference("a,0,0,2,2,1R 2R,6000,6,6,6,6,F:DesiredWithinRange,T:ValidMetricFound"),
            "");
  const std::pair<const char*, const char*> changed[] = {
      {"proposals", "a,0,0,2,2,1R 2R,6000,5,6,6,6,F:DesiredWithinRange,T:ValidMetricFound"},
      {"wanted", "a,0,0,2,2,1R 2R,6000,6,5,6,6,F:DesiredWithinRange,T:ValidMetricFound"},
      {"stabilised", "a,0,0,2,2,1R 2R,6000,6,6,5,6,F:DesiredWithinRange,T:ValidMetricFound"},
      {"desired", "a,0,0,2,2,1R 2R,6000,6,6,6,5,F:DesiredWithinRange,T:ValidMetricFound"},
      {"limited", "a,0,0,2,2,1R 2R,6000,6,6,6,6,T:ScaleUpLimit,T:ValidMetricFound"},
      {"active", "a,0,0,2,2,1R 2R,6000,6,6,6,6,F:DesiredWithinRange,F:ScalingDisabled"}};
  for (const auto& [column, row] : changed) {
    EXPECT_NE(HpaDifference(row).find(column), std::string::npos) << column;
  }
  EXPECT_NE(HpaDifference("a,0,0,2,2,1R 2R,many,6,6,6,6,F:DesiredWithinRange,T:ValidMetricFound"),
            "");
  EXPECT_NE(HpaDifference("a,0,0,2"), "");
}

}  // namespace
}  // namespace servecast::testing
