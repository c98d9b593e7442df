// Closed loops that no server can have computed: their prompts were found in a cache.
#pragma once

#include <vector>

#include "measured_sets.h"
#include "score.h"

namespace servecast {

// Of a closed loop that states TTFT and TPOT: the least time that its requests take of its GPUs,
// over the time that they took. That is all products at the peaks of the data sheet and the KV
// reads of decodes at the full bandwidth, one after the other, as kernels are; where layers are no
// full attention, products alone. 0: it does not state these.
double LeastShare(const Measured& row, const Scenario& setup);

// Leaves out all rows of a test (Measured::test, on the same model, GPU and engine) of which one
// has a least share beyond 1.
void LeaveOutBeyondPeak(std::vector<ScoredRow>& rows);

}  // namespace servecast
