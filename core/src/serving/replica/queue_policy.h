// The order and the priority that a scenario chose, with their parameters, asked by request.
#pragma once

#include <cstdint>
#include <vector>

#include "serving/policy.h"
#include "workload/request_table.h"

namespace servecast {

class QueuePolicy {
 public:
  // `requests` outlives it.
  QueuePolicy(const SchedulerSpec& scheduler, const RequestTable& requests)
      : order_(FindOrder(scheduler.order)),
        victim_by_priority_(scheduler.preemption == "priority" ||
                            (scheduler.preemption == "auto" && order_.preempts_by_priority)),
        order_params_(ParamValues(order_.params, scheduler.params)),
        priority_(FindPriority(scheduler.priority)),
        priority_params_(ParamValues(priority_.params, scheduler.params)),
        requests_(requests) {}

  bool by_key() const { return order_.key != nullptr; }
  // Who is preempted: the least urgent, else the last.
  bool victim_by_priority() const { return victim_by_priority_; }

  // Lower is more urgent.
  double PriorityOf(RequestId request) const {
    const auto r = static_cast<std::size_t>(request);
    const std::int64_t own = requests_.priority.empty() ? 0 : requests_.priority[r];
    return priority_.priority(own, requests_.arrival[r], priority_params_);
  }

  // Lowest first; 0 without a key.
  double KeyOf(RequestId request) const {
    if (!by_key()) return 0;
    const auto r = static_cast<std::size_t>(request);
    const TimeNs deadline = requests_.ttft_deadline.empty() ? kNever : requests_.ttft_deadline[r];
    return order_.key(
        {requests_.arrival[r], requests_.prompt_tokens[r], PriorityOf(request), deadline},
        order_params_);
  }

  bool has_buckets() const { return order_.keys_are_buckets; }
  // Prompts of one bucket would be padded to one length; all are of one where there are no buckets.
  double BucketOf(std::int64_t prompt_tokens) const {
    return order_.keys_are_buckets ? order_.key({0, prompt_tokens, 0, kNever}, order_params_) : 0;
  }

 private:
  const OrderEntry& order_;
  bool victim_by_priority_;
  std::vector<double> order_params_;
  const PriorityEntry& priority_;
  std::vector<double> priority_params_;
  const RequestTable& requests_;
};

}  // namespace servecast
