// See statistics.h.
#include "experiment/statistics.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "metrics/samples.h"

namespace servecast {
namespace {

constexpr double kFewestDegrees = 3;  // of freedom; of fewer StudentT does not know

// Half of the interval of a ratio of sums, by the groups' residuals. The degrees of freedom are
// those that their kurtosis leaves to an estimate of variance: few, where few groups make it.
double HalfOfRatio(const std::vector<Part>& groups, const Part& sum, double confidence) {
  double squares = 0, fourths = 0;
  for (const Part& g : groups) {
    const double residual = g.part - sum.part / sum.whole * g.whole;
    squares += residual * residual;
    fourths += residual * residual * residual * residual;
  }
  if (squares <= 0) return 0;
  const auto n = static_cast<double>(groups.size());
  const double kurtosis = n * fourths / (squares * squares);
  const double degrees = std::clamp(2 * n / (kurtosis - (n - 3) / (n - 1)), kFewestDegrees, n - 1);
  return StudentT(degrees, 0.5 + confidence / 2) * std::sqrt(squares * n / (n - 1)) / sum.whole;
}

double Square(double x) { return x * x; }

// Percentiles of samples of which only the largest are ever asked for: those are in order, which
// takes a tenth of the time that it takes to sort all.
class Tail {
 public:
  Tail(const Groups& groups, double percent) {
    for (const std::vector<double>& group : groups) {
      all_.insert(all_.end(), group.begin(), group.end());
    }
    Order(kTimes * (1 - percent / 100));
  }

  double size() const { return static_cast<double>(all_.size()); }

  double At(double percent) {
    if (Rank(percent) < sorted_from_) Order(1);
    return Percentile(all_, percent);
  }

 private:
  static constexpr double kTimes = 4;  // the share beyond that most intervals stay within

  std::size_t Rank(double percent) const {
    return static_cast<std::size_t>(percent / 100 * static_cast<double>(all_.size() - 1));
  }

  // Puts the largest `share` in order, those from its first rank on.
  void Order(double share) {
    sorted_from_ = Rank(100 * std::max(0.0, 1 - share));
    const auto first = all_.begin() + static_cast<std::ptrdiff_t>(sorted_from_);
    std::nth_element(all_.begin(), first, all_.end());
    std::sort(first, all_.end());
  }

  std::vector<double> all_;
  std::size_t sorted_from_ = 0;
};

// A share's interval, its half relative to the share. Rare samples come in clusters of very
// different sizes, so that where shares vary much their variance is underestimated as a rule:
// such intervals are widened. How much was found by runs (docs/model.md, "Certainty").
struct Shares {
  double least = 0, most = 0;
};
Shares SharesAround(double share, double half) {
  constexpr double kForSkewness = 0.5;
  const double wide = half * (1 + kForSkewness * std::min(half, 1.0));
  return {share * Square(std::max(0.0, 1 - wide / 2)), std::min(1.0, share * Square(1 + wide / 2))};
}

}  // namespace

Part SumOf(const std::vector<Part>& groups) {
  Part sum;
  for (const Part& g : groups) {
    sum.part += g.part;
    sum.whole += g.whole;
  }
  return sum;
}

double StudentT(double v, double probability) {
  const double z = NormalQuantile(probability), z2 = z * z;
  const double g1 = z * (z2 + 1) / 4;
  const double g2 = z * ((5 * z2 + 16) * z2 + 3) / 96;
  const double g3 = z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384;
  const double g4 = z * ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160;
  return z + (g1 + (g2 + (g3 + g4 / v) / v) / v) / v;
}

std::size_t WarmUpOf(const std::vector<double>& values, Beginnings from) {
  constexpr std::size_t kBatch = 5;
  std::vector<double> means(values.size() / kBatch, 0.0);
  for (std::size_t i = 0; i < means.size() * kBatch; ++i) means[i / kBatch] += values[i] / kBatch;
  double all = 0, sum = 0, squares = 0, least = 0;
  for (const double m : means) all += m;
  std::size_t best = 0;
  bool found = false;
  for (std::size_t i = means.size(); i-- > 0;) {
    sum += means[i];
    squares += means[i] * means[i];
    const auto n = static_cast<double>(means.size() - i);
    if (i > means.size() / 2 || n < 5) continue;
    const bool rises = (all - sum) * n <= sum * static_cast<double>(i);
    if (i > 0 && !rises && from == Beginnings::kEmpty) continue;
    const double error = (squares - sum * sum / n) / (n * n);
    if (found && error > least) continue;  // of equal ones the earliest
    found = true;
    least = error;
    best = i;
  }
  return best * kBatch;
}

std::vector<Interval> PercentileIntervals(const Groups& groups, double percent,
                                          const std::vector<double>& confidences) {
  Tail tail(groups, percent);
  const double value = tail.At(percent);
  const double beyond = 1 - percent / 100;
  // Of a maximum no share lies beyond that could vary. It is at least what was seen; ten times as
  // many samples have one that is about as far above it as it is above the tenth largest.
  if (beyond <= 0) {
    const double tenth = tail.At(100 * std::max(0.0, 1 - 10 / tail.size()));
    const double most = tenth > 0 ? value * value / tenth : value;
    return std::vector<Interval>(confidences.size(), {value, value, most, 0});
  }
  std::vector<Part> parts;
  for (const std::vector<double>& group : groups) {
    const auto above = std::count_if(group.begin(), group.end(),
                                     [value](double sample) { return sample > value; });
    parts.push_back({static_cast<double>(above), static_cast<double>(group.size())});
  }
  const Part sum = SumOf(parts);
  std::vector<Interval> intervals;
  for (const double confidence : confidences) {
    const double half = HalfOfRatio(parts, sum, confidence) / beyond;
    const Shares shares = SharesAround(beyond, half);
    intervals.push_back(
        {value, tail.At(100 * (1 - shares.most)), tail.At(100 * (1 - shares.least)), half});
  }
  return intervals;
}

Interval RatioInterval(const std::vector<Part>& groups, double confidence) {
  const Part sum = SumOf(groups);
  const double ratio = sum.part / sum.whole;
  const double half = HalfOfRatio(groups, sum, confidence);
  return {ratio, ratio - half, ratio + half, ratio > 0 ? half / ratio : 0};
}

Interval ShareInterval(const std::vector<Part>& groups, double confidence) {
  const Interval plain = RatioInterval(groups, confidence);
  if (plain.value <= 0) return {0, 0, 0, 0};
  const double half = (plain.high - plain.value) / plain.value;
  const Shares shares = SharesAround(plain.value, half);
  return {plain.value, shares.least, shares.most, half};
}

Interval MeanInterval(const std::vector<double>& values, double confidence) {
  std::vector<Part> parts;
  for (const double v : values) parts.push_back({v, 1});
  return RatioInterval(parts, confidence);
}

}  // namespace servecast
