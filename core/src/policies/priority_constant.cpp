#include "serving/policy.h"

namespace servecast {
namespace {

double Priority(std::int64_t, TimeNs, const SchedulerSpec&) { return 0; }

}  // namespace

extern const PriorityEntry kPriorityConstant;
const PriorityEntry kPriorityConstant = {"constant", "All requests are alike", Priority, false};

}  // namespace servecast
