// Random cases with drafts, or with seats for adapters: those of random_cases.h, without what does
// not go with them.
#pragma once

#include <cstdint>
#include <string>

#include "testing/random_cases.h"

namespace servecast::testing {

RandomCase MakeRandomDraftCase(std::uint64_t seed);

// What a case has of them.
std::string DescribeDrafts(const RandomCase& random_case);

}  // namespace servecast::testing
