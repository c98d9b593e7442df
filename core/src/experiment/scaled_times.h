// A scenario whose step, prompt and host times are all off by the same factors: what a run would
// be if the latency model were. Nothing else of the machine differs.
#pragma once

#include <memory>

#include "evidence/response.h"
#include "servecast/result.h"
#include "servecast/scenario.h"
#include "serving/cluster/deployment.h"

namespace servecast {

// Decodes' times are multiplied by `step`; what prompts add to a step, steps of prompts alone, and
// the host's times of a request by `prompt`, what images add to a step by `encode`.
std::unique_ptr<const LatencyModel> Scaled(std::shared_ptr<const LatencyModel> model,
                                           const ErrorFactors& factors);

// For SimulationHooks::deployment. Issues: those of Deploy.
Result<std::shared_ptr<Deployment>> DeployScaled(Scenario scenario, const ErrorFactors& factors);

}  // namespace servecast
