// A measured row run in the simulator: what it would have measured.
#pragma once

#include <vector>

#include "measured_sets.h"
#include "servecast/result.h"
#include "servecast/scenario.h"

namespace servecast {

// Rows of one run share a simulation, so ask for them one after another.
class MeasuredReplay {
 public:
  // The metrics of `row.values` and perhaps others. `scenario`: its set-up. Issues: why not.
  Result<Metrics> Run(const Measured& row, Scenario scenario);

 private:
  Result<Metrics> Replay(const Measured& row, Scenario scenario);

  std::shared_ptr<const std::vector<MeasuredRequest>> replayed_;
  std::vector<double> ttft_, tpot_, e2e_;  // of `replayed_`
};

}  // namespace servecast
