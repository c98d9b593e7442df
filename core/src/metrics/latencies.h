// Latencies of requests, collected and made distributions of.
#pragma once

#include <vector>

#include "base/base.h"
#include "servecast/report.h"

namespace servecast {

// Of values of which a millisecond has `ms`; sorts them. Without an interval.
Distribution DistributionOf(std::vector<double>& values, double ms);

// The percents of the columns of kind "cdf": even, and closer in the tail, where charts look.
std::vector<double> CdfPercents();
// At each of them; empty where there is no value.
std::vector<double> CdfOf(const std::vector<double>& sorted, double ms);

// Of one kind, ns; sorted after Distribute.
struct Latencies {
  std::vector<double> ns;
  std::int64_t censored = 0;

  void Add(TimeNs time, TimeNs since) {
    if (time < 0) {
      ++censored;
    } else {
      ns.push_back(static_cast<double>(time - since));
    }
  }
  Distribution Distribute();
};

// Of all requests, or of those of a class.
struct LatencySet {
  Latencies ttft, tpot, e2e, delay;
  std::int64_t measured = 0;  // arrived after the warm-up; of them, dropped or timed out without:
  std::int64_t without_ttft = 0, without_e2e = 0;
  std::vector<TimeNs> unfinished;  // ages at the end of the run, if still to be answered
};

}  // namespace servecast
