// Until when a replica of a cluster may be left alone (decision 025).
#include <algorithm>

#include "serving/replica/replica.h"

namespace servecast {

// Foresees what DecodeRun would do.
TimeNs Replica::QuietUntil() {
  const bool decodes_only = group_->size() > 0 && prefills_.empty() && endings_ == 0 &&
                            queue_.size() == 0 && incoming_.empty() && handed_over_.empty();
  if (!decodes_only || staged() || garbage_ > 0 || preemption_weight_ != 0 ||
      in_.inbox.NextEnqueue() != kNever) {
    return now_;
  }
  // What ends leaves at `time`.
  const TimeNs time = group_->QuietUntil(in_.latency, StartTime(), kv_.free());
  return std::max(std::min(time - 1, in_.inbox.NextTimeout()), now_);
}

}  // namespace servecast
