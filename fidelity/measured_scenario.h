// What was asked of a measured server, as a scenario that anybody can open: in the page, or by the
// command.
#pragma once

#include <string>

#include "measured_sets.h"
#include "servecast/result.h"
#include "servecast/scenario.h"
#include "servecast/trace.h"
#include "servecast/workload_spec.h"

namespace servecast {

LengthSpec LengthsOf(const MeasuredLengths& lengths);

// A closed loop, of fixed lengths or of seats that are always taken.
Scenario ClosedLoopOf(const MeasuredLoad& load, Scenario setup);

// Requests in turn over a pool of prompts; `setup` learns from when on they count.
Trace PromptPoolOf(const MeasuredLoad& load, Scenario& setup);

Trace RecordedTrace(const std::vector<MeasuredRequest>& requests);

// The canonical text of a scenario of that load. Closed loops are what was simulated; arrivals of
// an open loop are drawn anew; recorded requests and pools of prompts become a workload fitted to
// them, as `servecast fit-trace` does it; a single prompt and a decode step are repeated by
// requests that have nothing else beside them. `setup`: the row's server. Issues: why there is
// none.
Result<std::string> OpenScenario(const Measured& row, const Scenario& setup,
                                 const std::string& name);

}  // namespace servecast
