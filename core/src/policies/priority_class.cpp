#include "serving/policy.h"

namespace servecast {
namespace {

double Priority(std::int64_t own, TimeNs, Params) { return static_cast<double>(own); }

}  // namespace

extern const PriorityEntry kPriorityClass;
const PriorityEntry kPriorityClass = {
    "class", "The number of the request's class; 0 without classes", Priority};

}  // namespace servecast
