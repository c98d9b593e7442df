// vLLM's production-stack: values of its chart (servingEngineSpec.modelSpec) and the VLLMRuntime of
// its operator. Members as helm/values.yaml and operator/api/v1alpha1 have them.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/text.h"
#include "import/json_members.h"
#include "import/kinds.h"
#include "import/member_options.h"
#include "import/pod.h"

namespace servecast {
namespace {

using StackJson = nlohmann::json;

// vllmConfig and what else has options of vLLM by names of its own.
CommandWords OptionsOfStack(const StackJson& config) {
  StackJson options = StackJson::object();
  for (const auto& [member, value] : config.items()) {
    // Of these the chart makes other things than options.
    static constexpr std::string_view kOthers[] = {"v0", "v1", "extraArgs", "port", "env"};
    if (std::find(std::begin(kOthers), std::end(kOthers), member) != std::end(kOthers)) continue;
    if (TextOf(value) == "0" && member != "seed") continue;  // "max-loras 0": not given
    options[member] = value;
  }
  CommandWords words = OptionWords(options);
  for (const StackJson& each : ListIn(config, "extraArgs")) words.push_back(TextOf(each));
  return words;
}

// KV blocks in host memory, and the role that LMCache moves them for.
void TakeLmCache(const StackJson& cache, ServerContext& server, Draft& draft) {
  if (TextIn(cache, "enabled") != "true") return;
  const std::string role = TextIn(cache, "kvRole");
  if (role == "kv_producer") server.role = "prefill";
  if (role == "kv_consumer") server.role = "decode";
  const std::string host = TextIn(cache, "cpuOffloadingBufferSize");
  if (NumberIn(host).value_or(0) > 0) {
    server.options.push_back("--kv-offloading-size=" + host);
    draft.Remark(
        Format("lmcacheConfig: {} GiB of KV blocks in host memory, as vLLM's own offload "
               "has them",
               ShownText(host, 20)));
  }
  for (const char* member : {"diskOffloadingBufferSize", "remoteUrl"}) {
    const std::string value = TextIn(cache, member);
    if (!value.empty() && value != "0") {
      draft.Ignore(Format("lmcacheConfig.{} {}", member, value), "is not modelled");
    }
  }
}

void ReadModelSpec(const StackJson& spec, Draft& draft) {
  PodContext context;
  ServerContext& server = context.server;
  server.from = Format("production-stack's model {}", ShownText(TextIn(spec, "name"), 40));
  server.model = TextIn(spec, "modelURL");
  server.replicas =
      std::clamp<std::int64_t>(ParseCount(TextIn(spec, "replicaCount")).value_or(1), 1, 1024);
  context.vllm = true;
  if (const StackJson* config = ObjectIn(spec, "vllmConfig"))
    server.options = OptionsOfStack(*config);
  if (const StackJson* cache = ObjectIn(spec, "lmcacheConfig")) TakeLmCache(*cache, server, draft);
  if (TextIn(spec, "enableLoRA") == "true") server.options.push_back("--enable-lora");
  const std::string type = TextIn(spec, "requestGPUType");
  const StackJson container = {
      {"image", TextIn(spec, "repository") + ":" + TextIn(spec, "tag")},
      {"env", ListIn(spec, "env")},
      {"resources",
       {{"limits", {{type.empty() ? "nvidia.com/gpu" : type, TextIn(spec, "requestGPU")}}}}}};
  if (!ReadContainer(container, context, draft)) return;
  const StackJson* keda = ObjectIn(spec, "keda");
  if (keda != nullptr && TextIn(*keda, "enabled") == "true")
    TakeScaledObject(*keda, "cluster.scaling", draft);
  StackJson pod = StackJson::object();
  pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
     ["nodeSelectorTerms"] = ListIn(spec, "nodeSelectorTerms");
  if (const StackJson* selector = ObjectIn(spec, "nodeSelector")) pod["nodeSelector"] = *selector;
  TakeSelectors(pod, draft);
}

// --kv-aware-threshold of the router's extraArgs.
std::optional<double> ThresholdIn(const StackJson& router) {
  constexpr std::string_view kOption = "--kv-aware-threshold";
  const StackJson& arguments = ListIn(router, "extraArgs");
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string word = TextOf(arguments[i]);
    if (word == kOption && i + 1 < arguments.size()) return NumberIn(TextOf(arguments[i + 1]));
    if (word.rfind(std::string(kOption) + "=", 0) == 0) {
      return NumberIn(std::string_view(word).substr(kOption.size() + 1));
    }
  }
  return std::nullopt;
}

void ReadValues(const StackJson& document, Draft& draft) {
  const StackJson* engines = ObjectIn(document, "servingEngineSpec");
  if (engines == nullptr) return;
  for (const StackJson& spec : ListIn(*engines, "modelSpec")) {
    if (spec.is_object()) ReadModelSpec(spec, draft);
  }
  if (const StackJson* router = ObjectIn(document, "routerSpec")) {
    TakeStackRouter(TextIn(*router, "routingLogic"), ThresholdIn(*router), draft);
  }
}

void ReadRuntime(const StackJson& spec, Draft& draft) {
  PodContext context;
  ServerContext& server = context.server;
  server.from = "production-stack's VLLMRuntime";
  context.vllm = true;
  StackJson options = StackJson::object();
  if (const StackJson* model = ObjectIn(spec, "model")) {
    server.model = TextIn(*model, "modelURL");
    for (const char* member : {"maxModelLen", "dtype", "maxNumSeqs"}) {
      if (model->contains(member)) options[member] = (*model)[member];
    }
    if (TextIn(*model, "enableLoRA") == "true") options["enableLora"] = true;
  }
  if (const StackJson* config = ObjectIn(spec, "vllmConfig")) options.update(*config);
  server.options = OptionsOfStack(options);
  if (const StackJson* cache = ObjectIn(spec, "lmCacheConfig")) TakeLmCache(*cache, server, draft);
  StackJson container = StackJson::object();
  const StackJson* deployment = ObjectIn(spec, "deploymentConfig");
  const StackJson& where = deployment != nullptr ? *deployment : spec;
  server.replicas =
      std::clamp<std::int64_t>(ParseCount(TextIn(where, "replicas")).value_or(1), 1, 1024);
  if (const StackJson* image = ObjectIn(where, "image")) {
    const std::string tag = TextIn(*image, "tag");
    container["image"] = TextIn(*image, "name") + (tag.empty() ? "" : ":" + tag);
  }
  if (const StackJson* resources = ObjectIn(where, "resources")) {
    container["resources"]["limits"] = *resources;
  }
  if (ReadContainer(container, context, draft)) TakeSelectors(where, draft);
}

}  // namespace

void ReadProductionStack(const ImportSource& source, Draft& draft) {
  for (const StackJson& document : source.manifests) {
    ReadValues(document, draft);
    const StackJson* spec = ObjectIn(document, "spec");
    if (TextIn(document, "kind") == "VLLMRuntime" && spec != nullptr) ReadRuntime(*spec, draft);
  }
}

}  // namespace servecast
