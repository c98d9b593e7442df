#include "serving/scaling/keda.h"

#include <algorithm>
#include <utility>

namespace servecast {
namespace {

constexpr std::int64_t kDefaultMax = 100;

}  // namespace

HpaSpec HpaOf(const KedaSpec& spec, HpaSpec hpa) {
  hpa.min = std::max<std::int64_t>(1, spec.min.value_or(0));
  hpa.max = spec.max.value_or(kDefaultMax);
  return hpa;
}

Keda::Decision Keda::At(const Poll& poll) {
  const std::int64_t min = spec_.min.value_or(0);
  Decision decision{.replicas = poll.replicas};
  if (Active(poll.value)) {
    decision.condition = KedaCondition::kActive;
    last_active_ = poll.now;
    if (poll.replicas == 0 || (spec_.idle && poll.replicas < min)) {
      decision.replicas = min > 0 ? min : 1;
    }
    return decision;
  }
  if (!poll.value) return decision;
  const bool to_idle = spec_.idle && poll.replicas > *spec_.idle;
  if (to_idle || (poll.replicas > 0 && min == 0)) {
    if (CooledDown(poll.now)) {
      decision.replicas = spec_.idle.value_or(min);
    } else {
      decision.condition = KedaCondition::kCooldown;
    }
  } else if (!spec_.idle && poll.replicas < min) {
    decision.replicas = min;
  }
  return decision;
}

bool Keda::CooledDown(TimeNs now) const {
  if (last_active_) return *last_active_ + spec_.cooldown < now;
  return spec_.created + spec_.initial_cooldown < now;
}

}  // namespace servecast
