// What each of several pools needs to run: the scenario as it is for that pool, what the model
// costs there, and its model of step times.
#pragma once

#include <memory>
#include <vector>

#include "cost/model_cost.h"
#include "servecast/result.h"
#include "servecast/scenario.h"
#include "serving/cluster.h"
#include "serving/policy.h"

namespace servecast {

struct PoolPart {
  Scenario scenario;
  ModelCost cost;
  std::unique_ptr<LatencyModel> latency;
  std::int64_t max_model_len = 0;
};

// None for a single pool, and where clusters are left out (wasm/left_out.cpp). Issues name the
// pool.
Result<std::vector<PoolPart>> MakePoolParts(const Scenario& scenario);

// Of each pool by its own GPU and engine, each text once; of a single one that of the scenario.
LatencyLabel LabelOf(const std::vector<PoolPart>& pools, const Scenario& scenario,
                     const LatencyEntry& entry);

// So that any replica can serve any request.
std::int64_t ShortestMaxModelLen(const std::vector<PoolPart>& pools);

// Refer to the parts.
std::vector<ClusterPool> PoolsOf(const std::vector<PoolPart>& pools);

}  // namespace servecast
