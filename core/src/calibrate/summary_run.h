// A run of which a benchmark says means only: its rate or clients, its lengths, its latencies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "calibrate/measurements.h"
#include "calibrate/runs.h"
#include "servecast/result.h"

namespace servecast {

// How its requests came.
struct RunArrivals {
  double rate_per_s = 0;  // 0: not by a rate
  bool even = false;      // at equal gaps; else as of a Poisson process
  std::optional<std::int64_t> clients;
};

struct SummaryRun {
  std::string label;
  double requests = 0;
  RunArrivals arrivals;
  RunLengths prompt, output;
  bool one_server = false;  // as of RunLoad
  // Means, ms; nullopt: not measured.
  std::optional<double> ttft_ms, tpot_ms, e2e_ms;
};

inline constexpr double kMostRunRequests = 200'000;

// A point of it, behind the others. An issue: it has no latency.
Issues AddSummaryRun(const SummaryRun& run, Measurements& read);

}  // namespace servecast
