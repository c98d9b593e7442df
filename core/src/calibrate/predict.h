// What the model says of a measurement.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "calibrate/measurements.h"
#include "servecast/result.h"
#include "servecast/scenario.h"
#include "servecast/simulation.h"
#include "serving/hooks.h"

namespace servecast {

// The scenario with nothing but its server: a workload of its own would be drawn beside the
// measured one. Of the latency model that is calibrated: "blackbox" where the scenario has it, else
// "analytic".
Scenario ServerOf(Scenario scenario);

// The servers that took the run's requests, as these ask for them: all replicas of the scenario, or
// one server's, whose ranks of attention data parallelism are replicas here.
Scenario ServerOfRun(Scenario server, const RunLoad& run);

// All requests of the trace through the server: at their times, or by so many clients in a closed
// loop. Issues: one does not end.
Result<Report> RunRequests(Scenario server, const Trace& trace,
                           std::optional<std::int64_t> concurrency, ReportDetail detail,
                           StepObserver* observer = nullptr);

// The server with "blackbox" and, where it has another latency model, coefficients to begin with:
// as "analytic" prices its steps. Issues: it cannot be simulated.
Result<Scenario> WithBlackbox(Scenario server);

// A value for each figure of the point, ms. Issues: the model does not fit, or a request is longer
// than the server takes. Requires: a scenario of ServerOf.
Result<std::vector<double>> PredictPoint(const Scenario& server, const CalibrationPoint& point);

// Predictions of the points of one calibration, each made once. Of servers that differ in
// CalibrationParametersOf only.
class KnownPredictions {
 public:
  // So many requests may be simulated from here on, or one point at least.
  void Allow(std::int64_t requests) {
    left_ = requests;
    missing_ = false;
  }
  // nullptr: it is not known, and no more may be simulated.
  const Result<std::vector<double>>* Of(const Scenario& server,
                                        const std::vector<CalibrationPoint>& points,
                                        std::size_t point);
  bool missing() const { return missing_; }  // some was, since Allow
  std::int64_t servers() const { return static_cast<std::int64_t>(known_.size()); }

 private:
  using OfServer = std::vector<std::optional<Result<std::vector<double>>>>;
  std::map<std::vector<double>, OfServer> known_;
  std::int64_t left_ = 0;
  bool missing_ = false;
};

}  // namespace servecast
