// Clients that hedge, the slow, obvious way: what a finished run of a fleet must have done, read
// from its records. When a second attempt set out, which attempt was kept, when the other was
// cancelled and where each went are looked up anew for every request; then each replica runs what
// it was sent alone, by the reference simulator, whose clients give up when an attempt was
// cancelled.
#pragma once

#include <cstdint>
#include <string>

namespace servecast::testing {

struct HedgeComparison {
  bool told = false;
  std::int64_t requests = 0, hedged = 0, won = 0, cancelled = 0, over_budget = 0, placed = 0;
  std::string mismatch;  // "" where they agree
};

// The random case of the seed on 1 to 4 replicas.
HedgeComparison CompareHedges(std::uint64_t seed);

}  // namespace servecast::testing
