// Which LoRA adapter a session asks for.
#pragma once

#include <cstdint>
#include <vector>

#include "servecast/scenario.h"
#include "servecast/workload_spec.h"

namespace servecast {

// Whether some pool has seats for adapters.
bool ServesAdapters(const Scenario& scenario);

// Whether requests may wait for a seat: there are more adapters than some pool with seats has of
// them, or a trace names them.
bool MayLackSeats(const Scenario& scenario);

class AdapterDrawer {
 public:
  explicit AdapterDrawer(const AdapterSpec& spec);

  // From 1 on, keyed by session; 0: none, as there are none. O(log of their number).
  std::int32_t Draw(std::int64_t seed, std::int64_t session) const;

 private:
  std::vector<double> until_;  // running sums of the weights
};

}  // namespace servecast
