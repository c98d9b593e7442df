// The endpoint picker's rules against the slow reference, on random profiles of all plugins.
#include <map>
#include <string>

#include "gtest/gtest.h"
#include "serving/cluster/epp/plugin.h"
#include "testing/asked.h"
#include "testing/epp_differential.h"
#include "testing/epp_flow_cases.h"

namespace servecast::testing::epp_differential_test {
namespace {

TEST(EppDifferential, RandomProfilesAndRequests_DecideAsTheReference) {
  EppComparison all;
  const auto cases = static_cast<std::uint64_t>(Asked("SERVECAST_CASES", 1000));
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    const EppComparison one = CompareEpp(seed);
    ASSERT_EQ(one.mismatch, "") << "seed " << seed;
    for (const auto& [type, runs] : one.plugins) all.plugins[type] += runs;
    all.failed += one.failed;
    all.disaggregated += one.disaggregated;
    all.matched_blocks += one.matched_blocks;
    all.ties += one.ties;
  }
  if (cases < 1000) return;
  EXPECT_GT(all.failed, 300);
  EXPECT_GT(all.disaggregated, 2000);
  EXPECT_GT(all.matched_blocks, 8000);
  EXPECT_GT(all.ties, 5000);
  for (const epp::PluginEntry& entry : epp::PluginTypes()) {
    const bool always =
        entry.picks || entry.type == "single-profile-handler" || entry.type == "prefill-filter";
    // Producers say what the index and the counters are made with, and decide nothing; policies are
    // of flow control.
    if (always || entry.type.ends_with("-producer") || entry.type.ends_with("-policy"))
      continue;  // referred to by type, so not counted
    EXPECT_GT(all.plugins[std::string(entry.type)], 1000) << entry.type;
  }
}

TEST(EppFlow, RandomSequences_GoAsTheReference) {
  FlowComparison all;
  const auto cases = static_cast<std::uint64_t>(Asked("SERVECAST_CASES", 300));
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    const FlowComparison one = CompareFlow(seed);
    ASSERT_EQ(one.mismatch, "") << "seed " << seed;
    all.late += one.late;
    all.rejected += one.rejected;
    all.expired += one.expired;
    all.cancelled += one.cancelled;
    all.skipped += one.skipped;
  }
  if (cases < 300) return;
  EXPECT_GT(all.late, 20'000);
  EXPECT_GT(all.rejected, 40'000);
  EXPECT_GT(all.expired, 4'000);
  EXPECT_GT(all.cancelled, 1'000);
  EXPECT_GT(all.skipped, 100'000);
}

}  // namespace
}  // namespace servecast::testing::epp_differential_test
