// Vision encoders of models whose presets are of the language model alone: they come in where a
// text sends images.
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "import/draft.h"

namespace servecast {
namespace {

// Ids of the presets begin with `family`. Gemma averages the patches of a token, and what is behind
// that, one matrix, is 0.1 % of the encoder's work and left out.
struct Encoder {
  std::string_view family, document, source;
  bool whole_images = false;  // vLLM forces disable_chunked_mm_input
};
constexpr Encoder kEncoders[] = {
    {"gemma-3-",
     R"({"num_hidden_layers":27,"hidden_size":1152,"num_attention_heads":16,)"
     R"("intermediate_size":4304,"patch_size":14,"merge_size":4,"num_mergers":0,"image_size":896})",
     "vision_config and mm_tokens_per_image of google/gemma-3-27b-it's config.json", true},
    {"gemma-4-",
     R"({"num_hidden_layers":27,"hidden_size":1152,"num_attention_heads":16,)"
     R"("intermediate_size":4304,"mlp_matrices":3,"patch_size":16,"merge_size":3,"num_mergers":0,)"
     R"("min_image_tokens":280,"max_image_tokens":280})",
     "vision_config of google/gemma-4-26B-A4B's config.json, an image of 280 tokens"},
    {"qwen3.5-",
     R"({"num_hidden_layers":27,"hidden_size":1152,"num_attention_heads":16,)"
     R"("intermediate_size":4304,"patch_size":16,"min_image_tokens":64})",
     "vision_config of Qwen/Qwen3.5-27B's config.json"},
    {"qwen3.6-",
     R"({"num_hidden_layers":27,"hidden_size":1152,"num_attention_heads":16,)"
     R"("intermediate_size":4304,"patch_size":16,"min_image_tokens":64})",
     "vision_config of Qwen/Qwen3.6-27B's config.json"},
};

}  // namespace

void Draft::SettleVision() {
  const nlohmann::json* preset = Find("model.preset");
  if (preset == nullptr || Find("workload.images") == nullptr) return;
  const std::string id = preset->get<std::string>();
  for (const Encoder& encoder : kEncoders) {
    if (id.find(encoder.family) != 0 || Find("model.vision") != nullptr) continue;
    Take("model.vision", nlohmann::json::parse(encoder.document), encoder.source);
    const nlohmann::json* engine = Find("engine.preset");
    const bool vllm = engine != nullptr && engine->get<std::string>().find("vllm") == 0;
    if (!encoder.whole_images || !vllm) continue;
    Assume("engine.disable_chunked_mm_input", true,
           "vLLM forces it for models whose image tokens see each other");
  }
}

}  // namespace servecast
