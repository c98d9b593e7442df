#include "serving/policy.h"

namespace servecast::order_priority_fcfs {
namespace {

double Key(const QueuedRequest& r, Params) { return r.priority; }

}  // namespace

extern const OrderEntry kEntry = {"priority_fcfs",
                                  "Most urgent priority first, then first come, first served "
                                  "(vLLM: --scheduling-policy priority)",
                                  Key,
                                  {},
                                  true};

}  // namespace servecast::order_priority_fcfs
