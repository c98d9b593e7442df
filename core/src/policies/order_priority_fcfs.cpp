#include "serving/policy.h"

namespace servecast {
namespace {

double Key(const QueuedRequest& r, Params) { return r.priority; }

}  // namespace

extern const OrderEntry kOrderPriorityFcfs;
const OrderEntry kOrderPriorityFcfs = {"priority_fcfs",
                                       "Most urgent priority first, then first come, first served "
                                       "(vLLM: --scheduling-policy priority)",
                                       Key,
                                       {},
                                       true};

}  // namespace servecast
