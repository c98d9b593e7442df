// What the slow gateways (reference_rules, epp_reference_router) see of their replicas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/base.h"

namespace servecast::testing {

// One of the replicas that a gateway chooses among: as it was set up.
struct ServedBy {
  std::int64_t seats = 1;
  std::int64_t block_size = 16, blocks = 1;  // of its KV cache
  bool caches_prefixes = false;
};

// What the gateway sees of a replica when it chooses.
struct ReplicaSight {
  std::int64_t outstanding = 0;
  std::vector<std::size_t> own = {};          // of them, requests that this gateway placed
  std::int64_t waiting = 0, blocks_used = 0;  // as its engine says
  std::int64_t running = 0;                   // likewise
  std::vector<std::size_t> answered = {};     // of `own`, those whose first token has come
  TimeNs age = 0;                             // of what its engine says
};

}  // namespace servecast::testing
