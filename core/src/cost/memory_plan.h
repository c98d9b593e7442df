// Whether a model fits on its GPUs, and what is left for KV blocks; model_cost.h has what others
// ask.
#pragma once

#include <cstdint>
#include <optional>

#include "cost/model_cost.h"
#include "servecast/result.h"
#include "servecast/scenario.h"

namespace servecast {

// Weights, overhead and blocks of the stage with the least room, into `c`; or why there is none.
std::optional<Issue> PlanMemory(const Scenario& s, std::int64_t tp, ModelCost& c);

}  // namespace servecast
