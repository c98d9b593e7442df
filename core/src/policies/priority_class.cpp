#include "serving/policy.h"

namespace servecast {
namespace {

double Priority(std::int64_t own, TimeNs, const SchedulerSpec&) { return static_cast<double>(own); }

}  // namespace

extern const PriorityEntry kPriorityClass;
const PriorityEntry kPriorityClass = {
    "class", "The number that the request brings: its class's, or the trace's", Priority, false};

}  // namespace servecast
