// See pod.h.
#include "import/pod.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "import/json_members.h"
#include "import/kinds.h"
#include "import/names.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

// Machines of clouds by the names of their types, and the GPUs in them: AWS, Google and Azure's
// pages of GPU instances.
constexpr std::pair<std::string_view, std::string_view> kInstances[] = {
    {"p6-b300", "B300"},
    {"p6-b200", "B200"},
    {"p5en.", "H200"},
    {"p5e.", "H200"},
    {"p5.", "H100 SXM"},
    {"p4de.", "A100 SXM 80GB"},
    {"p4d.", "A100 SXM 40GB"},
    {"p6e-gb200", "GB200"},
    {"g6e.", "L40S"},
    {"g6.", "L4"},
    {"g5.", "A10G"},
    {"a4x-highgpu", "GB200"},
    {"a4-highgpu", "B200"},
    {"g4-standard", "RTX PRO 6000"},
    {"a3-ultragpu", "H200"},
    {"a3-", "H100 SXM"},
    {"a2-ultragpu", "A100 SXM 80GB"},
    {"a2-highgpu", "A100 SXM 40GB"},
    {"g2-standard", "L4"},
    {"Standard_ND96isr_H200", "H200"},
    {"Standard_ND96isr_H100", "H100 SXM"},
    {"Standard_ND96amsr_A100", "A100 SXM 80GB"},
    {"Standard_ND96asr_A100", "A100 SXM 40GB"},
    {"Standard_ND96isr_MI300X", "MI300X"},
    {"Standard_NC40ads_H100", "H100 NVL"},
    {"Standard_NC80adis_H100", "H100 NVL"},
    {"Standard_NC24ads_A100", "A100 PCIe 80GB"},
    {"Standard_NC48ads_A100", "A100 PCIe 80GB"},
    {"Standard_NC96ads_A100", "A100 PCIe 80GB"},
    {"Standard_NC4as_T4", "T4"},
    {"Standard_NC8as_T4", "T4"},
    {"Standard_NC16as_T4", "T4"},
    {"Standard_NC64as_T4", "T4"},
    {"g4dn.", "T4"},
    {"p3.", "V100"},
};

std::string_view GpuOfInstance(std::string_view type) {
  if (type.substr(0, 3) == "ml.") type.remove_prefix(3);  // SageMaker's
  for (const auto& [begin, gpu] : kInstances) {
    if (type.substr(0, begin.size()) == begin) return gpu;
  }
  return "";
}

bool IsInstance(std::string_view key) {
  return key == "node.kubernetes.io/instance-type" || key == "beta.kubernetes.io/instance-type";
}

// Keys of labels whose values are GPUs.
bool IsGpuKey(std::string_view key) {
  static constexpr std::string_view kGpus[] = {"nvidia.com/gpu.product",
                                               "cloud.google.com/gke-accelerator",
                                               "cloud.google.com/gke-tpu-accelerator",
                                               "gpu.nvidia.com/model",
                                               "gpu.nvidia.com/class",
                                               "nvidia.com/gpu.family",
                                               "amd.com/gpu.product-name",
                                               "beta.amd.com/gpu.product-name",
                                               "karpenter.k8s.aws/instance-gpu-name",
                                               "eks.amazonaws.com/instance-gpu-name"};
  return std::find(std::begin(kGpus), std::end(kGpus), key) != std::end(kGpus);
}

// Labels of nodes whose GPUs several pods share, or that are cut into slices.
bool IsOfParts(std::string_view key, std::string_view value) {
  static constexpr std::string_view kShares[] = {
      "cloud.google.com/gke-gpu-sharing-strategy", "cloud.google.com/gke-gpu-partition-size",
      "cloud.google.com/gke-max-shared-clients-per-gpu", "nvidia.com/gpu.sharing-strategy",
      "nvidia.com/mig.config"};
  const bool none = value.empty() || value == "none" || value == "all-disabled" || value == "1";
  return !none && std::find(std::begin(kShares), std::end(kShares), key) != std::end(kShares);
}

