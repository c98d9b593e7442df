#include "serving/scaling/hpa.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace servecast {
namespace {

constexpr TimeNs kDefaultPeriod = 15 * kNsPerS;

void SetDefaults(HpaBehavior& behavior) {
  if (behavior.up.policies.empty()) {
    behavior.up.policies = {{false, 4, kDefaultPeriod}, {true, 100, kDefaultPeriod}};
  }
  if (behavior.down.policies.empty()) behavior.down.policies = {{true, 100, kDefaultPeriod}};
}

TimeNs LongestPeriod(const std::vector<HpaPolicy>& policies) {
  TimeNs longest = 0;
  for (const HpaPolicy& policy : policies) longest = std::max(longest, policy.period);
  return longest;
}

// An old entry gives its place to a new one; without one the list grows.
template <typename Entry>
void Put(std::vector<Entry>& list, std::optional<std::size_t> place, Entry entry) {
  if (place) {
    list[*place] = entry;
  } else {
    list.push_back(entry);
  }
}

}  // namespace

Hpa::Hpa(HpaSpec spec) : spec_(std::move(spec)) {
  if (!spec_.behavior) return;
  SetDefaults(*spec_.behavior);
  up_window_ = spec_.behavior->up.window.value_or(0);
  down_window_ = spec_.behavior->down.window.value_or(spec_.downscale_stabilization);
}

HpaDecision Hpa::Sync(const HpaView& view) {
  HpaDecision decision;
  decision.desired = view.spec;
  if (std::exchange(first_, false)) recommendations_.push_back({view.spec, view.now});
  if (view.spec == 0 && spec_.min != 0) {
    decision.status = HpaStatus::kDisabled;
    return decision;
  }
  if (view.spec > spec_.max) {
    decision.desired = spec_.max;
  } else if (view.spec < spec_.min) {
    decision.desired = spec_.min;
  } else if (!ReadMetrics(view, decision)) {
    return decision;
  } else if (spec_.behavior) {
    decision.stabilised = Stabilise(view.spec, *decision.wanted, view.now);
    Limit(view.spec, view.now, decision);
  } else {
    decision.stabilised = StabiliseDown(*decision.wanted, view.now);
    LimitOld(view.spec, decision);
  }
  if (decision.desired != view.spec) StoreChange(view.spec, decision.desired, view.now);
  return decision;
}

// False: the sync ends, as a metric that failed might have asked for more.
bool Hpa::ReadMetrics(const HpaView& view, HpaDecision& decision) const {
  std::optional<std::int64_t> wanted;
  std::optional<std::size_t> failed;
  for (std::size_t i = 0; i < spec_.metrics.size(); ++i) {
    const std::optional<std::int64_t> one = HpaProposal(spec_, i, view);
    decision.proposals.push_back(one);
    if (!one) {
      failed = failed.value_or(i);
    } else if (!wanted || *wanted == 0 || *one > *wanted) {
      wanted = one;
    }
  }
  if (failed && (!wanted || *wanted < view.spec)) {
    decision.status = HpaStatus::kFailed;
    decision.failed_metric = *failed;
    return false;
  }
  decision.status = HpaStatus::kValid;
  decision.wanted = wanted.value_or(view.spec);
  return true;
}

std::int64_t Hpa::Stabilise(std::int64_t spec, std::int64_t wanted, TimeNs now) {
  const TimeNs up_from = now - up_window_, down_from = now - down_window_;
  std::int64_t up = wanted, down = wanted;
  std::optional<std::size_t> old;
  for (std::size_t i = 0; i < recommendations_.size(); ++i) {
    const Entry& one = recommendations_[i];
    if (one.time > up_from) up = std::min(up, one.count);
    if (one.time > down_from) down = std::max(down, one.count);
    if (one.time < up_from && one.time < down_from) old = i;
  }
  Put(recommendations_, old, {wanted, now});
  return std::min(std::max(spec, up), down);
}

