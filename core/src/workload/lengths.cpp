// Draws lengths; see workload.h.
#include <algorithm>
#include <cmath>

#include "base/base.h"
#include "base/math.h"
#include "workload/workload.h"

namespace servecast {
namespace {

constexpr double kNormalP99 = 2.3263478740408408;  // standard normal quantile at 0.99
constexpr auto kMaxTokens = static_cast<double>(kMostTokens);

// [probability, tokens] pairs, ascending, first at 0 and last at 1 (the parser checks).
double EmpiricalQuantile(const std::vector<std::vector<double>>& table, double u) {
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

}  // namespace

std::int64_t DrawLength(const LengthSpec& spec, double u) {
  const auto low = static_cast<double>(spec.min);
  const double high = spec.max ? static_cast<double>(*spec.max) : kMaxTokens;
  switch (spec.distribution) {
    case LengthDistribution::kFixed:
      return spec.value;
    case LengthDistribution::kUniform:  // every integer of [min, max] equally likely
      return std::min(static_cast<std::int64_t>(low + std::floor(u * (high - low + 1))), *spec.max);
    case LengthDistribution::kLognormal: {
      const double sigma = Log(spec.p99 / spec.median) / kNormalP99;
      // Beyond this exponent the clip decides.
      const double exponent = std::min(sigma * NormalQuantile(u), 50.0);
      return Clip(spec.median * Exp(std::max(exponent, -50.0)), low, high);
    }
    case LengthDistribution::kEmpirical:
      return Clip(EmpiricalQuantile(spec.quantiles, u), 1, kMaxTokens);
    case LengthDistribution::kTrace:
      break;
  }
  SERVECAST_CHECK(false, "lengths of a trace are not drawn");
}

}  // namespace servecast
