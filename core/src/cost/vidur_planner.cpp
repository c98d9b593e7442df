#include "cost/vidur_planner.h"

#include <algorithm>
#include <cmath>

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

}  // namespace servecast
