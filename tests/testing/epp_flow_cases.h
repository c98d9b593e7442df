// Flow control of the endpoint picker at random, and its module against the slow reference
// (epp_reference_flow.h).
#pragma once

#include <cstdint>
#include <string>

#include "servecast/epp.h"
#include "testing/dice.h"

namespace servecast::testing {

// Adds flow control with random bands, policies, limits and a detector that few requests saturate;
// durations are of `unit` ms.
void AddRandomFlow(Dice& dice, std::int64_t unit, EppConfig& config);

struct FlowComparison {
  std::string mismatch;  // the first; "": none
  std::int64_t late = 0, rejected = 0, expired = 0, cancelled = 0, skipped = 0;
};

// One random sequence of requests, reports, ends and ticks. Half of them leave out the cycles that
// FlowControl::Next says change nothing; the reference has all. A function of the seed.
FlowComparison CompareFlow(std::uint64_t seed);

}  // namespace servecast::testing
