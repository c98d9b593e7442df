// Figures of a trace: what a fit is made from and judged by.
#pragma once

#include <vector>

#include "base/base.h"
#include "servecast/trace.h"

namespace servecast {

struct LengthMoments {
  double mean = 0, p50 = 0, p90 = 0, p99 = 0;
};

struct TraceMoments {
  double requests = 0;
  double duration_s = 0;  // from the first arrival to the last
  double rate_per_s = 0;  // over the duration; 0 without one
  double peak_per_s = 0;  // in the busiest of 60 equal parts of it
  double gap_cv = 0;      // of the gaps between arrivals
  LengthMoments prompt, output;
  double rank_correlation = 0;  // of prompts and outputs, Spearman's
  double prefix_share = 0;      // of prompt tokens: those that an earlier prompt begins with
};

// O(n log n). Requires: rows.
TraceMoments MomentsOf(const Trace& trace);

// The parts that it is made of.
std::vector<std::int32_t> LengthColumn(const std::vector<TraceRow>& rows,
                                       std::int32_t TraceRow::*member);
std::vector<TimeNs> ArrivalsOf(const Trace& trace);  // ascending
double MeanOf(const std::vector<std::int32_t>& values);
// Nearest rank. Requires: ascending, not empty.
double QuantileOf(const std::vector<std::int32_t>& ascending, double p);
double RankCorrelation(const std::vector<TraceRow>& rows);  // 0 where one does not vary
double SharedTokens(const Trace& trace);

// Between ascending times; none of fewer than three times, or where all are the same.
struct Gaps {
  std::vector<double> sorted;  // with mean 1
  double cv = 0;
};
Gaps GapsOf(const std::vector<double>& times);

}  // namespace servecast
