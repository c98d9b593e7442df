// See measured_setup.h.
#include "measured_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "files.h"
#include "io/json_document.h"
#include "io/presets.h"
#include "measured_table.h"

namespace servecast {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool IsWord(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.'; }

// In lower case, cut at everything but letters, digits and dots.
Words WordsOf(std::string_view text) {
  Words words;
  bool inside = false;
  for (const char raw : text) {
    const char c = Lower(raw);
    if (IsWord(c)) {
      if (!inside) words.emplace_back();
      words.back() += c;
    }
    inside = IsWord(c);
  }
  return words;
}

// What a name says beside architecture and size: tuning, date, weights.
bool IsVariant(const std::string& word) {
  static constexpr std::array<std::string_view, 20> kVariants = {
      "instruct", "hf",    "chat",    "it",  "base", "fp8",  "fp4",  "nvfp4", "mxfp4", "int4",
      "int8",     "w4a16", "dynamic", "awq", "gptq", "bf16", "fp16", "meta",  "v0.1",  "block"};
  const bool date = word.size() == 4 && word.find_first_not_of("0123456789") == std::string::npos;
  return date || std::find(kVariants.begin(), kVariants.end(), word) != kVariants.end();
}

// Without the owner: "meta-llama/Llama-3.1-8B" -> llama 3.1 8b.
Words ModelWords(std::string_view name) {
  const std::size_t slash = name.find_last_of('/');
  if (slash != std::string_view::npos) name.remove_prefix(slash + 1);
  Words words = WordsOf(name);
  words.erase(std::remove_if(words.begin(), words.end(), IsVariant), words.end());
  // "Qwen3-30B-A3B", "Qwen_Qwen3-32B": an owner may stand before the family.
  if (words.size() > 1 && words[1].find(words[0]) == 0) words.erase(words.begin());
  return words;
}

bool BeginsWith(const Words& words, const Words& beginning) {
  return beginning.size() <= words.size() &&
         std::equal(beginning.begin(), beginning.end(), words.begin());
}

std::string Squeezed(std::string_view text) {
  std::string squeezed;
  for (const std::string& word : WordsOf(text)) squeezed += word;
  return squeezed;
}

// Whether a word of a hardware preset names a build of the GPU rather than the GPU.
bool IsBuild(const std::string& word) {
  return word == "sxm" || word == "pcie" || word == "nvl" || word.find("gb") != std::string::npos;
}

// "0.15.1" and "vllm-0.15" give 15, "1.0.0rc3" 1000; -1 without a number.
double VersionNumber(std::string_view text) {
  const std::size_t digit = text.find_first_of("0123456789");
  if (digit == std::string_view::npos) return -1;
  const std::string_view version = text.substr(digit);
  const std::size_t dot = version.find('.');
  const std::vector<double> major = NumbersIn(version.substr(0, dot));
  if (dot == std::string_view::npos) return 1000 * major[0];
  const std::vector<double> minor = NumbersIn(version.substr(dot + 1, version.find('.', dot + 1)));
  return 1000 * major[0] + (minor.empty() ? 0 : std::floor(minor[0]));
}

// Members of a config file that mean for us what they say there.
Result<std::string> ModelOfConfig(const Json& file, const std::string& path) {
  const Json& c = file.contains("text_config") ? file["text_config"] : file;
  const auto number = [&c](const char* key) -> std::optional<std::int64_t> {
    const auto at = c.find(key);
    if (at == c.end() || !at->is_number()) return std::nullopt;
    return at->get<std::int64_t>();
  };
  Json m = Json::object();
  for (const char* key : {"num_hidden_layers", "hidden_size", "num_attention_heads",
                          "num_key_value_heads", "head_dim", "intermediate_size", "vocab_size",
                          "max_position_embeddings", "num_experts_per_tok", "num_local_experts"}) {
    if (const auto value = number(key)) m[key] = *value;
  }
  if (c.contains("kv_lora_rank")) return Issue{path, "latent attention is not modelled"};
  if (!m.contains("num_attention_heads") || !m.contains("hidden_size")) {
    return Issue{path, "no config of a transformer"};
  }
  if (!m.contains("num_key_value_heads")) m["num_key_value_heads"] = m["num_attention_heads"];
  if (!m.contains("head_dim")) {
    m["head_dim"] = m["hidden_size"].get<std::int64_t>() /
                    std::max<std::int64_t>(1, m["num_attention_heads"].get<std::int64_t>());
  }
  for (const char* key : {"num_experts", "n_routed_experts"}) {
    if (const auto value = number(key)) m["num_local_experts"] = *value;
  }
  if (const auto value = number("moe_intermediate_size");
      value && m.contains("num_local_experts")) {
    m["intermediate_size"] = *value;
  }
  for (const char* key : {"tie_word_embeddings", "attention_bias"}) {
    if (c.contains(key) && c[key].is_boolean()) m[key] = c[key];
  }
  return CompactJson(m);
}

void SetEngine(const MeasuredSetup& setup, Scenario& s) {
  EngineSpec& e = s.engine;
  // What vLLM's server starts with: more where there is more memory.
  const bool large = s.hardware.memory_gib > 70;
  e.max_num_seqs = setup.max_num_seqs.value_or(large ? 1024 : 256);
  e.max_num_batched_tokens = setup.max_num_batched_tokens.value_or(large ? 8192 : 2048);
  e.max_num_batched_tokens = std::max(e.max_num_batched_tokens, e.max_num_seqs);
  if (setup.block_size) e.block_size = *setup.block_size;
  if (setup.gpu_memory_utilization) e.gpu_memory_utilization = *setup.gpu_memory_utilization;
  if (setup.kv_blocks && *setup.kv_blocks > 1) e.num_gpu_blocks_override = *setup.kv_blocks;
}

bool SixteenBit(std::string_view precision) {
  for (const std::string_view name : {"", "bf16", "fp16", "bfloat16", "float16", "half", "auto"}) {
    if (Squeezed(precision) == name) return true;
  }
  return false;
}

}  // namespace

std::string ModelPresetOf(std::string_view name) {
  const Words wanted = ModelWords(name);
  if (wanted.empty()) return "";
  std::string found;
  for (const std::string_view id : PresetIds("models")) {
    const Words words = WordsOf(id);
    if (words == wanted) return std::string(id);
    if (BeginsWith(words, wanted) && wanted.size() > 1) found = id;
  }
  return found;
}

std::string HardwarePresetOf(std::string_view name) {
  const std::string wanted = Squeezed(name);
  std::string found;
  int best = -1;
  for (const std::string_view id : PresetIds("hardware")) {
    std::string family;
    int builds = 0;
    for (const std::string& word : WordsOf(id)) {
      if (!IsBuild(word)) family += word;
      if (IsBuild(word) && wanted.find(word) != std::string::npos) ++builds;
    }
    if (wanted.find(family) == std::string::npos || builds <= best) continue;
    best = builds;
    found = id;
  }
  return found;
}

std::string EnginePresetOf(std::string_view engine, std::string_view version) {
  const Words wanted = WordsOf(engine.empty() ? kDefaultEngine : engine);
  const double number = VersionNumber(version);
  std::string found, any;
  double best = -1;
  for (const std::string_view id : PresetIds("engines")) {
    const Words words = WordsOf(id);
    if (!BeginsWith(words, wanted)) continue;
    if (words.size() == 1) any = id;
    const double of = words.size() == 2 ? VersionNumber(words[1]) : -1;
    if (number < 0 || of > number || of <= best) continue;
    best = of;
    found = id;
  }
  if (!found.empty()) return found;
  return any.empty() ? std::string(kDefaultEngine) : any;
}

Result<std::string> SetupReader::ModelText(const MeasuredSetup& setup) const {
  const std::string preset = ModelPresetOf(setup.model);
  if (!preset.empty()) return fmt::format(R"({{"preset": "{}"}})", preset);
  for (const std::string& path : FilesBelow(folder_ + "/models")) {
    const std::string name = path.substr(0, path.find(".json"));
    // "meta-llama__Llama-3.1-8B": no slash is possible in the name of a file.
    const std::size_t owner = name.find("__");
    if (ModelWords(owner == std::string::npos ? name : name.substr(owner + 2)) !=
        ModelWords(setup.model)) {
      continue;
    }
    const Result<std::string> text = ReadFile(folder_ + "/models/" + path, std::size_t{4} << 20);
    if (!text.ok()) return Issues(text.issues());
    const Result<Json> json = ParseJson(text.value());
    if (!json.ok()) return Issues(json.issues());
    return ModelOfConfig(json.value(), "models/" + path);
  }
  return Issue{"", fmt::format("no preset and no config for the model {}", setup.model)};
}

Result<Scenario> SetupReader::Read(const MeasuredSetup& setup) const {
  const std::string gpu = HardwarePresetOf(setup.gpu);
  if (gpu.empty()) return Issue{"", fmt::format("no preset for the GPU {}", setup.gpu)};
  if (!SixteenBit(setup.precision)) {
    return Issue{"", fmt::format("weights in {} are not modelled", setup.precision)};
  }
  const Result<std::string> model = ModelText(setup);
  if (!model.ok()) return Issues(model.issues());
  Result<std::string> text = fmt::format(
      R"({{"schema": 1, "model": {}, "hardware": {{"preset": "{}"}}, "engine": {{"preset": "{}"}},)"
      R"( "cluster": {{"pools": [{{"tensor_parallel": {}}}]}},)"
      R"( "workload": {{"requests": 1}}}})",
      model.value(), gpu, EnginePresetOf(setup.engine, setup.engine_version),
      setup.tensor_parallel);
  if (!overrides_.empty()) text = ApplyOverrides(text.value(), overrides_);
  if (!text.ok()) return Issues(text.issues());
  Result<Scenario> scenario = ParseScenario(text.value());
  if (!scenario.ok()) return scenario;
  SetEngine(setup, scenario.value());
  return scenario;
}

}  // namespace servecast
