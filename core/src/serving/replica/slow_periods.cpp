#include "serving/replica/slow_periods.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/math.h"
#include "base/random.h"
#include "serving/policy.h"

namespace servecast {
namespace {

// Times beyond the clock's end are that.
TimeNs WithinClock(double ns) {
  return static_cast<TimeNs>(std::nearbyint(std::min(ns, static_cast<double>(kClockEnd))));
}

SlowPeriods::Period From(TimeNs from, TimeNs length) {
  return {from, static_cast<TimeNs>(std::min(WideInt{from} + length, WideInt{kClockEnd}))};
}

}  // namespace

SlowPeriods::SlowPeriods(const SlowdownSpec& spec, std::int64_t seed, std::int64_t replica)
    : seed_(seed),
      replica_(replica),
      length_(spec.for_s ? WithinClock(*spec.for_s * 1e9) : kClockEnd),
      mean_gap_ns_(spec.mean_gap_s.value_or(0) * 1e9),
      factor_(spec.factor) {
  for (const std::vector<double>& row : spec.schedule) {
    if (static_cast<std::int64_t>(row[1]) != replica) continue;
    scheduled_.push_back(From(WithinClock(row[0] * 1e9), length_));
  }
  std::sort(scheduled_.begin(), scheduled_.end(),
            [](const Period& a, const Period& b) { return a.from < b.from; });
  if (mean_gap_ns_ > 0) Draw();
}

// The next one by chance.
void SlowPeriods::Draw() {
  const TimeNs since = draws_ == 0 ? 0 : drawn_.to;
  const double u = Uniform(seed_, Stream::kSlowdown, replica_, draws_++);
  const double wait = static_cast<double>(since) + std::max(1.0, -Log(u) * mean_gap_ns_);
  drawn_ = From(WithinClock(wait), length_);
}

// The first that ends after it.
SlowPeriods::Period SlowPeriods::At(TimeNs time) {
  while (next_ < scheduled_.size() && scheduled_[next_].to <= time) ++next_;
  while (drawn_.to <= time && drawn_.from < kClockEnd) Draw();
  const Period scheduled = next_ < scheduled_.size() ? scheduled_[next_] : Period{};
  return drawn_.from < scheduled.from ? drawn_ : scheduled;
}

TimeNs SlowPeriods::Stretched(TimeNs start, TimeNs duration) {
  if (At(start).from > start) return duration;
  const double stretched = static_cast<double>(duration) * factor_;
  return static_cast<TimeNs>(std::nearbyint(std::min(stretched, static_cast<double>(kMaxStepNs))));
}

std::vector<SlowPeriods::Period> SlowPeriods::To(TimeNs end) {
  std::vector<Period> periods;
  for (Period next = At(0); next.from <= end && next.from < kClockEnd; next = At(next.to)) {
    if (!periods.empty() && next.from <= periods.back().to) {
      periods.back().to = next.to;
    } else {
      periods.push_back(next);
    }
  }
  return periods;
}

namespace {

// Whether two times have a moment in common. `periods` in their order.
bool Meets(const std::vector<SlowPeriods::Period>& periods, TimeNs from, TimeNs to) {
  const auto next =
      std::upper_bound(periods.begin(), periods.end(), from,
                       [](TimeNs time, const SlowPeriods::Period& p) { return time < p.to; });
  return next != periods.end() && next->from < to;
}

}  // namespace

SlowReport ReportSlow(const SlowdownSpec& spec, std::int64_t seed, std::int64_t replicas,
                      const RequestTable& requests, const RequestResults& results, TimeNs end) {
  SlowReport report;
  report.on = true;
  std::vector<std::vector<SlowPeriods::Period>> of;
  for (std::int64_t i = 0; i < replicas; ++i) {
    of.push_back(SlowPeriods(spec, seed, i).To(end));
    for (const SlowPeriods::Period& p : of.back()) {
      ++report.periods;
      report.slow_s += Seconds(std::min(p.to, end) - p.from);
    }
  }
  const auto at = [&](std::int32_t replica) -> const auto& {
    return of[static_cast<std::size_t>(replica)];
  };
  std::vector<std::pair<TimeNs, bool>> answered;  // how long it took, on a slow replica
  for (std::size_t r = 0; r < results.state.size(); ++r) {
    if (results.state[r] != RequestState::kCompleted) continue;
    const TimeNs from = results.enqueue[r], to = results.completion[r];
    bool slow = Meets(at(results.replica.empty() ? 0 : results.replica[r]), from, to);
    if (results.HandedOver(r)) {
      const HandOver& h = results.hand_overs[r];
      slow = Meets(at(results.replica[r]), h.prefilled, to) ||
             Meets(at(h.prefill_replica), from, h.prefilled);
    }
    report.requests += slow ? 1 : 0;
    answered.emplace_back(to - requests.arrival[r], slow);
  }
  if (answered.empty()) return report;
  report.share = Real(report.requests) / Real(static_cast<std::int64_t>(answered.size()));
  std::sort(answered.rbegin(), answered.rend());
  answered.resize((answered.size() + 99) / 100);
  const auto slow =
      std::count_if(answered.begin(), answered.end(), [](const auto& each) { return each.second; });
  report.tail_share = Real(slow) / Real(static_cast<std::int64_t>(answered.size()));
  return report;
}

std::shared_ptr<SlowPeriods> MakeSlowPeriods(const SlowdownSpec* spec, std::int64_t seed,
                                             std::int64_t replica) {
  if (spec == nullptr) return nullptr;
  return std::make_shared<SlowPeriods>(*spec, seed, replica);
}

}  // namespace servecast
