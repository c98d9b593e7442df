// KServe's LLMInferenceService, with prefill apart or not, and InferenceService, whose Hugging Face
// runtime is vLLM. Members as pkg/apis/serving of KServe 0.15 to 0.17 have them.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/printable.h"
#include "base/text.h"
#include "import/json_members.h"
#include "import/kinds.h"
#include "import/options.h"
#include "import/pod.h"

namespace servecast {
namespace {

using KserveJson = nlohmann::json;

// "hf://meta-llama/Llama-3.1-8B:main" is meta-llama/Llama-3.1-8B; of another place the last name in
// it, "oci://registry/models:granite-3.1-8b" granite-3.1-8b.
std::string ModelOfUri(const std::string& uri) {
  if (uri.substr(0, 5) == "hf://") return uri.substr(5, uri.find(':', 5) - 5);
  std::string path = uri.substr(0, uri.find_last_not_of('/') + 1);
  const std::size_t tag = uri.substr(0, 6) == "oci://" ? path.find_last_of(':') : std::string::npos;
  const std::size_t begin = tag != std::string::npos && tag > 5 ? tag : path.find_last_of('/');
  return begin == std::string::npos ? path : path.substr(begin + 1);
}

std::int64_t ReplicasIn(const KserveJson& of, const char* key) {
  return std::clamp<std::int64_t>(ParseCount(TextIn(of, key)).value_or(1), 1, 1024);
}

CommandWords OptionsOfParallelism(const KserveJson& part) {
  const KserveJson* parallelism = ObjectIn(part, "parallelism");
  CommandWords words;
  if (parallelism == nullptr) return words;
  for (const auto& [member, option] : {std::pair("tensor", "--tensor-parallel-size="),
                                       std::pair("pipeline", "--pipeline-parallel-size="),
                                       std::pair("data", "--data-parallel-size="),
                                       std::pair("expert", "--enable-expert-parallel=")}) {
    const std::string value = TextIn(*parallelism, member);
    if (!value.empty()) words.push_back(option + value);
  }
  return words;
}

// What its containers set for the options of vLLM that KServe's own command ends with.
void AddAdditionalArguments(const KserveJson& pod, CommandWords& options) {
  for (const KserveJson& container : ListIn(pod, "containers")) {
    const Variables environment = EnvironmentIn(container);
    const auto more = environment.find("VLLM_ADDITIONAL_ARGS");
    if (more == environment.end()) continue;
    for (const CommandWords& words : CommandsIn("x " + more->second, environment)) {
      options.insert(options.end(), words.begin() + 1, words.end());
    }
  }
}

// Prefill, decode or both: `part` has replicas, parallelism and the pod.
void ReadLlmPart(const KserveJson& part, const std::string& role, const std::string& model,
                 Draft& draft) {
  PodContext context;
  context.vllm = true;
  context.server.from =
      "KServe's LLMInferenceService" + (role.empty() ? std::string() : ", " + role);
  context.server.role = role;
  context.server.model = model;
  context.server.replicas = ReplicasIn(part, "replicas");
  context.server.options = OptionsOfParallelism(part);
  const KserveJson* parallelism = ObjectIn(part, "parallelism");
  if (parallelism != nullptr) {
    const std::int64_t data = ReplicasIn(*parallelism, "data"),
                       local = ReplicasIn(*parallelism, "dataLocal");
    const bool several = !TextIn(*parallelism, "dataLocal").empty() && data > local;
    context.nodes = several ? data / local : 1;
  }
  const KserveJson* pod = ObjectIn(part, "template");
  const KserveJson none = {{"containers", KserveJson::array({{{"name", "main"}}})}};
  const bool stated = pod != nullptr && !ListIn(*pod, "containers").empty();
  KserveJson main = stated ? *pod : none;
  // Others beside it are no servers.
  KserveJson& containers = main["containers"];
  const auto named = std::find_if(containers.begin(), containers.end(), [](const KserveJson& each) {
    return TextIn(each, "name") == "main";
  });
  if (named != containers.end()) containers = KserveJson::array({KserveJson(*named)});
  AddAdditionalArguments(main, context.server.options);
  ReadPod(main, context, draft);
}

void ReadLlmInferenceService(const KserveJson& document, Draft& draft) {
  const KserveJson* spec = ObjectIn(document, "spec");
  if (spec == nullptr) return;
  const KserveJson* of_model = ObjectIn(*spec, "model");
  std::string model;
  if (of_model != nullptr) {
    const std::string uri = TextIn(*of_model, "uri"), name = TextIn(*of_model, "name");
    // The name is what clients say; beside a place that is no repository it may say more.
    const bool repository = uri.substr(0, 5) == "hf://" || name.find('/') == std::string::npos;
    model = !uri.empty() && repository ? ModelOfUri(uri) : name;
  }
  const KserveJson* prefill = ObjectIn(*spec, "prefill");
  if (prefill != nullptr) ReadLlmPart(*prefill, "prefill", model, draft);
  ReadLlmPart(*spec, prefill != nullptr ? "decode" : "", model, draft);
  if (!ListIn(*spec, "baseRefs").empty()) {
    draft.Warn("spec.baseRefs: what these configurations set is not in this text");
  }
  const KserveJson* scaling = ObjectIn(*spec, "scaling");
  if (scaling != nullptr) {
    draft.Warn(Format("spec.scaling ({} to {} replicas) is not read: replicas stay as they begin",
                      ShownText(TextIn(*scaling, "minReplicas"), 12),
                      ShownText(TextIn(*scaling, "maxReplicas"), 12)));
  }
}

// The options of KServe's runtime for Hugging Face: of vLLM, and a few of its own.
CommandWords OptionsOfRuntime(const CommandWords& words, std::string& model) {
  CommandWords options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string name = PlainName(words[i].substr(0, equals));
    const bool option = words[i].size() > 2 && words[i][0] == '-';
    const bool own = name == "model-id" || name == "model-name" || name == "backend" ||
                     name == "task" || name == "model-dir";
    if (!option || !own) {
      options.push_back(words[i]);
      continue;
    }
    const bool next = equals == std::string::npos && i + 1 < words.size();
    const std::string value = equals != std::string::npos ? words[i].substr(equals + 1)
                              : next                      ? words[++i]
                                                          : "";
    if (name == "model-id") model = value;
    const bool generates = value.find("generation") != std::string::npos;
    if (name == "task" && !generates) options.push_back("--task=" + value);
  }
  return options;
}

// The container of the runtime that a model asks for, where the text has it.
const KserveJson* RuntimeOf(const std::string& name, const std::vector<KserveJson>& documents) {
  for (const KserveJson& document : documents) {
    const std::string kind = TextIn(document, "kind");
    if (kind != "ServingRuntime" && kind != "ClusterServingRuntime") continue;
    const KserveJson* metadata = ObjectIn(document, "metadata");
    const KserveJson* spec = ObjectIn(document, "spec");
    if (metadata == nullptr || spec == nullptr || TextIn(*metadata, "name") != name) continue;
    const KserveJson& containers = ListIn(*spec, "containers");
    if (!containers.empty() && containers[0].is_object()) return &containers[0];
  }
  return nullptr;
}

// A model's container: the runtime's, with the arguments and the resources of the model.
KserveJson ContainerOfModel(const KserveJson& model, const KserveJson* runtime,
                            const CommandWords& options) {
  KserveJson container = runtime != nullptr ? *runtime : KserveJson::object();
  KserveJson words = KserveJson::array();
  for (const KserveJson& word : ListIn(container, "args")) words.push_back(word);
  for (const std::string& word : options) words.push_back(word);
  for (const char* key : {"image", "command", "resources", "env"}) {
    if (model.contains(key)) container[key] = model[key];
  }
  container["args"] = std::move(words);
  return container;
}

void ReadPredictor(const KserveJson& predictor, const std::vector<KserveJson>& documents,
                   Draft& draft) {
  PodContext context;
  context.server.from = "a manifest (InferenceService)";
  context.server.replicas = ReplicasIn(predictor, "minReplicas");
  const KserveJson* model = ObjectIn(predictor, "model");
  if (model == nullptr) {
    ReadPod(predictor, context, draft);
  } else {
    const KserveJson* format = ObjectIn(*model, "modelFormat");
    const std::string name = format == nullptr ? "" : LowerCase(TextIn(*format, "name"));
    if (name != "huggingface" && name != "vllm") {
      return draft.Refuse({"", Format("InferenceService: found the model format {}, allowed "
                                      "huggingface and vLLM",
                                      ShownText(name, 40))});
    }
    context.vllm = true;
    context.server.model = ModelOfUri(TextIn(*model, "storageUri"));
    const CommandWords options =
        OptionsOfRuntime(WordsIn(*model, "args", EnvironmentIn(*model)), context.server.model);
    const KserveJson container =
        ContainerOfModel(*model, RuntimeOf(TextIn(*model, "runtime"), documents), options);
    if (const KserveJson* workers = ObjectIn(predictor, "workerSpec"); workers != nullptr) {
      for (const auto& [member, option] :
           {std::pair("tensorParallelSize", "--tensor-parallel-size="),
            std::pair("pipelineParallelSize", "--pipeline-parallel-size=")}) {
        const std::string value = TextIn(*workers, member);
        if (!value.empty()) context.server.options.push_back(option + value);
      }
      context.nodes = ReplicasIn(*workers, "pipelineParallelSize");
    }
    if (ReadContainer(container, context, draft)) TakeSelectors(predictor, draft);
  }
  const std::string most = TextIn(predictor, "maxReplicas");
  if (!most.empty() && ReplicasIn(predictor, "maxReplicas") != context.server.replicas) {
    draft.Warn(Format("maxReplicas {}: KServe's autoscaling is not read; {} replica{} here",
                      ShownText(most, 12), context.server.replicas,
                      context.server.replicas == 1 ? "" : "s"));
  }
}

}  // namespace

void ReadKserve(const ImportSource& source, Draft& draft) {
  const auto serves = [](const KserveJson& document) {
    return TextIn(document, "kind") == "InferenceService";
  };
  const bool alone = std::none_of(source.manifests.begin(), source.manifests.end(), serves);
  for (const KserveJson& document : source.manifests) {
    const std::string kind = TextIn(document, "kind");
    if (kind == "LLMInferenceService" || kind == "LLMInferenceServiceConfig") {
      ReadLlmInferenceService(document, draft);
    } else if (const KserveJson* predictor = ObjectAt(document, {"spec", "predictor"});
               kind == "InferenceService" && predictor != nullptr) {
      ReadPredictor(*predictor, source.manifests, draft);
    } else if (const KserveJson* pod = PodIn(document);
               alone && pod != nullptr &&
               (kind == "ServingRuntime" || kind == "ClusterServingRuntime")) {
      PodContext context;
      context.server.from = Format("a manifest ({})", kind);
      ReadPod(*pod, context, draft);
    }
  }
}

}  // namespace servecast
