// Random cases of TensorRT-LLM's scheduler, small enough that blocks, places and budgets run short.
#pragma once

#include <cstdint>
#include <string>

#include "testing/random_cases.h"
#include "testing/trtllm_golden.h"

namespace servecast::testing {

// Its rows and results are empty.
TrtllmCase MakeTrtllmCase(std::uint64_t seed);
// The same of a server with attention data parallelism.
TrtllmCase MakeTrtllmRanksCase(std::uint64_t seed);
RandomLatencySpec MakeTrtllmLatency(std::uint64_t seed);

std::string Describe(const TrtllmCase& random_case);

}  // namespace servecast::testing
