// See answers.h.
#include "observe/answers.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace servecast {

std::optional<TimeNs> RetryWait(Outcome outcome, std::int32_t tries, std::int64_t retries,
                                double retry_after_s, std::int64_t row) {
  if (outcome != Outcome::kRefused && outcome != Outcome::kUnconnected) return std::nullopt;
  if (tries > retries) return std::nullopt;
  constexpr double kLongestS = 60;
  const double doubled = std::min(kLongestS, 0.25 * std::exp2(std::min(tries - 1, 20)));
  // By row and try, so that those who were refused together do not come back together.
  const std::uint64_t bits =
      Mix64(static_cast<std::uint64_t>(row) * kGolden + static_cast<std::uint64_t>(tries));
  const double spread = 0.5 + static_cast<double>(bits >> 11) * 0x1p-53;
  const double wait_s = std::max(doubled * spread, std::clamp(retry_after_s, 0.0, kLongestS));
  return static_cast<TimeNs>(wait_s * 1e9);
}

void ServerClock::Add(double sent_s, double received_s, double date_s) {
  // The server's clock said something in [date, date + 2) between the two moments.
  const double low = date_s - received_s, high = date_s + 2 - sent_s;
  low_ = any_ ? std::max(low_, low) : low;
  high_ = any_ ? std::min(high_, high) : high;
  any_ = true;
}

std::optional<std::pair<double, double>> ServerClock::Ahead() const {
  if (!any_ || low_ > high_) return std::nullopt;
  return std::pair(low_, high_);
}

}  // namespace servecast
