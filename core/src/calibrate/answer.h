// A calibration as JSON for the page: all that its view shows, and the pack.
#pragma once

#include <string>

#include "calibrate/calibrate.h"
#include "calibrate/design.h"

namespace servecast {

// `document`: of the scenario that was calibrated; the answer has it with the pack, to be used.
// `date`: of today.
std::string CalibrationJson(const Calibration& calibration, const Measurements& measurements,
                            const Scenario& scenario, const std::string& document,
                            const MeasurementAdvice& advice, const std::string& date);

std::string AdviceJson(const MeasurementAdvice& advice);

}  // namespace servecast
