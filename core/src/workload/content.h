// What the prompts of a run have in common, as the content tree of its request table.
#pragma once

#include <cstdint>

#include "servecast/scenario.h"
#include "servecast/trace.h"
#include "workload/request_table.h"

namespace servecast {

// A segment for each prefix group, then one for each session, whose beginning is its group's.
// Requires: prompts that begin with the prefix. O(requests).
void FillContent(const WorkloadSpec& workload, std::int64_t seed, RequestTable& table);

// A segment for each request, as the trace's prefixes say. A row that is taken again has the whole
// prompt of its first time. Requires: prompts of the trace, in turn. O(requests).
void FillContent(const Trace& trace, RequestTable& table);

}  // namespace servecast
