// See so_far.h.
#include "plan/so_far.h"

#include <algorithm>
#include <cmath>

#include "servecast/workload_spec.h"

namespace servecast {

namespace {

// How the number of requests scatters that come in the time of n: by so many times sqrt(n). That of
// a trace as of a Poisson process; a conversation brings its turns.
double CvOf(const WorkloadSpec& workload) {
  const double turns = std::sqrt(static_cast<double>(workload.sessions.turns));
  switch (workload.arrivals.process) {
    case ArrivalProcess::kConstant:
      return 0;
    case ArrivalProcess::kGamma:
    case ArrivalProcess::kWeibull:
      return workload.arrivals.cv * turns;
    default:
      return turns;
  }
}

}  // namespace

std::vector<PlanPlace>& SoFar::Asked() { return scouting ? scouts : places; }

StrainGrowth SoFar::GrowthAt(double at) const {
  return GrowthNear(slope, places, at).value_or(StrainGrowth{growth, 0});
}

Crossing SoFar::CrossingBy(const PlanPlace& middle) const {
  return CrossingFrom(middle, GrowthAt(middle.at), slope, places, CvOf(*scenario.workload));
}

Crossing SoFar::Ends() const {
  const PlanPlace* middle = Whole() ? nullptr : MiddleOf(places);
  if (middle != nullptr) return CrossingBy(*middle);
  double at[3];
  for (std::size_t c = 0; c < 3; ++c) at[c] = CrossingOf(slope, SamplesOf(places, kCurves[c]));
  return {at[0], std::min({at[0], at[1], at[2]}), std::max({at[0], at[1], at[2]})};
}

}  // namespace servecast
