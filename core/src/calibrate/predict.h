// What the model says of a measurement.
#pragma once

#include <vector>

#include "calibrate/measurements.h"
#include "servecast/scenario.h"

namespace servecast {

// The scenario with nothing but its server: a workload of its own would be drawn beside the
// measured one. Of the latency model that is calibrated.
Scenario ServerOf(Scenario scenario);

// A value for each figure of the point, ms. Issues: the model does not fit, or a request is longer
// than the server takes. Requires: a scenario of ServerOf.
Result<std::vector<double>> PredictPoint(const Scenario& server, const CalibrationPoint& point);

}  // namespace servecast
