// Values of llm-d's chart llm-d-modelservice: prefill and decode, each with replicas and
// parallelism.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "import/json_members.h"
#include "import/kinds.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

// "hf://meta-llama/Llama-3.1-8B" is meta-llama/Llama-3.1-8B.
std::string ModelOf(const Json& document) {
  const Json* artifacts = ObjectIn(document, "modelArtifacts");
  if (artifacts == nullptr) return "";
  const std::string uri = TextIn(*artifacts, "uri");
  if (uri.substr(0, 5) == "hf://") return uri.substr(5);
  return TextIn(*artifacts, "name");
}

void ReadRole(const Json& role, const char* name, bool alone, const std::string& model,
              Draft& draft) {
  ServerContext context;
  context.from = Format("llm-d's {}", name);
  context.role = alone ? "" : name;
  context.replicas = ParseCount(TextIn(role, "replicas")).value_or(1);
  context.model = model;
  CommandWords words;
  Variables environment;
  context.environment = &environment;
  for (const Json& container : ListIn(role, "containers")) {
    const Variables own = EnvironmentIn(container);
    const CommandWords more = WordsIn(container, "args", own);
    if (more.empty()) continue;
    for (const auto& [variable, value] : own) environment[variable] = value;
    words.insert(words.end(), more.begin(), more.end());
    if (context.version.empty()) context.version = VersionOfImage(TextIn(container, "image"));
  }
  // Images of llm-d have versions of their own.
  context.version.clear();
  const Json* parallel = ObjectIn(role, "parallelism");
  for (const auto& [member, option] :
       {std::pair("tensor", "--tensor-parallel-size"), std::pair("data", "--data-parallel-size")}) {
    const std::string text = parallel == nullptr ? "" : TextIn(*parallel, member);
    const bool said = std::find(words.begin(), words.end(), option) != words.end();
    if (!text.empty() && !said) words.insert(words.end(), {option, text});
  }
  ReadVllmServer(words, context, draft);
  if (const Json* labels = ObjectIn(role, "acceleratorTypes"); labels != nullptr) {
    const Json& values = ListIn(*labels, "labelValues");
    if (!values.empty()) draft.TakeGpu(TextOf(values[0]), TextIn(*labels, "labelKey"));
  }
}

}  // namespace

void ReadLlmdValues(const ImportSource& source, Draft& draft) {
  for (const Json& document : source.manifests) {
    if (ObjectIn(document, "modelArtifacts") == nullptr) continue;
    const auto used = [&document](const char* name) {
      const Json* role = ObjectIn(document, name);
      const bool none =
          role == nullptr || TextIn(*role, "create") == "false" || TextIn(*role, "replicas") == "0";
      return none ? nullptr : role;
    };
    const Json *prefill = used("prefill"), *decode = used("decode");
    const std::string model = ModelOf(document);
    if (prefill != nullptr) ReadRole(*prefill, "prefill", decode == nullptr, model, draft);
    if (decode != nullptr) ReadRole(*decode, "decode", prefill == nullptr, model, draft);
  }
}

}  // namespace servecast
