#include "serving/policy.h"

namespace servecast::order_reverse_priority {
namespace {

double Key(const QueuedRequest& r, Params) { return -r.priority; }

}  // namespace

extern const OrderEntry kEntry = {
    "reverse_priority", "Least urgent priority first, as with a wrong sign in a scheduler", Key};

}  // namespace servecast::order_reverse_priority
