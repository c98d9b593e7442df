// When sessions start, one after the other.
#pragma once

#include <cstdint>
#include <optional>

#include "base/base.h"
#include "servecast/workload_spec.h"
#include "workload/rate_profile.h"

namespace servecast {

// Later arrivals a run cannot hold: 146 years, in ns.
inline constexpr double kLatestNs = 0x1p62;

// A think time: exponential, keyed by row.
TimeNs DrawThinkTime(std::int64_t seed, std::int64_t row, double mean_s);

// How long a client goes on thinking, at a random moment of its cycle, before its next session:
// a pause, then `turns` requests with a think time between any two. Answers take no time here. That
// of a cycle without thinking is 0.
struct ClientCycle {
  double pause_s = 0;
  std::int64_t turns = 1;
  double think_time_s = 0;

  double MeanThinking() const { return pause_s + static_cast<double>(turns - 1) * think_time_s; }
};
TimeNs DrawStart(std::int64_t seed, std::int64_t session, const ClientCycle& cycle);

// When conversations that are under way at 0 send their next turn. Of a load that has lasted for
// long their number is Poisson, with the mean rate * (turns - 1) * think_time_s (Little's law;
// answers take no time here), and each has an exponential rest of its think time to come. So the
// first arrivals are a Poisson process whose rate falls as e^(-t / think_time_s).
class UnderWayStream {
 public:
  // `conversations`: their mean number.
  UnderWayStream(double conversations, double think_time_s, std::int64_t seed)
      : conversations_(conversations), think_ns_(think_time_s * 1e9), seed_(seed) {}

  // Ascending; nullopt when there are no more.
  std::optional<TimeNs> Next();

 private:
  double conversations_, think_ns_;
  std::int64_t seed_;
  std::int64_t drawn_ = 0;
  double units_ = 0;  // of a process with rate 1
};

// Whether a load begins with conversations under way: of a rate that does not change.
inline bool BeginsUnderWay(const ArrivalSpec& arrivals) {
  return HasRate(arrivals.process) && arrivals.start == LoadStart::kSpread &&
         arrivals.profile == RateProfile::kFlat;
}

// The starts of one process with a rate: poisson, gamma, weibull, uniform, constant. The draws of
// the n-th start are keyed by n. Moves along with O(1) work a start, whatever the parameters.
class ArrivalStream {
 public:
  ArrivalStream(const ArrivalSpec& spec, double rate_per_s, std::int64_t seed);

  // Ascending; nullopt from the first on that is beyond kLatestNs.
  std::optional<TimeNs> Next();

 private:
  double Gap(std::int64_t entity) const;  // before it, mean 1

  const ArrivalSpec& spec_;
  double mean_ns_;
  std::int64_t seed_;
  std::optional<RateProfileClock> clock_;  // none: the rate is what it is
  double weibull_power_ = 1, weibull_scale_ = 1;
  std::int64_t started_ = 0;
  double units_ = 0;  // of the process's own clock, with clock_
  TimeNs time_ = 0;
};

}  // namespace servecast
