// Engine = reference on random scenarios, to the nanosecond, whatever the slices. SERVECAST_CASES
// sets how many; SERVECAST_SEED, the first one's seed.
#include "testing/differential.h"

#include <cstdio>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "serving/policy.h"
#include "testing/asked.h"
#include "testing/random_drafts.h"

namespace servecast::testing::differential_test {
namespace {

constexpr std::int64_t kCases = 1000, kRetryCases = 300;

TEST(Differential, RandomScenarios_EqualsTheReference) {
  const std::int64_t cases = Asked("SERVECAST_CASES", kCases);
  CasesCoverage seen;
  const std::optional<std::string> mismatch =
      RunCases(static_cast<std::uint64_t>(Asked("SERVECAST_SEED", 1)), cases, &seen);
  ASSERT_FALSE(mismatch) << *mismatch;

  const std::pair<const char*, std::int64_t> contents[] = {
      {"steps", seen.steps},
      {"preemptions", seen.preemptions},
      {"resumes", seen.rules.resumes},
      {"preemptions of the request that asked", seen.rules.self_preemptions},
      {"preemptions in prefill", seen.rules.prefill_preemptions},
      {"refused by the watermark", seen.rules.refused_by_watermark},
      {"refused by the full prompt", seen.rules.refused_by_full_prompt},
      {"refused as prefill is not chunked", seen.rules.refused_unchunked},
      {"enqueued on a step's end", seen.rules.enqueued_on_step_end},
      {"overtaken before the queue", seen.rules.reordered},
      {"waits for the front end", seen.rules.waits_for_front_end},
      {"dropped", seen.dropped},
      {"length-capped", seen.length_capped},
      {"unfinished at a horizon", seen.unfinished},
      {"victims that were in the step", seen.rules.unscheduled_victims},
      {"calls that only preempted", seen.rules.empty_calls},
      {"refused by unused hits", seen.rules.refused_by_unused_hits},
      {"blocks hit", seen.hit_blocks},
      {"of them held by others", seen.rules.hits_on_held},
      {"of them held by nobody", seen.rules.hits_on_unused},
      {"of them computed by the same step", seen.rules.same_call_hits},
      {"prompts all cached", seen.rules.full_hits},
      {"blocks cached twice", seen.rules.duplicates},
      {"blocks evicted", seen.evicted_blocks},
      {"tokens hit by resumed requests", seen.resumed_hit_tokens},
      {"passed over, the last token in flight", seen.rules.last_in_flight},
      {"blocks completed by a token in flight", seen.rules.late_registrations},
      {"tokens in flight of a victim", seen.rules.stale_tokens},
      {"later turns", seen.rules.turns},
      {"timed out running", seen.rules.timed_out_running},
      {"timed out queued", seen.rules.timed_out_queued},
      {"timed out in flight", seen.rules.timed_out_in_flight},
      {"timed out in their last step", seen.rules.timed_out_in_the_last_step},
      {"timed out before the queue", seen.rules.timed_out_on_the_way},
      {"refused by the reserve", seen.rules.refused_by_reserve},
      {"collections for a running request", seen.rules.gc_for_running},
      {"collections for an admission", seen.rules.gc_for_admission},
      {"preemptions after a collection", seen.rules.preempted_after_gc},
      {"steps with prefills of several buckets", seen.rules.steps_of_many_buckets},
      {"blocks offloaded", seen.offloaded_blocks},
      {"overwritten below the threshold", seen.rules.not_offloaded},
      {"offloaded again", seen.rules.offloaded_again},
      {"lost by the last tier", seen.rules.lost_by_tiers},
      {"blocks hit in tiers", seen.tier_hit_blocks},
      {"blocks loaded from disk", seen.rules.disk_loads},
      {"loads from both tiers", seen.rules.hits_of_both_tiers},
      {"loads behind a hit of the GPU", seen.rules.behind_gpu_hits},
      {"blocks loaded soon after", seen.thrashed_blocks},
      {"arrivals whose delay depends on the load", seen.rules.arrivals_under_load},
      {"arrivals whose delay depends on the cache", seen.rules.arrivals_at_a_cache},
      {"started by a client that was free", seen.rules.loop_starts},
      {"a free client waited until a request was due", seen.rules.loop_dues},
      {"of them dropped", seen.rules.loop_drops},
      {"time-outs that freed a client", seen.rules.loop_timeouts},
      {"steps that prefills made longer for decodes", seen.rules.interfered},
      {"steps that a running request sat out", seen.rules.sat_out},
      {"steps that overlap in a pipeline", seen.rules.overlapping},
      {"waits for a stage", seen.rules.waits_for_stage},
      {"passed over, a token in flight", seen.rules.waits_for_token},
      {"prefills that go on in flight", seen.rules.chunks_in_flight},
      {"victims in flight in a pipeline", seen.rules.victims_in_flight},
      {"of them passed over in the queue", seen.rules.victims_passed},
      {"of them timed out with a token in flight", seen.rules.victims_timed_out},
  };
  std::string line = std::to_string(seen.cases) + " cases";
  for (const auto& [what, count] : contents) line += ", " + std::to_string(count) + " " + what;
  std::printf("%s\n", line.c_str());
  if (cases < kCases) return;
  // A test whose cases contain nothing proves nothing.
  for (const auto& [what, count] : contents) EXPECT_GT(count, 0) << what;
}

// The same with drafts, or with seats for adapters.
TEST(Differential, RandomDrafts_EqualTheReference) {
  const std::int64_t cases = Asked("SERVECAST_CASES", kCases);
  CasesCoverage seen;
  const std::optional<std::string> mismatch = RunCases(
      static_cast<std::uint64_t>(Asked("SERVECAST_SEED", 1)), cases, &seen, MakeRandomDraftCase);
  ASSERT_FALSE(mismatch) << *mismatch;
  const std::pair<const char*, std::int64_t> contents[] = {
      {"members with drafts", seen.rules.verified},
      {"of them with fewer than waited", seen.rules.cut_drafts},
      {"drafts lost by a preemption", seen.rules.lost_drafts},
      {"drafts kept as the budget was spent", seen.rules.kept_drafts},
      {"padded admissions", seen.rules.padded},
      {"admissions that wait for room to be padded", seen.rules.padding_waits},
      {"last hit blocks dropped", seen.rules.dropped_hits},
      {"accepted tokens beyond an end", seen.rules.cut_outputs},
      {"members that had ended", seen.rules.unneeded},
      {"victims that ended in the queue", seen.rules.ended_in_queue},
      {"refused by the lookahead", seen.rules.refused_by_lookahead},
      {"without a seat for their adapter", seen.rules.adapters_without_seat},
      {"blocks hit in tiers", seen.tier_hit_blocks},
      {"refused by the reserve", seen.rules.refused_by_reserve},
      {"collections for a running request", seen.rules.gc_for_running},
      {"collections for an admission", seen.rules.gc_for_admission},
      {"rejected as too many", seen.rules.rejected_by_requests},
      {"rejected as too many tokens wait", seen.rules.rejected_by_tokens},
      {"preemptions", seen.preemptions},
      {"victims that were in the step", seen.rules.unscheduled_victims},
      {"calls that only preempted", seen.rules.empty_calls},
      {"blocks completed by a token in flight", seen.rules.late_registrations},
      {"timed out in flight", seen.rules.timed_out_in_flight},
      {"length-capped", seen.length_capped},
      {"steps that a running request sat out", seen.rules.sat_out},
  };
  std::string line = std::to_string(seen.cases) + " cases";
  for (const auto& [what, count] : contents) line += ", " + std::to_string(count) + " " + what;
  std::printf("%s\n", line.c_str());
  if (cases < kCases) return;
  for (const auto& [what, count] : contents) EXPECT_GT(count, 0) << what;
}

// The same with images in prompts.
TEST(Differential, RandomImages_EqualTheReference) {
  const std::int64_t cases = Asked("SERVECAST_CASES", kCases);
  CasesCoverage seen;
  const std::optional<std::string> mismatch = RunCases(
      static_cast<std::uint64_t>(Asked("SERVECAST_SEED", 1)), cases, &seen, MakeRandomImageCase);
  ASSERT_FALSE(mismatch) << *mismatch;
  const std::pair<const char*, std::int64_t> contents[] = {
      {"images encoded", seen.rules.encoded_images},
      {"images found encoded", seen.rules.image_hits},
      {"images that were overwritten", seen.rules.evicted_images},
      {"chunks cut before an image", seen.rules.cut_before_images},
      {"running requests that wait for the encoder", seen.rules.waits_for_encoder},
      {"admissions that wait for the encoder", seen.rules.refused_by_encoder},
      {"images of victims that were in the step", seen.rules.unencoded_victims},
      {"preemptions", seen.preemptions},
      {"preemptions in prefill", seen.rules.prefill_preemptions},
      {"blocks hit", seen.hit_blocks},
      {"later turns", seen.rules.turns},
      {"timed out running", seen.rules.timed_out_running},
      {"blocks hit in tiers", seen.tier_hit_blocks},
      {"collections for an admission", seen.rules.gc_for_admission},
  };
  std::string line = std::to_string(seen.cases) + " cases";
  for (const auto& [what, count] : contents) line += ", " + std::to_string(count) + " " + what;
  std::printf("%s\n", line.c_str());
  if (cases < kCases) return;
  for (const auto& [what, count] : contents) EXPECT_GT(count, 0) << what;
}

// The same with clients that try again, some of whom are turned away.
TEST(Differential, RandomRetries_EqualTheReference) {
  const std::int64_t cases = Asked("SERVECAST_CASES", kRetryCases);
  CasesCoverage seen;
  const std::optional<std::string> mismatch = RunCases(
      static_cast<std::uint64_t>(Asked("SERVECAST_SEED", 1)), cases, &seen, MakeRandomRetryCase);
  ASSERT_FALSE(mismatch) << *mismatch;
  const std::pair<const char*, std::int64_t> contents[] = {
      {"retries of attempts that timed out", seen.rules.retries},
      {"of attempts that were turned away", seen.rules.retries_rejected},
      {"last attempts that failed", seen.rules.last_attempts},
      {"retries beyond a budget", seen.rules.over_budget},
      {"blocks hit", seen.hit_blocks},
      {"started by a client that was free", seen.rules.loop_starts},
      {"a free client waited until a request was due", seen.rules.loop_dues},
      {"later turns", seen.rules.turns},
      {"waits for the front end", seen.rules.waits_for_front_end},
      {"timed out before the queue", seen.rules.timed_out_on_the_way},
      {"timed out in flight", seen.rules.timed_out_in_flight},
      {"unfinished at a horizon", seen.unfinished},
  };
  std::string line = std::to_string(seen.cases) + " cases";
  for (const auto& [what, count] : contents) line += ", " + std::to_string(count) + " " + what;
  std::printf("%s\n", line.c_str());
  if (cases < kRetryCases) return;
  for (const auto& [what, count] : contents) EXPECT_GT(count, 0) << what;
}

// The same of models in which some layers have a window.
TEST(Differential, RandomWindows_EqualTheReference) {
  const std::int64_t cases = Asked("SERVECAST_CASES", kCases);
  CasesCoverage seen;
  const std::optional<std::string> mismatch = RunCases(
      static_cast<std::uint64_t>(Asked("SERVECAST_SEED", 1)), cases, &seen, MakeRandomWindowCase);
  ASSERT_FALSE(mismatch) << *mismatch;
  const std::pair<const char*, std::int64_t> contents[] = {
      {"blocks of windows at admissions", seen.rules.window_blocks},
      {"blocks of decodes whose windows are full", seen.rules.full_windows},
      {"refused by windows", seen.rules.refused_by_windows},
      {"refused by the full prompt", seen.rules.refused_by_full_prompt},
      {"preemptions", seen.preemptions},
      {"blocks hit", seen.hit_blocks},
      {"blocks evicted", seen.evicted_blocks},
      {"members with drafts", seen.rules.verified},
      {"steps that overlap in a pipeline", seen.rules.overlapping},
      {"timed out running", seen.rules.timed_out_running},
      {"length-capped", seen.length_capped},
  };
  std::string line = std::to_string(seen.cases) + " cases";
  for (const auto& [what, count] : contents) line += ", " + std::to_string(count) + " " + what;
  std::printf("%s\n", line.c_str());
  if (cases < kCases) return;
  for (const auto& [what, count] : contents) EXPECT_GT(count, 0) << what;
}

TEST(RandomCase, SameSeed_IsTheSameOnEveryPlatform) {
  // If the dice fell differently somewhere, a failure there could not be run again here. They
  // choose among what is registered: the number is that of so many orders and priorities.
  if (Orders().size() != 6 || Priorities().size() != 4) {
    GTEST_SKIP() << "to be recorded anew with what is registered now";
  }
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    for (const char c : Describe(MakeRandomCase(seed))) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    }
  }
  EXPECT_EQ(hash, 6242397133091205453u);
}

}  // namespace
}  // namespace servecast::testing::differential_test
