// The measure that a plan goes by: what share of its limit a target takes.
#pragma once

#include <algorithm>
#include <limits>

#include "base/math.h"
#include "servecast/scenario.h"

namespace servecast {

// In the unit of a target's findings: attainment's are shares of the limits of each request.
inline double LimitOf(const SloSpec& slo) {
  return slo.metric == SloMetric::kAttainment ? 1 : slo.limit_ms;
}

// Of a value, and of the share of requests without one over the share that may be beyond: the more.
inline double StrainOf(const SloSpec& slo, double value, double unserved) {
  const double allowed = 1 - slo.percentile / 100;
  const double lost = unserved <= 0 ? 0
                      : allowed > 0 ? unserved / allowed
                                    : std::numeric_limits<double>::infinity();
  return std::max(value / LimitOf(slo), lost);
}

// Of a strain; finite for all that is finite.
inline double LogOf(double strain) { return Log(std::max(strain, 1e-9)); }

}  // namespace servecast
