#include "serving/cluster/failures.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "base/random.h"

namespace servecast {
namespace {

// Times beyond the clock's end are that.
TimeNs NsOfSeconds(double seconds) {
  return static_cast<TimeNs>(
      std::nearbyint(std::min(seconds * 1e9, static_cast<double>(kClockEnd))));
}

TimeNs After(TimeNs from, TimeNs by) {
  return static_cast<TimeNs>(std::min(WideInt{from} + by, WideInt{kClockEnd}));
}

}  // namespace

Failures::Failures(const FailureSpec& spec, std::int64_t seed, std::int64_t replicas,
                   TimeNs horizon)
    : spec_(&spec),
      seed_(seed),
      horizon_(std::min(horizon, kClockEnd)),
      restart_(NsOfSeconds(spec.restart_s)),
      detect_(NsOfSeconds(spec.detect_s)),
      replicas_(static_cast<std::size_t>(replicas)) {
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(replicas); ++i)
    Plan(i, EndOfLife(i, 0, -1));
}

void Failures::Add(TimeNs up) {
  const auto replica = static_cast<std::int32_t>(replicas_.size());
  replicas_.emplace_back();
  Plan(replica, EndOfLife(replica, up, up));
}

void Failures::Retire(std::int32_t replica) {
  Replica& r = replicas_[static_cast<std::size_t>(replica)];
  r.phase = Phase::kSeen;
  r.down = r.up = r.next_down = kNever;
}

// Of the life that begins at `from`; of the schedule the rows after a time count. Replicas of a
// domain have the same lives, so each draws the same.
TimeNs Failures::EndOfLife(std::int32_t replica, TimeNs from, TimeNs after) {
  const std::int64_t domain = replica / spec_->domain_replicas;
  std::int64_t& lives = replicas_[static_cast<std::size_t>(replica)].lives;
  TimeNs end = kNever;
  if (spec_->mtbf_s) {
    const double u = Uniform(seed_, Stream::kFailure, domain, lives++);
    end = After(from, std::max<TimeNs>(1, NsOfSeconds(-Log(u) * *spec_->mtbf_s)));
  }
  for (const std::vector<double>& row : spec_->schedule) {
    const TimeNs at = NsOfSeconds(row[0]);
    if (static_cast<std::int64_t>(row[1]) / spec_->domain_replicas == domain && at > after)
      end = std::min(end, at);
  }
  return end < horizon_ ? end : kNever;
}

// The replica's next outage begins then.
void Failures::Plan(std::int32_t replica, TimeNs down) {
  Replica& r = replicas_[static_cast<std::size_t>(replica)];
  r.phase = Phase::kUp;
  r.down = down;
  if (down == kNever) return;
  r.up = After(down, restart_);
  r.next_down = EndOfLife(replica, r.up, r.up);
}

TimeNs Failures::NextOf(const Replica& r) const {
  if (r.phase == Phase::kUp) return r.down;
  return r.phase == Phase::kUnseen ? std::min(After(r.down, detect_), r.up) : r.up;
}

TimeNs Failures::Next() const {
  TimeNs next = kNever;
  for (const Replica& r : replicas_) next = std::min(next, NextOf(r));
  return next;
}

Failures::Event Failures::Take() {
  std::size_t first = 0;
  for (std::size_t i = 1; i < replicas_.size(); ++i) {
    if (NextOf(replicas_[i]) < NextOf(replicas_[first])) first = i;
  }
  Replica& r = replicas_[first];
  const auto replica = static_cast<std::int32_t>(first);
  if (r.phase == Phase::kUp) {
    r.phase = Phase::kUnseen;
    outages_.push_back({replica, r.down, r.up});
    return {Kind::kFails, replica};
  }
  if (r.phase == Phase::kUnseen && After(r.down, detect_) < r.up) {
    r.phase = Phase::kSeen;
    return {Kind::kDetected, replica};
  }
  Plan(replica, r.next_down);
  return {Kind::kComesUp, replica};
}

// What is taken by a time depends on how the run is sliced, what fails by then does not.
std::vector<Failures::Outage> Failures::OutagesTo(TimeNs end) const {
  Failures all = *this;
  while (all.Next() <= end) all.Take();
  std::erase_if(all.outages_, [end](const Outage& outage) { return outage.down > end; });
  return all.outages_;
}

}  // namespace servecast
