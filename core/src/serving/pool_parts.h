// What each of several pools needs to run: the scenario as it is for that pool, what the model
// costs there, its model of step times, of each stage where there are several, and its scheduler.
#pragma once

#include <memory>
#include <vector>

#include "cost/model_cost.h"
#include "servecast/result.h"
#include "servecast/scenario.h"
#include "serving/cluster.h"
#include "serving/former_replica.h"
#include "serving/pipeline.h"
#include "serving/policy.h"

namespace servecast {

struct PoolPart {
  Scenario scenario;
  ModelCost cost;
  std::unique_ptr<LatencyModel> latency;
  std::int64_t max_model_len = 0;
  std::vector<PipelineStage> stages = {};    // empty: one
  std::unique_ptr<FormerSetup> former = {};  // nullptr: vLLM's, or not made yet

  bool HasFormer() const { return scenario.scheduler.policy != "vllm"; }
};

// The longest sequence that the engine of a scenario with one pool serves with its scheduler.
inline std::int64_t MaxModelLenOf(const Scenario& scenario, const ModelCost& cost) {
  EngineSpec limits = scenario.engine;
  if (scenario.scheduler.policy != "vllm") {
    limits.enable_chunked_prefill = !FindFormer(scenario.scheduler.policy).whole_prompts;
  }
  return EffectiveMaxModelLen(limits, scenario.model.max_position_embeddings, cost.usable_blocks);
}

// None for a single pool. Issues name the pool.
Result<std::vector<PoolPart>> MakePoolParts(const Scenario& scenario);

// Of each pool by its own GPU, engine and model of step times, each text once; of a single one that
// of the scenario.
LatencyLabel LabelOf(const std::vector<PoolPart>& pools, const Scenario& scenario,
                     const LatencyEntry& entry);

// So that any replica can serve any request.
std::int64_t ShortestMaxModelLen(const std::vector<PoolPart>& pools);

// Makes the schedulers that are not vLLM's; refers to the parts.
std::vector<ClusterPool> PoolsOf(std::vector<PoolPart>& pools, std::int64_t max_model_len,
                                 const RequestTable& requests);

}  // namespace servecast
