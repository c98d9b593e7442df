// The KV memory of a replica as Vidur plans it (microsoft/vidur 7d47513), for compat vidur: in
// whole requests of the greatest length that the workload allows, without embeddings, LM head,
// norms and activations among the weights.
#pragma once

#include <cstdint>
#include <optional>

#include "servecast/result.h"
#include "servecast/scenario.h"

namespace servecast {

struct VidurPlanInput {
  std::int64_t layers = 0, heads = 0, kv_heads = 0, hidden = 0, intermediate = 0;
  bool gated = true;
  double memory_gib = 0, margin = 0.1;
  std::int64_t tensor_parallel = 1, pipeline_parallel = 1;
  std::int64_t max_tokens = 4096, block_size = 16, max_num_seqs = 128;
};

struct VidurPlan {
  std::int64_t parameters = 0;            // of the layers, per GPU
  std::int64_t weight_bytes = 0;          // per GPU
  std::int64_t kv_bytes_per_request = 0;  // per GPU, all layers even when the stages share them
  std::int64_t slots = 0;                 // requests of the greatest length; 0: it does not fit
  std::int64_t max_batch = 0;             // as many are in one batch at most
  std::int64_t blocks = 0;
};

VidurPlan PlanVidurMemory(const VidurPlanInput& in);

struct ModelCost;

// Of a scenario, whose greatest length is engine.max_model_len, or the model's.
VidurPlan VidurPlanOf(const Scenario& scenario);
// Its KV blocks; an issue when no request of the greatest length fits.
std::optional<Issue> PlanAsVidur(const Scenario& scenario, ModelCost& cost);

}  // namespace servecast
