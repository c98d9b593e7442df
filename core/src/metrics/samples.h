// Weighted samples of durations in bounded memory: exact up to 2^20 distinct values, beyond that
// in integer buckets of relative width <= 2^-10. Order of adding never matters to the result.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/base.h"

namespace servecast {

struct WeightedSample {
  TimeNs value = 0;
  std::int64_t weight = 0;
};

class WeightedSamples {
 public:
  // Requires: value >= 0, weight >= 1. O(1) amortised; allocates only while it grows to 32 MiB.
  void Add(TimeNs value, std::int64_t weight) {
    total_weight_ += weight;
    if (!buckets_.empty()) {
      buckets_[BucketOf(value)] += weight;
      return;
    }
    if (samples_.size() == kBuffer) Compact();
    if (!buckets_.empty()) {
      buckets_[BucketOf(value)] += weight;
    } else {
      samples_.push_back({value, weight});
    }
  }

  void Add(const WeightedSamples& other);

  void Reserve(std::int64_t count);

  std::int64_t total_weight() const { return total_weight_; }
  // Ascending, values merged; when not `exact`, a bucket's middle stands for its samples. O(n).
  std::vector<WeightedSample> Sorted(bool* exact = nullptr) const;

 private:
  static constexpr std::size_t kExactValues = std::size_t{1} << 20;
  static constexpr std::size_t kBuffer = 2 * kExactValues;
  static constexpr int kFractionBits = 10;

  static std::size_t BucketOf(TimeNs value);
  static TimeNs BucketMiddle(std::size_t bucket);
  static std::vector<WeightedSample> Merged(std::vector<WeightedSample> samples);
  static std::vector<std::int64_t> BucketsOf(const std::vector<WeightedSample>& samples);
  void Compact();

  std::vector<WeightedSample> samples_;
  std::vector<std::int64_t> buckets_;  // empty while samples_ holds all
  std::int64_t total_weight_ = 0;
};

// Percentiles (0..100, ascending) of samples ascending by value, weights counted as repeats: rank
// p/100*(n-1), linear between neighbours. One pass. Requires: total_weight = sum of weights >= 1.
std::vector<double> WeightedPercentiles(const std::vector<WeightedSample>& sorted,
                                        std::int64_t total_weight,
                                        const std::vector<double>& percents);

// Sorts values ascending. Requires: none is negative.
void SortValues(std::vector<double>& values);

// The same percentile of plain values, ascending. Requires: not empty.
double Percentile(const std::vector<double>& sorted, double percent);

// Places in n ascending samples, from 0, between which a percentile (50 <= percent < 100) of their
// distribution lies with at least 95 % confidence, whatever the distribution: the number of
// independent samples below it is binomial, and each side is missed with at most 2.5 %. None when
// n is too small for one of the sides (p99: below 368). Samples of one run are not independent:
// what it says of another seed is too narrow, the more so the longer the run's queues last.
struct Ranks {
  std::size_t low = 0, high = 0;
};
std::optional<Ranks> ConfidenceRanks(std::int64_t n, double percent);

}  // namespace servecast
