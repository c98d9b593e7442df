// When a replica's API server stands still, and first tokens that are ready wait (decision 062).
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/base.h"
#include "base/math.h"
#include "base/random.h"
#include "serving/policy.h"

namespace servecast {

// One stall in each interval of time, from an instant that is uniform in it. Its length is
// exponential, but at most the lesser of kLongest means and an interval.
class HostStalls {
 public:
  static constexpr std::int64_t kLongest = 8;

  HostStalls(const StallTimes& times, std::int64_t seed, std::int64_t replica)
      : mean_(times.mean),
        interval_(std::max<TimeNs>(1, times.interval)),
        longest_(times.mean <= interval_ / kLongest ? times.mean * kLongest : interval_),
        seed_(seed),
        replica_(replica) {}

  bool Any() const { return mean_ > 0; }

  // What is left at `time` of the stalls that are under way; 0: none is. A function of the time
  // alone, so that it does not matter who asks when. Requires: Any(), time >= 0. O(1).
  TimeNs LeftAt(TimeNs time) const {
    const std::int64_t own = time / interval_;
    const TimeNs left = LeftOf(own, time);
    // One that began in the interval before may last into this one.
    return own > 0 ? std::max(left, LeftOf(own - 1, time)) : left;
  }

 private:
  TimeNs LeftOf(std::int64_t interval, TimeNs time) const {
    const TimeNs since =
        time - interval * interval_ - NearestNs(Draw(2 * interval) * Ns(interval_));
    if (since < 0 || since >= longest_) return 0;
    const TimeNs length =
        NearestNs(std::min(-Log(Draw(2 * interval + 1)) * Ns(mean_), Ns(longest_)));
    return std::max<TimeNs>(0, length - since);
  }
  double Draw(std::int64_t index) const {
    return Uniform(seed_, Stream::kHostStall, replica_, index);
  }
  static double Ns(TimeNs time) { return static_cast<double>(time); }

  TimeNs mean_, interval_, longest_;
  std::int64_t seed_, replica_;
};

}  // namespace servecast
