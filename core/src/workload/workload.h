// From a workload's description, or a trace, to the requests of a run.
#pragma once

#include "servecast/result.h"
#include "servecast/scenario.h"
#include "servecast/trace.h"
#include "workload/request_table.h"

namespace servecast {

// Of a prompt or an output, everywhere.
inline constexpr std::int64_t kMostTokens = 1'000'000'000;

// Arrivals of a trace bring all its rows; lengths alone are taken from its rows in turn. The rows
// of a session stand together, the last session may be cut short, and sessions start in order.
// Draws are keyed by stream and row, or session: changing one part leaves the others' draws as they
// were. A prompt that adds up to more than kMostTokens tokens has that many. Requires: no sessions
// with a trace. Issues: a trace that is asked for and missing, times beyond what a run can hold, a
// prefix before prompts that a trace's hash ids tell already. O(requests).
Result<RequestTable> MakeRequests(const Scenario& scenario, const Trace& trace);

// One length, for draw `u` in (0, 1), at least 1 token. Requires: not from a trace.
std::int64_t DrawLength(const LengthSpec& spec, double u);

}  // namespace servecast
