// What a replica's scheduler is told of a scenario.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "cost/model_cost.h"
#include "servecast/result.h"
#include "servecast/scenario.h"
#include "serving/replica/scheduler_entry.h"
#include "workload/request_table.h"

namespace servecast {

struct SchedulerSetup {
  const SchedulerEntry* entry = nullptr;
  SchedulerLimits limits;
  std::int64_t report_block = 1;     // KV blocks here to one of the report's
  std::int64_t declared_output = 0;  // by each client; in compat vidur its true one
  std::vector<std::string_view> departures;
  std::int64_t kept_embeds = 0;  // of images, that SGLang has room for in host memory
};

// Requires: `scenario` has one pool.
std::unique_ptr<SchedulerSetup> MakeSchedulerSetup(const Scenario& scenario, const ModelCost& cost,
                                                   std::int64_t max_model_len,
                                                   const RequestTable& requests);

}  // namespace servecast
