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

// The router in Dynamo's frontend: --router-mode, or DYN_ROUTER_MODE of its environment.
struct DynamoRouter {
  std::string mode, from;
  std::string overlap_weight;
};

DynamoRouter RouterIn(const CommandWords& words, const Variables& environment) {
  DynamoRouter router;
  const auto variable = [&environment](const char* name) {
    const auto at = environment.find(name);
    return at == environment.end() ? std::string() : at->second;
  };
  router.mode = variable("DYN_ROUTER_MODE");
  router.from = "DYN_ROUTER_MODE";
  for (const char* name : {"DYN_KV_OVERLAP_SCORE_WEIGHT", "DYN_ROUTER_KV_OVERLAP_SCORE_WEIGHT"}) {
    if (router.overlap_weight.empty()) router.overlap_weight = variable(name);
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string name = PlainName(words[i].substr(0, equals));
    const std::string value = equals != std::string::npos ? words[i].substr(equals + 1)
                              : i + 1 < words.size()      ? words[i + 1]
                                                          : "";
    if (words[i].rfind("--", 0) != 0) continue;
    if (name == "router-mode") router = {value, "--router-mode", router.overlap_weight};
    if (name == "kv-overlap-score-weight" || name == "router-kv-overlap-score-weight") {
      router.overlap_weight = value;
    }
  }
  return router;
}

void TakeDynamoRouter(const DynamoRouter& router, Draft& draft) {
  if (router.mode.empty()) return;
  static constexpr std::pair<std::string_view, const char*> kModes[] = {
      {"kv", "kv_aware"},
      {"round-robin", "round_robin"},
      {"random", "random"},
      {"least-loaded", "least_outstanding"},
      {"power-of-two", "power_of_two"}};
  std::string mode = LowerCase(router.mode.substr(0, 40));
  std::replace(mode.begin(), mode.end(), '_', '-');
  const std::string words = Format("{} {}", router.from, ShownText(router.mode, 40));
  for (const auto& [name, policy] : kModes) {
    if (mode != name) continue;
    draft.Take("cluster.router.policy", policy, words);
    const auto weight = NumberIn(router.overlap_weight);
    if (mode == "kv" && weight && *weight >= 0 && *weight <= 1000) {
      draft.Take("cluster.router.overlap_weight", NumberJson(*weight), "kv-overlap-score-weight");
    }
    return;
  }
  draft.Warn(
      Format("{} is no router that is modelled: the router stays as in the scenario to "
             "begin with",
             words));
}

// A container's words, and behind them those that it gives a shell to run.
CommandWords AllWords(const DynamoJson& container, const Variables& environment) {
  CommandWords words = WordsIn(container, "command", environment);
  const CommandWords arguments = WordsIn(container, "args", environment);
  words.insert(words.end(), arguments.begin(), arguments.end());
  const CommandWords own = words;
  for (std::size_t i = 0; i + 1 < own.size(); ++i) {
    if (own[i].size() < 2 || own[i][0] != '-' || own[i].back() != 'c') continue;
    for (const CommandWords& each : CommandsIn(own[i + 1], environment)) {
      words.insert(words.end(), each.begin(), each.end());
    }
  }
  return words;
}

// The frontend's container, of which its arguments and its environment say the router.
void ReadFrontend(const DynamoJson& service, const DynamoJson& spec, Draft& draft) {
  const DynamoJson pod = PodOfService(service, spec);
  const DynamoJson& container = pod["containers"][0];
  const Variables environment = EnvironmentIn(container);
  TakeDynamoRouter(RouterIn(AllWords(container, environment), environment), draft);
}

// JSON, or that of a file by its name; else nothing.
DynamoJson ObjectOf(const std::string& words, const Variables& files) {
  const std::size_t slash = words.rfind('/');
  const auto file = files.find(words.substr(slash == std::string::npos ? 0 : slash + 1));
  DynamoJson json = DynamoJson::parse(file == files.end() ? words : file->second, nullptr, false);
  return json.is_object() ? json : DynamoJson();
}

// The options of a planner by Dynamo's names, of its arguments and of what its config has.
DynamoJson PlannerOptions(const DynamoJson& pod, const Variables& files) {
  const DynamoJson& container = pod["containers"][0];
  const CommandWords words = AllWords(container, EnvironmentIn(container));
  DynamoJson options = DynamoJson::object();
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].rfind("--", 0) != 0) continue;
    const std::size_t equals = words[i].find('=');
    const bool valued = i + 1 < words.size() && words[i + 1].rfind("--", 0) != 0;
    const std::string value = equals != std::string::npos ? words[i].substr(equals + 1)
                              : valued                    ? words[i + 1]
                                                          : "true";
    std::string name = PlainName(words[i].substr(0, equals));
    std::replace(name.begin(), name.end(), '-', '_');
    if (name.rfind("no_enable_", 0) == 0) {
      options[name.substr(3)] = false;
      continue;
    }
    const DynamoJson object = ObjectOf(value, files);
    if (object.is_object()) {
      options.update(object);
    } else {
      options[name] = value;
    }
  }
  return options;
}

void ReadService(const std::string& name, const DynamoJson& service, const DynamoJson& spec,
                 const Variables& files, Draft& draft) {
  static constexpr std::string_view kOthers[] = {"frontend", "planner", "epp", "default"};
  std::string type = LowerCase(TextIn(service, "componentType"));
  if (type.empty()) type = LowerCase(TextIn(service, "type"));
  if (std::find(std::begin(kOthers), std::end(kOthers), type) != std::end(kOthers)) {
    if (type == "frontend") ReadFrontend(service, spec, draft);
    if (type == "planner") {
      draft.AddScaler("planner", PlannerOptions(PodOfService(service, spec), files));
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
  for (const CommandWords& words : source.commands) {
    const bool frontend = std::find(words.begin(), words.end(), "dynamo.frontend") != words.end();
    if (frontend && draft.servers() > 0) {
      TakeDynamoRouter(RouterIn(words, AssignedIn(source.text)), draft);
    }
  }
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
