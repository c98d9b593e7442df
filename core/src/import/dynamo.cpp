// NVIDIA Dynamo's DynamoGraphDeployment: workers of vLLM, SGLang and TensorRT-LLM, each a service.
// Members as its operator's api/v1alpha1 and api/v1beta1 have them.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/text.h"
#include "import/json_members.h"
#include "import/kinds.h"
#include "import/pod.h"

namespace servecast {
namespace {

using DynamoJson = nlohmann::json;

void AppendEnvironment(const DynamoJson& of, const char* key, DynamoJson& list) {
  for (const DynamoJson& each : ListIn(of, key)) list.push_back(each);
}

// A pod with the worker's container, as the operator would make it.
DynamoJson PodOfService(const DynamoJson& service, const DynamoJson& spec) {
  DynamoJson pod = DynamoJson::object();
  if (const DynamoJson* extra = ObjectIn(service, "extraPodSpec")) pod = *extra;
  if (const DynamoJson* whole = ObjectAt(service, {"podTemplate", "spec"})) pod = *whole;
  DynamoJson container = DynamoJson::object();
  if (const DynamoJson* main = ObjectIn(pod, "mainContainer")) container = *main;
  for (const DynamoJson& each : ListIn(pod, "containers")) {
    if (container.empty() || TextIn(each, "name") == "main") container = each;
  }
  DynamoJson environment = DynamoJson::array();
  AppendEnvironment(spec, "envs", environment);
  AppendEnvironment(service, "envs", environment);
  AppendEnvironment(container, "env", environment);
  container["env"] = std::move(environment);
  if (const DynamoJson* resources = ObjectIn(service, "resources");
      resources != nullptr && ObjectIn(container, "resources") == nullptr) {
    container["resources"] = *resources;
  }
  pod["containers"] = DynamoJson::array({std::move(container)});
  return pod;
}

void ReadService(const std::string& name, const DynamoJson& service, const DynamoJson& spec,
                 const Variables& files, Draft& draft) {
  static constexpr std::string_view kOthers[] = {"frontend", "planner", "epp", "default"};
  std::string type = LowerCase(TextIn(service, "componentType"));
  if (type.empty()) type = LowerCase(TextIn(service, "type"));
  if (std::find(std::begin(kOthers), std::end(kOthers), type) != std::end(kOthers)) {
    if (type == "planner") {
      draft.Warn(Format("{}: Dynamo's planner changes replicas; they stay as they begin here",
                        ShownText(name, 40)));
    }
    return;
  }
  PodContext context;
  context.server.files = &files;
  context.server.from = Format("Dynamo's {}", ShownText(name, 40));
  std::string role = RoleInName(TextIn(service, "subComponentType"));
  if (role.empty()) role = RoleInName(type);
  if (role.empty()) role = RoleInName(name);
  context.server.role = role;
  context.server.replicas =
      std::clamp<std::int64_t>(ParseCount(TextIn(service, "replicas")).value_or(1), 1, 1024);
  if (const DynamoJson* nodes = ObjectIn(service, "multinode")) {
    context.nodes =
        std::clamp<std::int64_t>(ParseCount(TextIn(*nodes, "nodeCount")).value_or(1), 1, 1024);
  }
  ReadPod(PodOfService(service, spec), context, draft);
}

}  // namespace

void ReadDynamo(const ImportSource& source, Draft& draft) {
  const Variables files = FilesOfConfigMaps(source.manifests);
  for (const DynamoJson& document : source.manifests) {
    const std::string kind = TextIn(document, "kind");
    const DynamoJson* spec = ObjectIn(document, "spec");
    if (spec == nullptr) continue;
    if (kind == "DynamoComponentDeployment") ReadService("worker", *spec, *spec, files, draft);
    if (kind != "DynamoGraphDeployment") continue;
    if (const DynamoJson* services = ObjectIn(*spec, "services"); services != nullptr) {
      for (const auto& [name, service] : services->items()) {
        if (service.is_object()) ReadService(name, service, *spec, files, draft);
      }
    }
    for (const DynamoJson& each : ListIn(*spec, "components")) {
      if (each.is_object()) ReadService(TextIn(each, "name"), each, *spec, files, draft);
    }
  }
}

}  // namespace servecast
