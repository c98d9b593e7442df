// The time of a step with drafts: the model's, which verifies them, then the drafter's, which makes
// those of the next step.
#pragma once

#include <memory>

#include "servecast/scenario.h"
#include "serving/policy.h"

namespace servecast {

// `model` itself where the engine has no drafts. `entry`: the latency model that both are priced
// by.
std::shared_ptr<const LatencyModel> WithDrafter(std::unique_ptr<LatencyModel> model,
                                                const Scenario& scenario,
                                                const LatencyEntry& entry);

}  // namespace servecast
