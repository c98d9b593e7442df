// A calibration: the parameters of the latency model that measurements of a server ask for.
#pragma once

#include <string>
#include <vector>

#include "calibrate/measurements.h"
#include "calibrate/parameters.h"
#include "servecast/scenario.h"

namespace servecast {

// How far predictions are off, of all points that are fitted or of all that are held out.
struct CalibrationError {
  PointForm form = PointForm::kPrompt;
  Figure figure = Figure::kTtft;
  bool held_out = false;
  std::int64_t points = 0;
  struct Off {
    double mean = 0, rms = 0, most = 0;  // absolute, per cent of what was measured
  } before, after;
};

struct FittedParameter {
  const CalibrationParameter* parameter = nullptr;
  double before = 0, value = 0;
  double low = 0, high = 0;  // 95 %
  bool at_limit = false;     // the measurements ask for more than physics allows
};

// What the measurements cover; outside of it a calibration is a guess.
struct SeenRange {
  const char* name;  // "prompt_tokens", "batch", "context_tokens", "output_tokens", "rate_per_s"
  double low = 0, high = 0;
};

struct PointResidual {
  std::string label;
  PointForm form = PointForm::kPrompt;
  Figure figure = Figure::kTtft;
  bool held_out = false;
  double measured_ms = 0, before_ms = 0, after_ms = 0;
};

struct Calibration {
  std::vector<FittedParameter> fitted;  // all others are as they were
  std::vector<CalibrationError> errors;
  std::vector<SeenRange> seen;
  std::vector<PointResidual> residuals;
  std::vector<std::string> warnings;  // first what cannot be told, then the measurements' own
};

// Fits to the points that are not held out what these can tell, and leaves the rest. Pure: the same
// scenario and points give the same bits. Issues: a server that cannot be simulated, several pools,
// no point to fit.
Result<Calibration> Calibrate(const Scenario& scenario, const Measurements& measurements);

}  // namespace servecast
