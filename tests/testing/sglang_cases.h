// Random cases of SGLang's scheduler, small enough that memory, seats and budgets run short.
#pragma once

#include <cstdint>
#include <string>

#include "testing/random_cases.h"
#include "testing/sglang_golden.h"

namespace servecast::testing {

// Its rows and results are empty.
SglangCase MakeSglangCase(std::uint64_t seed);
RandomLatencySpec MakeSglangLatency(std::uint64_t seed);

std::string Describe(const SglangCase& random_case);

}  // namespace servecast::testing