// The name of the GPU that a label says; of most labels its value with dashes.
std::string GpuOfLabel(std::string_view key, const std::string& value) {
  if (IsInstance(key)) {
    const std::string_view gpu = GpuOfInstance(value);
    return std::string(gpu.empty() ? std::string_view(value) : gpu);
  }
  std::string name = value;
  std::replace(name.begin(), name.end(), '_', '-');
  // Google's names of cards leave SXM out: nvidia-h100-80gb. Its nvidia-tesla-a100 has 40 GB; the
  // other is nvidia-a100-80gb.
  const bool google = key == "cloud.google.com/gke-accelerator" && name == "nvidia-tesla-a100";
  return google ? "A100 SXM 40GB" : name;
}

// Whether a label says which GPU its nodes have, by its key or its value.
bool SaysGpu(std::string_view key, const std::string& value) {
  return IsInstance(key) || IsGpuKey(key) || !HardwarePresetOf(GpuOfLabel(key, value)).empty();
}

// A label of nodes that says which machine or GPU they have. One that says it in a way that is not
// known here is named: no other GPU takes its place in silence.
void TakeLabel(const std::string& key, const std::string& value, Draft& draft) {
  const std::string name = GpuOfLabel(key, value);
  if (IsOfParts(key, value)) {
    draft.TakeGpuShare(key + " " + value);
  } else if (IsInstance(key)) {
    draft.TakeGpu(name, key + " " + ShownText(value));
  } else if (IsGpuKey(key)) {
    draft.TakeGpu(name, name == "A100 SXM 40GB" ? key + " " + value : key);
  } else if (!HardwarePresetOf(name).empty()) {
    draft.TakeGpu(name, key);  // "type: H20", by whatever name people label their nodes
  } else if (key.find("gpu") != std::string::npos || key.find("accelerator") != std::string::npos) {
    const bool of_gpus = key.find("present") != std::string::npos ||
                         key.find("count") != std::string::npos || value == "true";
    if (!of_gpus) draft.Ignore(key + " " + value, "is no label of GPUs that is known here");
  }
}

const Json* FirstPod(const Json& node, std::size_t depth) {
  if (depth > 8 || !node.is_object()) return nullptr;
  if (!ListIn(node, "containers").empty()) return &node;
  for (const auto& [key, member] : node.items()) {
    if (const Json* pod = FirstPod(member, depth + 1); pod != nullptr) return pod;
  }
  return nullptr;
}

bool ReadWords(const CommandWords& words, ServerContext context, Draft& draft) {
  return ReadSglangLaunch(words, context, draft) || ReadTrtllmLaunch(words, context, draft) ||
         ReadVllmLaunch(words, context, draft);
}

// GPUs of somebody else, or parts of one, as a container asks for them.
void TakeResources(const Json& container, Draft& draft) {
  const Json* resources = ObjectIn(container, "resources");
  if (resources == nullptr) return;
  for (const char* which : {"requests", "limits"}) {
    const Json* list = ObjectIn(*resources, which);
    if (list == nullptr) continue;
    for (const auto& [name, count] : list->items()) {
      const std::size_t slash = name.find('/');
      const bool device = slash != std::string::npos &&
                          name.find("ephemeral") == std::string::npos &&
                          name.find("rdma") == std::string::npos &&
                          name.find("hugepages") == std::string::npos && TextOf(count) != "0";
      const std::string_view of = std::string_view(name).substr(std::min(slash + 1, name.size()));
      const bool gpu = of.find("gpu") == 0 || of.find("tpu") == 0 || of.find("mig-") == 0 ||
                       of.find("gaudi") == 0 || of.find("neuron") == 0 || of.find("npu") == 0 ||
                       of.find("xe") == 0 || of.find("i915") == 0 || of.find("Ascend") == 0;
      static constexpr std::string_view kParts[] = {"mig-",     "gpu.shared", "gpumem", "gpu-mem",
                                                    "gpucores", "gpu-core",   "vgpu"};
      const bool part =
          std::any_of(std::begin(kParts), std::end(kParts),
                      [of](std::string_view begin) { return of.substr(0, begin.size()) == begin; });
      if (device && gpu && name.find("nvidia.com/gpu") != 0) draft.TakeGpu(name, "resources");
      if (device && part) draft.TakeGpuShare(Format("resources {}: {}", name, TextOf(count)));
    }
  }
}

