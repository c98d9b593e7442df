// See so_far.h.
#include "plan/so_far.h"

#include <algorithm>

namespace servecast {

namespace {

// Of the gaps between arrivals; of a trace as of a Poisson process.
double CvOf(const ArrivalSpec& arrivals) {
  switch (arrivals.process) {
    case ArrivalProcess::kConstant:
      return 0;
    case ArrivalProcess::kGamma:
    case ArrivalProcess::kWeibull:
      return arrivals.cv;
    default:
      return 1;
  }
}

}  // namespace

std::vector<PlanPlace>& SoFar::Asked() { return scouting ? scouts : places; }

StrainGrowth SoFar::GrowthAt(double at) const {
  return GrowthNear(slope, places, at).value_or(StrainGrowth{growth, 0});
}

Crossing SoFar::CrossingBy(const PlanPlace& middle) const {
  return CrossingFrom(middle, GrowthAt(middle.at), slope, places, CvOf(scenario.workload.arrivals));
}

Crossing SoFar::Ends() const {
  const PlanPlace* middle = Whole() ? nullptr : MiddleOf(places);
  if (middle != nullptr) return CrossingBy(*middle);
  double at[3];
  for (std::size_t c = 0; c < 3; ++c) at[c] = CrossingOf(slope, SamplesOf(places, kCurves[c]));
  return {at[0], std::min({at[0], at[1], at[2]}), std::max({at[0], at[1], at[2]})};
}

}  // namespace servecast
