// The scenario of a measured server, where its files name it.
#pragma once

#include <string>
#include <vector>

#include "calibrate/measurements.h"
#include "servecast/result.h"
#include "servecast/scenario.h"

namespace servecast {

// A document with the presets that the names mean and the engine's options as stated. Issues: a
// name that is missing, or of which there is no preset.
Result<std::string> ServerDocument(const MeasuredServer& server);

// A line for each thing in which the scenario is another server than the measured one.
std::vector<std::string> ServerMismatches(const MeasuredServer& server, const Scenario& scenario);

}  // namespace servecast
