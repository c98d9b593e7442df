// Requests of a run of which only the rate and the lengths are known.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/measured_rows.h"
#include "servecast/trace.h"

namespace servecast {

// Arrivals of a Poisson process of which so many are known to have come; seconds, ascending, from
// the first. `draw`: its seed.
std::vector<double> PoissonArrivals(std::int64_t requests, double duration_s, std::int64_t draw);

// So many draws of a Poisson process of which so many requests are known to have come; in a burst
// where there is no rate. Lengths are spread over their distribution and only their order is drawn,
// so that every draw has their mean. O(draws * n log n).
std::vector<Trace> DrawRuns(std::int64_t requests, double rate_per_s, const RunLengths& prompt,
                            const RunLengths& output, std::int64_t draws);

}  // namespace servecast
