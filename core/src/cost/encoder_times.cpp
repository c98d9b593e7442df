#include "cost/encoder_times.h"

#include <algorithm>
#include <utility>

#include "cost/all_reduce.h"
#include "cost/power_limit.h"
#include "servecast/workload_spec.h"

namespace servecast {
namespace {

// Heads that are narrower take as long as those of this width (policies/latency_analytic.cpp).
constexpr double kFullHead = 128;

double AttentionFlops(const VisionSpec& v, double patches) {
  const double side = D(v.window_size) / D(v.patch_size);
  // No patch sees another tile.
  const double tile = v.max_tiles > 0 ? D(v.image_size) / D(v.patch_size) : 0;
  const double whole = tile > 0 ? std::min(tile * tile, patches) : patches;
  const double window = v.window_size > 0 ? std::min(side * side, patches) : patches;
  const double windowed = v.window_size > 0 ? D(v.num_hidden_layers - v.num_full_layers) : 0;
  const double pairs = patches * (windowed * window + (D(v.num_hidden_layers) - windowed) * whole);
  const double width = D(v.hidden_size) / D(std::max<std::int64_t>(v.num_attention_heads, 1));
  return pairs * 4 * D(v.hidden_size) * std::max(1.0, kFullHead / width);
}

}  // namespace

EncoderTimes::EncoderTimes(const Scenario& s, const ModelCost& cost) {
  const VisionSpec& v = s.model.vision;
  if (!v.On()) return;
  const ImageSpec& images = s.workload->images;
  const double tokens = D(ImageEmbeds(v, images.width, images.height));
  const double patches = tokens * D(v.merge_size * v.merge_size);
  const VisionParameters parameters = VisionParametersOf(s.model);
  const double flop_ns =
      1 / (PeakTflops(s.hardware, PlainType(s.model)) * 1e3 * ArithmeticUnderLimit(s.hardware));
  const double products = 2 * (parameters.layers * patches + parameters.merger * tokens);
  image_ns_ = products * flop_ns / s.hardware.compute_efficiency +
              AttentionFlops(v, patches) * flop_ns / s.hardware.attention_efficiency;
  const double bytes = D(BytesPerValue(s.model.torch_dtype));
  read_ns_ = (parameters.layers + parameters.merger) * bytes /
             (s.hardware.memory_bandwidth_gb_s * s.hardware.bandwidth_efficiency);
  kernels_ns_ = s.hardware.layer_latency_us * 1e3 * D(v.num_hidden_layers);
  if (s.engine.mm_encoder_tp_mode == EncoderParallel::kData) {
    at_once_ = cost.tensor_parallel;
    return;
  }
  if (cost.tensor_parallel == 1) return;
  const double group = D(cost.tensor_parallel), calls = 2 * D(v.num_hidden_layers);
  image_ns_ /= group;
  read_ns_ /= group;
  kernels_ns_ += AllReduceWaitNs(s.hardware, group, calls);
  collective_ns_ = AllReduceNs(s.hardware, group, calls * patches * D(v.hidden_size) * bytes);
}

void LeaveToEncoders(const PoolSpec& pool, Scenario& s) {
  if (pool.role != PoolRole::kEncode) {
    s.workload->images.per_request = 0;
    for (ClassSpec& each : s.workload->classes) each.images_per_request.reset();
    return;
  }
  ModelSpec encoder;
  encoder.name = s.model.name.empty() ? "" : s.model.name + "'s image encoder";
  encoder.vision = s.model.vision;
  encoder.hidden_size = s.model.hidden_size;
  encoder.torch_dtype = s.model.torch_dtype;
  encoder.max_position_embeddings = s.model.max_position_embeddings;
  encoder.num_hidden_layers = encoder.head_dim = 1;
  encoder.intermediate_size = encoder.vocab_size = 1;
  encoder.num_attention_heads = encoder.num_key_value_heads = pool.tensor_parallel;
  s.model = std::move(encoder);
  EngineSpec& e = s.engine;
  const EngineSpec plain;
  e.num_gpu_blocks_override = 2;
  e.async_scheduling = e.overlap_scheduling = e.disable_chunked_mm_input = false;
  e.enable_expert_parallel = false;
  e.speculative = plain.speculative;
  e.kv_offload = plain.kv_offload;
  e.cuda_graphs = plain.cuda_graphs;
  e.max_loras = 0;
  s.scheduler = {};
  s.latency = {};
  s.workload->adapters = {};
}

}  // namespace servecast
