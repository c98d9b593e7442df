// Prefill and decode on different replicas, against the naive reference, step by step and to the
// nanosecond; and laws that need no reference.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "core/documents.h"
#include "gtest/gtest.h"
#include "serving/kv_link.h"
#include "testing/pd_cases.h"

namespace servecast::testing {
namespace {

std::int64_t Cases(std::int64_t fallback) {
  const char* cases = std::getenv("SERVECAST_CASES");
  return cases == nullptr ? fallback : std::atoll(cases);
}

TEST(DifferentialDisaggregated, RandomClusters_AgreeWithTheReference) {
  PdCoverage all;
  for (std::int64_t seed = 1; seed <= Cases(1500); ++seed) {
    const std::optional<PdCase> pd_case = MakePdCase(static_cast<std::uint64_t>(seed));
    if (!pd_case) continue;
    const PdOutput reference = RunPdReference(pd_case->Input());
    const std::int64_t slice = seed % 3 == 0 ? 1 : INT64_MAX;
    const std::optional<std::string> mismatch = FirstPdMismatch(*pd_case, reference, slice);
    ASSERT_FALSE(mismatch.has_value()) << *mismatch;
    const PdCoverage& c = reference.coverage;
    for (const auto member :
         {&PdCoverage::transfers, &PdCoverage::shared_transfers, &PdCoverage::empty_transfers,
          &PdCoverage::local_blocks, &PdCoverage::waited_for_blocks, &PdCoverage::waited_for_a_seat,
          &PdCoverage::slept, &PdCoverage::lost_tokens, &PdCoverage::decode_preemptions,
          &PdCoverage::served_whole, &PdCoverage::gave_up_queued, &PdCoverage::gave_up_under_way,
          &PdCoverage::gave_up_arrived, &PdCoverage::prefill_waited_for_transfers}) {
      all.*member += c.*member;
    }
  }
  // Not hollow.
  EXPECT_GT(all.transfers, 2000);
  EXPECT_GT(all.shared_transfers, 500);
  EXPECT_GT(all.empty_transfers, 5);
  EXPECT_GT(all.local_blocks, 200);
  EXPECT_GT(all.waited_for_blocks, 200);
  EXPECT_GT(all.waited_for_a_seat, 50);
  EXPECT_GT(all.slept, 200);
  EXPECT_GT(all.lost_tokens, 0);
  EXPECT_GT(all.decode_preemptions, 100);
  EXPECT_GT(all.served_whole, 500);
  EXPECT_GT(all.gave_up_queued, 5);
  EXPECT_GT(all.gave_up_under_way, 5);
  EXPECT_GT(all.gave_up_arrived, 0);
  EXPECT_GT(all.prefill_waited_for_transfers, 50);
}

}  // namespace
}  // namespace servecast::testing
