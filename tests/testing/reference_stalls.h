// The stalls of a replica's API server, one after the other.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/math.h"
#include "base/random.h"
#include "serving/policy.h"

namespace servecast::testing {

// How long a token that is ready at `time` waits for them.
inline TimeNs ReferenceStall(const StallTimes& times, std::int64_t seed, std::int64_t replica,
                             TimeNs time) {
  if (times.mean == 0) return 0;
  TimeNs out = time;
  // None is longer than an interval, so that those before the last ten are over.
  for (std::int64_t i = std::max<std::int64_t>(0, time / times.interval - 10);
       i * times.interval <= time; ++i) {
    const auto draw = [&](std::int64_t which) {
      return Uniform(seed, Stream::kHostStall, replica, 2 * i + which);
    };
    const TimeNs begin =
        i * times.interval + NearestNs(draw(0) * static_cast<double>(times.interval));
    const double exponential = -Log(draw(1)) * static_cast<double>(times.mean);
    const TimeNs longest = std::min(times.interval, 8 * times.mean);
    const TimeNs end = begin + NearestNs(std::min(exponential, static_cast<double>(longest)));
    if (begin <= time) out = std::max(out, end);
  }
  return out - time;
}

}  // namespace servecast::testing
