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
  static constexpr std::array<std::string_view, 23> kVariants = {
      "instruct", "hf",   "chat", "it",    "base",     "fp8", "fp4",    "nvfp4",
      "mxfp4",    "int4", "int8", "w4a16", "dynamic",  "awq", "gptq",   "bf16",
      "fp16",     "meta", "v0.1", "block", "thinking", "kv",  "preview"};
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
  return word == "sxm" || word == "pcie" || word == "nvl" ||
         (word.size() > 2 && word.find("gb") != std::string::npos);
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

// In the words of a scenario; "" for 16 bits, nullopt for what is not known.
std::optional<std::string> QuantizationOf(std::string_view precision) {
  const std::string word = Squeezed(precision);
  for (const char* plain : {"", "bf16", "fp16", "bfloat16", "float16", "half", "auto", "none"}) {
    if (word == plain) return "";
  }
  const auto has = [&word](const char* part) { return word.find(part) != std::string::npos; };
  if (has("mxfp4")) return "mxfp4";
  if (has("fp4")) return "nvfp4";
  if (has("fp8")) return "fp8";
  if (has("int4") || has("w4a16") || has("awq") || has("gptq")) return "int4";
  return std::nullopt;
}

// Members of a config file that mean for us what they say there, or nearly.
class ConfigReader {
 public:
  explicit ConfigReader(const Json& file)
      : file_(file), config_(file.contains("text_config") ? file["text_config"] : file) {}

  Result<std::string> Read(const std::string& path) {
    for (const char* key :
         {"num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads",
          "head_dim", "intermediate_size", "vocab_size", "max_position_embeddings",
          "num_experts_per_tok", "num_local_experts", "kv_lora_rank", "q_lora_rank",
          "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"}) {
      Copy(key, key);
    }
    for (const char* key : {"num_experts", "n_routed_experts"}) Copy(key, "num_local_experts");
    Copy("moe_topk", "num_experts_per_tok");
    if (Number("n_embd") > 0) Gpt2();
    if (!model_.contains("num_attention_heads") || !model_.contains("hidden_size")) {
      return Issue{path, "no config of a transformer"};
    }
    if (!model_.contains("num_key_value_heads")) {
      model_["num_key_value_heads"] = model_["num_attention_heads"];
    }
    if (!model_.contains("head_dim")) {
      model_["head_dim"] = Of("hidden_size") / std::max<std::int64_t>(1, Of("num_attention_heads"));
    }
    if (Of("num_local_experts") > 0) Experts();
    // A file beside this one would say; of these families it asks for top-p or top-k.
    const std::string family = config_.value("model_type", "");
    for (const char* sampled : {"llama", "qwen", "gemma", "deepseek"}) {
      if (family.find(sampled) == 0) model_["top_p_by_default"] = true;
    }
    Windows();
    for (const char* key : {"tie_word_embeddings", "attention_bias"}) {
      if (config_.contains(key) && config_[key].is_boolean()) model_[key] = config_[key];
    }
    const Json& quantized = file_.contains("quantization_config") ? file_ : config_;
    if (quantized.contains("quantization_config")) {
      const auto type = QuantizationOf(CompactJson(quantized["quantization_config"]));
      if (!type) return Issue{path, "weights of a type that is not modelled"};
      if (!type->empty()) model_["quantization"] = *type;
    }
    return CompactJson(model_);
  }

 private:
  std::int64_t Number(const char* key) const {
    const auto at = config_.find(key);
    return at == config_.end() || !at->is_number() ? 0 : at->get<std::int64_t>();
  }
  std::int64_t Of(const char* key) const {
    const auto at = model_.find(key);
    return at == model_.end() ? 0 : at->get<std::int64_t>();
  }
  void Copy(const char* from, const char* to) {
    if (Number(from) > 0) model_[to] = Number(from);
  }

  // Words of 2019, and two matrices of an MLP for three.
  void Gpt2() {
    Copy("n_layer", "num_hidden_layers");
    Copy("n_embd", "hidden_size");
    Copy("n_head", "num_attention_heads");
    Copy("n_positions", "max_position_embeddings");
    const std::int64_t width = Number("n_inner") > 0 ? Number("n_inner") : 4 * Number("n_embd");
    model_["intermediate_size"] = 2 * width / 3;
    model_["tie_word_embeddings"] = true;
  }

  void Experts() {
    const std::int64_t layers = Of("num_hidden_layers");
    const std::int64_t dense_width = Number("intermediate_size_mlp") > 0
                                         ? Number("intermediate_size_mlp")
                                         : Number("intermediate_size");
    Copy("moe_intermediate_size", "intermediate_size");
    const std::int64_t shared = Number("n_shared_experts") * Of("intermediate_size");
    // Llama 4 has a shared expert as wide as the others.
    const bool llama4 = Number("intermediate_size_mlp") > 0;
    model_["shared_expert_intermediate_size"] = Number("shared_expert_intermediate_size") > 0
                                                    ? Number("shared_expert_intermediate_size")
                                                : llama4 ? Of("intermediate_size")
                                                         : shared;
    // Experts in one layer of so many, or in all but the first.
    const std::int64_t step = std::max(
        {Number("interleave_moe_layer_step"), Number("decoder_sparse_step"), std::int64_t{1}});
    const std::int64_t dense = Number("first_k_dense_replace") > 0 ? Number("first_k_dense_replace")
                                                                   : layers - layers / step;
    if (dense <= 0) return;
    model_["num_dense_layers"] = dense;
    model_["dense_intermediate_size"] = dense_width;
  }

