#include "serving/policy.h"

namespace servecast {
namespace {

double Priority(std::int64_t own, TimeNs, Params) { return static_cast<double>(own); }

}  // namespace

extern const PriorityEntry kPriorityClass;
const PriorityEntry kPriorityClass = {
    "class", "The number that the request brings: its class's, else 0", Priority};

}  // namespace servecast
