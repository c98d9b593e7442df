#include "serving/policy.h"

namespace servecast::priority_class {
namespace {

double Priority(std::int64_t own, TimeNs, Params) { return static_cast<double>(own); }

}  // namespace

extern const PriorityEntry kEntry = {
    "class", "The number of the request's class; 0 without classes", Priority};

}  // namespace servecast::priority_class
