// See rate_profile.h.
#include "workload/rate_profile.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/math.h"
#include "servecast/workload_spec.h"

namespace servecast {
namespace {

constexpr double kTurn = 6.283185307179586;

double FactorAt(const ArrivalSpec& spec, double time) {
  double factor = 1;
  if (spec.profile == RateProfile::kPiecewise) {
    for (const std::vector<double>& row : spec.rate_factors) {
      if (row[0] <= time) factor = row[1];
    }
  }
  for (const std::vector<double>& row : spec.spikes) {
    if (row[0] <= time && time < row[0] + row[1]) factor *= row[2];
  }
  return factor;
}

}  // namespace

RateProfileClock::RateProfileClock(const ArrivalSpec& spec)
    : spec_(spec), swing_((spec.peak_to_trough - 1) / (spec.peak_to_trough + 1)) {
  std::vector<double> starts = {0};
  if (spec.profile == RateProfile::kPiecewise) {
    for (const std::vector<double>& row : spec.rate_factors) starts.push_back(row[0]);
  }
  for (const std::vector<double>& row : spec.spikes) {
    starts.push_back(row[0]);
    starts.push_back(row[0] + row[1]);
  }
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  for (const double from : starts) segments_.push_back({from, FactorAt(spec, from)});
}

double RateProfileClock::TimeOf(double area) {
  for (; at_ + 1 < segments_.size(); ++at_) {
    const Segment& s = segments_[at_];
    const double whole = s.factor * (AreaOf(segments_[at_ + 1].from) - AreaOf(s.from));
    if (area < done_ + whole) break;
    done_ += whole;
  }
  const Segment& s = segments_[at_];
  if (s.factor <= 0) return std::numeric_limits<double>::infinity();
  const double time = TimeIn(AreaOf(s.from) + (area - done_) / s.factor);
  // Rounding must not carry an arrival over an end of its segment.
  const bool last = at_ + 1 == segments_.size();
  return std::max(s.from, last ? time : std::min(time, segments_[at_ + 1].from));
}

double RateProfileClock::AreaOf(double time) const {
  if (spec_.profile == RateProfile::kDiurnal) {
    const double period = spec_.period_h * 3600, peak = spec_.peak_hour * 3600 / period;
    return time + swing_ * period / kTurn * (SinOfTurns(time / period - peak) + SinOfTurns(peak));
  }
  if (spec_.profile != RateProfile::kRamp) return time;
  const double rising = std::min(time, spec_.ramp_s);
  const double slope = (spec_.ramp_to - spec_.ramp_from) / spec_.ramp_s;
  return rising * (spec_.ramp_from + 0.5 * slope * rising) + spec_.ramp_to * (time - rising);
}

double RateProfileClock::TimeIn(double area) const {
  if (spec_.profile == RateProfile::kDiurnal) return DiurnalTime(area);
  if (spec_.profile != RateProfile::kRamp || area <= 0) return std::max(area, 0.0);
  const double whole = AreaOf(spec_.ramp_s);
  if (area >= whole) return spec_.ramp_s + (area - whole) / spec_.ramp_to;
  // The root of the parabola, in the form that nothing cancels in.
  const double slope = (spec_.ramp_to - spec_.ramp_from) / spec_.ramp_s;
  const double root = spec_.ramp_from * spec_.ramp_from + 2 * slope * area;
  return 2 * area / (spec_.ramp_from + std::sqrt(std::max(root, 0.0)));
}

// Newton's method between bounds that close in, so that flat troughs do no harm.
double RateProfileClock::DiurnalTime(double area) const {
  const double period = spec_.period_h * 3600, peak = spec_.peak_hour * 3600 / period;
  const double most = swing_ * period / kTurn * 2;
  double low = std::max(area - most, 0.0), high = area + most, time = area;
  for (int i = 0; i < 100; ++i) {
    const double above = AreaOf(time) - area;
    (above > 0 ? high : low) = time;
    const double factor = 1 + swing_ * SinOfTurns(time / period - peak + 0.25);
    double next = time - above / factor;
    if (!(next > low && next < high)) next = low + 0.5 * (high - low);
    const double step = std::fabs(next - time);
    time = next;
    if (step <= 1e-10 + 1e-16 * time) break;
  }
  return time;
}

}  // namespace servecast
