// KAITO's Workspace: a model by the name of its preset, on machines by their type; its settings of
// vLLM stand in a ConfigMap. Members as api/v1beta1 of KAITO 0.5 has them.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "import/json_members.h"
#include "import/kinds.h"
#include "import/member_options.h"
#include "import/pod.h"
#include "import/yaml.h"

namespace servecast {
namespace {

using KaitoJson = nlohmann::json;

// GPUs in a machine: KAITO splits a model over those of one. Azure's pages of sizes; 0: not known.
std::int64_t GpusOfMachine(std::string_view type) {
  constexpr std::pair<std::string_view, std::int64_t> kMachines[] = {
      {"Standard_NC24ads_A100", 1}, {"Standard_NC48ads_A100", 2},  {"Standard_NC96ads_A100", 4},
      {"Standard_NC40ads_H100", 1}, {"Standard_NC80adis_H100", 2}, {"Standard_ND96", 8},
      {"Standard_NV36ads_A10", 1},  {"Standard_NV72ads_A10", 2},   {"Standard_NC4as_T4", 1},
      {"Standard_NC8as_T4", 1},     {"Standard_NC16as_T4", 1},     {"Standard_NC64as_T4", 4},
      {"p5.48xlarge", 8},           {"p4d.24xlarge", 8},           {"g5.48xlarge", 8},
      {"g5.12xlarge", 4},           {"g6e.12xlarge", 4},           {"g6e.48xlarge", 8}};
  for (const auto& [begin, gpus] : kMachines) {
    if (type.substr(0, begin.size()) == begin) return gpus;
  }
  return 0;
}

// Below "vllm" of a ConfigMap's inference_config.yaml.
CommandWords OptionsOfInferenceConfig(const Variables& files) {
  const auto file = files.find("inference_config.yaml");
  if (file == files.end()) return {};
  const Result<std::vector<KaitoJson>> documents = ParseYaml(file->second);
  if (!documents.ok() || documents.value().empty()) return {};
  const KaitoJson* options = ObjectIn(documents.value()[0], "vllm");
  return options == nullptr ? CommandWords{} : OptionWords(*options);
}

void ReadWorkspace(const KaitoJson& document, const Variables& files, Draft& draft) {
  const KaitoJson* preset = ObjectAt(document, {"inference", "preset"});
  if (preset == nullptr) return;
  const KaitoJson* resource = ObjectIn(document, "resource");
  const std::string type = resource == nullptr ? "" : TextIn(*resource, "instanceType");
  ServerContext context;
  context.from = "KAITO's Workspace";
  context.model = TextIn(*preset, "name");
  if (const KaitoJson* options = ObjectIn(*preset, "presetOptions"); options != nullptr) {
    const std::string image = TextIn(*options, "image");
    if (!image.empty()) draft.Ignore("presetOptions.image " + image, "the model is its preset's");
  }
  const std::int64_t gpus = GpusOfMachine(type);
  context.options = {Format("--tensor-parallel-size={}", std::max<std::int64_t>(gpus, 1))};
  ReadVllmServer(OptionsOfInferenceConfig(files), context, draft);
  if (type.empty()) return;
  TakeSelectors({{"nodeSelector", {{"node.kubernetes.io/instance-type", type}}}}, draft);
  if (gpus == 0) {
    draft.Warn(
        Format("resource.instanceType {}: how many GPUs it has is not known here; 1 is taken",
               ShownText(type, 60)));
  }
}

}  // namespace

void ReadKaito(const ImportSource& source, Draft& draft) {
  const Variables files = FilesOfConfigMaps(source.manifests);
  for (const KaitoJson& document : source.manifests) {
    if (TextIn(document, "kind") == "Workspace") ReadWorkspace(document, files, draft);
  }
}

}  // namespace servecast
