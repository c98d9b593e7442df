// KEDA above an HPA: polls activate a workload, take it to zero (or an idle number) after a
// cooldown, and hold it at its minimum; between one and the maximum the HPA decides.
#pragma once

#include <cstdint>
#include <optional>

#include "serving/scaling/hpa.h"

namespace servecast {

struct KedaSpec {
  std::optional<std::int64_t> min, max, idle;  // absent: 0, 100, no idle number
  TimeNs cooldown = 300 * kNsPerS, initial_cooldown = 0;
  std::int64_t activation = 0;  // thousandths; a value above it is activity
  TimeNs created = 0;
};

// The HPA that KEDA makes for a workload: its minimum is at least one.
HpaSpec HpaOf(const KedaSpec& spec, HpaSpec hpa);

enum class KedaCondition : std::uint8_t { kActive, kNotActive, kCooldown };

class Keda {
 public:
  explicit Keda(const KedaSpec& spec) : spec_(spec) {}

  // What a poll sees. `value`: of the trigger in thousandths; nothing if it failed.
  struct Poll {
    TimeNs now = 0;
    std::optional<std::int64_t> value;
    std::int64_t replicas = 0;
  };
  struct Decision {
    std::int64_t replicas = 0;  // after the poll
    KedaCondition condition = KedaCondition::kNotActive;
  };
  Decision At(const Poll& poll);

  bool Active(std::optional<std::int64_t> value) const {
    return value && *value > spec_.activation;
  }
  std::optional<TimeNs> last_active() const { return last_active_; }

 private:
  bool CooledDown(TimeNs now) const;

  KedaSpec spec_;
  std::optional<TimeNs> last_active_;
};

}  // namespace servecast
