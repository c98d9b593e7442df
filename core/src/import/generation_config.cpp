// A generation_config.json, beside a config.json: whether servers sample by top-p or top-k unless
// told otherwise, which costs time.
#include <nlohmann/json.hpp>

#include "import/kinds.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

double NumberOr(const Json& of, const char* key, double otherwise) {
  const auto at = of.find(key);
  return at != of.end() && at->is_number() ? at->get<double>() : otherwise;
}

}  // namespace

void ReadGenerationConfig(const ImportSource& source, Draft& draft) {
  if (source.json == nullptr || !source.json->is_object()) return;
  const Json& json = *source.json;
  const bool config =
      json.find("num_hidden_layers") == json.end() && json.find("architectures") == json.end();
  const bool generates =
      json.find("eos_token_id") != json.end() || json.find("do_sample") != json.end();
  if (!config || !generates) return;
  draft.Found("a generation_config.json of Hugging Face");
  const double p = NumberOr(json, "top_p", 1), k = NumberOr(json, "top_k", 0);
  draft.Take("model.top_p_by_default", p < 1 || k > 0, "top_p and top_k of generation_config.json");
}

}  // namespace servecast
