// A measured row run in the simulator: what it would have measured.
#pragma once

#include <vector>

#include "evidence/response.h"
#include "measured_sets.h"
#include "servecast/result.h"
#include "servecast/scenario.h"

namespace servecast {

// What a scenario that says its requests itself would have measured.
Result<Metrics> MetricsOf(const Scenario& scenario, const ErrorFactors& factors = {});

// Rows of one run and set-up share a simulation, so ask for them one after another.
class MeasuredReplay {
 public:
  // The metrics of `row.values` and perhaps others. `scenario`: its set-up; `factors`: of its step,
  // prompt and host times. Issues: why not.
  Result<Metrics> Run(const Measured& row, Scenario scenario, const ErrorFactors& factors = {});

 private:
  Result<Metrics> Replay(const Measured& row, Scenario scenario, const ErrorFactors& factors);

  // The run and the scenario that were simulated last, and what came out of each request.
  std::shared_ptr<const std::vector<MeasuredRequest>> replayed_;
  std::uint64_t scenario_ = 0;
  ErrorFactors factors_;
  std::vector<double> arrival_, ttft_, tpot_, e2e_;
  double preemptions_ = 0;
};

}  // namespace servecast
