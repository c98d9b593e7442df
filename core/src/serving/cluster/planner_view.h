// What a planner (scaling/scaler.h) sees of a cluster: its pools' engines, and requests.
#pragma once

#include <vector>

#include "serving/cluster/fleet.h"
#include "serving/cluster/membership.h"
#include "workload/request_table.h"

namespace servecast {

PlannedPool PlannedFrom(const FleetPool& pool);

// The requests that were sent to replicas.
class PlannerView {
 public:
  void Placed(RequestId request) { open_.push_back(request); }
  // Writes what is queued, by replica's number, and adds up what clients had before `time`; of
  // `counts` what all replicas verified. Requires: all have come to that time. O(requests that have
  // not been answered).
  ServedTotals Look(TimeNs time, const RequestTable& requests, const RequestResults& results,
                    const SchedulerCounts& counts, std::vector<Membership::Scraped>& scraped);

 private:
  std::vector<RequestId> open_;
  ServedTotals served_;
};

}  // namespace servecast
