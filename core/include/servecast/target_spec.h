// What a scenario is judged by, and the window that counts.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace servecast {

enum class SloMetric { kTtft, kTpot, kItl, kE2e, kAttainment };

// A limit on a percentile of a latency; or, of kAttainment, limits that so many per cent of the
// requests must be within, each request within all of them.
struct SloSpec {
  SloMetric metric = SloMetric::kTtft;
  double percentile = 99;
  double limit_ms = 0;                             // not of kAttainment
  std::optional<double> ttft_ms, tpot_ms, e2e_ms;  // of kAttainment: one at least
  std::string of_class;  // name of a workload's class; empty: all requests
};

// The limits that a request has to be within: the only one, or those of attainment.
struct SloLimit {
  SloMetric metric = SloMetric::kTtft;
  double ms = 0;
};
std::vector<SloLimit> LimitsOf(const SloSpec& slo);

struct MeasureSpec {
  double warmup_s = 0;              // requests that arrive before it are left out of latencies
  std::optional<double> horizon_s;  // stop here; unfinished requests are counted as such
};

}  // namespace servecast
