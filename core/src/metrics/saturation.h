// Is work arriving faster than it is served?
#pragma once

#include <cstdint>
#include <optional>

#include "servecast/report.h"
#include "servecast/scenario.h"

namespace servecast {

// What a run's queue did over the last half of its arrivals: bins [first_bin, last_bin) of the
// report's series, and requests that arrived, and that were first scheduled, within them. Those
// that a full queue turned away are none of its load: a queue with a cap does not grow for ever.
struct QueueHistory {
  std::size_t first_bin = 0, last_bin = 0;
  double bin_s = 0;
  bool closed_loop = false;  // clients wait for their answers; the history is of all of the run
  bool capped = false;       // as they have so many requests in flight, and more to send
  std::int64_t arrived = 0, started = 0, completed = 0;
  std::int64_t gave_up = 0;  // of the arrived: timed out before they were started
  double blocked_share = 0;  // of the whole run: admission waited for blocks, seats or tokens
  double compute_share = 0;  // of the whole run: steps were bound by arithmetic
  double replicas = 1;
  // Several pools: the mean use of the scarcest of the three in any of them.
  std::optional<double> scarcest_use;
};

// Overloaded: the queue grows (slope of 16 batch means, one-sided t test at 99 %), or clearly many
// give up in it, and clearly fewer requests were started than arrived (by one standard deviation of
// a Poisson count). Arrivals that last too short for 16 batches are judged by the counts alone.
// Never in a closed loop: its clients wait for their answers, so no work can arrive faster than it
// is served.
// Near: the scarcest of KV blocks, seats, tokens and arithmetic is used to 90 %, or admission was
// blocked 5 % of the time, or the requests in the system (with many seats the backlog runs rather
// than waits) grew as above.
Saturation AssessSaturation(const EngineSpec& engine, const Report& report,
                            const QueueHistory& history);

// Whether the scarcest is used so, or admission was blocked so. Requires as below.
bool IsStrained(const Report& report);

// What many runs, which are not overloaded, say of it in the place of one. Requires: the report's
// saturation, and its shares of time.
void PutFilling(bool filling, Report& report);

}  // namespace servecast
