// See replay.h.
#include "workload/replay.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "base/text.h"
#include "servecast/workload_spec.h"

namespace servecast {
namespace {

// Rows looked at; more would take seconds.
constexpr double kMostPlayed = 2e8;

TimeNs LastOf(const Trace& trace) {
  TimeNs last = 0;
  for (const TraceRow& row : trace.rows) last = std::max(last, row.arrival_ns);
  return last;
}

}  // namespace

Result<Replay> ReplayOf(const WorkloadSpec& w, std::int64_t seed, const Trace& trace) {
  const ArrivalSpec& a = w.arrivals;
  const auto rows = static_cast<std::int64_t>(trace.rows.size());
  const bool up_to_requests = a.repeat == 0;
  const double played = up_to_requests ? static_cast<double>(w.requests) / a.keep
                                       : static_cast<double>(rows) * static_cast<double>(a.repeat);
  const std::int64_t most = up_to_requests ? w.requests : kMaxRequests + 1;
  const std::int64_t end = up_to_requests ? INT64_MAX : rows * a.repeat;
  Replay replay;
  for (std::int64_t i = 0; played <= kMostPlayed && i < end; ++i) {
    if (static_cast<std::int64_t>(replay.positions.size()) == most) break;
    if (a.keep < 1 && Uniform(seed, Stream::kKeep, i % rows, i / rows) >= a.keep) continue;
    replay.positions.push_back(i);
  }
  if (played > kMostPlayed || static_cast<std::int64_t>(replay.positions.size()) > kMaxRequests) {
    return Issue{"/workload/arrivals/repeat",
                 Format("found {}, which plays {} rows; allowed {}, and {} that are kept", a.repeat,
                        NumberText(played), NumberText(kMostPlayed), kMaxRequests)};
  }
  if (replay.positions.empty()) {
    return Issue{"/workload/arrivals/keep",
                 Format("found {}, which keeps none of the trace's {} rows; allowed more",
                        NumberText(a.keep), rows)};
  }
  const TimeNs last = LastOf(trace);
  const TimeNs gap = rows > 1 ? last / (rows - 1) : 0;
  replay.period = static_cast<TimeNs>(std::min(WideInt{last} + gap, WideInt{kNever}));
  const std::int64_t times = replay.positions.back() / rows + 1;
  const double longest = times == 1
                             ? static_cast<double>(last)
                             : static_cast<double>(replay.period) * static_cast<double>(times);
  const bool shorter = times == 1 && a.rate_scale >= 1;
  if (!shorter && longest / std::min(a.rate_scale, 1.0) > 0x1p62) {
    return Issue{"/workload/arrivals/rate_scale",
                 Format("the trace's {} s at {} times its rate take more than 4,611,686,018 s, "
                        "the longest that a run can hold",
                        NumberText(longest * 1e-9), NumberText(a.rate_scale))};
  }
  return replay;
}

TimeNs ReplayedArrival(const ArrivalSpec& a, const Trace& trace, const Replay& replay,
                       std::int64_t position) {
  const auto rows = static_cast<std::int64_t>(trace.rows.size());
  const TimeNs time = trace.rows[static_cast<std::size_t>(position % rows)].arrival_ns +
                      position / rows * replay.period;
  if (a.rate_scale == 1) return time;  // more than 53 bits stay
  return static_cast<TimeNs>(std::nearbyint(static_cast<double>(time) / a.rate_scale));
}

}  // namespace servecast
