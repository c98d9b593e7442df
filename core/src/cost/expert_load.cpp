// See expert_load.h.
#include "cost/expert_load.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/math.h"

namespace servecast {
namespace {

// Expected greatest of 1, 2, 4, ... 64 draws from the standard normal distribution (Harter,
// Expected values of normal order statistics, Biometrika 48, 1961, table 1).
constexpr double kGreatest[] = {0, 0.56419, 1.02938, 1.42360, 1.76599, 2.06967, 2.34373};

// Between powers of two along the logarithm, beyond 64 as of 64.
double ExpectedGreatest(double group) {
  std::size_t i = 0;
  double low = 1;
  for (; i + 1 < std::size(kGreatest) && 2 * low <= group; ++i) low *= 2;
  if (i + 1 == std::size(kGreatest)) return kGreatest[i];
  const double part = (Log(group) - Log(low)) / Log(2.0);
  return kGreatest[i] + part * (kGreatest[i + 1] - kGreatest[i]);
}

}  // namespace

double ExpertsTouched(double experts, double active, double tokens) {
  if (active >= experts) return experts;
  return experts * (1 - Exp(std::max(Log(1 - active / experts) * tokens, -700.0)));
}

BusiestGpu::BusiestGpu(double experts, double active, double group)
    : experts_(experts),
      active_(active),
      held_(std::ceil(experts / group)),
      share_(held_ / experts),
      // A token's choices are all different.
      spread_(experts > 1 ? share_ * (1 - share_) * (experts - active) / (experts - 1) : 0),
      greatest_(ExpectedGreatest(group)) {}

ExpertLoad BusiestGpu::Of(double tokens, double touched) const {
  const double chosen = tokens * active_, mean = chosen * share_;
  const double rows = std::min(std::max(1.0, mean + greatest_ * std::sqrt(chosen * spread_)),
                               tokens * std::min(held_, active_));
  const double part = touched / experts_, mean_read = held_ * part;
  const double read =
      std::min(std::max(1.0, mean_read + greatest_ * std::sqrt(mean_read * (1 - part))),
               std::min(held_, touched));
  return {std::max(1.0, rows / mean), std::max(1.0, read / mean_read)};
}

}  // namespace servecast
