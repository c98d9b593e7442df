// A config.json of Hugging Face: the model's figures; and a hf_quant_config.json, of its weights.
#include <nlohmann/json.hpp>
#include <optional>

#include "base/printable.h"
#include "base/text.h"
#include "import/checkpoint_weights.h"
#include "import/json_members.h"
#include "import/kinds.h"
#include "import/left_layers.h"
#include "import/model_config.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

bool HasKey(const Json& of, const char* key) { return of.find(key) != of.end(); }

bool IsConfig(const Json& json) {
  if (!json.is_object() || HasKey(json, "kind")) return false;
  for (const char* key : {"architectures", "text_config", "llm_config", "thinker_config"}) {
    if (HasKey(json, key)) return true;
  }
  const bool layers = HasKey(json, "num_hidden_layers") || HasKey(json, "n_layer") ||
                      (HasKey(json, "num_layers") && HasKey(json, "hidden_size"));
  return layers || (HasKey(json, "model_type") && HasKey(json, "vocab_size"));
}

// What servers take of a quantised checkpoint beside its weights, and what is not as it has it.
void TakeQuantization(const Json& quantized, const std::string& from, Draft& draft) {
  if (const std::string type = KvCacheOf(quantized); !type.empty()) {
    draft.TakeModelKvCache(type, from);
  } else if (const std::string other = UnknownKvCache(quantized); !other.empty()) {
    draft.Warn(Format(
        "{}: a KV cache in {} is not modelled and planned in 16 bits; next: where a value takes a "
        "byte, set engine.kv_cache_dtype to fp8",
        from, ShownText(other, 20)));
  }
  if (TextIn(quantized, "lm_head") == "true") {
    draft.Warn(Format("{}: the LM head is quantised (lm_head), and planned in 16 bits", from));
  }
  LeftLayers left{LeftOutOf(quantized), ScaleGroupsOf(quantized), from};
  draft.TakeLeftLayers(std::move(left));
}

// NVIDIA's hf_quant_config.json, beside a config.json that says nothing of it.
void ReadQuantConfig(const Json& json, Draft& draft) {
  const Json* quantized = ObjectIn(json, "quantization");
  if (quantized == nullptr || TextIn(*quantized, "quant_algo").empty()) return;
  draft.Found("a hf_quant_config.json");
  const std::optional<std::string> weights = WeightsOfQuantization(*quantized);
  if (weights && !weights->empty()) {
    draft.Take("model.quantization", *weights, "quant_algo of hf_quant_config.json");
    if (const std::string experts = ExpertsOfQuantization(*quantized); !experts.empty()) {
      draft.Take("model.expert_quantization", experts, "quantized_layers of hf_quant_config.json");
    }
  } else {
    draft.Warn("hf_quant_config.json: " + UnknownWeights(*quantized));
  }
  TakeQuantization(*quantized, "hf_quant_config.json", draft);
}

}  // namespace

void ReadHfConfig(const ImportSource& source, Draft& draft) {
  if (source.json == nullptr) return;
  if (!IsConfig(*source.json)) return ReadQuantConfig(*source.json, draft);
  Result<Json> model = ModelOfConfig(*source.json, "");
  if (!model.ok()) {
    for (const Issue& issue : model.issues()) draft.Refuse({"", "config.json: " + issue.message});
    return;
  }
  draft.Found("a config.json of Hugging Face");
  const auto name = source.json->find("_name_or_path");
  if (name != source.json->end() && name->is_string()) {
    const auto& text = *name->get_ptr<const std::string*>();
    // A folder of somebody's machine names nothing.
    const bool repository = !text.empty() && text[0] != '/' && text[0] != '.' && text.size() < 100;
    if (repository) draft.TakeModelName(text, "_name_or_path");
  }
  const Json* quantized = ObjectIn(*source.json, "quantization_config");
  for (const char* inner : {"text_config", "llm_config", "language_config"}) {
    if (quantized == nullptr) quantized = ObjectAt(*source.json, {inner, "quantization_config"});
  }
  if (quantized != nullptr) {
    TakeQuantization(*quantized, "quantization_config of config.json", draft);
  }
  const bool encodes = model.value().contains("vision");
  const bool tiles = encodes && model.value()["vision"].contains("max_tiles");
  for (const char* key : {"vision_config", "audio_config"}) {
    if (ObjectIn(*source.json, key) == nullptr) continue;
    draft.Remark(
        tiles && key[0] == 'v'
            ? "prompts are text until workload.images says otherwise; an image "
              "is taken to have up to 16 tiles, as its family's processor cuts it"
        : encodes && key[0] == 'v'
            ? "prompts are text until workload.images says otherwise; an image is "
              "taken to have up to 16,384 tokens, as its family's preprocessor_config.json says"
            : Format("{}: this encoder is not modelled: prompts are text, and the memory "
                     "that it takes is not counted",
                     key));
  }
  draft.TakeModelFigures(std::move(model.value()), "config.json");
  if (const std::string pooled = PooledArchitecture(*source.json); !pooled.empty()) {
    draft.TakePooling(Format("{} of config.json", pooled));
  }
}

}  // namespace servecast
