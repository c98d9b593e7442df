// Which rows of a trace arrive, and when.
#pragma once

#include <cstdint>
#include <vector>

#include "base/base.h"
#include "servecast/result.h"
#include "servecast/scenario.h"
#include "servecast/trace.h"

namespace servecast {

struct ArrivalSpec;

struct Replay {
  // In the trace played over and over: row + rows * times played before.
  std::vector<std::int64_t> positions;
  TimeNs period = 0;  // a repetition begins one mean gap after the last arrival of the one before
};

// Which rows are kept is keyed by row and repetition. Issues: more requests than a run can have, or
// none, or times beyond it. O(rows played).
Result<Replay> ReplayOf(const WorkloadSpec& workload, std::int64_t seed, const Trace& trace);

TimeNs ReplayedArrival(const ArrivalSpec& arrivals, const Trace& trace, const Replay& replay,
                       std::int64_t position);

}  // namespace servecast
