// Vidur's draw of a length by Zipf's law (Gray et al., SIGMOD 1994, with the sums ending one rank
// early), for compat vidur. Our own zipf (lengths.cpp) is exact.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/math.h"

namespace servecast {

class VidurZipf {
 public:
  // Requires: 1 <= min <= max, 0 < theta < 1. O(max - min).
  VidurZipf(std::int64_t min, std::int64_t max, double theta)
      : min_(min), count_(static_cast<double>(max - min + 1)), power_(1 / (1 - theta)) {
    for (double rank = 1; rank < count_; ++rank) sum_ += Exp(-theta * Log(rank));
    second_ = 1 + Exp(theta * Log(0.5));
    eta_ = (1 - Exp((1 - theta) * Log(2 / count_))) / (1 - 1 / (sum_ + 1e-8));
  }

  // Requires: 0 <= u < 1.
  std::int64_t Draw(double u) const {
    if (u * sum_ < 1) return min_;
    if (u * sum_ < second_) return min_ + 1;
    const double share = Exp(power_ * Log(eta_ * u - eta_ + 1));
    return min_ + static_cast<std::int64_t>(std::floor(count_ * share));
  }

 private:
  std::int64_t min_;
  double count_, power_, sum_ = 0, second_, eta_;
};

}  // namespace servecast
