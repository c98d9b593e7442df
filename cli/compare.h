// Runs of one scenario under several settings, side by side.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "servecast/report.h"
#include "servecast/scenario.h"

namespace servecast {

// A table: a row a figure, a column a run, under each run but the first how far it is from the
// first. Requires: at least one run.
std::string ComparisonText(const std::vector<std::pair<std::string, Report>>& runs);

// The changes that run a scenario under each latency model: analytic, roofline, physics, and
// blackbox with its own coefficients or the published set for its model and GPU, if any.
std::vector<std::vector<std::string>> BackendVariants(const Scenario& scenario);

}  // namespace servecast
