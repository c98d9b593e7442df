// A calibration: the parameters of the latency model that measurements of a server ask for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/measurements.h"
#include "calibrate/parameters.h"
#include "calibrate/power_fit.h"
#include "calibrate/predict.h"
#include "calibrate/replay.h"
#include "servecast/scenario.h"

namespace servecast {

// Relative scatter of a figure: means of repeated runs differ by about 2 %, TTFT, which waits for
// steps that arrive by chance, by more (inference-sim/training@c4f0340, repeated experiments).
double ScatterOf(PointForm form, Figure figure);

// How far predictions are off, of all points that are fitted or of all that are held out.
struct CalibrationError {
  PointForm form = PointForm::kPrompt;
  Figure figure = Figure::kTtft;
  bool held_out = false;
  std::int64_t points = 0;
  struct Off {
    double mean = 0, rms = 0, median = 0, most = 0;  // absolute, per cent of what was measured
  } before, after;
};

// One that stays as it was.
struct UnknownParameter {
  const CalibrationParameter* parameter = nullptr;
  const CalibrationParameter* like =
      nullptr;  // that explains the same; nullptr: too little is said
  double value = 0;
};

struct FittedParameter {
  const CalibrationParameter* parameter = nullptr;
  double before = 0, value = 0;
  double low = 0, high = 0;  // 95 %
  bool at_limit = false;     // the measurements ask for more than physics allows
};

// What the measurements cover; outside of it a calibration is a guess.
struct SeenRange {
  const char* name;  // "prompt_tokens", "batch", "context_tokens", "output_tokens"; "rate_per_s"
                     // and "concurrency", of one replica
  double low = 0, high = 0;
};

struct PointResidual {
  std::string label;
  PointForm form = PointForm::kPrompt;
  Figure figure = Figure::kTtft;
  bool held_out = false;
  // Of a prompt its tokens; of a step batch and context; of a run its rate, else its clients.
  double at = 0, context = 0;
  double measured_ms = 0, before_ms = 0, after_ms = 0;
};

// How far the requests of a run are from being replayed, one by one.
struct RunReplay {
  std::string label;
  bool held_out = false;
  std::vector<ReplayDistance> before, after;
};

struct Calibration {
  LatencySpec latency;        // the model that was fitted, with its coefficients where it has some
  std::int64_t replicas = 1;  // that took a run's requests together
  std::vector<FittedParameter> fitted;
  std::vector<UnknownParameter> unknown;  // all others
  std::vector<CalibrationError> errors;
  std::vector<SeenRange> seen;
  std::vector<PointResidual> residuals;
  PowerFit power;                     // of the card, where it was measured
  std::vector<RunReplay> replays;     // of runs whose times are known one by one
  std::vector<std::string> warnings;  // first what cannot be told, then the measurements' own
};

// Fits to the points that are not held out what these can tell, and leaves the rest. Runs go
// through all replicas of the scenario, by its router. Pure: the same scenario and points give the
// same bits, in slices of any size. The answer's issues: a server that cannot be simulated, several
// pools, no point to fit.
//
// A slice begins the fit anew with what is predicted already, and ends where a prediction is
// missing: the algebra of some hundred servers is nothing beside one run.
class CalibrationRun {
 public:
  CalibrationRun(const Scenario& scenario, Measurements measurements);

  // Simulates about so many requests; whether it is finished.
  bool Advance(std::int64_t requests);
  double Progress() const;  // 0 to 1, never falls: an estimate, as nobody knows how many it will be
  std::int64_t Servers() const { return known_.servers(); }  // that were tried
  // Requires: finished.
  const Result<Calibration>& answer() const { return *answer_; }
  const Measurements& measurements() const { return measurements_; }

 private:
  void Replay();  // the next run
  Scenario Fitted() const;

  Scenario server_;
  Measurements measurements_;
  KnownPredictions known_;
  std::optional<Calibration> fitted_;  // replays are missing
  std::size_t replayed_ = 0;           // points
  std::optional<Result<Calibration>> answer_;
};

// The same at once.
Result<Calibration> Calibrate(const Scenario& scenario, const Measurements& measurements);

}  // namespace servecast
