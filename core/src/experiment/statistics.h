// The statistics of many runs: where a run's warm-up ends, and how sure a percentile is. Sources
// are in docs/model.md, "Certainty". Built on base/math.h alone, so bits are the same everywhere.
#pragma once

#include <cstddef>
#include <vector>

namespace servecast {

// Student's t for a probability of 0.5 to 0.999, within 1 % (of 0.999: 4 %) from 3 degrees of
// freedom on and 0.002 from 7 (Cornish-Fisher expansion, Abramowitz and Stegun 26.7.5). Requires:
// degrees >= 3.
double StudentT(double degrees, double probability);

// MSER-5: how many of the first values to leave out, so that the standard error of the mean of the
// rest is least; a multiple of 5, at most half of them. Of a system that begins empty what is left
// out is lower than the rest on average, else it is a congestion and no warm-up.
enum class Beginnings { kEmpty, kAny };
std::size_t WarmUpOf(const std::vector<double>& values, Beginnings from = Beginnings::kEmpty);

struct Interval {
  double value = 0, low = 0, high = 0;
  // Half its width in shares beyond, over the share beyond: 0.5 for p99 means between 0.5 and
  // 1.5 % lie beyond the value. From 1 on the upper end is a guess.
  double looseness = 0;
};

// Samples of independent groups: runs, or long pieces of one.
using Groups = std::vector<std::vector<double>>;

// The pooled percentile, and the interval that holds the distribution's with `confidence`. How much
// the share beyond varies between groups tells how sure it is; the share's interval, from its
// square root, whose variance hardly depends on it, is looked up in the pooled samples (Woodruff).
// Requires: eight groups or more, together not empty; samples >= 0; 50 <= percent < 100.
std::vector<Interval> PercentileIntervals(const Groups& groups, double percent,
                                          const std::vector<double>& confidences);

// A part of a whole, of one group.
struct Part {
  double part = 0, whole = 0;
};

Part SumOf(const std::vector<Part>& groups);

// The sum of parts over the sum of wholes. Requires: eight groups or more, a sum of wholes above 0.
Interval RatioInterval(const std::vector<Part>& groups, double confidence);

// The same of a share of a whole, from its square root: it stays within [0, 1].
Interval ShareInterval(const std::vector<Part>& groups, double confidence);

// The mean of a figure. Requires: eight or more.
Interval MeanInterval(const std::vector<double>& values, double confidence);

}  // namespace servecast
