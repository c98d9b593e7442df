// The time of an all-reduce from measured tables, where there are some for such links.
#pragma once

#include <cstdint>
#include <optional>

#include "cost/operator_grid.h"
#include "cost/operator_tables.h"
#include "servecast/scenario.h"

namespace servecast {

// All-reduces of a group. One that was not measured lies between those around it; beyond the
// largest it grows from that by a ring's share of traffic and by its hops: continuous, and never
// shorter for a larger group. Where none was measured they are those of the analytic model, and so
// is what a group on several nodes adds to that of a node.
class GroupAllReduce {
 public:
  GroupAllReduce(const OperatorSet& set, const HardwareSpec& hardware, std::int64_t group,
                 double value_bytes);

  double Ns(double values) const;  // of one message
  bool Measured(double values) const;

 private:
  double NsInNode(double values) const;

  HardwareSpec hardware_;
  double whole_;                               // all GPUs
  double group_, value_bytes_;                 // those of a node
  std::optional<OperatorGrid> below_, above_;  // the group itself, or the next measured ones
  double of_below_ = 0, of_above_ = 0;         // their GPUs
  double least_values_ = 0;                    // of the shortest message measured
};

}  // namespace servecast
