// The measure that a plan goes by: what share of its limit a target takes.
#pragma once

#include <algorithm>
#include <limits>

#include "base/math.h"
#include "servecast/scenario.h"

namespace servecast {

// Of its limits, what a request takes that never has an answer. Any more would say no more, and
// would make a step of the curve.
constexpr double kNoAnswer = 4;

// In the unit of a target's findings: attainment's are shares of the limits of each request.
inline double LimitOf(const SloSpec& slo) {
  return slo.metric == SloMetric::kAttainment ? 1 : slo.limit_ms;
}

// Of a value, and of the share of requests without one over the share that may be beyond: the more.
// Of attainment the value alone, in which requests without an answer have a share of kNoAnswer:
// that of requests beyond passes what is allowed at the same load, but grows much faster, and the
// more of the two bends where it passes 1.
inline double StrainOf(const SloSpec& slo, double value, double unserved) {
  if (slo.metric == SloMetric::kAttainment) return value;
  const double allowed = 1 - slo.percentile / 100;
  const double lost = unserved <= 0 ? 0
                      : allowed > 0 ? unserved / allowed
                                    : std::numeric_limits<double>::infinity();
  return std::max(value / LimitOf(slo), lost);
}

// Of a strain; finite for all that is finite.
inline double LogOf(double strain) { return Log(std::max(strain, 1e-9)); }

}  // namespace servecast
