// Slow replicas the naive way: all their periods are gone through for every step.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/base.h"
#include "base/math.h"
#include "base/random.h"
#include "servecast/scenario.h"

namespace servecast::testing {

// How long what takes `time` takes on the replica (of seed 1) if it begins then.
inline TimeNs ReferenceSlow(const SlowdownSpec& spec, std::int64_t replica, TimeNs begin,
                            TimeNs time, std::int64_t seed = 1) {
  const TimeNs length =
      spec.for_s ? static_cast<TimeNs>(std::nearbyint(*spec.for_s * 1e9)) : kNever;
  const auto in = [&](TimeNs from) { return from <= begin && begin - from < length; };
  bool slow = false;
  for (const std::vector<double>& row : spec.schedule) {
    if (static_cast<std::int64_t>(row[1]) == replica)
      slow |= in(static_cast<TimeNs>(std::nearbyint(row[0] * 1e9)));
  }
  TimeNs from = 0;
  for (std::int64_t i = 0; spec.mean_gap_s && from <= begin && !slow; ++i) {
    const double wait = -Log(Uniform(seed, Stream::kSlowdown, replica, i)) * *spec.mean_gap_s * 1e9;
    from += static_cast<TimeNs>(std::nearbyint(wait < 1 ? 1 : wait));
    slow = in(from);
    if (!spec.for_s) break;
    from += length;
  }
  if (!slow) return time;
  return static_cast<TimeNs>(std::nearbyint(static_cast<double>(time) * spec.factor));
}

}  // namespace servecast::testing