// GPUs that a container asks for; 0: it does not say.
std::int64_t GpusAskedFor(const Json& container) {
  const Json* resources = ObjectIn(container, "resources");
  std::int64_t gpus = 0;
  for (const char* which : {"requests", "limits"}) {
    const Json* list = resources == nullptr ? nullptr : ObjectIn(*resources, which);
    for (const char* name : {"nvidia.com/gpu", "gpu"}) {
      const auto count = list == nullptr ? std::nullopt : ParseCount(TextIn(*list, name));
      if (count) gpus = std::min<std::int64_t>(*count, 1024);
    }
  }
  return gpus;
}

// Routers and benchmarks, which are no servers. Whether there was one.
bool ReadOthers(std::vector<CommandWords> commands, Draft& draft) {
  const std::size_t before = draft.kinds();
  ImportSource source;
  source.commands = std::move(commands);
  for (const ImportReader read : {ReadRouterCommand, ReadBenchCommand, ReadBenchPrograms}) {
    read(source, draft);
  }
  return draft.kinds() > before;
}

bool ReadProgram(const Json& container, const PodContext& context, Draft& draft) {
  Variables environment = EnvironmentIn(container);
  environment.insert(context.environment.begin(), context.environment.end());
  ServerContext server = context.server;
  server.environment = &environment;
  CommandWords words = WordsIn(container, "command", environment);
  const CommandWords arguments = WordsIn(container, "args", environment);
  const bool own_command = !words.empty();
  words.insert(words.end(), arguments.begin(), arguments.end());
  const std::string image = TextIn(container, "image");
  server.version = VersionOfImage(image);
  server.image = image;
  server.gpus = GpusAskedFor(container) * context.nodes;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i].size() < 2 || words[i][0] != '-' || words[i].back() != 'c') continue;
    const bool dashes = words[i + 1] == "--" && i + 2 < words.size();
    const std::string& script = words[i + (dashes ? 2 : 1)];
    const std::vector<CommandWords> commands = CommandsIn(script, environment);
    for (auto& [name, value] : AssignedIn(script)) environment[name] = value;
    const bool others = ReadOthers(commands, draft);
    if (ReadLaunches(commands, server, draft, ReadWords)) return true;
    if (others) return false;
  }
  CommandWords program = words;
  if (!own_command) program.insert(program.begin(), image);  // its entry point may be a router
  if (ReadOthers({program}, draft)) return ReadWords(words, server, draft);
  if (ReadWords(words, server, draft)) return true;
  // The image's entry point is the server.
  const bool of_vllm =
      image.find("vllm") != std::string::npos && image.find("sglang") == std::string::npos;
  if (own_command || !(context.vllm || (of_vllm && !words.empty()))) return false;
  ReadVllmServer(words, server, draft);
  return true;
}

}  // namespace

bool ReadContainer(const Json& container, const PodContext& context, Draft& draft) {
  if (!container.is_object() || !ReadProgram(container, context, draft)) return false;
  TakeResources(container, draft);
  return true;
}

bool ReadPod(const Json& pod, const PodContext& context, Draft& draft) {
  bool found = false;
  for (const Json& container : ListIn(pod, "containers")) {
    found = ReadContainer(container, context, draft) || found;
  }
  if (ListIn(pod, "containers").empty()) found = ReadContainer(pod, context, draft);
  if (found) TakeSelectors(pod, draft);
  return found;
}

Variables FilesOfConfigMaps(const std::vector<Json>& manifests) {
  Variables files;
  for (const Json& document : manifests) {
    const Json* data = ObjectIn(document, "data");
    if (TextIn(document, "kind") != "ConfigMap" || data == nullptr) continue;
    for (const auto& [name, text] : data->items()) files[name] = TextOf(text);
  }
  return files;
}

std::string RoleInName(std::string_view name) {
  const std::string lower = LowerCase(name.substr(0, 200));
  if (lower.find("prefill") != std::string::npos) return "prefill";
  return lower.find("decode") != std::string::npos ? "decode" : "";
}

const Json* PodIn(const Json& node) { return FirstPod(node, 0); }

void WarnOfOthers(const std::string& key, const Json& values, Draft& draft) {
  std::string all;
  bool differ = false;
  for (const Json& each : values) {
    const std::string value = TextOf(each);
    differ |= HardwarePresetOf(GpuOfLabel(key, value)) !=
              HardwarePresetOf(GpuOfLabel(key, TextOf(values[0])));
    if (all.size() < 200) all += (all.empty() ? "" : ", ") + ShownText(value, 60);
  }
  if (!differ) return;
  draft.Warn(Format("{} allows several GPUs ({}): the forecast is of {}, the first",
                    ShownText(key, 80), all, ShownText(TextOf(values[0]), 60)));
}

