// See samples.h.
#include "metrics/samples.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/math.h"
#include "base/sort.h"

namespace servecast {

void WeightedSamples::Reserve(std::int64_t count) {
  samples_.reserve(std::min(static_cast<std::size_t>(std::max<std::int64_t>(count, 0)), kBuffer));
}

void WeightedSamples::Add(const WeightedSamples& other) {
  if (other.buckets_.empty()) {
    for (const WeightedSample& sample : other.samples_) Add(sample.value, sample.weight);
    return;
  }
  if (buckets_.empty()) buckets_ = BucketsOf(samples_);
  samples_ = {};
  for (std::size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  total_weight_ += other.total_weight_;
}

// Values below 2^kFractionBits have a bucket each; above, the leading bit and the kFractionBits
// bits after it.
std::size_t WeightedSamples::BucketOf(TimeNs value) {
  const auto v = static_cast<std::uint64_t>(value);
  if (v < (std::uint64_t{1} << kFractionBits)) return static_cast<std::size_t>(v);
  const int top = 63 - __builtin_clzll(v);
  const int shift = top - kFractionBits;
  const std::uint64_t fraction = (v >> shift) & ((std::uint64_t{1} << kFractionBits) - 1);
  return static_cast<std::size_t>((static_cast<std::uint64_t>(shift + 1) << kFractionBits) |
                                  fraction);
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
  RadixSort(samples, scratch,
            [](const WeightedSample& s) { return static_cast<std::uint64_t>(s.value); });
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

std::vector<std::int64_t> WeightedSamples::BucketsOf(const std::vector<WeightedSample>& samples) {
  std::vector<std::int64_t> buckets(std::size_t{64} << kFractionBits, 0);
  for (const WeightedSample& s : samples) buckets[BucketOf(s.value)] += s.weight;
  return buckets;
}

void WeightedSamples::Compact() {
  samples_ = Merged(std::move(samples_));
  if (samples_.size() <= kExactValues) {
    samples_.reserve(kBuffer);
    return;
  }
  buckets_ = BucketsOf(samples_);
  samples_ = {};
}

std::vector<WeightedSample> WeightedSamples::Sorted(bool* exact) const {
  std::vector<std::int64_t> buckets = buckets_;
  std::vector<WeightedSample> sorted;
  if (buckets.empty()) {
    sorted = Merged(samples_);
    // The limit counts at the end as well: whether Compact saw that many depends on the order.
    if (sorted.size() > kExactValues) buckets = BucketsOf(sorted);
  }
  if (exact != nullptr) *exact = buckets.empty();
  if (buckets.empty()) return sorted;
  sorted.clear();
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    if (buckets[b] > 0) sorted.push_back({BucketMiddle(b), buckets[b]});
  }
  return sorted;
}

std::vector<double> WeightedPercentiles(const std::vector<WeightedSample>& sorted,
                                        std::int64_t total_weight,
                                        const std::vector<double>& percents) {
  std::vector<double> values;
  std::size_t i = 0;
  std::int64_t seen = sorted[0].weight;  // up to and with sorted[i]
  for (const double percent : percents) {
    const double rank = percent / 100 * static_cast<double>(total_weight - 1);
    const double floor_rank = std::floor(rank);
    const auto low = static_cast<std::int64_t>(floor_rank);
    while (seen <= low) seen += sorted[++i].weight;
    const auto value = static_cast<double>(sorted[i].value);
    const bool between = seen == low + 1 && i + 1 < sorted.size();
    const double next = between ? static_cast<double>(sorted[i + 1].value) : value;
    values.push_back(value + (rank - floor_rank) * (next - value));
  }
  return values;
}

// One pass into buckets that hold a few values each, then each of them: fewer instructions than a
// pass per digit. Bit patterns of doubles that are not negative sort as the doubles do, and buckets
// of equal width in them are of equal width on a scale of logarithms, which latencies fill evenly.
void SortValues(std::vector<double>& values) {
  constexpr std::size_t kFew = 1000;
  if (values.size() < kFew) return std::sort(values.begin(), values.end());
  const auto bits_of = [](double v) {
    std::uint64_t bits;
    std::memcpy(&bits, &v, sizeof bits);
    return bits;
  };
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const std::uint64_t low = bits_of(*least);
  int shift = 0;
  while ((bits_of(*most) - low) >> shift >= values.size() / 4) ++shift;
  const auto bucket = [&](double v) {
    return static_cast<std::size_t>((bits_of(v) - low) >> shift);
  };
  std::vector<std::uint32_t> ends(bucket(*most) + 1, 0);
  for (const double v : values) ++ends[bucket(v)];
  std::uint32_t sum = 0;
  for (std::uint32_t& end : ends) {
    sum += end;
    end = sum - end;  // its first place, until it is filled
  }
  std::vector<double> sorted(values.size());
  for (const double v : values) sorted[ends[bucket(v)]++] = v;
  auto begin = sorted.begin();
  for (const std::uint32_t end : ends) {
    std::sort(begin, sorted.begin() + static_cast<std::ptrdiff_t>(end));
    begin = sorted.begin() + static_cast<std::ptrdiff_t>(end);
  }
  values.swap(sorted);
}

double Percentile(const std::vector<double>& sorted, double percent) {
  const double rank = percent / 100 * static_cast<double>(sorted.size() - 1);
  const double floor_rank = std::floor(rank);
  const auto low = static_cast<std::size_t>(floor_rank);
  const double next = low + 1 < sorted.size() ? sorted[low + 1] : sorted[low];
  return sorted[low] + (rank - floor_rank) * (next - sorted[low]);
}

std::optional<Ranks> ConfidenceRanks(std::int64_t n, double percent) {
  // Of m = samples above the percentile: the last m that is too few, the first that is enough.
  constexpr double kSide = 0.025;
  const auto count = static_cast<double>(n);
  const double above = 1 - percent / 100;
  const double mean = count * above;
  double few = -1, enough = 0;
  if (std::min(mean, count - mean) > 500) {  // the normal distribution is as good, and quick
    constexpr double kNormal = 1.96;
    const double spread = kNormal * std::sqrt(mean * (1 - above));
    few = std::floor(mean - spread - 1);
    enough = std::ceil(mean + spread);
  } else {
    double exactly = Exp(count * Log(1 - above));
    for (double sum = exactly; sum < 1 - kSide && enough < count; sum += exactly) {
      if (sum <= kSide) few = enough;
      exactly *= (count - enough) / (enough + 1) * above / (1 - above);
      ++enough;
    }
  }
  if (few < 0 || enough >= count) return std::nullopt;
  return Ranks{static_cast<std::size_t>(count - enough - 1),
               static_cast<std::size_t>(count - few - 1)};
}

}  // namespace servecast
