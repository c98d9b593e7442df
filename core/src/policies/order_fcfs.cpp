#include "serving/policy.h"

namespace servecast::order_fcfs {
extern const OrderEntry kEntry = {
    "fcfs", "First come, first served; a preempted request goes to the front", nullptr};

}  // namespace servecast::order_fcfs
