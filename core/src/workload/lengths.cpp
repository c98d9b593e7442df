// Draws lengths; see workload.h.
#include <algorithm>
#include <cmath>

#include "base/base.h"
#include "base/math.h"
#include "base/random.h"
#include "servecast/workload_spec.h"
#include "workload/workload.h"

namespace servecast {
namespace {

constexpr double kNormalP99 = 2.3263478740408408;  // standard normal quantile at 0.99
constexpr auto kMaxTokens = static_cast<double>(kMostTokens);

// [probability, tokens] pairs, ascending, first at 0 and last at 1 (the parser checks).
double EmpiricalQuantile(const NumberTable& table, double u) {
  std::size_t i = 1;
  while (i + 1 < table.size() && table[i][0] < u) ++i;
  const auto& low = table[i - 1];
  const auto& high = table[i];
  const double width = high[0] - low[0];
  return width > 0 ? low[1] + (high[1] - low[1]) * ((u - low[0]) / width) : high[1];
}

std::int64_t Clip(double tokens, double low, double high) {
  return static_cast<std::int64_t>(std::clamp(std::nearbyint(tokens), low, high));
}

double SigmaOf(const LengthSpec& spec) { return Log(spec.p99 / spec.median) / kNormalP99; }

std::int64_t Lognormal(const LengthSpec& spec, double sigma, double u) {
  // Beyond this exponent the clip decides.
  const double exponent = std::min(sigma * NormalQuantile(u), 50.0);
  return Clip(spec.median * Exp(std::max(exponent, -50.0)), static_cast<double>(spec.min),
              spec.max ? static_cast<double>(*spec.max) : kMaxTokens);
}

// (e^x - 1) / x and log(1 + x) / x, also where x is small or 0.
double ExpRatio(double x) {
  if (std::fabs(x) > 1e-3) return (Exp(x) - 1) / x;
  return 1 + x / 2 * (1 + x / 3 * (1 + x / 4 * (1 + x / 5)));
}
double LogRatio(double x) {
  if (std::fabs(x) > 1e-3) return Log(1 + x) / x;
  return 1 - x * (1.0 / 2 - x * (1.0 / 3 - x * (1.0 / 4 - x / 5)));
}

}  // namespace

std::int64_t DrawLength(const LengthSpec& spec, double u) {
  const auto low = static_cast<double>(spec.min);
  const double high = spec.max ? static_cast<double>(*spec.max) : kMaxTokens;
  switch (spec.distribution) {
    case LengthDistribution::kFixed:
      return spec.value;
    case LengthDistribution::kUniform:  // every integer of [min, max] equally likely
      return std::min(static_cast<std::int64_t>(low + std::floor(u * (high - low + 1))), *spec.max);
    case LengthDistribution::kNormal:
      return Clip(spec.mean + spec.stddev * NormalQuantile(u), low, high);
    case LengthDistribution::kLognormal:
      return Lognormal(spec, SigmaOf(spec), u);
    case LengthDistribution::kEmpirical:
      return Clip(EmpiricalQuantile(spec.quantiles, u), 1, kMaxTokens);
    default:
      SERVECAST_CHECK(false, "lengths of this distribution are not drawn from one number");
  }
}

// Zipf's law by rejection-inversion: Hoermann and Derflinger, ACM TOMACS 6 (1996). Exact for any
// theta, and the number of tries does not grow with the number of ranks.
LengthDrawer::LengthDrawer(const LengthSpec& spec) : spec_(&spec) {
  if (spec.distribution == LengthDistribution::kLognormal) sigma_ = SigmaOf(spec);
  if (spec.distribution != LengthDistribution::kZipf) return;
  count_ = static_cast<double>(*spec.max - spec.min + 1);
  first_area_ = Area(1.5) - 1;
  last_area_ = Area(count_ + 0.5);
  sure_ = 2 - Inverse(Area(2.5) - Exp(-spec.theta * Log(2)));
}

// The integral of x^-theta from 1, and its inverse.
double LengthDrawer::Area(double x) const {
  const double log = Log(x);
  return ExpRatio((1 - spec_->theta) * log) * log;
}
double LengthDrawer::Inverse(double area) const {
  const double t = std::max(area * (1 - spec_->theta), -1 + 1e-15);
  return Exp(LogRatio(t) * area);
}

std::int64_t LengthDrawer::Rank(const LengthKey& key) const {
  const Stream stream = key.output ? Stream::kOutputTokens : Stream::kPromptTokens;
  for (std::int64_t index = 0;; ++index) {
    const double u = Uniform(key.seed, stream, key.row, index);
    const double area = last_area_ + u * (first_area_ - last_area_);
    const double x = Inverse(area);
    const double rank = std::clamp(std::floor(x + 0.5), 1.0, count_);
    if (rank - x <= sure_ || area >= Area(rank + 0.5) - Exp(-spec_->theta * Log(rank))) {
      return static_cast<std::int64_t>(rank);
    }
  }
}

// A fixed permutation of [0, count): of the next power of two, again until it is below count.
std::int64_t LengthDrawer::Spread(std::int64_t rank) const {
  int bits = 1;
  while (std::int64_t{1} << bits < static_cast<std::int64_t>(count_)) ++bits;
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  const int half = bits / 2 + 1;
  auto x = static_cast<std::uint64_t>(rank);
  do {
    for (const std::uint64_t odd : {0xBF58476D1CE4E5B9ULL, 0x94D049BB133111EBULL}) {
      x = ((x + 0x9E3779B9U) * odd) & mask;
      x ^= x >> half;
    }
  } while (x >= static_cast<std::uint64_t>(count_));
  return static_cast<std::int64_t>(x);
}

// A Gaussian copula: the normal scores of the prompt's and the output's draws correlate by what
// gives the ranks this correlation (Pearson, 1907).
double LengthDrawer::OneDraw(const LengthKey& key) const {
  const double prompt = Uniform(key.seed, Stream::kPromptTokens, key.row);
  if (!key.output) return prompt;
  const double u = Uniform(key.seed, Stream::kOutputTokens, key.row);
  if (spec_->correlation == 0) return u;
  const double of_scores = 2 * SinOfTurns(spec_->correlation / 12);
  const double rest = std::sqrt(std::max(1 - of_scores * of_scores, 0.0));
  const double score = of_scores * NormalQuantile(prompt) + rest * NormalQuantile(u);
  return std::clamp(NormalCdf(score), 0x1p-53, 1 - 0x1p-53);
}

std::int64_t LengthDrawer::Draw(const LengthKey& key, std::int64_t traced,
                                std::int64_t prompt) const {
  switch (spec_->distribution) {
    case LengthDistribution::kFixed:
      return spec_->value;
    case LengthDistribution::kTrace:
      return Clip(static_cast<double>(traced) * spec_->scale, 1, kMaxTokens);
    case LengthDistribution::kRatio:
      return Clip(std::ceil(static_cast<double>(prompt) / spec_->ratio), 1, kMaxTokens);
    case LengthDistribution::kZipf: {
      const std::int64_t rank = Rank(key) - 1;
      return spec_->min + (spec_->scrambled ? Spread(rank) : rank);
    }
    case LengthDistribution::kLognormal:
      return Lognormal(*spec_, sigma_, OneDraw(key));
    default:
      return DrawLength(*spec_, OneDraw(key));
  }
}

}  // namespace servecast
