// Time, ids and the check that ends a run whose invariant broke.
#pragma once

#include <cmath>
#include <cstdint>

#ifdef __FAST_MATH__
#error "Servecast promises the same bits everywhere: build without -ffast-math"
#endif

namespace servecast {

using TimeNs = std::int64_t;  // simulated time; integers, so order and sums are exact
inline constexpr TimeNs kNsPerMs = 1'000'000;
inline constexpr TimeNs kNsPerS = 1'000'000'000;
inline constexpr TimeNs kNever = INT64_MAX;
// 219 years: no step starts later, so that the clock stays in 64 bits whatever the input.
inline constexpr TimeNs kClockEnd = TimeNs{3} << 61;

// Times as figures, and figures in ns as times.
inline constexpr double kMs = 1e6;  // ns
constexpr double Seconds(TimeNs ns) { return static_cast<double>(ns) / 1e9; }
inline TimeNs NearestNs(double ns) { return static_cast<TimeNs>(std::nearbyint(ns)); }

using WideInt = __int128;  // sums of times, products with them: tokens * ns, blocks * ns

// Of a count and a time. WebAssembly has no product of 128 bits, and most fit 64.
inline WideInt Product(std::int64_t a, std::int64_t b) {
#ifdef __wasm__
  constexpr std::uint64_t kNarrow = std::uint64_t{1} << 31;
  if ((static_cast<std::uint64_t>(a) | static_cast<std::uint64_t>(b)) < kNarrow) return a * b;
#endif
  return WideInt{a} * b;
}

using RequestId = std::int32_t;  // row of the request table
inline constexpr RequestId kNoRequest = -1;

// Ends the program (native: abort; wasm: trap) with the broken rule. For our bugs, never for input.
[[noreturn]] void CheckFailed(const char* rule, const char* file, int line);

// The file without its folder: a program is the same bytes wherever it is built.
#define SERVECAST_CHECK(condition, rule) \
  ((condition) ? static_cast<void>(0) : ::servecast::CheckFailed(rule, __FILE_NAME__, __LINE__))

constexpr std::int64_t CeilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr double Real(std::int64_t x) { return static_cast<double>(x); }

}  // namespace servecast
