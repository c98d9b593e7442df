// KV memory of layers of all kinds against what the real vLLM planned: groups, bytes of a block,
// blocks, and the capacity that it logs. The data is outside the project:
// SERVECAST_VLLM_HYBRID_GOLDEN, or ../shared/reference/vllm-hybrid-golden beside it.
#include "gtest/gtest.h"
#include "testing/data_files.h"
#include "testing/vllm_hybrid_plan.h"

namespace servecast::testing {
namespace {

TEST(VllmMemoryConformance, EveryConfiguration_IsPlannedAsByVllm) {
  const auto compared =
      ComparePlans(DataFolder("SERVECAST_VLLM_HYBRID_GOLDEN", "reference/vllm-hybrid-golden"));
  if (!compared) GTEST_SKIP() << "skipped: no data";
  EXPECT_FALSE(compared->empty());
  for (const PlanComparison& each : *compared) EXPECT_EQ(each.difference, "") << each.name;
}

}  // namespace
}  // namespace servecast::testing
