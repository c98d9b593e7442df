// Percentiles: weights count as repeats, exact up to 2^20 distinct values, buckets of bounded
// relative error beyond, and the order of adding never matters.
#include "metrics/samples.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"

namespace servecast {
namespace {

constexpr std::int64_t kExactValues = std::int64_t{1} << 20;

std::uint64_t Dice(std::int64_t i) { return RandomBits(9, Stream::kArrival, i); }

// Rank p/100*(n-1), linear, as the definition says it.
double Naive(std::vector<TimeNs> values, double percent) {
  std::sort(values.begin(), values.end());
  const double rank = percent / 100 * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(rank);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  const double fraction = rank - static_cast<double>(low);
  return static_cast<double>(values[low]) +
         fraction * static_cast<double>(values[high] - values[low]);
}

const std::vector<double> kPercents = {0, 1, 10, 25, 50, 75, 90, 95, 99, 99.9, 100};

TEST(WeightedPercentiles, Weights_CountAsRepeats) {
  for (int round = 0; round < 200; ++round) {
    WeightedSamples samples;
    std::vector<TimeNs> repeated;
    const int distinct = 1 + round % 17;
    for (int i = 0; i < distinct; ++i) {
      const std::uint64_t dice = Dice(round * 100 + i);
      const auto value = static_cast<TimeNs>(dice % 1000);
      const auto weight = static_cast<std::int64_t>(1 + (dice >> 32) % 5);
      samples.Add(value, weight);
      repeated.insert(repeated.end(), static_cast<std::size_t>(weight), value);
    }
    ASSERT_EQ(samples.total_weight(), static_cast<std::int64_t>(repeated.size()));
    const auto found = WeightedPercentiles(samples.Sorted(), samples.total_weight(), kPercents);
    for (std::size_t i = 0; i < kPercents.size(); ++i) {
      EXPECT_NEAR(found[i], Naive(repeated, kPercents[i]), 1e-9) << round << " p" << kPercents[i];
    }
  }
}

TEST(Percentile, PlainValues_FollowTheRankRule) {
  EXPECT_EQ(Percentile({5}, 99), 5);
  EXPECT_EQ(Percentile({1, 2}, 50), 1.5);
  EXPECT_EQ(Percentile({1, 2, 3, 4}, 100), 4);
  EXPECT_EQ(Percentile({1, 2, 3, 4}, 0), 1);
  EXPECT_DOUBLE_EQ(Percentile({10, 20, 30, 40, 50}, 90), 46);
}

TEST(WeightedSamples, UpToTheLimit_AreExact) {
  WeightedSamples samples;
  for (std::int64_t i = 0; i < kExactValues; ++i) samples.Add((i * 7919) % kExactValues, 1);
  for (std::int64_t i = 0; i < 3 * kExactValues; ++i) samples.Add(i % 1000, 2);  // no new values
  bool exact = false;
  const std::vector<WeightedSample> sorted = samples.Sorted(&exact);
  EXPECT_TRUE(exact);
  ASSERT_EQ(static_cast<std::int64_t>(sorted.size()), kExactValues);
  EXPECT_EQ(samples.total_weight(), 7 * kExactValues);
  std::int64_t weight = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    ASSERT_EQ(sorted[i].value, static_cast<TimeNs>(i));
    weight += sorted[i].weight;
  }
  EXPECT_EQ(weight, samples.total_weight());
}

TEST(WeightedSamples, BeyondTheLimit_BucketsAreWithinTheirWidth) {
  WeightedSamples samples;
  std::vector<TimeNs> values;
  for (std::int64_t i = 0; i < 5 * kExactValues / 2; ++i) {
    // Over forty powers of two.
    const std::uint64_t dice = Dice(i);
    values.push_back(static_cast<TimeNs>(dice >> (20 + dice % 40)));
    samples.Add(values.back(), 1);
  }
  bool exact = true;
  const std::vector<WeightedSample> sorted = samples.Sorted(&exact);
  EXPECT_FALSE(exact);
  EXPECT_EQ(samples.total_weight(), static_cast<std::int64_t>(values.size()));
  std::sort(values.begin(), values.end());
  const auto found = WeightedPercentiles(sorted, samples.total_weight(), kPercents);
  for (std::size_t i = 0; i < kPercents.size(); ++i) {
    const double truth = Naive(values, kPercents[i]);
    EXPECT_NEAR(found[i], truth, truth * 0x1p-10) << "p" << kPercents[i];
  }
  std::int64_t weight = 0;
  for (const WeightedSample& s : sorted) weight += s.weight;
  EXPECT_EQ(weight, samples.total_weight());
}

std::vector<WeightedSample> SortedOf(const std::vector<WeightedSample>& added, bool* exact) {
  WeightedSamples samples;
  for (const WeightedSample& s : added) samples.Add(s.value, s.weight);
  return samples.Sorted(exact);
}

TEST(WeightedSamples, OrderOfAdding_DoesNotMatter) {
  // From few values to many more than are kept; the third lies between the limit and the buffer,
  // where repeats that come first or last could decide when values are merged.
  const struct {
    std::int64_t distinct, repeats;
  } sizes[] = {{100, 5000},
               {kExactValues, 3 * kExactValues / 2},
               {kExactValues + kExactValues / 5, kExactValues + kExactValues / 10}};
  for (const auto& size : sizes) {
    std::vector<WeightedSample> added;
    for (std::int64_t i = 0; i < size.distinct; ++i) added.push_back({1'000'000 + 37 * i, 1});
    for (std::int64_t i = 0; i < size.repeats; ++i) added.push_back({1'000'000, 1});
    bool exact_forward = false, exact_backward = false;
    const std::vector<WeightedSample> forward = SortedOf(added, &exact_forward);
    std::reverse(added.begin(), added.end());
    const std::vector<WeightedSample> backward = SortedOf(added, &exact_backward);
    EXPECT_EQ(exact_forward, exact_backward) << size.distinct;
    EXPECT_EQ(exact_forward, size.distinct <= kExactValues) << size.distinct;
    ASSERT_EQ(forward.size(), backward.size()) << size.distinct;
    for (std::size_t i = 0; i < forward.size(); ++i) {
      ASSERT_EQ(forward[i].value, backward[i].value);
      ASSERT_EQ(forward[i].weight, backward[i].weight);
    }
  }
}

}  // namespace
}  // namespace servecast
