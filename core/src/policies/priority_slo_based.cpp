#include "serving/policy.h"

namespace servecast {
namespace {

double Priority(std::int64_t own, TimeNs arrival, const SchedulerSpec& s) {
  return static_cast<double>(own) + s.age_weight_per_s * (static_cast<double>(arrival) * 1e-9);
}

}  // namespace

extern const PriorityEntry kPrioritySloBased;
const PriorityEntry kPrioritySloBased = {
    "slo_based", "More urgent with age: the own number less age_weight_per_s times the age",
    Priority, true};

}  // namespace servecast
