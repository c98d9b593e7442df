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

// A label of nodes that says which machine or GPU they have. One that says it in a way that is not
// known here is named: no other GPU takes its place in silence.
void TakeLabel(const std::string& key, const std::string& value, Draft& draft) {
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
  std::string name = value;
  std::replace(name.begin(), name.end(), '_', '-');
  if (IsInstance(key)) {
    const std::string_view gpu = GpuOfInstance(value);
    draft.TakeGpu(gpu.empty() ? std::string_view(value) : gpu, key + " " + ShownText(value));
  } else if (std::find(std::begin(kGpus), std::end(kGpus), key) != std::end(kGpus)) {
    // Google's names of cards leave SXM out: nvidia-h100-80gb. Its nvidia-tesla-a100 has 40 GB; the
    // other is nvidia-a100-80gb.
    const bool google = key == "cloud.google.com/gke-accelerator" && name == "nvidia-tesla-a100";
    draft.TakeGpu(google ? "A100 SXM 40GB" : name, google ? key + " " + value : key);
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
      if (device && gpu && name.find("nvidia.com/gpu") != 0) draft.TakeGpu(name, "resources");
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
    if (ReadLaunches(commands, server, draft, ReadWords)) return true;
  }
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

void TakeSelectors(const Json& pod, Draft& draft) {
  std::vector<std::pair<std::string, std::string>> labels;
  if (const Json* selector = ObjectIn(pod, "nodeSelector"); selector != nullptr) {
    for (const auto& [key, value] : selector->items()) labels.emplace_back(key, TextOf(value));
  }
  const Json* required =
      ObjectAt(pod, {"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"});
  for (const Json& term :
       required == nullptr ? Json::array() : ListIn(*required, "nodeSelectorTerms")) {
    for (const Json& expression : ListIn(term, "matchExpressions")) {
      const Json& values = ListIn(expression, "values");
      if (!values.empty()) labels.emplace_back(TextIn(expression, "key"), TextOf(values[0]));
    }
  }
  // The GPU's own name counts more than its machine's.
  for (const bool machine : {true, false}) {
    for (const auto& [key, value] : labels) {
      if (IsInstance(key) == machine) TakeLabel(key, value, draft);
    }
  }
}

}  // namespace servecast
