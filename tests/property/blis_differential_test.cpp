// Engine = reference by BLIS's rules on random scenarios, to the microsecond. SERVECAST_CASES sets
// how many; SERVECAST_SEED, the first one's seed.
#include "testing/blis_differential.h"

#include <cstdio>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "testing/asked.h"

namespace servecast::testing {
namespace {

constexpr std::int64_t kCases = 1000;

TEST(BlisDifferential, RandomScenarios_EqualsTheReference) {
  const std::int64_t cases = Asked("SERVECAST_CASES", kCases);
  BlisCasesCoverage seen;
  const std::optional<std::string> mismatch =
      RunBlisCases(static_cast<std::uint64_t>(Asked("SERVECAST_SEED", 1)), cases, &seen);
  ASSERT_FALSE(mismatch) << *mismatch;

  const BlisCoverage& rules = seen.rules;
  const BlisReferenceKv::Counts &then = seen.host_february, &now = seen.host_today;
  const std::pair<const char*, std::int64_t> contents[] = {
      {"of February", seen.february},
      {"of today", seen.today},
      {"never end", seen.endless},
      {"steps", seen.steps},
      {"preemptions", seen.preemptions},
      {"of who asked for the block", rules.preemptions_of_who_asked},
      {"in prefill", rules.preemptions_of_prefills},
      {"by priority, not of the tail", rules.preemptions_not_of_the_tail},
      {"victims that got tokens in that step", rules.victims_given_tokens},
      {"completed after a preemption", seen.resumed_completions},
      {"steps of a second chain", rules.parallel_chains},
      {"steps without a batch", rules.empty_steps},
      {"steps that overlap", rules.overlaps},
      {"steps out of budget", rules.out_of_budget},
      {"blocks hit", seen.kv.hits},
      {"prompts all cached", rules.all_cached},
      {"allocations undone", seen.kv.rollbacks},
      {"refused for free blocks hit", seen.kv.refused_by_hits},
      {"contents forgotten", seen.kv.lost_hashes},
      {"last tokens without a block", rules.final_slot_refused},
      {"length-capped", seen.length_capped},
      {"dropped as too long", rules.dropped_too_long},
      {"dropped as too big", rules.dropped_too_big},
      {"timed out running", rules.timed_out_running},
      {"timed out queued", rules.timed_out_queued},
      {"timed out before the queue", rules.timed_out_before},
      {"later turns", rules.turns},
      {"unfinished at a horizon", seen.unfinished},
      {"February: blocks offloaded", then.offloads},
      {"reloaded", then.reloads},
      {"for who runs", then.reloads_by_running},
      {"within a millisecond", then.thrashes},
      {"overwritten by the same reload", then.reloads_undone},
      {"prefixes cut by a reload", then.prefixes_cut},
      {"allocations made possible", then.rescued},
      {"failures that the host cannot help", then.host_misses},
      {"offloads without room", then.host_full},
      {"of a block offloaded before", then.replaced},
      {"today: blocks mirrored", now.offloads},
      {"reloaded", now.reloads},
      {"for who runs", now.reloads_by_running},
      {"made way in the host", now.thrashes},
      {"found by who came", now.host_hits},
      {"prefixes cut by a reload", now.prefixes_cut},
      {"prefixes beyond the step's tokens", now.reloads_beyond_need},
      {"reloaded though present", now.reloads_of_present},
  };
  std::string line = std::to_string(seen.cases) + " cases";
  for (const auto& [what, count] : contents) line += ", " + std::to_string(count) + " " + what;
  std::printf("%s\n", line.c_str());
  if (cases < kCases) return;
  // A test whose cases contain nothing proves nothing.
  for (const auto& [what, count] : contents) EXPECT_GT(count, 0) << what;
}

// Each time February's host brings back what it has, the free blocks have other contents, so that
// whoever preempts itself may find room at last: the 233rd time in the first case.
TEST(BlisDifferential, PreemptionsThatEndLate_AreNotTakenForEndless) {
  for (const std::uint64_t seed : {779031u, 13201u, 770157u}) {
    const std::optional<std::string> mismatch = RunBlisCases(seed, 1, nullptr);
    EXPECT_FALSE(mismatch) << *mismatch;
  }
}

}  // namespace
}  // namespace servecast::testing
