// The order of a waiting queue and who is preempted, in the references of one replica: each rule is
// written here again. Of one that is not only its entry's function is taken, which is pure: what
// follows from it is still done the slow way.
#pragma once

#include <cstddef>
#include <string_view>
#include <tuple>

#include "base/base.h"
#include "servecast/scenario.h"
#include "serving/policy.h"
#include "workload/request_table.h"

namespace servecast::testing {

// Where a request stands in a queue that is not in order of enqueue.
using QueueKey = std::tuple<double, TimeNs, TimeNs, RequestId>;

class ReferenceOrder {
 public:
  // Both outlive it; a request is asked about when its arrival is known.
  ReferenceOrder(const SchedulerSpec& scheduler, const RequestTable& requests)
      : scheduler_(scheduler), requests_(requests) {}

  bool InOrderOfEnqueue() const;
  bool VictimByPriority() const;
  double Priority(std::size_t row) const;  // lower is more urgent
  QueueKey KeyOf(std::size_t row) const;
  // Prompts of one bucket are padded to one length.
  double BucketOf(std::size_t row) const;

 private:
  bool IsWrittenHere() const;
  double LengthBucket(std::size_t row) const;
  double KeyOfEntry(std::size_t row) const;

  const SchedulerSpec& scheduler_;
  const RequestTable& requests_;
};

}  // namespace servecast::testing
