// What the prompts of a trace have in common, as the content tree of its request table.
#pragma once

#include <cstdint>
#include <vector>

#include "servecast/trace.h"
#include "workload/request_table.h"

namespace servecast {

// A segment for each row of the trace that is played, as its prefixes say, whether or not it is
// kept, and one for each request that takes a row again: its whole prompt is that of the first
// time. `positions`: of the requests in the trace played over and over; empty: all in turn.
// `scale`: of the prompts. Requires: prompts of the trace, ascending positions. O(requests + rows).
void FillContent(const Trace& trace, const std::vector<std::int64_t>& positions, double scale,
                 RequestTable& table);

}  // namespace servecast
