// See targets.h and servecast/export.h.
#include "export/targets.h"

#include <algorithm>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "import/names.h"
#include "io/json_document.h"
#include "io/presets.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

struct Target {
  ExportTarget shown;
  std::string (*write)(ExportJob&);
};

constexpr Target kTargets[] = {
    {{"vllm", "vllm serve"}, WriteVllm},
    {{"docker", "docker run of vLLM's image"}, WriteDocker},
    {{"kubernetes", "Kubernetes: a Deployment for each pool"}, WriteKubernetes},
    {{"llm-d", "values of llm-d's chart llm-d-modelservice"}, WriteLlmd},
    {{"llm-d-router", "EndpointPickerConfig of llm-d's router"}, WriteEndpointPicker},
    {{"autoscaler", "HorizontalPodAutoscaler or KEDA's ScaledObject"}, WriteAutoscaler},
    {{"sglang", "python -m sglang.launch_server"}, WriteSglang},
    {{"trtllm", "trtllm-serve, with the YAML that it reads"}, WriteTrtllm},
    {{"bench", "the vllm bench serve that would check the forecast"}, WriteBench},
};

// The value of the label nvidia.com/gpu.product, which NVIDIA's GPU feature discovery makes of the
// names that nvidia-smi prints.
constexpr std::pair<std::string_view, std::string_view> kProducts[] = {
    {"a10", "NVIDIA-A10"},
    {"a100-40gb", "NVIDIA-A100-PCIE-40GB"},
    {"a100-80gb", "NVIDIA-A100-SXM4-80GB"},
    {"a100-pcie-80gb", "NVIDIA-A100-80GB-PCIe"},
    {"a100-sxm-40gb", "NVIDIA-A100-SXM4-40GB"},
    {"a10g", "NVIDIA-A10G"},
    {"b200-sxm", "NVIDIA-B200"},
    {"b300-sxm", "NVIDIA-B300-SXM6-AC"},
    {"gb200", "NVIDIA-GB200"},
    {"gb300", "NVIDIA-GB300"},
    {"h100-nvl", "NVIDIA-H100-NVL"},
    {"h100-pcie", "NVIDIA-H100-PCIe"},
    {"h100-sxm", "NVIDIA-H100-80GB-HBM3"},
    {"h20", "NVIDIA-H20"},
    {"h200-sxm", "NVIDIA-H200"},
    {"l4", "NVIDIA-L4"},
    {"l40", "NVIDIA-L40"},
    {"l40s", "NVIDIA-L40S"},
    {"rtx-4090", "NVIDIA-GeForce-RTX-4090"},
    {"rtx-5090", "NVIDIA-GeForce-RTX-5090"},
    {"rtx-6000-ada", "NVIDIA-RTX-6000-Ada-Generation"},
    {"rtx-a6000", "NVIDIA-RTX-A6000"},
    {"rtx-pro-6000", "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition"},
};

// "meta-llama/Llama-3.1-8B-Instruct" of a preset whose source is that file there.
std::string RepositoryOf(std::string_view preset) {
  constexpr std::string_view kSite = "https://huggingface.co/";
  const Result<Json> file = ParseJson(PresetText("models", preset));
  if (!file.ok() || !file.value().contains("sources")) return "";
  const std::string source = file.value()["sources"].value("*", "");
  if (source.compare(0, kSite.size(), kSite) != 0) return "";
  const std::size_t slash = source.find('/', kSite.size());
  const std::size_t end = slash == std::string::npos ? slash : source.find('/', slash + 1);
  return source.substr(kSite.size(), end - kSite.size());
}

std::string YamlScalar(const Json& value) {
  return value.is_string() ? QuotedText(value.get<std::string>()) : CompactJson(value);
}

// Members and items, each on a line of its own below `indent`.
std::string YamlLines(const Json& value, const std::string& indent) {
  std::string text;
  for (const auto& [key, member] : value.items()) {
    const std::string name = value.is_array() ? "-" : key + ":";
    if (member.is_structured()) {
      std::string inner = YamlLines(member, indent + "  ");
      if (value.is_array()) {  // its first member stands behind the dash
        text += indent + "- " + inner.substr(indent.size() + 2);
      } else {
        text += indent + name + "\n" + inner;
      }
    } else {
      text += indent + name + " " + YamlScalar(member) + "\n";
    }
  }
  return text;
}

}  // namespace

std::string YamlText(const nlohmann::json& value) { return YamlLines(value, ""); }

ExportJob::ExportJob(const Scenario& scenario) : scenario_(scenario) {
  Result<Json> read = ParseJson(scenario.canonical_text);
  canonical_ = read.ok() ? std::move(read.value()) : Json::object();
  model_ = RepositoryOf(Preset("model"));
  if (model_.empty()) model_ = scenario.model.name;
  // What a name is made of there; nothing else gets into a command.
  const bool plain = !model_.empty() &&
                     model_.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/") ==
                         std::string::npos &&
                     model_[0] != '-';
  if (!plain) {
    model_ = "MODEL";
    LeaveOut("model", "its name on Hugging Face is not known: put it in place of MODEL");
  }
}

std::string ExportJob::Preset(const char* section) const {
  const auto at = canonical_.find(section);
  const bool named = at != canonical_.end() && at->is_object();
  std::string preset = named ? at->value("preset", "") : "";
  // The canonical text leaves the default out.
  if (preset.empty() && std::string_view(section) == kDefaultedSection) preset = kDefaultEngine;
  return preset;
}

