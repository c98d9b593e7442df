// See samples.h.
#include "metrics/samples.h"

#include <algorithm>
#include <cmath>

#include "base/sort.h"

namespace servecast {

void WeightedSamples::Reserve(std::int64_t count) {
  samples_.reserve(std::min(static_cast<std::size_t>(std::max<std::int64_t>(count, 0)), kBuffer));
}

// Values below 2^kFractionBits have a bucket each; above, the leading bit and the kFractionBits
// bits after it.
std::size_t WeightedSamples::BucketOf(TimeNs value) {
  const auto v = static_cast<std::uint64_t>(value);
  if (v < (std::uint64_t{1} << kFractionBits)) return static_cast<std::size_t>(v);
  const int top = 63 - __builtin_clzll(v);
  const int shift = top - kFractionBits;
  const std::uint64_t fraction = (v >> shift) & ((std::uint64_t{1} << kFractionBits) - 1);
  return static_cast<std::size_t>((static_cast<std::uint64_t>(shift + 1) << kFractionBits) | fraction);
}

TimeNs WeightedSamples::BucketMiddle(std::size_t bucket) {
  const std::size_t row = bucket >> kFractionBits;
  if (row == 0) return static_cast<TimeNs>(bucket);
  const int shift = static_cast<int>(row) - 1;
  const std::uint64_t fraction = bucket & ((std::size_t{1} << kFractionBits) - 1);
  const std::uint64_t low = ((std::uint64_t{1} << kFractionBits) | fraction) << shift;
  return static_cast<TimeNs>(low + (shift > 0 ? std::uint64_t{1} << (shift - 1) : 0));
}

std::vector<WeightedSample> WeightedSamples::Merged(std::vector<WeightedSample> samples) {
  std::vector<WeightedSample> scratch;
  RadixSort(samples, scratch, [](const WeightedSample& s) { return static_cast<std::uint64_t>(s.value); });
  std::size_t kept = 0;
  for (const WeightedSample& s : samples) {
    if (kept > 0 && samples[kept - 1].value == s.value) {
      samples[kept - 1].weight += s.weight;
    } else {
      samples[kept++] = s;
    }
  }
  samples.resize(kept);
  return samples;
}

void WeightedSamples::Compact() {
  samples_ = Merged(std::move(samples_));
  if (samples_.size() <= kExactValues) {
    samples_.reserve(kBuffer);
    return;
  }
  buckets_.assign(std::size_t{64} << kFractionBits, 0);
  for (const WeightedSample& s : samples_) buckets_[BucketOf(s.value)] += s.weight;
  samples_ = {};
}

std::vector<WeightedSample> WeightedSamples::Sorted() const {
  if (exact()) return Merged(samples_);
  std::vector<WeightedSample> sorted;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    if (buckets_[b] > 0) sorted.push_back({BucketMiddle(b), buckets_[b]});
  }
  return sorted;
}

double WeightedPercentile(const std::vector<WeightedSample>& sorted, std::int64_t total_weight,
                          double p) {
  const double rank = p / 100 * static_cast<double>(total_weight - 1);
  const double floor_rank = std::floor(rank);
  const auto low = static_cast<std::int64_t>(floor_rank);
  std::int64_t seen = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    seen += sorted[i].weight;
    if (seen <= low) continue;
    const auto value = static_cast<double>(sorted[i].value);
    if (seen > low + 1 || i + 1 == sorted.size()) return value;
    return value + (rank - floor_rank) * (static_cast<double>(sorted[i + 1].value) - value);
  }
  return static_cast<double>(sorted.back().value);
}

}  // namespace servecast
