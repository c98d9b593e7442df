// The slow, obvious gateway: where each request of a finished run must have gone. For every request
// it counts anew, from the results and the steps of the run, what the router could know at that
// moment, and chooses by the rule as docs/model.md has it. No code of the routers, of their index
// of prefixes or of the cluster is in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "testing/cluster_run.h"

namespace servecast::testing {

struct ReferencePlacements {
  std::vector<std::int32_t> replica;  // by request; -1: none
  std::vector<TimeNs> placed;         // by request; later than it came where it was held
  std::vector<std::int32_t> gave_up;  // while held
  // By flow control: when a request was turned away; -1: it was not; and whether it had waited.
  std::vector<TimeNs> turned_away;
  std::vector<bool> waited;
};

// Requires: no delays before the queue that depend on load.
ReferencePlacements PlaceByReference(const RandomCase& random_case, std::int64_t replicas,
                                     const RouterChoice& router, const ClusterRun& run);

// Does each replica, to the nanosecond, what one alone does on the requests that it was sent? How
// many were compared: none where answers bring requests, or what was held would be another case
// alone.
std::int64_t CompareEachAlone(const RandomCase& random_case, std::int64_t replicas,
                              const RouterChoice& router, const ClusterRun& run,
                              std::string& mismatch);

// Runs the random case of the seed on 1 to 4 replicas behind a random router: what the reference
// says otherwise; none where it cannot tell.
struct RouterComparison {
  bool told = false;
  RouterChoice router;
  std::int64_t placed = 0, held = 0, gave_up = 0, alone = 0;
  std::int64_t rejected = 0, expired = 0;  // by flow control
  std::string mismatch;                    // "" where they agree
};
RouterComparison CompareRouter(std::uint64_t seed);
// The same behind the router epp.
RouterComparison CompareEppRouter(std::uint64_t seed);
// With flow control, of a run in slices.
RouterComparison CompareFlowRouter(std::uint64_t seed);

}  // namespace servecast::testing
