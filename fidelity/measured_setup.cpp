// See measured_setup.h.
#include "measured_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cost/nodes.h"
#include "formats/measured_table.h"
#include "host/files.h"
#include "import/model_config.h"
#include "import/names.h"
#include "io/json_document.h"
#include "io/presets.h"

namespace servecast {
namespace {

constexpr std::string_view kConfigEnding = ".json";
// The server of vLLM starts with more seats and tokens on GPUs of 70 GiB and more, of 0.9 and later
// but the A100 (vllm/engine/arg_utils.py, _set_default_args).
bool StartsLarge(const MeasuredSetup& setup, const EngineName& engine, const std::string& gpu,
                 double memory_gib) {
  const bool later = setup.engine_version.empty() || IsFrom(setup.engine_version, 0, 9);
  const bool excepted = engine.preset.find("vllm") == 0 && later && gpu.find("a100") == 0;
  return memory_gib > 70 && !excepted;
}

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

// Checkpoints in fp8 and nvfp4 that NVIDIA makes of models in 16 bits ask for an 8-bit KV cache:
// "kv_cache_quant_algo": "FP8" in hf_quant_config.json of nvidia/Llama-3.1-8B-Instruct-FP8 and
// nvidia/Llama-3.3-70B-Instruct-FP4. TensorRT-LLM, which they are made for, obeys, and so does vLLM
// from about 0.12 on where the name says whose checkpoint it is, or where it can be no other's: of
// experts published in int4 (config.json of nvidia/Kimi-K2.5-NVFP4, kv_cache_scheme). Models that
// were published in 8 bits have no such file.
bool HasCacheOfCheckpoint(const MeasuredSetup& setup, const EngineName& engine,
                          const std::string& weights, bool published, bool int4_experts) {
  if (published || (weights != "fp8" && weights != "nvfp4")) return false;
  if (engine.preset.find("trtllm") == 0) return true;
  const bool nvidias =
      LowerCase(setup.model).find("nvidia") == 0 || (int4_experts && weights == "nvfp4");
  return nvidias && engine.preset.find("vllm") == 0 && IsFrom(setup.engine_version, 0, 12);
}

// What the file says of the engine, as overrides; unsaid, as the server starts on such a GPU.
std::vector<std::string> EngineSettings(const MeasuredSetup& setup, bool large,
                                        bool cache_of_checkpoint) {
  std::vector<std::string> settings;
  const auto set = [&settings](const char* name, const auto& value) {
    settings.push_back(fmt::format("engine.{}={}", name, value));
  };
  const std::int64_t seats = setup.max_num_seqs.value_or(large ? 1024 : 256);
  const std::int64_t tokens = setup.max_num_batched_tokens.value_or(large ? 8192 : 2048);
  set("max_num_seqs", seats);
  set("max_num_batched_tokens", std::max(tokens, seats));
  const bool said = !setup.kv_dtype.empty() && LowerCase(setup.kv_dtype) != "auto";
  if (said ? WeightsOf(setup.kv_dtype) == "fp8" : cache_of_checkpoint) set("kv_cache_dtype", "fp8");
  if (setup.block_size) set("block_size", *setup.block_size);
  if (setup.gpu_memory_utilization) set("gpu_memory_utilization", *setup.gpu_memory_utilization);
  if (setup.kv_blocks) set("num_gpu_blocks_override", *setup.kv_blocks);
  if (setup.pipeline_parallel > 1)
    set("async_scheduling", false);  // that of stages is not modelled
  return settings;
}

std::string WeightsName(Quantization in) {
  constexpr const char* kNames[] = {"16 bits", "fp8",        "int4", "nvfp4",    "mxfp4",
                                    "int8",    "int8_w8a16", "nf4",  "mxfp4_all"};
  return kNames[static_cast<std::size_t>(in)];
}

// A preset's name, or "new".
std::string PresetIn(const nlohmann::json& document, const char* part) {
  const auto found = document.find(part);
  if (found == document.end() || !found->is_object()) return "new";
  return found->value("preset", "new");
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

// Each GPU holds whole experts, and no slices of them.
bool HasWholeExperts(const MeasuredSetup& s) {
  const auto whole = [](std::int64_t experts, std::int64_t tp, std::int64_t dp) {
    return experts > 1 && (experts == tp * dp || (dp == 1 && experts > tp));
  };
  if (s.decode) {
    return whole(s.decode->expert_parallel, s.decode->tensor_parallel, s.decode->data_parallel);
  }
  return s.expert_tensor_parallel.value_or(1) == 1 &&
         whole(s.expert_parallel, s.tensor_parallel, s.data_parallel);
}

// One pool of a cluster. Where experts are over more GPUs than a tensor-parallel group, each group
// of these has attention of its own.
Result<std::string> PoolText(const char* role, MeasuredWorkers w, std::int64_t stages,
                             bool experts) {
  if (experts && w.expert_parallel > w.tensor_parallel * w.data_parallel) {
    if (w.data_parallel > 1 || w.expert_parallel % w.tensor_parallel != 0) {
      return Issue{"", fmt::format("experts over {} GPUs, but attention on {} groups of {}",
                                   w.expert_parallel, w.data_parallel, w.tensor_parallel)};
    }
    w.data_parallel = w.expert_parallel / w.tensor_parallel;
  }
  return fmt::format(
      R"({{"role": "{}", "tensor_parallel": {}, "replicas": {}, "pipeline_parallel": {}, )"
      R"("attention_data_parallel": {}}})",
      role, w.tensor_parallel, w.workers * w.data_parallel, stages, experts ? w.data_parallel : 1);
}

Result<std::string> ClusterText(const MeasuredSetup& s, bool experts) {
  const auto router = [&s](const char* name) {
    return s.router.empty() ? std::string()
                            : fmt::format(R"(, "{}": {{"policy": "{}"}})", name, s.router);
  };
  // A link of each GPU of the smaller side carries KV between them.
  if (!s.prefill || !s.decode) {
    const std::int64_t sliced = s.expert_tensor_parallel.value_or(1);
    const Result<std::string> pool = PoolText(
        "mixed", {s.replicas, s.tensor_parallel, s.data_parallel, s.expert_parallel * sliced},
        s.pipeline_parallel, experts);
    if (!pool.ok()) return pool;
    return fmt::format(R"({{"pools": [{}]{}}})", pool.value(), router("router"));
  }
  const Result<std::string> prefill = PoolText("prefill", *s.prefill, s.pipeline_parallel, experts);
  const Result<std::string> decode = PoolText("decode", *s.decode, s.pipeline_parallel, experts);
  if (!prefill.ok()) return prefill;
  if (!decode.ok()) return decode;
  const auto gpus = [](const MeasuredWorkers& w) {
    return w.workers * w.tensor_parallel * w.data_parallel;
  };
  return fmt::format(
      R"({{"pools": [{}, {}], "disaggregation": {{"bandwidth_gb_s": {}}}{}{}}})", prefill.value(),
      decode.value(),
      kTransferGbS * static_cast<double>(std::min(gpus(*s.prefill), gpus(*s.decode))),
      router("router"), router("decode_router"));
}

}  // namespace

std::string KeyOf(const MeasuredSetup& s) {
  const auto or_none = [](const auto& value) {
    return value ? fmt::format("{}", *value) : std::string("-");
  };
  const auto workers = [](const std::optional<MeasuredWorkers>& w) {
    if (!w) return std::string("-");
    return fmt::format("{}x{}x{}x{}", w->workers, w->tensor_parallel, w->data_parallel,
                       w->expert_parallel);
  };
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{} {} {} {} {} {} {} {} {} {} {} {} {} {}",
                     s.scenario, s.router, s.model, s.gpu, s.engine, s.engine_version, s.precision,
                     s.kv_dtype, s.tensor_parallel, s.pipeline_parallel, s.data_parallel,
                     s.replicas, s.expert_parallel, or_none(s.max_num_seqs),
                     or_none(s.max_num_batched_tokens), or_none(s.block_size), or_none(s.kv_blocks),
                     or_none(s.gpu_memory_utilization), or_none(s.expert_tensor_parallel),
                     workers(s.prefill), workers(s.decode), s.no_top_p);
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
  if (!preset.empty()) {
    const nlohmann::json model = *FindPresetDocument("models", preset);
    return ModelText{CompactJson(model), preset, model.contains("num_local_experts"),
                     model.value("quantization", ""), model.value("expert_quantization", "")};
  }
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
  const auto read = LooseJson(model.value());
  return ModelText{std::move(model.value()), file, read.contains("num_local_experts"),
                   read.value("quantization", ""), read.value("expert_quantization", "")};
}

Result<SimulatedSetup> SetupReader::ReadScenario(const MeasuredSetup& setup) const {
  const std::string file = PlainText(setup.scenario);
  const Result<std::string> read = ReadFile(folder_ + "/" + setup.scenario, std::size_t{4} << 20);
  if (!read.ok()) return Issue{"", fmt::format("{}: {}", file, read.issues()[0].message)};
  std::vector<std::string> settings;
  if (setup.no_top_p) settings.emplace_back("model.top_p_by_default=false");
  settings.insert(settings.end(), overrides_.begin(), overrides_.end());
  const Result<std::string> text = ApplyOverrides(read.value(), settings);
  if (!text.ok()) return Issue{"", fmt::format("{}: {}", file, TextOf(text.issues()))};
  Result<Scenario> scenario = ParseScenario(text.value());
  if (!scenario.ok()) return Issue{"", fmt::format("{}: {}", file, TextOf(scenario.issues()))};
  const nlohmann::json document = LooseJson(text.value());
  const EngineName engine = EnginePresetOf(setup.engine, setup.engine_version);
  const std::string preset = PresetIn(document, "engine");
  std::string weights = WeightsName(scenario.value().model.quantization);
  return SimulatedSetup{std::move(scenario.value()),
                        PresetIn(document, "model"),
                        PresetIn(document, "hardware"),
                        preset,
                        std::move(weights),
                        engine.exact && engine.preset == preset};
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
  if (!setup.scenario.empty()) return ReadScenario(setup);
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
  const std::string& published = model.value().quantization;
  // Four bits of a checkpoint that has them are those that it has.
  const std::string& of_experts = model.value().expert_quantization;
  const bool fp4 = LowerCase(setup.precision) == "fp4";
  if (published == "mxfp4" && fp4) weights = published;
  if (weights == "mxfp4" && !model.value().experts) weights = "mxfp4_all";
  const bool own =
      !of_experts.empty() && (*weights == of_experts || (fp4 && of_experts == "mxfp4"));
  if (own) weights = "";
  const nlohmann::json& card = *FindPresetDocument("hardware", gpu);
  std::vector<std::string> settings = EngineSettings(
      setup, StartsLarge(setup, engine, gpu, card.value("memory_gib", 0.0)),
      HasCacheOfCheckpoint(setup, engine, *weights, !published.empty(), of_experts == "int4"));
  if (!weights->empty()) settings.push_back("model.quantization=" + *weights);
  if (!weights->empty() && !of_experts.empty()) {
    settings.emplace_back("model.expert_quantization=none");
  }
  if (model.value().experts && HasWholeExperts(setup)) {
    settings.emplace_back("engine.enable_expert_parallel=true");
  }
  const bool trtllm = engine.preset.find("trtllm-") == 0, whole = !setup.prefill && !setup.decode;
  if (trtllm && whole && model.value().experts && setup.data_parallel > 1) {
    settings.emplace_back("scheduler.enable_attention_dp=true");
  }
  if (const std::string_view host = HostMeasuredWith(gpu, engine.preset); !host.empty()) {
    settings.push_back(fmt::format("engine.host={}", host));
  }
  if (setup.no_top_p) settings.emplace_back("model.top_p_by_default=false");
  settings.insert(settings.end(), overrides_.begin(), overrides_.end());
  const Result<std::string> cluster = ClusterText(setup, model.value().experts);
  if (!cluster.ok()) return Issues(cluster.issues());
  const Result<std::string> text = ApplyOverrides(
      fmt::format(R"({{"schema": 1, "model": {}, "hardware": {{"preset": "{}"}}, )"
                  R"("engine": {{"preset": "{}"}}, "cluster": {}, "workload": {{"requests": 1}}}})",
                  model.value().text, gpu, engine.preset, cluster.value()),
      settings);
  if (!text.ok()) return Issue{"", TextOf(text.issues())};
  Result<Scenario> scenario = ParseScenario(text.value());
  if (!scenario.ok()) return Issue{"", TextOf(scenario.issues())};
  std::string named = WeightsName(scenario.value().model.quantization);
  return SimulatedSetup{std::move(scenario.value()),
                        model.value().name,
                        gpu,
                        engine.preset,
                        std::move(named),
                        engine.exact};
}

}  // namespace servecast
