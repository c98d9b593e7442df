// The clock of a run: monotonic, from its beginning. The wall clock is read twice, at both ends,
// and no time of a request depends on it.
#pragma once

#include <chrono>

#include "base/base.h"

namespace servecast {

class RunClock {
 public:
  TimeNs Now() const { return NsOf(std::chrono::steady_clock::now() - begin_); }
  // Since 1970, as the wall clock said at the beginning, and so long after it.
  double WallAt(TimeNs time) const { return wall_s_ + Seconds(time); }
  // By how much more than this clock the wall clock has moved since: it was set, or we slept.
  double WallMoved() const { return WallNow() - WallAt(Now()); }

 private:
  static TimeNs NsOf(std::chrono::steady_clock::duration time) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
  }
  static double WallNow() {
    const auto since = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration<double>(since).count();
  }

  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  double wall_s_ = WallNow();
};

}  // namespace servecast
