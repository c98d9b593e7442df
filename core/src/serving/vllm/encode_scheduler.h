// Replicas that encode images for others, and compute nothing else.
//
// Requests are served in the order in which they came, and none overtakes another: a step takes the
// images of the first ones in the order of their prompts, as many as vLLM's budget and cache of the
// encoder have room for (encoder_cache.h); those that the cache has cost nothing. With the step
// that encodes its last image a request leaves, and its embeddings set out.
#pragma once

#include <memory>

#include "cost/model_cost.h"
#include "servecast/scenario.h"
#include "serving/policy.h"
#include "serving/replica/scheduler.h"

namespace servecast {

std::unique_ptr<Scheduler> MakeEncodeScheduler(Machine& machine);

// Of its steps: those of the encoder (cost/encoder_times.h) and what the engine takes per step.
// `scenario` is that of the pool alone.
std::unique_ptr<LatencyModel> MakeEncodeLatency(const Scenario& scenario, const ModelCost& cost);

}  // namespace servecast