  void Windows() {
    const std::int64_t window = Number("sliding_window");
    if (window <= 0) return;
    const auto types = config_.find("layer_types");
    const auto use = config_.find("use_sliding_window");
    if (use != config_.end() && use->is_boolean() && !use->get<bool>()) return;
    std::int64_t sliding = Of("num_hidden_layers");
    const std::int64_t pattern = Number("sliding_window_pattern");  // one of so many sees all
    if (pattern > 0) sliding -= sliding / pattern;
    if (types != config_.end() && types->is_array()) {
      sliding = std::count(types->begin(), types->end(), Json("sliding_attention"));
    }
    model_["sliding_window"] = window;
    model_["num_sliding_layers"] = sliding;
  }

  const Json& file_;
  const Json& config_;
  Json model_ = Json::object();
};

void SetEngine(const MeasuredSetup& setup, Scenario& s) {
  EngineSpec& e = s.engine;
  // What vLLM's server starts with: more where there is more memory.
  const bool large = s.hardware.memory_gib > 70;
  e.max_num_seqs = setup.max_num_seqs.value_or(large ? 1024 : 256);
  e.max_num_batched_tokens = setup.max_num_batched_tokens.value_or(large ? 8192 : 2048);
  e.max_num_batched_tokens = std::max(e.max_num_batched_tokens, e.max_num_seqs);
  if (Squeezed(setup.kv_dtype).find("fp8") != std::string::npos) {
    e.kv_cache_dtype = KvCacheDType::kFp8;
  }
  if (setup.block_size) e.block_size = *setup.block_size;
  if (setup.gpu_memory_utilization) e.gpu_memory_utilization = *setup.gpu_memory_utilization;
  if (setup.kv_blocks && *setup.kv_blocks > 1) e.num_gpu_blocks_override = *setup.kv_blocks;
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
  int best = 0;
  for (const std::string_view id : PresetIds("hardware")) {
    std::string family;
    for (const std::string& word : WordsOf(id)) family += IsBuild(word) ? "" : word;
    if (wanted.find(family) == std::string::npos) continue;
    // Of two builds the one of which more is said; else the last, which is the larger.
    int score = 0;
    const std::string all =
        std::string(id) + " " + FindPresetDocument("hardware", id)->value("name", "");
    for (const std::string& word : WordsOf(all)) {
      if (!IsBuild(word) || wanted.find(word) == std::string::npos) continue;
      score += word.find("gb") == std::string::npos ? 2 : 1;
    }
    if (score < best) continue;
    best = score;
    found = id;
  }
  return found;
}

std::string EnginePresetOf(std::string_view engine, std::string_view version) {
  const bool tensorrt = Squeezed(engine).find("tensorrt") != std::string::npos;
  const Words wanted = WordsOf(engine.empty() ? kDefaultEngine : tensorrt ? "trtllm" : engine);
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
    return ConfigReader(json.value()).Read("models/" + path);
  }
  return Issue{"", fmt::format("no preset and no config for the model {}", setup.model)};
}

Result<Scenario> SetupReader::Read(const MeasuredSetup& setup) const {
  const std::string gpu = HardwarePresetOf(setup.gpu);
  if (gpu.empty()) return Issue{"", fmt::format("no preset for the GPU {}", setup.gpu)};
  // A name may say what no column does: "Llama-3.1-8B-Instruct-FP8".
  std::optional<std::string> quantization = QuantizationOf(setup.precision);
  if (quantization == "") quantization = QuantizationOf(setup.model).value_or("");
  if (!quantization) {
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
  if (!quantization->empty()) {
    text = ApplyOverrides(text.value(), {"model.quantization=" + *quantization});
    if (!text.ok()) return Issues(text.issues());
  }
  if (!overrides_.empty()) text = ApplyOverrides(text.value(), overrides_);
  if (!text.ok()) return Issues(text.issues());
  Result<Scenario> scenario = ParseScenario(text.value());
  if (!scenario.ok()) return scenario;
  SetEngine(setup, scenario.value());
  const EngineSpec& e = scenario.value().engine;
  const auto whole = [](std::int64_t value) { return value >= 1 && value <= 10'000'000; };
  if (!whole(e.max_num_seqs) || !whole(e.max_num_batched_tokens) || !whole(e.block_size) ||
      !(e.gpu_memory_utilization > 0 && e.gpu_memory_utilization <= 1)) {
    return Issue{"", "a setting of the engine is out of range"};
  }
  return scenario;
}

}  // namespace servecast
