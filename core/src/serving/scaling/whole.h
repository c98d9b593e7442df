// Whole numbers of replicas, tokens and GPUs from real ones.
#pragma once

#include <cmath>
#include <cstdint>

namespace servecast {

inline std::int64_t RoundUp(double x) { return static_cast<std::int64_t>(std::ceil(x)); }
inline std::int64_t RoundDown(double x) { return static_cast<std::int64_t>(std::floor(x)); }
inline std::int64_t Truncated(double x) { return static_cast<std::int64_t>(x); }

}  // namespace servecast
