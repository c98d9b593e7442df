#include "serving/policy.h"

namespace servecast {
extern const OrderEntry kOrderFcfs;
const OrderEntry kOrderFcfs = {
    "fcfs", "First come, first served; a preempted request goes to the front", nullptr};

}  // namespace servecast
