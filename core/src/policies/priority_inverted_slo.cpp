#include "serving/policy.h"

namespace servecast {
namespace {

double Priority(std::int64_t own, TimeNs arrival, const SchedulerSpec& s) {
  return static_cast<double>(own) - s.age_weight_per_s * (static_cast<double>(arrival) * 1e-9);
}

}  // namespace

extern const PriorityEntry kPriorityInvertedSlo;
const PriorityEntry kPriorityInvertedSlo = {
    "inverted_slo", "Less urgent with age, so that the oldest wait longest: for teaching", Priority,
    true};

}  // namespace servecast
