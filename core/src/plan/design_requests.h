// Requests that tasks of a search look at: every design is asked to serve the same.
#pragma once

#include "servecast/result.h"
#include "servecast/scenario.h"
#include "servecast/trace.h"
#include "workload/request_table.h"

namespace servecast {

// As MakeRequests. Those of the last workload and seed are kept, as a thousand tasks ask for them
// in turn: without a trace they are a function of these two. Of a few thousand requests only.
Result<RequestTable> DrawnRequests(const Scenario& scenario, const Trace& trace);

}  // namespace servecast
