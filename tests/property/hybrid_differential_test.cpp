// Models whose layers keep KV in groups, with images and without: random cases are the same to the
// engine and to the replay of vLLM's rules (testing/hybrid_cases.h).
#include <cstdio>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "testing/asked.h"
#include "testing/hybrid_cases.h"

namespace servecast::testing {
namespace {

constexpr std::int64_t kHybridCases = 400;

TEST(HybridDifferential, RandomCases_EqualTheReplay) {
  const std::int64_t cases = Asked("SERVECAST_CASES", kHybridCases),
                     first = Asked("SERVECAST_SEED", 1);
  HybridCoverage seen;
  for (std::int64_t i = 0; i < cases; ++i) {
    const auto mismatch = HybridDifference(static_cast<std::uint64_t>(first + i), &seen);
    ASSERT_FALSE(mismatch) << *mismatch;
  }
  const std::pair<const char*, std::int64_t> contents[] = {
      {"steps", seen.steps},
      {"preemptions", seen.preemptions},
      {"blocks that lost content", seen.evicted},
      {"tokens hit", seen.hit_tokens},
      {"images encoded", seen.encoded_images},
      {"images found encoded", seen.image_hits},
      {"images that were overwritten", seen.images_evicted},
      {"chunks cut before an image", seen.cut_before_images},
      {"running requests that wait for the encoder", seen.waits_for_encoder},
      {"admissions that wait for the encoder", seen.refused_by_encoder},
      {"images of victims that were in the step", seen.unencoded_victims},
      {"cases with windows", seen.windows},
      {"cases with chunks", seen.chunks},
      {"cases with states", seen.states},
      {"cases that hang", seen.hangs},
  };
  std::string line = std::to_string(seen.cases) + " cases";
  for (const auto& [what, count] : contents) line += ", " + std::to_string(count) + " " + what;
  std::printf("%s\n", line.c_str());
  if (cases < kHybridCases) return;
  for (const auto& [what, count] : contents) EXPECT_GT(count, 0) << what;
}

}  // namespace
}  // namespace servecast::testing
