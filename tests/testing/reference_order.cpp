#include "testing/reference_order.h"

#include <cstdint>
#include <string>

namespace servecast::testing {

bool ReferenceOrder::IsWrittenHere() const {
  for (const char* known :
       {"fcfs", "priority_fcfs", "reverse_priority", "sjf", "length_bucket", "edf"}) {
    if (scheduler_.order == known) return true;
  }
  return false;
}

bool ReferenceOrder::InOrderOfEnqueue() const {
  return scheduler_.order == "fcfs" ||
         (!IsWrittenHere() && FindOrder(scheduler_.order).key == nullptr);
}

bool ReferenceOrder::VictimByPriority() const {
  if (scheduler_.preemption != "auto") return scheduler_.preemption == "priority";
  return scheduler_.order == "priority_fcfs" ||
         (!IsWrittenHere() && FindOrder(scheduler_.order).preempts_by_priority);
}

double ReferenceOrder::Priority(std::size_t row) const {
  const std::string& by = scheduler_.priority;
  if (by == "constant") return 0;
  const std::int64_t own = requests_.priority.empty() ? 0 : requests_.priority[row];
  const auto number = static_cast<double>(own);
  const auto weight = scheduler_.params.find("age_weight_per_s");
  const double age = (weight == scheduler_.params.end() ? 1 : weight->second) *
                     (static_cast<double>(requests_.arrival[row]) * 1e-9);
  if (by == "slo_based") return number + age;
  if (by == "inverted_slo") return number - age;
  if (by == "class") return number;
  const PriorityEntry& entry = FindPriority(by);
  return entry.priority(own, requests_.arrival[row], ParamValues(entry.params, scheduler_.params));
}

QueueKey ReferenceOrder::KeyOf(std::size_t row) const {
  const std::string& order = scheduler_.order;
  double number = 0;
  TimeNs deadline = 0;
  if (order == "priority_fcfs") {
    number = Priority(row);
  } else if (order == "reverse_priority") {
    number = -Priority(row);
  } else if (order == "sjf") {
    number = static_cast<double>(requests_.prompt_tokens[row]);
  } else if (order == "length_bucket") {
    number = LengthBucket(row);
  } else if (order == "edf") {
    const bool due = !requests_.ttft_deadline.empty() && requests_.ttft_deadline[row] != kNever;
    deadline = due ? requests_.arrival[row] + requests_.ttft_deadline[row] : kNever;
  } else if (!InOrderOfEnqueue()) {
    number = KeyOfEntry(row);
  }
  return {number, deadline, requests_.arrival[row], static_cast<RequestId>(row)};
}

double ReferenceOrder::BucketOf(std::size_t row) const {
  if (scheduler_.order == "length_bucket") return LengthBucket(row);
  const bool by_key = !IsWrittenHere() && FindOrder(scheduler_.order).keys_are_buckets;
  return by_key ? KeyOfEntry(row) : 0;
}

double ReferenceOrder::LengthBucket(std::size_t row) const {
  const auto width = scheduler_.params.find("bucket_tokens");
  const double tokens = width == scheduler_.params.end() ? 64 : width->second;
  const double prompt = requests_.prompt_tokens[row];
  return static_cast<double>(static_cast<std::int64_t>(prompt / tokens));
}

double ReferenceOrder::KeyOfEntry(std::size_t row) const {
  const OrderEntry& entry = FindOrder(scheduler_.order);
  QueuedRequest request{requests_.arrival[row], requests_.prompt_tokens[row], Priority(row)};
  if (!requests_.ttft_deadline.empty()) request.ttft_deadline = requests_.ttft_deadline[row];
  return entry.key(request, ParamValues(entry.params, scheduler_.params));
}

}  // namespace servecast::testing
