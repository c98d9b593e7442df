// See measured_setup.h.
#include "measured_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "files.h"
#include "io/json_document.h"
#include "io/presets.h"
#include "measured_names.h"
#include "measured_table.h"
#include "model_config.h"

namespace servecast {
namespace {

constexpr std::string_view kConfigEnding = ".json";
// The server of vLLM starts with more where there is more memory.
constexpr double kLargeGib = 70;

bool EndsWith(std::string_view text, std::string_view ending) {
  return text.size() >= ending.size() && text.substr(text.size() - ending.size()) == ending;
}

// "/engine/max_num_seqs: found 0, allowed 1 to ...", of each issue.
std::string TextOf(const Issues& issues) {
  std::string text;
  for (const Issue& issue : issues) {
    text += fmt::format("{}{}{}{}", text.empty() ? "" : "; ", issue.path,
                        issue.path.empty() ? "" : ": ", issue.message);
  }
  return text;
}

// What the file says of the engine, as overrides; unsaid, as the server starts on such a GPU.
std::vector<std::string> EngineSettings(const MeasuredSetup& setup, double memory_gib) {
  std::vector<std::string> settings;
  const auto set = [&settings](const char* name, const auto& value) {
    settings.push_back(fmt::format("engine.{}={}", name, value));
  };
  const bool large = memory_gib > kLargeGib;
  const std::int64_t seats = setup.max_num_seqs.value_or(large ? 1024 : 256);
  const std::int64_t tokens = setup.max_num_batched_tokens.value_or(large ? 8192 : 2048);
  set("max_num_seqs", seats);
  set("max_num_batched_tokens", std::max(tokens, seats));
  if (WeightsOf(setup.kv_dtype) == "fp8") set("kv_cache_dtype", "fp8");
  if (setup.block_size) set("block_size", *setup.block_size);
  if (setup.gpu_memory_utilization) set("gpu_memory_utilization", *setup.gpu_memory_utilization);
  if (setup.kv_blocks) set("num_gpu_blocks_override", *setup.kv_blocks);
  if (setup.pipeline_parallel > 1)
    set("async_scheduling", false);  // that of stages is not modelled
  return settings;
}

std::optional<Issue> EngineIssue(const MeasuredSetup& setup, const EngineName& engine) {
  if (engine.preset.empty()) {
    return Issue{"", fmt::format("no preset for the engine {}", setup.engine)};
  }
  const std::optional<std::string> cache = WeightsOf(setup.kv_dtype);
  if (!cache || (*cache != "" && *cache != "fp8")) {
    return Issue{"", fmt::format("a KV cache in {} is not modelled", setup.kv_dtype)};
  }
  return std::nullopt;
}

// What the model of the scenario cannot do with so many GPUs or such weights.
std::optional<Issue> ModelIssue(const MeasuredSetup& setup, const ModelSpec& model) {
  const bool experts = model.num_local_experts > 0;
  // Within a tensor-parallel group it moves the same bytes (docs/fidelity.md).
  if (experts && setup.expert_parallel > setup.tensor_parallel) {
    return Issue{"", fmt::format("experts over {} groups of {} GPUs (expert parallelism) are not "
                                 "modelled",
                                 setup.expert_parallel, setup.tensor_parallel)};
  }
  if (experts && setup.data_parallel > 1) {
    return Issue{"", fmt::format("{} replicas of attention beside one set of experts (data "
                                 "parallelism of a mixture of experts) are not modelled",
                                 setup.data_parallel)};
  }
  if (!experts && model.quantization == Quantization::kMxfp4) {
    return Issue{"", "weights in mxfp4 are modelled for experts only, and the model has none"};
  }
  return std::nullopt;
}

}  // namespace

std::string KeyOf(const MeasuredSetup& s) {
  const auto or_none = [](const auto& value) {
    return value ? fmt::format("{}", *value) : std::string("-");
  };
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{} {} {} {} {} {} {} {} {} {}", s.model, s.gpu,
                     s.engine, s.engine_version, s.precision, s.kv_dtype, s.tensor_parallel,
                     s.pipeline_parallel, s.data_parallel, s.expert_parallel,
                     or_none(s.max_num_seqs), or_none(s.max_num_batched_tokens),
                     or_none(s.block_size), or_none(s.kv_blocks), or_none(s.gpu_memory_utilization),
                     s.no_server);
}

SetupReader::SetupReader(std::string folder, std::vector<std::string> overrides)
    : folder_(std::move(folder)), overrides_(std::move(overrides)) {
  for (std::string& path : FilesBelow(folder_ + "/models")) {
    if (EndsWith(path, kConfigEnding)) config_files_.push_back(std::move(path));
  }
}

Issues SetupReader::OverrideIssues() const {
  if (overrides_.empty()) return {};
  const Result<std::string> text = ApplyOverrides(
      R"({"schema": 1, "model": {"preset": "llama-3.1-8b"}, "hardware": {"preset": "h100-sxm"},)"
      R"( "workload": {"requests": 1}})",
      overrides_);
  if (!text.ok()) return text.issues();
  const Result<Scenario> scenario = ParseScenario(text.value());
  return scenario.ok() ? Issues() : scenario.issues();
}

