// Which measurements to take next: by how much each would narrow what is known of the constants.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibrate/calibrate.h"

namespace servecast {

// A run of vllm bench serve, whose result is read as any other.
struct AdvisedMeasurement {
  std::string command, what;  // "single prompts of 4,096 tokens"
  // Constants whose interval it narrows most, by their title.
  std::vector<std::string> tells;
};

struct MeasurementAdvice {
  std::vector<AdvisedMeasurement> measurements;  // the most telling first
  // Of each constant: half of its 95 % interval with what there is, and with these as well; in the
  // constant's unit. nullopt: beyond what would say anything.
  struct Expected {
    const CalibrationParameter* parameter = nullptr;
    std::optional<double> now, then;
  };
  std::vector<Expected> expected;
};

inline constexpr std::size_t kAdvisedMeasurements = 5;

// The greedy D-optimal choice out of runs that anybody can make: each is the one that shrinks the
// volume of what is not known most, by the fit's own information matrix at the scenario's
// constants. `measured`: what there is already; may be nothing. Resumable, as a CalibrationRun.
class MeasurementDesign {
 public:
  // `model`: as the benchmark names it; "": the scenario's own name.
  MeasurementDesign(const Scenario& scenario, Measurements measured, std::string model);

  bool Advance(std::int64_t requests);
  const Result<MeasurementAdvice>& answer() const { return *answer_; }  // Requires: finished.

 private:
  // Derivatives of the figures of a point, in units of their scatter, by what would matter of each
  // constant. nullopt: a prediction is missing. Empty: the server cannot serve it.
  std::optional<std::vector<std::vector<double>>> RowsOf(std::size_t point);

  Scenario server_;
  std::string model_;
  Measurements measured_;
  std::vector<CalibrationPoint> points_;  // the measured ones, then candidates
  std::size_t candidates_from_ = 0;
  KnownPredictions known_;
  std::optional<Result<MeasurementAdvice>> answer_;
};

}  // namespace servecast
