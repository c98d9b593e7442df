// Coefficients of a linear latency model, trained on traces by ridge regression: which lambda and
// which average of preemptions, how far off, and whether that is good enough.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "calibrate/samples.h"
#include "servecast/result.h"
#include "servecast/scenario.h"

namespace servecast {

// Of some samples.
struct TrainingError {
  std::string of;  // "fitted", "held out", "held out, queued", "left out: trace.json"
  std::int64_t samples = 0;
  double mape = 0;                                 // per cent; of targets above 0
  double rmse_us = 0, most_us = 0, median_us = 0;  // most: of an error; median: of the target
};

// What is left of the held-out samples in a bin of what they are told by.
struct ResidualBin {
  const char* by = "";
  double from = 0, to = 0;
  std::int64_t samples = 0;
  double mean_percent = 0, rms_percent = 0;  // of the mean target; predicted less measured
};

// A limit that a training has to keep.
struct TrainingCheck {
  std::string what;
  double value = 0, limit = 0;
  bool met = true;
};

struct TrainedVector {
  const char* name = "";                        // "beta", "alpha", "wait"
  std::vector<double> coefficients, low, high;  // us; 95 %
  bool trained = false;                         // else they are those of the scenario
  std::int64_t samples = 0;
  double lambda = 0, degrees = 0;
  std::vector<TrainingError> errors;  // the first is what the scenario's own would be off by
  std::vector<ResidualBin> residuals;
  std::vector<TrainingCheck> checks;
};

struct Training {
  std::string_view backend;         // "physics", "blackbox"
  TrainedVector beta, alpha, wait;  // blackbox: no wait
  double gamma = 0.3;
  double per_output_token_us = 0;  // blackbox: alpha[2]
  std::vector<std::string> found, warnings;
};

// A trace and the server that it is of.
struct TracedServer {
  StepTrace trace;
  Scenario scenario;
};

struct TrainingOptions {
  bool blackbox = false;
  // Takes the median wait of requests that find no queue off the targets of `wait`.
  bool noise_correction = false;
};

// Fits to the first four fifths of each trace by time and judges by the rest, with several
// configurations also by leaving each out. Pure: the same traces give the same bits.
Result<Training> Train(const std::vector<TracedServer>& servers, const TrainingOptions& options);

// The section "latency" of a document with the coefficients; JSON.
std::string LatencyOf(const Training& training, const Scenario& scenario);

// The shares of samples that are for training, and the places where folds of a part of n begin.
inline constexpr double kTrainedShare = 0.8;
inline constexpr std::size_t kFoldBlocks =
    6;  // of time; five folds: each is judged by what was before
inline constexpr double kLambdas[] = {0, 0.001, 0.01, 0.1, 1, 10, 100};

}  // namespace servecast
