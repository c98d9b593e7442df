// The endpoint picker's room against the slow reference (epp_reference.h), on random profiles,
// endpoints and requests that share beginnings.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "servecast/epp.h"
#include "testing/dice.h"

namespace servecast::testing {

struct EppComparison {
  std::string mismatch;                         // the first; "": none
  std::map<std::string, std::int64_t> plugins;  // runs, by type
  std::int64_t cycles = 0, failed = 0, disaggregated = 0, matched_blocks = 0, ties = 0;
};

// A profile, or one for prefill and one for decode, of random plugins with random parameters.
EppConfig RandomEppConfig(Dice& dice);

// One random case: a configuration and up to 40 requests in a row. A function of the seed.
EppComparison CompareEpp(std::uint64_t seed);

}  // namespace servecast::testing
