// See arrivals.h.
#include "workload/arrivals.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "base/random.h"
#include "servecast/workload_spec.h"

namespace servecast {
namespace {

// e^x where what is too small is 0.
double ExpOrZero(double x) { return x < -700 ? 0 : Exp(std::min(x, 700.0)); }

// Gamma with mean 1 by Marsaglia and Tsang, ACM Trans. Math. Softw. 26 (2000); for shapes below 1
// by their U^(1/shape). 95 % of the first tries are accepted.
double UnitGamma(double shape, std::int64_t seed, std::int64_t entity) {
  const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  for (std::int64_t index = 1;; index += 2) {
    const double x = NormalQuantile(Uniform(seed, Stream::kArrival, entity, index));
    const double t = 1 + c * x;
    if (t <= 0) continue;
    const double v = t * t * t;
    const double u = Uniform(seed, Stream::kArrival, entity, index + 1);
    if (Log(u) > 0.5 * x * x + d - d * v + d * Log(v)) continue;
    if (shape >= 1) return d * v / shape;
    return d * v / shape * ExpOrZero(Log(Uniform(seed, Stream::kArrival, entity)) / shape);
  }
}

// 1 / shape of the Weibull distribution of that cv, by bisection:
// 1 + cv^2 = Gamma(1 + 2/k) / Gamma(1 + 1/k)^2, which grows with 1/k.
double WeibullPower(double cv) {
  const double wanted = Log(1 + cv * cv);
  double low = 0, high = 20;
  for (int i = 0; i < 60; ++i) {
    const double power = 0.5 * (low + high);
    const bool below = LogGamma(1 + 2 * power) - 2 * LogGamma(1 + power) < wanted;
    (below ? low : high) = power;
  }
  return low;
}

}  // namespace

TimeNs DrawThinkTime(std::int64_t seed, std::int64_t row, double mean_s) {
  return NearestNs(-Log(Uniform(seed, Stream::kThinkTime, row)) * (mean_s * 1e9));
}

// A moment is in a think time with a chance in proportion to its mean; what is left of that one is
// exponential as well, and those after it are whole.
TimeNs DrawStart(std::int64_t seed, std::int64_t session, const ClientCycle& cycle) {
  std::int64_t index = 0;  // that of a row's own think time is 0
  const auto uniform = [&] { return Uniform(seed, Stream::kThinkTime, session, ++index); };
  double left_s = -Log(uniform()) * cycle.pause_s;
  const double into = uniform() * cycle.MeanThinking() - cycle.pause_s;
  if (into >= 0 && cycle.think_time_s > 0) {
    const auto times =
        std::min(static_cast<std::int64_t>(into / cycle.think_time_s) + 1, cycle.turns - 1);
    for (std::int64_t i = 0; i < times; ++i) left_s -= Log(uniform()) * cycle.think_time_s;
  }
  return NearestNs(std::min(left_s * 1e9, kLatestNs));
}

std::optional<TimeNs> UnderWayStream::Next() {
  units_ -= Log(Uniform(seed_, Stream::kUnderWay, drawn_++));
  const double left = 1 - units_ / conversations_;
  if (!(left > 0)) return std::nullopt;
  const double ns = -Log(left) * think_ns_;
  return ns <= kLatestNs ? std::optional(NearestNs(ns)) : std::nullopt;
}

ArrivalStream::ArrivalStream(const ArrivalSpec& spec, double rate_per_s, std::int64_t seed)
    : spec_(spec), mean_ns_(1e9 / rate_per_s), seed_(seed) {
  if (spec.profile != RateProfile::kFlat || !spec.spikes.empty()) clock_.emplace(spec);
  if (spec.process == ArrivalProcess::kWeibull) {
    weibull_power_ = WeibullPower(spec.cv);
    weibull_scale_ = Exp(-LogGamma(1 + weibull_power_));
  }
}

double ArrivalStream::Gap(std::int64_t entity) const {
  if (spec_.process == ArrivalProcess::kGamma) {
    return UnitGamma(1 / (spec_.cv * spec_.cv), seed_, entity);
  }
  const double u = Uniform(seed_, Stream::kArrival, entity);
  if (spec_.process == ArrivalProcess::kUniform) return 2 * u;
  if (spec_.process == ArrivalProcess::kWeibull) {
    return weibull_scale_ * ExpOrZero(weibull_power_ * Log(-Log(u)));
  }
  return -Log(u);
}

std::optional<TimeNs> ArrivalStream::Next() {
  const std::int64_t entity = started_++;
  const bool constant = spec_.process == ArrivalProcess::kConstant;
  double ns = 0;
  if (constant) {
    units_ = static_cast<double>(entity);
    ns = mean_ns_ * units_;
  } else {
    const double gap = Gap(entity);
    units_ += gap;
    ns = gap * mean_ns_;
  }
  if (clock_) ns = clock_->TimeOf(units_ * mean_ns_ * 1e-9) * 1e9;
  const double before = clock_ || constant ? 0 : static_cast<double>(time_);
  if (!(before + ns <= kLatestNs)) return std::nullopt;
  time_ = clock_ || constant ? std::max(time_, NearestNs(ns)) : time_ + NearestNs(ns);
  return time_;
}

}  // namespace servecast
