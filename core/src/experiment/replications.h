// What makes runs of one scenario independent, and when there can be more than one.
#pragma once

#include <cstdint>

#include "servecast/scenario.h"

namespace servecast {

// Of run 0 the scenario's own.
std::int64_t SeedOfRun(std::int64_t seed, std::size_t run);

// The arrivals are those of a file: there is one path.
bool ReplaysTrace(const Scenario& scenario);

// The load is the same throughout, for as long as one likes.
bool IsSteady(const Scenario& scenario);

}  // namespace servecast
