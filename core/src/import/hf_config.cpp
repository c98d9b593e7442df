// A config.json of Hugging Face: the model's figures.
#include <nlohmann/json.hpp>

#include "import/kinds.h"
#include "import/model_config.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

bool Has(const Json& of, const char* key) { return of.find(key) != of.end(); }

bool IsConfig(const Json& json) {
  if (!json.is_object() || Has(json, "kind")) return false;
  if (Has(json, "architectures") || Has(json, "text_config") || Has(json, "llm_config"))
    return true;
  const bool layers = Has(json, "num_hidden_layers") || Has(json, "n_layer");
  return layers || (Has(json, "model_type") && Has(json, "vocab_size"));
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
