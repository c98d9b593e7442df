#include "serving/policy.h"

namespace servecast {
namespace {

double Priority(std::int64_t, TimeNs, Params) { return 0; }

}  // namespace

extern const PriorityEntry kPriorityConstant;
const PriorityEntry kPriorityConstant = {"constant", "The same for all requests", Priority};

}  // namespace servecast
