// Power of GPUs, from what their steps need of the data sheet's peaks (work.h). A GPU draws
//   idle_w + busy share x busy_w + use of arithmetic x compute_w + of bandwidth x memory_w
// and, while steps run, no more than power_cap_w, or power_limit_w if that is set. All are sums of
// a run, so power costs nothing while it runs; the cap is applied to each interval of the series.
// docs/model.md has the fit.
#pragma once

#include <cstddef>

#include "metrics/work.h"
#include "servecast/scenario.h"

namespace servecast {

// A card of which only the cap is known has no law.
inline bool KnowsPower(const HardwareSpec& h) {
  return h.power_cap_w > 0 && h.busy_w + h.compute_w + h.memory_w > 0;
}

// Mean W of a GPU over a time of which `busy` (0 to 1) is spent in steps, and `use` is its share of
// the peaks over that time. Requires: KnowsPower. At least the idle power, at most the cap; never
// less with more of any.
double MeanWatts(const HardwareSpec& hardware, double busy, const PeakUse& use);

}  // namespace servecast
