// Vision encoders of models whose presets are of the language model alone: they come in where a
// text sends images.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "import/draft.h"
#include "import/model_config.h"

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
    // Its projection is of three matrices, of 60.8 million values; the two of a merger have 60.6.
    {"llama-4-",
     R"({"num_hidden_layers":34,"hidden_size":1408,"num_attention_heads":16,)"
     R"("intermediate_size":5632,"patch_size":14,"merge_size":2,"image_size":336,"max_tiles":16})",
     "vision_config of meta-llama/Llama-4-Scout-17B-16E-Instruct's config.json, with tiles up to "
     "the 16 of its processor"},
};

}  // namespace

nlohmann::json TiledEncoder(const nlohmann::json& vision) {
  nlohmann::json encoder = nlohmann::json::object();
  for (const char* name : {"num_hidden_layers", "hidden_size", "num_attention_heads",
                           "intermediate_size", "patch_size", "image_size"}) {
    if (!vision.contains(name)) return nlohmann::json::object();
    encoder[name] = vision[name];
  }
  const auto ratio = vision.find("pixel_shuffle_ratio");
  const bool said = ratio != vision.end() && ratio->is_number() && ratio->get<double>() > 1e-3;
  if (!said) return nlohmann::json::object();
  encoder["merge_size"] = static_cast<std::int64_t>(std::nearbyint(1 / ratio->get<double>()));
  encoder["max_tiles"] = 16;
  return encoder;
}

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
