// See servecast/import.h.
#include "servecast/import.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "import/kinds.h"
#include "import/yaml.h"
#include "io/json_document.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostText = std::size_t{16} << 20;

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Manifests name these, and little else that is text does.
bool MayBeManifest(std::string_view text) {
  return Has(text, "kind:") || Has(text, "modelArtifacts:") || Has(text, "image:");
}

std::string Called(const ImportText& text, std::size_t count) {
  return count > 1 && text.name == "-" ? "stdin" : count > 1 ? text.name : "";
}

// Why nothing was found in it.
Issue NothingIn(const ImportText& text, const Issues& problems) {
  if (!problems.empty())
    return {text.name,
            problems[0].path + (problems[0].path.empty() ? "" : ": ") + problems[0].message};
  if (Stripped(text.text).empty()) return {text.name, "found nothing but white space"};
  return {
      text.name,
      "found nothing that can be imported; allowed are a config.json of Hugging Face, a command of "
      "vllm serve, SGLang, vllm bench serve, BLIS or Vidur, docker run, Kubernetes or llm-d YAML, "
      "a "
      "result of vllm bench serve, Prometheus text of vLLM, and nvidia-smi"};
}

// The text in its forms. Issues: why it is neither JSON nor YAML though it looks like it.
Issues ReadForms(std::string_view text, Json& json, ImportSource& source) {
  const std::string_view start = Stripped(text.substr(0, 4096));
  if (!start.empty() && (start[0] == '{' || start[0] == '[')) {
    Result<Json> read = ParseJson(text);
    if (read.ok()) {
      json = std::move(read.value());
      source.json = &json;
      if (json.is_object() && json.contains("kind")) source.manifests.push_back(json);
      return {};
    }
    if (start.substr(0, 2) != "{{") return read.issues();
  }
  source.commands = CommandsIn(text);
  if (!MayBeManifest(text)) return {};
  Result<std::vector<Json>> documents = ParseYaml(text);
  if (!documents.ok()) return documents.issues();
  source.manifests = std::move(documents.value());
  // Commands in a manifest are read as it means them.
  for (const Json& document : source.manifests) {
    if (document.is_object()) source.commands.clear();
  }
  return {};
}

}  // namespace

Imported Import(const std::vector<ImportText>& texts, std::string_view base) {
  Draft draft;
  Issues nothing;
  for (const ImportText& text : texts) {
    if (text.text.size() > kMostText) {
      nothing.push_back(
          {text.name, Format("found {} bytes of text, allowed {}", text.text.size(), kMostText)});
      continue;
    }
    draft.BeginText(Called(text, texts.size()));
    const std::size_t before = draft.kinds();
    Json json;
    ImportSource source;
    source.text = text.text;
    if (source.text.substr(0, 3) == "\xEF\xBB\xBF") source.text.remove_prefix(3);
    const Issues problems = ReadForms(source.text, json, source);
    for (const ImportReader read : ImportReaders()) read(source, draft);
    if (draft.kinds() == before) {
      Issues refused = draft.TakeRefusals();
      if (refused.empty()) refused.push_back(NothingIn(text, problems));
      for (Issue& issue : refused) {
        if (issue.path.empty()) issue.path = text.name;
        nothing.push_back(std::move(issue));
      }
    }
  }
  if (!draft.found()) {
    Imported none;
    if (nothing.empty()) nothing.push_back({"", "found no text"});
    none.issues = std::move(nothing);
    return none;
  }
  for (const Issue& issue : nothing) {
    draft.Remark(issue.path + (issue.path.empty() ? "" : ": ") + issue.message);
  }
  return std::move(draft).Finish(base);
}

Imported Import(std::string_view text) {
  return Import({{"", text}}, *ScenarioPreset("llama-3.1-8b-h100-chat"));
}

}  // namespace servecast