namespace {

// A label by its key, and what is said of it: In a list of values, or another relation.
struct NodeRule {
  std::string key, relation;
  Json values;

  std::string First() const { return TextOf(values[0]); }
  std::string Words() const {
    std::string text = key + " " + relation;
    for (const Json& value : values) text += " " + TextOf(value);
    return ShownText(text, 120);
  }
  bool OfGpus() const { return relation == "In" && SaysGpu(key, First()); }
};

std::vector<NodeRule> RulesOf(const Json& term) {
  std::vector<NodeRule> rules;
  for (const Json& expression : ListIn(term, "matchExpressions")) {
    const std::string relation = TextIn(expression, "operator");
    const Json& values = ListIn(expression, "values");
    if (values.empty()) continue;
    rules.push_back({TextIn(expression, "key"), relation.empty() ? "In" : relation, values});
  }
  return rules;
}

bool AnyOfGpus(const std::vector<NodeRule>& rules) {
  return std::any_of(rules.begin(), rules.end(), [](const NodeRule& r) { return r.OfGpus(); });
}

// Rules that a node must keep. Of terms, any of which is enough, those of the first that names a
// GPU; of preferences the first that does, where nothing else says one.
std::vector<NodeRule> RulesOfPod(const Json& pod, Draft& draft) {
  std::vector<NodeRule> rules;
  if (const Json* selector = ObjectIn(pod, "nodeSelector"); selector != nullptr) {
    for (const auto& [key, value] : selector->items()) {
      rules.push_back({key, "In", Json::array({TextOf(value)})});
    }
  }
  const Json* affinity = ObjectAt(pod, {"affinity", "nodeAffinity"});
  if (affinity == nullptr) return rules;
  const auto add = [&rules](const std::vector<NodeRule>& more) {
    rules.insert(rules.end(), more.begin(), more.end());
  };
  const Json* required = ObjectIn(*affinity, "requiredDuringSchedulingIgnoredDuringExecution");
  bool any = false;
  for (const Json& term :
       required == nullptr ? Json::array() : ListIn(*required, "nodeSelectorTerms")) {
    const std::vector<NodeRule> own = RulesOf(term);
    const bool names = AnyOfGpus(own);
    if (!names || !any) add(own);
    for (const NodeRule& rule : names&& any ? own : std::vector<NodeRule>()) {
      if (!rule.OfGpus()) continue;
      draft.Warn(Format("nodeSelectorTerms allow {}, too: the forecast is of the first term's GPU",
                        rule.Words()));
    }
    any |= names;
  }
  for (const Json& each : ListIn(*affinity, "preferredDuringSchedulingIgnoredDuringExecution")) {
    const Json* term = ObjectIn(each, "preference");
    const std::vector<NodeRule> own = term == nullptr ? std::vector<NodeRule>() : RulesOf(*term);
    if (AnyOfGpus(rules) || !AnyOfGpus(own)) continue;
    add(own);
    draft.Warn(Format("{} is preferred, not required: other GPUs may serve", own[0].Words()));
  }
  return rules;
}

}  // namespace

void TakeSelectors(const Json& pod, Draft& draft) {
  const std::vector<NodeRule> rules = RulesOfPod(pod, draft);
  // The GPU's own name counts more than its machine's.
  for (const bool machine : {true, false}) {
    for (const NodeRule& rule : rules) {
      if (rule.relation != "In" || IsInstance(rule.key) != machine) continue;
      TakeLabel(rule.key, rule.First(), draft);
      if (rule.OfGpus()) WarnOfOthers(rule.key, rule.values, draft);
    }
  }
  for (const NodeRule& rule : rules) {
    if (rule.relation == "In") continue;
    const bool gpu = SaysGpu(rule.key, rule.First());
    if (gpu && rule.relation == "NotIn" && !AnyOfGpus(rules)) {
      draft.Warn(
          Format("{}: says which GPU is not used, and nothing says which one is", rule.Words()));
    } else if (gpu || rule.key.find("gpu") != std::string::npos) {
      draft.Ignore(rule.Words(), "does not say which GPU serves");
    }
  }
}

}  // namespace servecast
