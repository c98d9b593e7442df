// A config.json of Hugging Face: the model's figures.
#include <nlohmann/json.hpp>

#include "import/kinds.h"
#include "import/model_config.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

bool HasKey(const Json& of, const char* key) { return of.find(key) != of.end(); }

bool IsConfig(const Json& json) {
  if (!json.is_object() || HasKey(json, "kind")) return false;
  if (HasKey(json, "architectures") || HasKey(json, "text_config") || HasKey(json, "llm_config"))
    return true;
  const bool layers = HasKey(json, "num_hidden_layers") || HasKey(json, "n_layer");
  return layers || (HasKey(json, "model_type") && HasKey(json, "vocab_size"));
}

}  // namespace

void ReadHfConfig(const ImportSource& source, Draft& draft) {
  if (source.json == nullptr || !IsConfig(*source.json)) return;
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
  draft.TakeModelFigures(std::move(model.value()), "config.json");
}

}  // namespace servecast
