// Whole numbers of replicas, tokens, GPUs and nanoseconds from real ones.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/base.h"

namespace servecast {

inline std::int64_t RoundUp(double x) { return static_cast<std::int64_t>(std::ceil(x)); }
inline std::int64_t RoundDown(double x) { return static_cast<std::int64_t>(std::floor(x)); }
inline TimeNs NsOf(double seconds) { return NearestNs(seconds * 1e9); }
inline std::int64_t Truncated(double x) { return static_cast<std::int64_t>(x); }

}  // namespace servecast
