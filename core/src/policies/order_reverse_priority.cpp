#include "serving/policy.h"

namespace servecast {
namespace {

double Key(const QueuedRequest& r, Params) { return -r.priority; }

}  // namespace

extern const OrderEntry kOrderReversePriority;
const OrderEntry kOrderReversePriority = {
    "reverse_priority", "Least urgent priority first, as with a wrong sign in a scheduler", Key};

}  // namespace servecast
