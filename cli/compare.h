// Runs of one scenario under several settings, side by side.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "servecast/report.h"

namespace servecast {

// A table: a row a figure, a column a run, under each run but the first how far it is from the
// first. Requires: at least one run.
std::string ComparisonText(const std::vector<std::pair<std::string, Report>>& runs);

}  // namespace servecast
