// Ray Serve LLM: configs with llm_configs (or prefill_config and decode_config), a file of one
// LLMConfig, and KubeRay's RayService, which has the config as text. Members as ray.serve.llm's
// LLMConfig has them.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/text.h"
#include "import/json_members.h"
#include "import/kinds.h"
#include "import/member_options.h"
#include "import/pod.h"
#include "import/python_literal.h"
#include "import/yaml.h"

namespace servecast {
namespace {

using RayJson = nlohmann::json;

std::string ModelOfLoading(const RayJson& config) {
  const RayJson* loading = ObjectIn(config, "model_loading_config");
  if (loading == nullptr) return "";
  const std::string source = TextIn(*loading, "model_source");
  // A bucket says nothing of the model; its id may.
  const bool named = !source.empty() && source.find("://") == std::string::npos;
  return named ? source : TextIn(*loading, "model_id");
}

// What Ray starts with; more is its autoscaler's.
std::int64_t ReplicasOfDeployment(const RayJson& config, Draft& draft) {
  const RayJson* deployment = ObjectIn(config, "deployment_config");
  if (deployment == nullptr) return 1;
  const RayJson* scaling = ObjectIn(*deployment, "autoscaling_config");
  std::string first = TextIn(*deployment, "num_replicas");
  if (scaling != nullptr) {
    const std::string least = TextIn(*scaling, "min_replicas"),
                      most = TextIn(*scaling, "max_replicas"),
                      initial = TextIn(*scaling, "initial_replicas");
    first = !initial.empty() ? initial : least;
    if (least != most) {
      draft.Warn(Format(
          "autoscaling_config: Ray's autoscaler ({} to {} replicas) is not read; {} "
          "here",
          ShownText(least.empty() ? "1" : least, 12), ShownText(most.empty() ? "1" : most, 12),
          std::max<std::int64_t>(1, ParseCount(first).value_or(1))));
    }
  }
  return std::clamp<std::int64_t>(ParseCount(first).value_or(1), 1, 1024);
}

bool IsLlmConfig(const RayJson& config) {
  return ObjectIn(config, "model_loading_config") != nullptr;
}

void ReadLlmConfig(const RayJson& config, const std::string& role, Draft& draft) {
  if (!IsLlmConfig(config)) return;
  ServerContext context;
  context.from = "Ray Serve's LLMConfig" + (role.empty() ? std::string() : ", " + role);
  context.role = role;
  context.model = ModelOfLoading(config);
  context.replicas = ReplicasOfDeployment(config, draft);
  const RayJson* arguments = ObjectIn(config, "engine_kwargs");
  const RayJson none = RayJson::object();
  const CommandWords words = OptionWords(arguments == nullptr ? none : *arguments);
  if (LowerCase(TextIn(config, "llm_engine")) == "sglang") {
    CommandWords command = {"sglang", "serve"};
    command.insert(command.end(), words.begin(), words.end());
    ReadSglangLaunch(command, context, draft);
  } else {
    ReadVllmServer(words, context, draft);
  }
  const std::string gpu = TextIn(config, "accelerator_type");
  if (!gpu.empty()) draft.TakeGpu(gpu, "accelerator_type");
}

// Of an application's arguments, or a file's top.
void ReadArguments(const RayJson& arguments, Draft& draft) {
  for (const RayJson& config : ListIn(arguments, "llm_configs")) {
    if (config.is_string()) {
      draft.Warn(Format("llm_configs: {} is another file: given beside, it is read",
                        ShownText(TextOf(config), 60)));
    } else {
      ReadLlmConfig(config, "", draft);
    }
  }
  for (const char* role : {"prefill", "decode"}) {
    const RayJson* config = ObjectIn(arguments, (std::string(role) + "_config").c_str());
    if (config != nullptr) ReadLlmConfig(*config, role, draft);
  }
}

void ReadServeConfig(const RayJson& document, Draft& draft) {
  ReadArguments(document, draft);
  for (const RayJson& application : ListIn(document, "applications")) {
    const RayJson* arguments = ObjectIn(application, "args");
    if (arguments != nullptr) ReadArguments(*arguments, draft);
  }
  if (TextIn(document, "kind").empty()) ReadLlmConfig(document, "", draft);
}

void ReadRayService(const RayJson& document, Draft& draft) {
  const RayJson* spec = ObjectIn(document, "spec");
  if (spec == nullptr) return;
  const std::size_t before = draft.servers();
  const Result<std::vector<RayJson>> config = ParseYaml(TextIn(*spec, "serveConfigV2"));
  if (!config.ok()) {
    return draft.Warn("serveConfigV2: " + config.issues()[0].path + ": " +
                      config.issues()[0].message);
  }
  for (const RayJson& each : config.value()) ReadServeConfig(each, draft);
  const RayJson* cluster = ObjectIn(*spec, "rayClusterConfig");
  if (draft.servers() == before || cluster == nullptr) return;
  if (draft.Find("hardware.preset") != nullptr) return;
  for (const RayJson& group : ListIn(*cluster, "workerGroupSpecs")) {
    if (const RayJson* pod = PodIn(group); pod != nullptr) TakeSelectors(*pod, draft);
  }
}

// "LLMConfig(model_loading_config=dict(...), ...)" of a program in Python.
void ReadRayPython(std::string_view text, Draft& draft) {
  constexpr std::size_t kMostConfigs = 16;
  std::size_t at = text.find("LLMConfig(");
  for (std::size_t i = 0; i < kMostConfigs && at != std::string_view::npos; ++i) {
    const std::string_view from = text.substr(at);
    if (const auto config = PythonMembers(from)) ReadLlmConfig(*config, "", draft);
    at = text.find("LLMConfig(", at + 1);
  }
}

}  // namespace

void ReadRayServe(const ImportSource& source, Draft& draft) {
  if (source.json == nullptr) ReadRayPython(source.text, draft);
  for (const RayJson& document : source.manifests) {
    if (!document.is_object()) continue;
    if (TextIn(document, "kind") == "RayService") {
      ReadRayService(document, draft);
    } else {
      ReadServeConfig(document, draft);
    }
  }
}

}  // namespace servecast
