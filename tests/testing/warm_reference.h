// Warm replicas of a scaler that only adds replicas: when each of its own must be up is read off
// the schedule.
#pragma once

#include <cstdint>
#include <string>

namespace servecast::testing {

struct WarmComparison {
  std::int64_t starts = 0, wakes = 0;
  std::string mismatch;  // "" where they agree
};
WarmComparison CompareWarm(std::uint64_t seed);

}  // namespace servecast::testing
