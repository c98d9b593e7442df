// See draft_checks.h.
#include <utility>

#include "base/text.h"
#include "io/draft_checks.h"

namespace servecast {

void CheckImages(const Scenario& s, Issues& issues) {
  const VisionSpec& vision = s.model.vision;
  if (!vision.On()) {
    if (s.workload.HasImages()) {
      issues.push_back({"/model/vision/num_hidden_layers",
                        "found 0, allowed from 1 up: the workload has images, and the model reads "
                        "text only"});
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
}

}  // namespace servecast
