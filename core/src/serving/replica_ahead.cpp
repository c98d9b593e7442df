// Until when a replica of a cluster may be left alone (decision 025).
#include <algorithm>

#include "serving/replica.h"

namespace servecast {

// Prices ahead what DecodeRun would do: the steps of a batch of decodes up to the next finish. Not
// too many, as what is sent meanwhile makes them others.
TimeNs Replica::QuietUntil() {
  constexpr std::int64_t kMost = 64;
  const bool decodes_only = decodes_ > 0 && prefills_.empty() && endings_ == 0 &&
                            queue_.size() == 0 && incoming_.empty() && handed_over_.empty();
  if (!decodes_only || staged() || garbage_ > 0 || preemption_weight_ != 0 ||
      in_.inbox.NextEnqueue() != kNever) {
    return now_;
  }
  TimeNs time = StartTime();
  std::int64_t context = decode_context_, blocks = decode_blocks_, free = kv_.free();
  std::size_t phase = phase_index_;
  const std::int64_t steps = std::min(finishes_.TopKey() - decode_step_ + 1, kMost);
  for (std::int64_t i = 0; i < steps; ++i) {
    const std::int64_t taken = phase_[phase];
    if (taken > free) break;
    free -= taken;
    blocks += taken;
    time += in_.latency.Price({decodes_, context, {}, blocks, 0, 0}).duration;
    context += decodes_;
    if (++phase == phase_.size()) phase = 0;
  }
  // Who ends leaves at `time`.
  return std::max(std::min(time - 1, in_.inbox.NextTimeout()), now_);
}

}  // namespace servecast
