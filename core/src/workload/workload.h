// From a workload's description, or a trace, to the requests of a run.
#pragma once

#include "servecast/result.h"
#include "servecast/scenario.h"
#include "servecast/trace.h"
#include "workload/request_table.h"

namespace servecast {

// Arrivals of a trace bring all its rows; lengths alone are taken from its rows in turn. Draws are
// keyed by request and stream: changing the arrivals leaves the lengths as they were. Issues: a
// trace that is asked for and missing, or times beyond what a run can hold. O(requests).
Result<RequestTable> MakeRequests(const Scenario& scenario, const Trace& trace);

// One length, for draw `u` in (0, 1), at least 1 token. Requires: not from a trace.
std::int64_t DrawLength(const LengthSpec& spec, double u);

}  // namespace servecast
