#include "serving/policy.h"

namespace servecast::priority_inverted_slo {
namespace {

constexpr ParamSpec kParams[] = {{"age_weight_per_s", "1/s", 0, 1e6, 1,
                                  "change of the priority number per second since arrival"}};

double Priority(std::int64_t own, TimeNs arrival, Params params) {
  return static_cast<double>(own) - params[0] * (static_cast<double>(arrival) * 1e-9);
}

}  // namespace

extern const PriorityEntry kEntry = {
    "inverted_slo", "Less urgent with age, so that the oldest requests wait longest: for teaching",
    Priority, kParams};

}  // namespace servecast::priority_inverted_slo