Result<SetupReader::ModelText> SetupReader::FindModel(const std::string& name) const {
  const std::string preset = ModelPresetOf(name);
  if (!preset.empty()) return ModelText{fmt::format(R"({{"preset": "{}"}})", preset), preset};
  std::string found;
  for (const std::string& path : config_files_) {
    // "meta-llama__Llama-3.1-8B": no slash is possible in the name of a file.
    const std::string_view stem =
        std::string_view(path).substr(0, path.size() - kConfigEnding.size());
    std::string flat = LowerCase(name);
    const std::string last = flat.substr(flat.find_last_of('/') + 1);
    std::replace(flat.begin(), flat.end(), '/', '_');
    const std::string lower = LowerCase(stem);
    const std::size_t owner = lower.find("__");
    const bool owned = owner != std::string::npos && lower.substr(owner + 2) == last;
    if (lower == last || lower == flat || lower == LowerCase(name) || owned) {
      found = path;  // the very name
      break;
    }
    if (found.empty() && SameModel(stem, name)) found = path;
  }
  if (found.empty()) {
    return Issue{"", fmt::format("no preset and no models/NAME.json for the model {}", name)};
  }
  const std::string file = PlainText("models/" + found);
  const Result<std::string> text = ReadFile(folder_ + "/models/" + found, std::size_t{4} << 20);
  if (!text.ok()) return Issue{file, text.issues()[0].message};
  Result<std::string> model = ModelFromConfig(text.value(), file);
  if (!model.ok()) return Issues(model.issues());
  return ModelText{std::move(model.value()), file};
}

const Result<SimulatedSetup>& SetupReader::Read(const MeasuredSetup& setup) {
  const std::string key = KeyOf(setup);
  const auto known = read_.find(key);
  if (known != read_.end()) return known->second;
  // Files of many set-ups have the rows of one together.
  constexpr std::size_t kMostKept = 1000;
  if (read_.size() >= kMostKept) read_.clear();
  return read_.emplace(key, ReadAnew(setup)).first->second;
}

Result<SimulatedSetup> SetupReader::ReadAnew(const MeasuredSetup& setup) const {
  if (setup.model.empty()) return Issue{"", "no model is named, by column or folder"};
  if (setup.gpu.empty()) return Issue{"", "no GPU is named, by column or folder"};
  const std::string gpu = HardwarePresetOf(setup.gpu);
  if (gpu.empty()) return Issue{"", fmt::format("no preset for the GPU {}", setup.gpu)};
  const EngineName engine = EnginePresetOf(setup.engine, setup.engine_version);
  if (const auto issue = EngineIssue(setup, engine)) return *issue;
  // A name may say what no column does: "Llama-3.1-8B-Instruct-FP8".
  std::optional<std::string> weights = WeightsOf(setup.precision);
  if (weights == "") weights = WeightsInName(setup.model);
  if (!weights) {
    return Issue{
        "", fmt::format("weights in {} are not modelled",
                        setup.precision.empty() ? "what the model's name says" : setup.precision)};
  }
  const Result<ModelText> model = FindModel(setup.model);
  if (!model.ok()) return Issue{"", TextOf(model.issues())};
  const nlohmann::json* card = FindPresetDocument("hardware", gpu);
  std::vector<std::string> settings = EngineSettings(setup, card->value("memory_gib", 0.0));
  if (!weights->empty()) settings.push_back("model.quantization=" + *weights);
  if (setup.no_server) settings.emplace_back("model.top_p_by_default=false");
  settings.insert(settings.end(), overrides_.begin(), overrides_.end());
  const Result<std::string> text = ApplyOverrides(
      fmt::format(
          R"({{"schema": 1, "model": {}, "hardware": {{"preset": "{}"}}, "engine": )"
          R"({{"preset": "{}"}}, "cluster": {{"pools": [{{"tensor_parallel": {}, "replicas": {}, )"
          R"("pipeline_parallel": {}}}]}}, "workload": {{"requests": 1}}}})",
          model.value().text, gpu, engine.preset, setup.tensor_parallel, setup.data_parallel,
          setup.pipeline_parallel),
      settings);
  if (!text.ok()) return Issue{"", TextOf(text.issues())};
  Result<Scenario> scenario = ParseScenario(text.value());
  if (!scenario.ok()) return Issue{"", TextOf(scenario.issues())};
  if (const auto issue = ModelIssue(setup, scenario.value().model)) return *issue;
  const Quantization in = scenario.value().model.quantization;
  const std::string kind = in == Quantization::kNone    ? "16 bits"
                           : in == Quantization::kFp8   ? "fp8"
                           : in == Quantization::kInt4  ? "int4"
                           : in == Quantization::kNvfp4 ? "nvfp4"
                                                        : "mxfp4";
  return SimulatedSetup{
      std::move(scenario.value()), model.value().name, gpu, engine.preset, kind, engine.exact};
}

}  // namespace servecast
