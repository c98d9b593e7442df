// The expected load of the busiest GPU against loads that are drawn.
#include "cost/expert_load.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"

namespace servecast {
namespace {

struct Spread {
  std::int64_t experts, active, group;
};
constexpr Spread kSpreads[] = {{8, 2, 2}, {16, 1, 4}, {64, 6, 8}, {128, 8, 4}, {256, 8, 16}};

// Means over layers of the most rows and of the most experts read on a GPU, every token choosing
// anew among all experts, none of them twice.
struct Drawn {
  double rows = 0, read = 0;
};
Drawn Draw(const Spread& s, std::int64_t tokens, std::int64_t layers) {
  Drawn mean;
  std::int64_t drawn = 0;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    std::vector<std::int64_t> chosen(static_cast<std::size_t>(s.experts));
    for (std::int64_t t = 0; t < tokens; ++t) {
      std::vector<std::size_t> left(chosen.size());
      for (std::size_t e = 0; e < left.size(); ++e) left[e] = e;
      for (std::int64_t k = 0; k < s.active; ++k) {
        const double u = Uniform(11, Stream::kArrival, drawn++);
        const auto at = static_cast<std::size_t>(u * static_cast<double>(left.size()));
        ++chosen[left[at]];
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
    std::int64_t rows = 0, read = 0;
    const std::int64_t held = s.experts / s.group;
    for (std::int64_t gpu = 0; gpu < s.group; ++gpu) {
      std::int64_t own_rows = 0, own_read = 0;
      for (std::int64_t e = gpu * held; e < (gpu + 1) * held; ++e) {
        own_rows += chosen[static_cast<std::size_t>(e)];
        own_read += chosen[static_cast<std::size_t>(e)] > 0 ? 1 : 0;
      }
      rows = std::max(rows, own_rows);
      read = std::max(read, own_read);
    }
    mean.rows += static_cast<double>(rows) / static_cast<double>(layers);
    mean.read += static_cast<double>(read) / static_cast<double>(layers);
  }
  return mean;
}

struct Expected {
  double rows = 0, read = 0;
};
Expected Expect(const Spread& s, double tokens) {
  const auto experts = static_cast<double>(s.experts), active = static_cast<double>(s.active),
             group = static_cast<double>(s.group);
  const double touched = ExpertsTouched(experts, active, tokens);
  const ExpertLoad load = BusiestGpu(experts, active, group).Of(tokens, touched);
  return {tokens * active / group * load.rows, touched / group * load.read};
}

TEST(BusiestGpu, DrawnLoads_AreWithinSevenPercent) {
  for (const Spread& s : kSpreads) {
    for (const std::int64_t tokens : {8, 32, 256}) {
      const Drawn drawn = Draw(s, tokens, tokens > 100 ? 60 : 400);
      const Expected expected = Expect(s, static_cast<double>(tokens));
      EXPECT_NEAR(expected.rows / drawn.rows, 1, 0.07) << s.experts << " " << tokens;
      EXPECT_NEAR(expected.read / drawn.read, 1, 0.07) << s.experts << " " << tokens;
    }
  }
}

TEST(BusiestGpu, Load_NeverFallsAsTokensRiseAndIsNeverBelowTheMean) {
  for (const Spread& s : kSpreads) {
    Expected before;
    for (double tokens = 1; tokens < 20000; tokens = tokens < 600 ? tokens + 1 : tokens * 1.1) {
      const Expected now = Expect(s, tokens);
      const double mean = tokens * static_cast<double>(s.active) / static_cast<double>(s.group);
      EXPECT_GE(now.rows, before.rows) << s.experts << " " << tokens;
      EXPECT_GE(now.read, before.read * (1 - 1e-12)) << s.experts << " " << tokens;
      EXPECT_GE(now.rows, mean * (1 - 1e-12)) << s.experts << " " << tokens;
      EXPECT_LE(now.read, static_cast<double>(s.experts / s.group) * (1 + 1e-12)) << tokens;
      before = now;
    }
  }
}

TEST(BusiestGpu, OneGpu_HasTheMean) {
  const ExpertLoad load = BusiestGpu(64, 6, 1).Of(100, ExpertsTouched(64, 6, 100));
  EXPECT_EQ(load.rows, 1);
  EXPECT_EQ(load.read, 1);
}

}  // namespace
}  // namespace servecast
