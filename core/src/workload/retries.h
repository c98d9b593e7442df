// Clients that try again (workload.retries): the rows that their further attempts take, and these
// rows as one a request. In a file of its own, which the page's first module leaves out.
#pragma once

#include <cstdint>
#include <vector>

#include "servecast/report.h"
#include "servecast/result.h"
#include "servecast/scenario.h"
#include "workload/request_table.h"

namespace servecast {

// Refuses a back-off that shrinks, and a budget in a closed loop; nothing where clients do not try
// again.
void CheckRetries(const WorkloadSpec& workload, Issues& issues);

// Behind the requests of `table` a row for each retry that the scenario allows, with its back-off
// (RequestTable::backoff). A retry asks for the same tokens, so it may find what an attempt before
// it left in a prefix cache. Nothing where clients do not try again, or where `table` has such rows
// already. Issues: more rows than a run can hold. O(rows).
Result<RequestTable> WithRetries(const Scenario& scenario, RequestTable table);

// A run by requests instead of attempts.
struct RequestsOfAttempts {
  RequestTable requests;  // without `backoff`, `content` and lists of drafts
  RequestResults
      results;  // of the last attempt; of one whose next attempt is still to come: queued
  std::vector<std::int32_t> attempts;  // that have arrived
  RetryReport report;
  std::int64_t running = 0;  // requests, of which two attempts may run
};

// Requires: rows for retries. `output_tokens`: that the engine made, up to `end`. O(rows).
RequestsOfAttempts FoldAttempts(const RequestTable& table, const RequestResults& results,
                                TimeNs end, std::int64_t output_tokens);

}  // namespace servecast
