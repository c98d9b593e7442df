// What the tests of drawn numbers compare with: distances from a distribution, at a stated
// significance. Seeds are fixed, so a test passes always or never.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace servecast::testing {

// Kolmogorov-Smirnov: the largest distance between the samples' distribution function and `cdf`,
// times sqrt(n). Beyond 2.23 once in 10,000.
template <class Cdf>
double KolmogorovSmirnov(std::vector<double> samples, const Cdf& cdf) {
  std::sort(samples.begin(), samples.end());
  const auto n = static_cast<double>(samples.size());
  double distance = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double p = cdf(samples[i]);
    distance = std::max({distance, std::fabs(p - static_cast<double>(i) / n),
                         std::fabs(p - static_cast<double>(i + 1) / n)});
  }
  return distance * std::sqrt(n);
}
inline constexpr double kKsOnceIn10000 = 2.23;

// Of counts, against expected ones. Its mean is the number of degrees of freedom, its variance
// twice that: beyond `ChiSquareOnceIn10000(df)` about once in 10,000 (Wilson and Hilferty).
inline double ChiSquare(const std::vector<double>& counts, const std::vector<double>& expected) {
  double sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    sum += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
  }
  return sum;
}
inline double ChiSquareOnceIn10000(double df) {
  const double t = 1 - 2 / (9 * df) + 3.719 * std::sqrt(2 / (9 * df));
  return df * t * t * t;
}

struct Moments {
  double mean = 0, sd = 0;
};
inline Moments MomentsOf(const std::vector<double>& samples) {
  double sum = 0, squares = 0;
  for (const double x : samples) sum += x;
  const auto n = static_cast<double>(samples.size());
  for (const double x : samples) squares += (x - sum / n) * (x - sum / n);
  return {sum / n, std::sqrt(squares / n)};
}

}  // namespace servecast::testing
