#include "cost/vidur_planner.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "cost/model_cost.h"

namespace servecast {

VidurPlan PlanVidurMemory(const VidurPlanInput& in) {
  constexpr std::int64_t kBytes = 2;  // of a value
  const std::int64_t tp = in.tensor_parallel;
  const std::int64_t head = in.hidden / in.heads;
  const std::int64_t kv_heads = (in.kv_heads + tp - 1) / tp;  // whole heads on each GPU
  const std::int64_t heads = in.heads / tp;
  const std::int64_t of_a_layer = in.hidden * head * (heads + 2 * kv_heads) +
                                  in.hidden * head * heads +
                                  (in.gated ? 3 : 2) * in.hidden * in.intermediate / tp;
  VidurPlan plan;
  plan.parameters = of_a_layer * (in.layers / in.pipeline_parallel);
  plan.weight_bytes = kBytes * plan.parameters;
  plan.kv_bytes_per_request = 2 * kBytes * head * kv_heads * in.max_tokens * in.layers;
  const double free =
      in.memory_gib * 0x1p30 * (1 - in.margin) - static_cast<double>(plan.weight_bytes);
  plan.slots = std::max<std::int64_t>(
      0,
      static_cast<std::int64_t>(std::floor(free / static_cast<double>(plan.kv_bytes_per_request))));
  plan.max_batch = std::min(plan.slots, in.max_num_seqs);
  plan.blocks = in.max_tokens / in.block_size * plan.slots * in.pipeline_parallel;
  return plan;
}

VidurPlan VidurPlanOf(const Scenario& s) {
  VidurPlanInput in;
  in.layers = s.model.num_hidden_layers;
  in.heads = s.model.num_attention_heads;
  in.kv_heads = s.model.num_key_value_heads;
  in.hidden = s.model.hidden_size;
  in.intermediate = s.model.intermediate_size;
  in.gated = s.model.mlp_matrices == 3;
  in.memory_gib = s.hardware.memory_gib;
  in.margin = 1 - s.engine.gpu_memory_utilization;
  in.tensor_parallel = s.cluster.pool().tensor_parallel;
  in.pipeline_parallel = s.cluster.pool().pipeline_parallel;
  in.max_tokens = s.engine.max_model_len.value_or(s.model.max_position_embeddings);
  in.block_size = s.engine.block_size;
  in.max_num_seqs = s.engine.max_num_seqs;
  // What no GPU holds may not fit 64 bits either.
  const double hidden = static_cast<double>(in.hidden), layers = static_cast<double>(in.layers);
  const double kv =
      4 * hidden * static_cast<double>(in.kv_heads) * static_cast<double>(in.max_tokens) * layers;
  const double weights = hidden * (6 * hidden + 3 * static_cast<double>(in.intermediate)) * layers;
  const bool small = kv < 4e18 && weights < 1e17 && in.heads <= in.hidden;
  return small ? PlanVidurMemory(in) : VidurPlan{};
}

std::optional<Issue> PlanAsVidur(const Scenario& scenario, ModelCost& cost) {
  const VidurPlan plan = VidurPlanOf(scenario);
  const std::int64_t block_size = scenario.engine.block_size;
  if (plan.blocks == 0) {
    return Issue{
        "/engine/max_model_len",
        Format("found {}, allowed with compat \"vidur\" from block_size {} up to "
               "what KV memory has room for: Vidur plans it in whole requests of "
               "that length",
               scenario.engine.max_model_len.value_or(scenario.model.max_position_embeddings),
               block_size)};
  }
  cost.pool_blocks = cost.usable_blocks = plan.blocks;
  cost.kv_tokens = plan.blocks * block_size;
  cost.kv_gib = static_cast<double>(cost.kv_tokens) * cost.kv_bytes_per_token / 0x1p30;
  return std::nullopt;
}

}  // namespace servecast
