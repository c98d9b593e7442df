// See draft_checks.h.
#include <algorithm>
#include <utility>

#include "base/text.h"
#include "io/draft_checks.h"
#include "servecast/workload_spec.h"
#include "serving/cluster/router.h"

namespace servecast {

void CheckImages(const Scenario& s, Issues& issues) {
  const VisionSpec& vision = s.model.vision;
  if (!vision.On()) {
    if (s.workload->HasImages()) {
      issues.push_back(
          {"/model/vision/num_hidden_layers",
           "found 0, allowed from 1 up: workload.images needs the encoder of a model that reads "
           "images, as qwen3-vl-8b has it; of this one only the text model is known"});
    }
    return;
  }
  const std::pair<const char*, std::int64_t> sizes[] = {
      {"hidden_size", vision.hidden_size},
      {"num_attention_heads", vision.num_attention_heads},
      {"intermediate_size", vision.intermediate_size}};
  for (const auto& [name, size] : sizes) {
    if (size > 0) continue;
    issues.push_back({Format("/model/vision/{}", name),
                      "found 0, allowed from 1 up: the model has a vision encoder"});
  }
  if (vision.num_full_layers > vision.num_hidden_layers) {
    issues.push_back({"/model/vision/num_full_layers",
                      Format("found {}, allowed up to num_hidden_layers {}", vision.num_full_layers,
                             vision.num_hidden_layers)});
  }
  if (vision.image_size > 0 && vision.image_size < vision.patch_size * vision.merge_size) {
    issues.push_back({"/model/vision/image_size",
                      Format("found {}, allowed 0, or from the {} pixels of a token's side up",
                             vision.image_size, vision.patch_size * vision.merge_size)});
  }
  if (vision.max_tiles > 0 && vision.image_size == 0) {
    issues.push_back(
        {"/model/vision/max_tiles",
         Format("found {}, allowed 0 without image_size: the side of a tile", vision.max_tiles)});
  } else if (vision.max_tiles > 0 && vision.image_size % (vision.patch_size * vision.merge_size)) {
    issues.push_back({"/model/vision/image_size",
                      Format("found {}, allowed with max_tiles whole times the {} pixels of a "
                             "token's side",
                             vision.image_size, vision.patch_size * vision.merge_size)});
  }
  const EngineSpec& e = s.engine;
  if (e.disable_chunked_mm_input && e.max_num_batched_tokens < MostImageTokens(vision)) {
    issues.push_back({"/engine/max_num_batched_tokens",
                      Format("found {}, allowed from the {} tokens of the largest image up with "
                             "disable_chunked_mm_input: no step would have room for it",
                             e.max_num_batched_tokens, MostImageTokens(vision))});
  }
  if (!s.workload->HasImages()) return;
  const std::int64_t heads = vision.num_attention_heads;
  const std::int64_t tp = s.cluster.pool().tensor_parallel;
  if (e.mm_encoder_tp_mode == EncoderParallel::kWeights && heads > 0 && heads % tp != 0) {
    issues.push_back(
        {"/engine/mm_encoder_tp_mode",
         Format("found \"weights\", allowed \"data\" with tensor_parallel {}, which the "
                "encoder's {} heads do not divide over",
                tp, heads)});
  }
  const ImageSpec& images = s.workload->images;
  constexpr std::int64_t kMostRatio = 200;  // transformers' smart_resize refuses others
  if (vision.image_size == 0 &&
      std::max(images.width, images.height) > kMostRatio * std::min(images.width, images.height)) {
    issues.push_back({"/workload/images/width",
                      Format("found {} beside a height of {}, allowed sides of which none has more "
                             "than {} times the other's pixels",
                             images.width, images.height, kMostRatio)});
  }
}

void CheckEncoders(const Scenario& s, std::size_t pool, Issues& issues) {
  const ClusterSpec& cluster = s.cluster;
  const auto refuse = [&](const char* name, std::string message) {
    issues.push_back({Format("/cluster/pools/0/{}", name), std::move(message)});
  };
  const std::vector<PoolSpec>& pools = cluster.pools;
  if (pool == 0 || (pool + 1 < pools.size() && pools[pool + 1].role != PoolRole::kEncode)) {
    refuse("role",
           "found \"encode\", allowed behind all pools that it encodes for: a report's memory is "
           "that of the first");
  }
  if (!s.workload->HasImages()) {
    refuse("role", "found \"encode\", allowed with workload.images only: text needs no encoder");
  }
  // That of all, or of this pool, is refused at its own path.
  const bool others = std::any_of(pools.begin(), pools.end(), [](const PoolSpec& other) {
    return other.role != PoolRole::kEncode && other.scaling && other.scaling->On();
  });
  if (others) {
    refuse("role",
           "found \"encode\", allowed without scalers: replicas that come and go beside encoders "
           "are not modelled");
  }
  if (pools[pool].pipeline_parallel > 1) {
    refuse("pipeline_parallel", Format("found {}, allowed 1 in a pool that encodes images",
                                       pools[pool].pipeline_parallel));
  }
  if (pools[pool].scheduler) {
    refuse("scheduler",
           "found one, allowed none in a pool that encodes images: it serves requests in the order "
           "in which they come");
  }
}

}  // namespace servecast
