// How the rate of arrivals changes over time, as a change of clock: the process ticks evenly on a
// clock of its own, and this says what time it is when that one shows a given number. So the
// arrivals of any process at any rate are exact, and each has the draw that it always had.
#pragma once

#include <vector>

#include "servecast/workload_spec.h"

namespace servecast {

class RateProfileClock {
 public:
  explicit RateProfileClock(const ArrivalSpec& spec);

  // The time in s at which the integral of the factor from 0 is `area` (in s); infinity when it
  // never is. Requires: `area` does not fall from call to call.
  double TimeOf(double area);

 private:
  // Until the next one begins: the profile's own factor times `factor`.
  struct Segment {
    double from = 0;
    double factor = 1;
  };
  double AreaOf(double time) const;  // of the profile alone, without segments
  double TimeIn(double area) const;  // its inverse
  double DiurnalTime(double area) const;

  const ArrivalSpec& spec_;
  double swing_ = 0;  // diurnal: the factor is 1 + swing cos
  std::vector<Segment> segments_;
  std::size_t at_ = 0;
  double done_ = 0;  // area before segment at_
};

}  // namespace servecast
