// Where the time of a run goes: what bounds a step, and what keeps the queue's head waiting.
#pragma once

#include <cstdint>

namespace servecast {

// What a step spends most of its time on.
enum class StepBound : std::uint8_t { kOverhead, kCompute, kBandwidth };
inline constexpr int kStepBounds = 3;
// Of what a step takes for each, in any one unit.
inline StepBound BoundOf(double compute, double memory, double overhead) {
  return overhead > compute && overhead > memory ? StepBound::kOverhead
         : compute > memory                      ? StepBound::kCompute
                                                 : StepBound::kBandwidth;
}

// Why the head of the queue could not be admitted.
enum class BlockedBy : std::uint8_t { kNothing, kKvBlocks, kSeats, kTokenBudget };
inline constexpr int kBlockedBy = 4;

}  // namespace servecast
