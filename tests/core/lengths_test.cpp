// Lengths that are clipped, ranked or derived: distributions with fixed seeds and small cases by
// hand (the plain ones: workload_test.cpp).
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "core/statistics.h"
#include "gtest/gtest.h"
#include "servecast/workload_spec.h"
#include "workload/trace_moments.h"
#include "workload/workload.h"

namespace servecast::testing {
namespace {

LengthSpec Lengths(LengthDistribution distribution, std::int64_t min, std::int64_t max) {
  LengthSpec spec;
  spec.distribution = distribution;
  spec.min = min;
  spec.max = max;
  return spec;
}

std::int64_t Draw(const LengthSpec& spec, std::int64_t row) {
  return LengthDrawer(spec).Draw({1, false, row}, 0, 0);
}

TEST(Normal, Lengths_AreRoundedAndClipped) {
  LengthSpec spec = Lengths(LengthDistribution::kNormal, 50, 130);
  spec.mean = 100;
  spec.stddev = 20;
  EXPECT_EQ(DrawLength(spec, 0.5), 100);
  EXPECT_EQ(DrawLength(spec, 0.8413447460685429), 120);
  EXPECT_EQ(DrawLength(spec, 0.999), 130);
  EXPECT_EQ(DrawLength(spec, 0.001), 50);
  std::vector<double> draws;
  spec.min = 1;
  spec.max = 1000;
  for (std::int64_t i = 0; i < 50000; ++i) draws.push_back(static_cast<double>(Draw(spec, i)));
  const Moments m = MomentsOf(draws);
  EXPECT_NEAR(m.mean, 100, 4 * 20 / std::sqrt(50000));
  EXPECT_NEAR(m.sd, std::sqrt(400 + 1.0 / 12), 4 * 20 / std::sqrt(100000));
  spec.stddev = 0;
  EXPECT_EQ(Draw(spec, 3), 100);
  spec.stddev = 1e9;  // half of them at either end
  for (std::int64_t i = 0; i < 1000; ++i) {
    EXPECT_TRUE(Draw(spec, i) >= 1 && Draw(spec, i) <= 1000);
  }
}

TEST(Zipf, Ranks_HaveTheirWeights) {
  constexpr int kN = 100000, kRanks = 20;
  for (const double theta : {0.0, 0.6, 0.999999, 1.0, 1.5, 4.0}) {
    LengthSpec spec = Lengths(LengthDistribution::kZipf, 101, 100 + kRanks);
    spec.theta = theta;
    const LengthDrawer drawer(spec);
    std::vector<double> counts(kRanks), expected(kRanks);
    double sum = 0;
    for (int k = 1; k <= kRanks; ++k) sum += std::pow(k, -theta);
    for (int k = 1; k <= kRanks; ++k) {
      expected[std::size_t(k - 1)] = kN * std::pow(k, -theta) / sum;
    }
    for (std::int64_t i = 0; i < kN; ++i) {
      const std::int64_t length = drawer.Draw({1, true, i}, 0, 0);
      ASSERT_TRUE(length > 100 && length <= 100 + kRanks);
      ++counts[static_cast<std::size_t>(length - 101)];
    }
    // Ranks that are rare go together, as the test wants at least five in each.
    while (expected.back() < 5) {
      expected[expected.size() - 2] += expected.back();
      counts[counts.size() - 2] += counts.back();
      expected.pop_back();
      counts.pop_back();
    }
    EXPECT_LT(ChiSquare(counts, expected),
              ChiSquareOnceIn10000(static_cast<double>(counts.size()) - 1))
        << theta;
  }
}

TEST(Zipf, Scrambled_IsAPermutationOfTheSame) {
  for (const std::int64_t count : {1, 2, 3, 7, 64, 1000, 4097}) {
    LengthSpec spec = Lengths(LengthDistribution::kZipf, 10, 9 + count);
    spec.theta = 0.5;
    const LengthDrawer plain(spec);
    LengthSpec scrambled = spec;
    scrambled.scrambled = true;
    const LengthDrawer mixed(scrambled);
    std::map<std::int64_t, std::int64_t> to;
    std::set<std::int64_t> seen;
    for (std::int64_t i = 0; i < 30 * count; ++i) {
      const LengthKey key{1, false, i};
      const std::int64_t from = plain.Draw(key, 0, 0), length = mixed.Draw(key, 0, 0);
      ASSERT_TRUE(length >= 10 && length <= 9 + count) << count;
      const auto [at, is_new] = to.emplace(from, length);
      ASSERT_EQ(at->second, length) << "each length has one place";
      if (is_new) {
        ASSERT_TRUE(seen.insert(length).second) << "which no other has";
      }
    }
    if (count >= 64) {
      EXPECT_NE(to.begin()->first, to.begin()->second) << count;
    }
  }
}

TEST(Zipf, EndsOfTheRange_EndWell) {
  for (const double theta : {0.0, 0.5, 1.0, 1.0000001, 10.0}) {
    for (const std::int64_t max : {1, 2, 1'000'000'000}) {
      LengthSpec spec = Lengths(LengthDistribution::kZipf, 1, max);
      spec.theta = theta;
      for (const bool scrambled : {false, true}) {
        spec.scrambled = scrambled;
        const LengthDrawer drawer(spec);
        for (std::int64_t i = 0; i < 2000; ++i) {
          const std::int64_t length = drawer.Draw({1, false, i}, 0, 0);
          ASSERT_TRUE(length >= 1 && length <= max) << theta << " " << max;
        }
      }
    }
  }
}

TEST(Ratio, Outputs_AreThatShareOfThePromptRoundedUp) {
  Scenario s;
  s.workload->requests = 300;
  s.workload->prompt_tokens = Lengths(LengthDistribution::kUniform, 1, 100);
  s.workload->output_tokens.distribution = LengthDistribution::kRatio;
  s.workload->output_tokens.ratio = 20;
  s.workload->prefix = {1, 500};  // counts nothing
  const RequestTable table = std::move(MakeRequests(s, {}).value());
  for (std::size_t i = 0; i < 300; ++i) {
    EXPECT_EQ(table.output_tokens[i], (table.prompt_tokens[i] - 500 + 19) / 20);
  }
}

// Spearman's rank correlation of a workload's prompts and outputs.
double CorrelationOf(const LengthSpec& prompts, const LengthSpec& outputs) {
  std::vector<TraceRow> rows;
  const LengthDrawer prompt(prompts), output(outputs);
  for (std::int64_t row = 0; row < 20000; ++row) {
    const std::int64_t drawn = prompt.Draw({1, false, row}, 0, 0);
    rows.push_back({0, static_cast<std::int32_t>(drawn),
                    static_cast<std::int32_t>(output.Draw({1, true, row}, 0, drawn))});
  }
  return RankCorrelation(rows);
}

TEST(Correlation, OfRanks_IsWhatWasAskedFor) {
  LengthSpec prompts = Lengths(LengthDistribution::kLognormal, 1, 1000000);
  prompts.median = 500;
  prompts.p99 = 9000;
  LengthSpec outputs = Lengths(LengthDistribution::kUniform, 1, 100000);
  for (const double wanted : {-1.0, -0.6, -0.1, 0.0, 0.25, 0.8, 1.0}) {
    outputs.correlation = wanted;
    EXPECT_NEAR(CorrelationOf(prompts, outputs), wanted, 4 / std::sqrt(20000)) << wanted;
  }
}

TEST(Correlation, Outputs_KeepTheirDistribution) {
  LengthSpec spec = Lengths(LengthDistribution::kUniform, 1, 100000);
  spec.correlation = 0.7;
  std::vector<double> draws;
  for (std::int64_t row = 0; row < 20000; ++row) {
    draws.push_back(static_cast<double>(LengthDrawer(spec).Draw({1, true, row}, 0, 0)));
  }
  EXPECT_LT(KolmogorovSmirnov(draws, [](double x) { return x / 100000; }), kKsOnceIn10000);
}

}  // namespace
}  // namespace servecast::testing