std::string ExportJob::PresetAt(std::size_t pool, const char* section) const {
  const bool gpu = std::string_view(section) == "hardware";
  const std::string& all = gpu ? scenario_.hardware.name : scenario_.engine.name;
  const std::string& name = gpu ? Hardware(pool).name : Engine(pool).name;
  if (name == all) return Preset(section);
  // A pool's preset is known by the name alone: what the document says of pools is their figures.
  const char* kind = gpu ? "hardware" : "engines";
  for (const std::string_view id : AllPresetIds(kind)) {
    const Result<Json> file = ParseJson(PresetText(kind, id));
    if (file.ok() && file.value().value("name", "") == name) return std::string(id);
  }
  return "";
}

std::string ExportJob::SectionAt(std::size_t pool, const char* section) const {
  const PoolSpec& own = scenario_.cluster.pools[pool];
  const bool gpu = std::string_view(section) == "hardware";
  const bool apart = gpu ? own.hardware.has_value() : own.engine.has_value();
  return apart ? Format("cluster.pools.{}.{}", pool, section) : std::string(section);
}

const EngineSpec& ExportJob::Engine(std::size_t pool) const {
  const PoolSpec& own = scenario_.cluster.pools[pool];
  return own.engine ? *own.engine : scenario_.engine;
}

const SchedulerSpec& ExportJob::Scheduler(std::size_t pool) const {
  const PoolSpec& own = scenario_.cluster.pools[pool];
  return own.scheduler ? *own.scheduler : scenario_.scheduler;
}

const HardwareSpec& ExportJob::Hardware(std::size_t pool) const {
  const PoolSpec& own = scenario_.cluster.pools[pool];
  return own.hardware ? *own.hardware : scenario_.hardware;
}

std::int64_t ExportJob::GpusOfServer(std::size_t pool) const {
  const PoolSpec& p = scenario_.cluster.pools[pool];
  return p.tensor_parallel * p.pipeline_parallel * p.attention_data_parallel;
}

std::string_view ExportJob::GpuProduct(std::size_t pool) const {
  const std::string preset = PresetAt(pool, "hardware");
  for (const auto& [id, product] : kProducts) {
    if (id == preset) return product;
  }
  return "";
}

std::string ExportJob::VersionTag(std::size_t pool) {
  const std::string preset = PresetAt(pool, "engine");
  const bool numbered = preset.find("vllm-0.") == 0;
  if (preset.find("vllm") != 0) {
    LeaveOut(SectionAt(pool, "engine") + ".preset " + preset,
             "the forecast is of that engine, not of vLLM");
  } else if (!numbered && preset != kDefaultEngine) {
    LeaveOut(SectionAt(pool, "engine") + ".preset " + preset,
             "no version of vLLM is known by that name");
  }
  return numbered ? "v" + preset.substr(5) + ".0" : "latest";
}

void ExportJob::LeaveOut(std::string what, std::string why) {
  ImportNote note{ShownText(what, 120), std::move(why)};
  if (std::find(left_out.begin(), left_out.end(), note) == left_out.end()) {
    left_out.push_back(std::move(note));
  }
}

void ExportJob::LeaveOutRest(const char* section, const std::set<std::string>& written,
                             const char* why) {
  const auto at = canonical_.find(section);
  if (at == canonical_.end() || !at->is_object()) return;
  for (const auto& [key, value] : at->items()) {
    if (key == "preset" || key == "name" || written.contains(key)) continue;
    LeaveOut(Format("{}.{} = {}", section, key, ShortJson(value)), why);
  }
}

void ExportJob::LeaveOutSections(const std::vector<const char*>& sections, const char* why) {
  for (const char* section : sections) {
    if (canonical_.contains(section)) LeaveOut(section, why);
  }
}

std::string ShellWord(const std::string& word) {
  const bool plain =
      !word.empty() &&
      word.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:=,@%+") ==
          std::string::npos;
  if (plain) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string QuotedText(const std::string& text) { return CompactJson(Json(text)); }

std::string CommandText(const std::string& program, const std::vector<std::string>& words) {
  std::string text = program;
  for (const std::string& word : words) {
    text += word.substr(0, 2) == "--" ? " \\\n  " : " ";
    text += ShellWord(word);
  }
  return text + "\n";
}

std::vector<ExportTarget> ExportTargets() {
  std::vector<ExportTarget> targets;
  for (const Target& target : kTargets) targets.push_back(target.shown);
  return targets;
}

Result<Exported> Export(std::string_view document, std::string_view target) {
  const auto* found =
      std::find_if(std::begin(kTargets), std::end(kTargets),
                   [target](const Target& each) { return each.shown.name == target; });
  if (found == std::end(kTargets)) {
    std::string names;
    for (const Target& each : kTargets) {
      names += (names.empty() ? "" : ", ") + std::string(each.shown.name);
    }
    return Issue{"", Format("found target {}, allowed {}", ShownText(target), names)};
  }
  Result<Scenario> scenario = ParseScenario(document);
  if (!scenario.ok()) return Issues(scenario.issues());
  // They stand behind the others.
  std::vector<PoolSpec>& pools = scenario.value().cluster.pools;
  const std::size_t all = pools.size();
  while (pools.back().role == PoolRole::kEncode) pools.pop_back();
  ExportJob job(scenario.value());
  for (std::size_t i = pools.size(); i < all; ++i) {
    job.LeaveOut(Format("cluster.pools.{}", i),
                 "servers that only encode images are not written, nor that the others do not");
  }
  if (Issues missing = MissingSources("models", job.Preset("model")); !missing.empty()) {
    return missing;
  }
  Exported exported;
  exported.text = found->write(job);
  exported.left_out = std::move(job.left_out);
  return exported;
}

}  // namespace servecast
