// What steps have to do, against what the GPU could: independent of the latency model. Per GPU of
// the tensor-parallel group, from data-sheet peaks.
//   FLOPs   tokens x (matrices, experts that they are routed to) + output tokens x LM head
//           + (query, key) pairs x attention
//   bytes   per step all weights but experts, and the LM head if it makes a token; the experts that
//           its tokens touch, E (1 - (1 - k/E)^tokens) expected; K and V of all tokens attended to
// Each at the peak of the type that its products are computed in, attention and LM head at that of
// the dense matrices. Of whole experts on many GPUs each GPU counts its share, not that of the
// busiest: the same work as with slices. Tokens that are computed again after a preemption count
// again.
#pragma once

#include <cstdint>
#include <vector>

#include "cost/model_cost.h"
#include "metrics/recorder.h"
#include "servecast/scenario.h"

namespace servecast {

// For Recorder: experts of a layer that a step of n tokens reads, n up to where all are.
std::vector<std::int64_t> ExpertsRead(const ModelCost& cost, std::int64_t most_tokens);

struct PeakUse {
  double mfu = 0, bandwidth = 0;
};
// Of `work` in `seconds` > 0, with so many output tokens.
PeakUse UseOf(const Work& work, std::int64_t output_tokens, double seconds, const ModelCost& cost,
              const HardwareSpec& hardware);

}  // namespace servecast
