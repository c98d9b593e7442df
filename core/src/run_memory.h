// What a run takes of memory, said before it takes it.
#pragma once

#include <cstdint>

#include "servecast/scenario.h"
#include "servecast/trace.h"

namespace servecast {

struct RunMemory {
  std::int64_t requests = 0;
  std::int64_t bytes = 0;
};

// At its greatest, with a report of each request: the tables that grow with requests, the lists of
// blocks that BLIS's engine keeps, samples of gaps and a program's own. Of 100,000 requests and
// more it is between half and twice of what was measured. Not the trace itself. O(1).
RunMemory MemoryOfRun(const Scenario& scenario, const Trace& trace);

}  // namespace servecast
