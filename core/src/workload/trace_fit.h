// A trace as a workload that resembles it: a rate over time, bursts, lengths, what prompts share. A
// few hundred numbers, however long the trace is.
#pragma once

#include "servecast/result.h"
#include "servecast/scenario.h"
#include "servecast/trace.h"
#include "servecast/workload_spec.h"

namespace servecast {

struct FittedTrace {
  WorkloadSpec workload;
  Trace drawn;  // its requests for seed 1, as many as the trace has
};

// Issues: a trace longer than a scenario's times go, or slower than its rates. O(n log n).
Result<FittedTrace> FitTrace(const Trace& trace);

}  // namespace servecast
