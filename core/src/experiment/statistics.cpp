// See statistics.h.
#include "experiment/statistics.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "metrics/samples.h"

namespace servecast {
namespace {

double TwoSided(std::size_t groups, double confidence) {
  return StudentT(groups - 1, 0.5 + confidence / 2);
}

// Standard error of a ratio of sums, by the groups' residuals.
double ErrorOfRatio(const std::vector<Part>& groups, double ratio, double whole) {
  double squares = 0;
  for (const Part& g : groups) {
    const double residual = g.part - ratio * g.whole;
    squares += residual * residual;
  }
  const auto n = static_cast<double>(groups.size());
  return std::sqrt(squares * n / (n - 1)) / whole;
}

Part SumOf(const std::vector<Part>& groups) {
  Part sum;
  for (const Part& g : groups) {
    sum.part += g.part;
    sum.whole += g.whole;
  }
  return sum;
}

double Square(double x) { return x * x; }

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

double StudentT(std::size_t degrees, double probability) {
  const double z = NormalQuantile(probability), z2 = z * z;
  const auto v = static_cast<double>(degrees);
  const double g1 = z * (z2 + 1) / 4;
  const double g2 = z * ((5 * z2 + 16) * z2 + 3) / 96;
  const double g3 = z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384;
  const double g4 = z * ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160;
  return z + (g1 + (g2 + (g3 + g4 / v) / v) / v) / v;
}

std::size_t WarmUpOf(const std::vector<double>& values) {
  constexpr std::size_t kBatch = 5;
  std::vector<double> means(values.size() / kBatch, 0.0);
  for (std::size_t i = 0; i < means.size() * kBatch; ++i) means[i / kBatch] += values[i] / kBatch;
  double sum = 0, squares = 0, least = 0;
  std::size_t best = 0;
  bool found = false;
  for (std::size_t i = means.size(); i-- > 0;) {
    sum += means[i];
    squares += means[i] * means[i];
    const auto n = static_cast<double>(means.size() - i);
    if (i > means.size() / 2 || n < 5) continue;
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
  std::vector<double> all;
  for (const std::vector<double>& group : groups) all.insert(all.end(), group.begin(), group.end());
  SortValues(all);
  const double value = Percentile(all, percent);
  const double beyond = 1 - percent / 100;
  std::vector<Part> parts;
  for (const std::vector<double>& group : groups) {
    const auto above = std::count_if(group.begin(), group.end(),
                                     [value](double sample) { return sample > value; });
    parts.push_back({static_cast<double>(above), static_cast<double>(group.size())});
  }
  const Part sum = SumOf(parts);
  const double error = ErrorOfRatio(parts, sum.part / sum.whole, sum.whole);
  std::vector<Interval> intervals;
  for (const double confidence : confidences) {
    const double half = TwoSided(groups.size(), confidence) * error / beyond;
    const Shares shares = SharesAround(beyond, half);
    intervals.push_back({value, Percentile(all, 100 * (1 - shares.most)),
                         Percentile(all, 100 * (1 - shares.least)), half});
  }
  return intervals;
}

Interval RatioInterval(const std::vector<Part>& groups, double confidence) {
  const Part sum = SumOf(groups);
  const double ratio = sum.part / sum.whole;
  const double half = TwoSided(groups.size(), confidence) * ErrorOfRatio(groups, ratio, sum.whole);
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
