// What servecast estimate and servecast validate say of a scenario beyond its simulation: the
// closed-form answer beside the simulated one, and whether coefficients can be true.
#pragma once

#include <string>

#include "policies/estimate.h"
#include "servecast/report.h"
#include "servecast/trace.h"

namespace servecast {

extern const char kEstimateHelp[];

// Issues: requests that do not come over time, a model that does not fit, a trace that is missing.
Result<Estimate> EstimateOf(const Scenario& scenario, const Trace& trace);

std::string EstimateText(const Estimate& estimate, const Report& report);

// Of the coefficients of blackbox or physics; "" with any other latency model.
std::string PlausibilityText(const Scenario& scenario);

}  // namespace servecast
