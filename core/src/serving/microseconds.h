// How a time that a model states in microseconds becomes simulated time: the nearest nanosecond;
// by BLIS's rules whole microseconds, the rest cut off.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/base.h"
#include "servecast/scenario.h"
#include "serving/policy.h"

namespace servecast {

inline constexpr TimeNs kNsPerUs = 1'000;

inline TimeNs TimeOf(double us, Compat compat) {
  us = std::min(us, static_cast<double>(kMaxStepNs / kNsPerUs));
  return !IsBlis(compat) ? static_cast<TimeNs>(std::nearbyint(us * 1e3))
                         : static_cast<TimeNs>(us) * kNsPerUs;
}

// Of the coefficients for a request and for each token of its prompt.
inline HostTimes TakeUpTimesOf(const std::vector<double>& alpha, std::int64_t prompt_tokens,
                               Compat compat) {
  const TimeNs all = TimeOf(alpha[0] + alpha[1] * static_cast<double>(prompt_tokens), compat);
  const TimeNs wait = std::min(all, TimeOf(alpha[0], compat));
  return {all - wait, wait};
}

// A step takes at least a nanosecond, in BLIS a microsecond, and before March 2026 any time.
inline TimeNs StepTimeOf(double us, Compat compat) {
  const TimeNs least = !IsBlis(compat) ? 1 : compat == Compat::kBlis ? kNsPerUs : 0;
  return std::max(least, TimeOf(us, compat));
}

}  // namespace servecast