std::int64_t Hpa::StabiliseDown(std::int64_t wanted, TimeNs now) {
  const TimeNs from = now - spec_.downscale_stabilization;
  std::int64_t most = wanted;
  std::optional<std::size_t> old;
  for (std::size_t i = 0; i < recommendations_.size(); ++i) {
    if (recommendations_[i].time < from) {
      old = i;
    } else {
      most = std::max(most, recommendations_[i].count);
    }
  }
  Put(recommendations_, old, {wanted, now});
  return most;
}

// Replicas at the period's start: changes of both directions are undone.
std::int64_t Hpa::PeriodStart(const HpaPolicy& policy, std::int64_t spec, TimeNs now) const {
  for (const Entry& one : ups_) spec -= one.time > now - policy.period ? one.count : 0;
  for (const Entry& one : downs_) spec += one.time > now - policy.period ? one.count : 0;
  return spec;
}

std::int64_t Hpa::RateLimit(bool up, std::int64_t spec, TimeNs now) const {
  const HpaDirection& way = up ? spec_.behavior->up : spec_.behavior->down;
  if (way.select == HpaSelect::kDisabled) return spec;
  std::int64_t fewest = INT64_MAX, most = INT64_MIN;
  for (const HpaPolicy& policy : way.policies) {
    const std::int64_t start = PeriodStart(policy, spec, now);
    const double share = Real(policy.value) / 100;
    const double scaled = up ? std::ceil(Real(start) * (1 + share)) : Real(start) * (1 - share);
    const std::int64_t one = policy.percent ? static_cast<std::int64_t>(scaled)
                                            : start + (up ? policy.value : -policy.value);
    fewest = std::min(fewest, one), most = std::max(most, one);
  }
  const bool least_change = way.select == HpaSelect::kMin;
  return up ? std::max(spec, least_change ? fewest : most)
            : std::min(spec, least_change ? most : fewest);
}

void Hpa::Limit(std::int64_t spec, TimeNs now, HpaDecision& decision) const {
  const std::int64_t wanted = *decision.stabilised;
  decision.desired = wanted;
  if (wanted > spec) {
    const std::int64_t rate = RateLimit(true, spec, now), most = std::min(rate, spec_.max);
    if (wanted <= most) return;
    decision.desired = most;
    decision.limit = spec_.max > rate ? HpaLimit::kUpRate : HpaLimit::kMax;
  } else if (wanted < spec) {
    const std::int64_t rate = RateLimit(false, spec, now), least = std::max(rate, spec_.min);
    if (wanted >= least) return;
    decision.desired = least;
    decision.limit = spec_.min < rate ? HpaLimit::kDownRate : HpaLimit::kMin;
  }
}

void Hpa::LimitOld(std::int64_t spec, HpaDecision& decision) const {
  const std::int64_t twice = std::max<std::int64_t>(2 * spec, 4);
  const std::int64_t wanted = *decision.stabilised, most = std::min(spec_.max, twice);
  decision.desired = wanted;
  if (wanted < spec_.min) {
    decision.desired = spec_.min;
    decision.limit = HpaLimit::kMin;
  } else if (wanted > most) {
    decision.desired = most;
    decision.limit = spec_.max > twice ? HpaLimit::kUpRate : HpaLimit::kMax;
  }
}

// An event that the longest period of its own direction no longer needs gives its place to the new
// one, although a longer period of the other direction may still count it: Kubernetes' own.
void Hpa::StoreChange(std::int64_t from, std::int64_t to, TimeNs now) {
  if (!spec_.behavior) return;
  const bool up = to > from;
  const TimeNs longest =
      LongestPeriod(up ? spec_.behavior->up.policies : spec_.behavior->down.policies);
  std::vector<Entry>& events = up ? ups_ : downs_;
  std::optional<std::size_t> old;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (events[i].time < now - longest) old = i;
  }
  Put(events, old, {up ? to - from : from - to, now});
}

}  // namespace servecast
