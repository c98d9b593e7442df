#include "serving/policy.h"

namespace servecast::priority_constant {
namespace {

double Priority(std::int64_t, TimeNs, Params) { return 0; }

}  // namespace

extern const PriorityEntry kEntry = {"constant", "The same for all requests", Priority};

}  // namespace servecast::priority_constant
