// What a run recorded of each request, for experiments, which make one answer of many runs.
#pragma once

#include "base/base.h"
#include "workload/request_table.h"

namespace servecast {

// Views into a simulation, good until it advances.
struct RunRecords {
  const RequestTable& requests;
  const RequestResults& results;  // times of what has happened; `generated` of complete requests
  TimeNs end = 0;                 // where the clock stands
  TimeNs token_delay = 0;         // of the latency model
  bool finished = false;
};

}  // namespace servecast
