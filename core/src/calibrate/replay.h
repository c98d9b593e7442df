// How near a replay comes to what was measured: the same requests through the simulator, and the
// distributions of what their clients saw.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calibrate/measurements.h"
#include "calibrate/step_trace.h"
#include "servecast/result.h"
#include "servecast/scenario.h"

namespace servecast {

// Limits of an end-to-end validation.
inline constexpr double kMostKs = 0.15, kMostMedianError = 20;  // a distance; per cent
inline constexpr std::size_t kLeastReplayed = 10;  // requests: fewer have no distribution

struct ReplayDistance {
  const char* figure = "";                   // "ttft", "itl", "tpot", "e2e"
  std::int64_t measured = 0, simulated = 0;  // values
  double ks = 0;                             // Kolmogorov and Smirnov's
  double measured_p50_ms = 0, simulated_p50_ms = 0, median_error = 0;  // per cent
  bool met = false;
};

// The largest distance of two empirical distribution functions. Sorts both. O(n log n).
double KsDistance(std::vector<double>& a, std::vector<double>& b);

// The distance of two sets of values, which must not be empty.
ReplayDistance DistanceOf(const char* figure, std::vector<double> measured,
                          std::vector<double> simulated);

// Replays all requests of the trace that were complete, and compares the last fifth. ITL are the
// gaps between tokens where every step has snapshots, else TPOT stands for them. Empty: the trace
// has fewer than kLeastReplayed.
Result<std::vector<ReplayDistance>> CompareReplay(const StepTrace& trace, Scenario scenario);

// The same of the requests of a benchmark that are compared. Empty: their times are not known one
// by one, or they are fewer than kLeastReplayed. Requires: a scenario of ServerOf.
Result<std::vector<ReplayDistance>> CompareRun(const Scenario& server, const RunLoad& run);

}  // namespace servecast
