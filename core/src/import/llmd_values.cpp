// Values of llm-d's chart llm-d-modelservice: prefill and decode, each with replicas and
// parallelism.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "import/json_members.h"
#include "import/kinds.h"
#include "import/pod.h"

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
  const Json* parallel = ObjectIn(role, "parallelism");
  Variables environment;
  for (const auto& [member, variable] :
       {std::pair("tensor", "TP_SIZE"), std::pair("data", "DP_SIZE"),
        std::pair("dataLocal", "DP_SIZE_LOCAL")}) {
    const std::string text = parallel == nullptr ? "" : TextIn(*parallel, member);
    if (!text.empty()) environment[variable] = text;
  }
  context.environment = &environment;
  CommandWords words;
  for (const Json& container : ListIn(role, "containers")) {
    for (const auto& [variable, value] : EnvironmentIn(container)) environment[variable] = value;
    CommandWords more = WordsIn(container, "command", environment);
    const CommandWords arguments = WordsIn(container, "args", environment);
    const bool own = !more.empty();
    more.insert(more.end(), arguments.begin(), arguments.end());
    if (more.empty()) continue;
    std::optional<CommandWords> behind = VllmArguments(more);
    for (std::size_t i = 0; i + 1 < more.size() && !behind; ++i) {
      const bool script = more[i].size() > 1 && more[i][0] == '-' && more[i].back() == 'c';
      for (const CommandWords& each :
           script ? CommandsIn(more[i + 1], environment) : std::vector<CommandWords>())
        if (!behind) behind = VllmArguments(each);
    }
    if (!behind && own) continue;  // a program of its own beside the server
    if (!behind) behind = more;
    words.insert(words.end(), behind->begin(), behind->end());
    context.image = TextIn(container, "image");
    context.version = VersionOfImage(context.image);
  }
  for (std::string& word : words) {
    if (word.find("{{") == 0 && word.find(".Values.modelArtifacts.name") != std::string::npos)
      word = model;
  }
  for (const auto& [member, option] :
       {std::pair("tensor", "--tensor-parallel-size"), std::pair("data", "--data-parallel-size")}) {
    const std::string text = parallel == nullptr ? "" : TextIn(*parallel, member);
    const bool said = std::find(words.begin(), words.end(), option) != words.end();
    if (!text.empty() && !said) words.insert(words.end(), {option, text});
  }
  ReadVllmServer(words, context, draft);
  TakeSelectors(role, draft);
  if (const Json* labels = ObjectIn(role, "acceleratorTypes"); labels != nullptr) {
    const Json& values = ListIn(*labels, "labelValues");
    if (!values.empty()) {
      draft.TakeGpu(TextOf(values[0]), TextIn(*labels, "labelKey"));
      WarnOfOthers(TextIn(*labels, "labelKey"), values, draft);
    }
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
    const Json* accelerator = ObjectIn(document, "accelerator");
    const std::string maker = accelerator == nullptr ? "" : TextIn(*accelerator, "type");
    if (!maker.empty() && maker != "nvidia") draft.TakeGpu(maker, "accelerator.type");
    if (prefill != nullptr) ReadRole(*prefill, "prefill", decode == nullptr, model, draft);
    if (decode != nullptr) ReadRole(*decode, "decode", prefill == nullptr, model, draft);
  }
}

}  // namespace servecast
