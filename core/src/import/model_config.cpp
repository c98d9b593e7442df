// See model_config.h. What a file does not say is as transformers has it
// (models/*/configuration_*.py).
#include "import/model_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "import/checkpoint_weights.h"
#include "import/model_layers.h"
#include "io/json_document.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

// Which layers look back through a window only, when there is one and no list says.
enum class Windows { kNone, kAll, kAsked, kAlternate, kPattern };

// A family of decoders with pre-norm attention and an MLP, and what its files leave out.
struct Family {
  std::string_view type;
  Windows windows = Windows::kNone;
  bool experts = false;  // may have them
  bool tied = false;
  bool bias = false;          // on query, key and value
  std::int64_t head_dim = 0;  // 0: hidden size / heads
  std::int64_t pattern = 0;   // one layer of so many sees everything
  std::int64_t heads = 0, kv_heads = 0, vocabulary = 0, context = 0, window = 0;
  bool gated = true;         // else two matrices, 4 hidden sizes wide unless they say more
  bool multi_query = false;  // one KV head unless they say otherwise
};

constexpr std::array<Family, 101> kFamilies = {{
    {.type = "llama"},
    {.type = "llama4_text", .experts = true},
    {.type = "mistral", .windows = Windows::kAll},
    {.type = "ministral", .windows = Windows::kAll},
    {.type = "mixtral", .windows = Windows::kAll, .experts = true},
    {.type = "qwen2", .windows = Windows::kAsked, .bias = true},
    {.type = "qwen2_vl", .windows = Windows::kAsked, .bias = true},
    {.type = "qwen2_vl_text", .windows = Windows::kAsked, .bias = true},
    {.type = "qwen2_5_vl", .windows = Windows::kAsked, .bias = true},
    {.type = "qwen2_5_vl_text", .windows = Windows::kAsked, .bias = true},
    {.type = "qwen2_moe", .windows = Windows::kAsked, .experts = true, .bias = true},
    {.type = "qwen3", .windows = Windows::kAsked, .head_dim = 128},
    {.type = "qwen3_vl_text", .windows = Windows::kAsked, .head_dim = 128},
    {.type = "qwen3_moe", .windows = Windows::kAsked, .experts = true},
    {.type = "qwen3_vl_moe_text", .windows = Windows::kAsked, .experts = true},
    {.type = "gemma", .tied = true, .head_dim = 256},
    {.type = "gemma2", .windows = Windows::kAlternate, .tied = true, .head_dim = 256},
    {.type = "gemma3_text",
     .windows = Windows::kPattern,
     .tied = true,
     .head_dim = 256,
     .pattern = 6,
     .heads = 8,
     .kv_heads = 4,
     .vocabulary = 262208,
     .context = 131072,
     .window = 4096},
    {.type = "phi3", .windows = Windows::kAll},
    {.type = "phimoe", .windows = Windows::kAll, .experts = true},
    {.type = "deepseek_v2", .experts = true},
    {.type = "deepseek_v3", .experts = true},
    {.type = "kimi_k2", .experts = true},
    {.type = "minimax_m2", .experts = true},
    {.type = "gpt_oss", .windows = Windows::kAlternate, .experts = true, .bias = true},
    {.type = "glm4", .bias = true},
    {.type = "glm4_moe", .experts = true},
    {.type = "granite"},
    {.type = "olmo2"},
    {.type = "olmoe", .experts = true},
    {.type = "cohere", .tied = true},
    {.type = "gpt2", .tied = true, .bias = true, .gated = false},
    {.type = "gpt_bigcode", .tied = true, .bias = true, .gated = false, .multi_query = true},
    {.type = "gptj", .gated = false},
    {.type = "gpt_neox", .bias = true, .gated = false},
    {.type = "opt", .tied = true, .bias = true, .gated = false},
    {.type = "bloom", .tied = true, .bias = true, .context = 2048, .gated = false},
    {.type = "falcon", .tied = true, .context = 2048, .gated = false, .multi_query = true},
    {.type = "phi", .bias = true, .gated = false},
    {.type = "mimo", .windows = Windows::kAsked, .bias = true},
    {.type = "ministral3", .windows = Windows::kAll},
    {.type = "exaone4", .windows = Windows::kPattern, .pattern = 4},
    {.type = "olmo"},
    {.type = "olmo3", .windows = Windows::kPattern, .pattern = 4},
    {.type = "smollm3", .windows = Windows::kAsked, .tied = true},
    {.type = "internlm2"},
    {.type = "internlm3"},
    {.type = "seed_oss", .bias = true},
    {.type = "cohere2", .windows = Windows::kPattern, .tied = true, .pattern = 4},
    {.type = "granitemoe", .experts = true},
    {.type = "ernie4_5"},
    {.type = "ernie4_5_moe", .experts = true},
    {.type = "hunyuan_v1_dense"},
    {.type = "nemotron", .gated = false},
    {.type = "minicpm", .tied = true},
    {.type = "minicpm3", .tied = true},
    {.type = "glm4_moe_lite", .experts = true},
    {.type = "dots1", .experts = true},
    {.type = "bailing_moe", .experts = true},
    {.type = "arcee", .gated = false},
    {.type = "qwen3_next", .experts = true, .head_dim = 256},
    {.type = "qwen3_5_text", .head_dim = 256},
    {.type = "qwen3_5_moe_text", .experts = true, .head_dim = 256},
    {.type = "deepseek_v32", .experts = true},
    {.type = "deepseek_v4", .experts = true},
    {.type = "glm_moe_dsa", .experts = true},
    {.type = "gemma4_text", .tied = true, .head_dim = 256},
    {.type = "nemotron_h", .experts = true},
    {.type = "nemotron-nas"},
    {.type = "granitemoehybrid", .experts = true},
    {.type = "granitemoeshared", .experts = true},
    {.type = "bamba"},
    {.type = "falcon_h1"},
    {.type = "jamba", .experts = true},
    {.type = "kimi_linear", .experts = true},
    {.type = "lfm2", .tied = true},
    {.type = "lfm2_moe", .experts = true, .tied = true},
    {.type = "minimax", .experts = true},
    {.type = "minimax_text_01", .experts = true},
    {.type = "minimax_m1", .experts = true},
    {.type = "minimax_m3", .experts = true},
    {.type = "minimax_m3_vl", .experts = true},
    {.type = "step3p5", .windows = Windows::kPattern, .experts = true, .pattern = 4},
    {.type = "step3p7", .windows = Windows::kPattern, .experts = true, .pattern = 4},
    {.type = "mimo_v2_flash", .experts = true},
    {.type = "hunyuan_v1_moe", .experts = true},
    {.type = "bailing_moe_v2", .experts = true},
    {.type = "deepseek", .experts = true},
    {.type = "solar_open", .experts = true},
    {.type = "glm4v_text", .bias = true},
    {.type = "glm4v_moe_text", .experts = true},
    {.type = "qwen2_5_omni_text", .windows = Windows::kAsked, .bias = true},
    {.type = "qwen3_omni_moe_text", .windows = Windows::kAsked, .experts = true},
    {.type = "exaone"},
    {.type = "exaone_moe", .windows = Windows::kPattern, .experts = true, .pattern = 4},
    {.type = "chatglm", .bias = true},
    {.type = "baichuan"},
    {.type = "stablelm"},
    {.type = "apertus", .gated = false},
    {.type = "phi4mm", .windows = Windows::kAll},
    {.type = "starcoder2", .windows = Windows::kAll, .tied = true, .bias = true, .gated = false},
}};

std::string FamilyNames() {
  std::string names;
  for (const Family& family : kFamilies) {
    names += Format("{}{}", names.empty() ? "" : ", ", family.type);
  }
  return names;
}

std::string WithoutMarks(std::string_view name) {
  std::string plain;
  for (const char c : LowerCase(name)) {
    if (c != '_' && c != '-') plain += c;
  }
  return plain;
}

// "Qwen3MoeForCausalLM" is of qwen3_moe.
const Family* FindFamily(std::string_view type) {
  const auto at = std::find_if(kFamilies.begin(), kFamilies.end(), [type](const Family& family) {
    return WithoutMarks(family.type) == WithoutMarks(type);
  });
  return at == kFamilies.end() ? nullptr : &*at;
}

std::string FirstArchitecture(const Json& config) {
  const auto names = config.find("architectures");
  const bool named =
      names != config.end() && names->is_array() && !names->empty() && (*names)[0].is_string();
  return named ? (*names)[0].get<std::string>() : "";
}

// "Qwen3" of "Qwen3ForSequenceClassification" and "Qwen3Model"; "" of what generates.
std::string FamilyThatPools(std::string_view architecture) {
  if (architecture == "ChatGLMModel") return "";  // so its files call what generates
  for (const std::string_view ending : {"ForSequenceClassification", "ForTokenClassification",
                                        "ForRewardModel", "ForProcessRewardModel", "Model"}) {
    if (architecture.size() <= ending.size()) continue;
    const std::string_view rest = architecture.substr(0, architecture.size() - ending.size());
    if (architecture.substr(rest.size()) == ending && rest.find("LMHead") == std::string_view::npos)
      return std::string(rest);
  }
  return "";
}

// Members of a config file that mean for us what they say there, or nearly.
class ConfigReader {
 public:
  ConfigReader(const Json& file, const std::string& path) : file_(file), path_(path) {
    for (const char* wrapped : {"thinker_config", "text_config", "llm_config", "language_config"}) {
      const Json* inner = Member(*config_, wrapped);
      if (inner != nullptr && inner->is_object()) config_ = inner;
    }
  }

  Result<Json> Read() {
    FindFamily();
    if (family_ == nullptr) return Issue{path_, problem_};
    Attention();
    Widths();
    Flags();
    if (HasLayerList(family_->type)) {
      if (std::string wrong = WriteLayers(family_->type, *config_, model_); !wrong.empty()) {
        Complain(std::move(wrong));
      }
    }
    Weights();
    Vision();
    if (!problem_.empty()) return Issue{path_, problem_};
    return std::move(model_);
  }

  // Of a wrapper that of the language model in it.
  std::string PooledArchitecture() const {
    std::string name = FirstArchitecture(*config_);
    return FamilyThatPools(name).empty() ? "" : name;
  }

 private:
  static const Json* Member(const Json& of, const char* key) {
    if (!of.is_object()) return nullptr;
    const auto at = of.find(key);
    return at == of.end() || at->is_null() ? nullptr : &*at;
  }
  const Json* Find(const char* key) const { return Member(*config_, key); }
  std::string TextOf(const Json& of, const char* key) const {
    const Json* member = Member(of, key);
    return member != nullptr && member->is_string() ? member->get<std::string>() : "";
  }
  void Complain(std::string what) {
    if (problem_.empty()) problem_ = std::move(what);
  }

  // 0 when it is not there. A number that cannot be is a problem. A list, one a layer, counts as
  // its number where all are equal.
  std::int64_t Number(const char* key) {
    const Json* member = Find(key);
    if (member == nullptr) return 0;
    const bool equal = member->is_array() && !member->empty() &&
                       std::all_of(member->begin(), member->end(),
                                   [member](const Json& each) { return each == member->front(); });
    if (equal) member = &member->front();
    const double value = member->is_number() ? member->get<double>() : -1;
    if (value >= 0 && value <= 1e9 && value == std::floor(value)) {
      return static_cast<std::int64_t>(value);
    }
    Complain(
        Format("/{}: found {}, allowed a whole number from 0 to 1e9", key, ShortJson(*member)));
    return 0;
  }
  std::int64_t NumberOr(const char* key, std::int64_t otherwise) {
    const std::int64_t number = Number(key);
    return number > 0 ? number : otherwise;
  }
  // Of the first of these members that is there; none is a problem when there is no other value.
  std::int64_t Put(const char* name, std::initializer_list<const char*> keys,
                   std::int64_t otherwise = 0) {
    std::int64_t value = 0;
    for (const char* key : keys) value = value > 0 ? value : Number(key);
    if (value == 0) value = otherwise;
    if (value == 0) Complain(Format("/{}: missing, and no other member says it", *keys.begin()));
    model_[name] = value;
    return value;
  }
  bool Flag(const char* key, bool otherwise) {
    const Json* member = Find(key);
    if (member == nullptr) member = Member(file_, key);
    return member != nullptr && member->is_boolean() ? member->get<bool>() : otherwise;
  }

  void FindFamily() {
    const std::string type = TextOf(*config_, "model_type");
    const std::string architecture = Architecture();
    if (!problem_.empty()) return;
    family_ = servecast::FindFamily(type.empty() ? architecture : type);
    // A name of its own for what its architecture is.
    if (family_ == nullptr && !architecture.empty()) {
      family_ = servecast::FindFamily(architecture);
    }
    // Fields of the time before names of families.
    if (type.empty() && architecture.empty() && Find("n_embd") != nullptr) {
      family_ = servecast::FindFamily("gpt2");
    }
    if (family_ != nullptr) return;
    const std::string found = type.empty() ? architecture : type;
    Complain(found.empty()
                 ? "/model_type: missing, and no /architectures"
                 : Format("/model_type: found {}, whose layers are not modelled; allowed {}",
                          ShownText(found, 40), FamilyNames()));
  }

  // "Llama" of ["LlamaForCausalLM"]; of a wrapper only the inner one counts.
  std::string Architecture() {
    const std::string name = FirstArchitecture(*config_);
    if (name.empty()) return "";
    for (const char* ending : {"ForCausalLM", "ForConditionalGeneration", "LMHeadModel"}) {
      const std::size_t at = name.find(ending);
      if (at != std::string::npos) return name.substr(0, at);
    }
    const std::string pooled = FamilyThatPools(name);
    const bool both_ways = Flag("use_bidirectional_attention", false) || !Flag("is_causal", true) ||
                           name.find("Bidirectional") != std::string::npos;
    if (!both_ways && servecast::FindFamily(pooled) != nullptr) return pooled;
    Complain(Format("/architectures: found {}, which {}", ShownText(name, 40),
                    pooled.empty() ? "generates no text"
                                   : "pools and is none of the decoders known here; encoders, "
                                     "which read in both directions and keep no KV cache, are not "
                                     "modelled"));
    return "";
  }

  // Falcon counts them only where it says that its decoders are new.
  std::int64_t KvHeads(std::int64_t heads) {
    if (family_->multi_query && !Flag("new_decoder_architecture", false)) {
      return Flag("multi_query", true) ? 1 : heads;
    }
    return NumberOr("num_kv_heads", family_->kv_heads > 0 ? family_->kv_heads : heads);
  }

  void PutHeadDim(std::int64_t hidden, std::int64_t heads) {
    std::int64_t dim = NumberOr("head_dim", NumberOr("kv_channels", family_->head_dim));
    if (dim == 0 && heads > 0) {
      if (hidden % heads != 0) {
        Complain(Format("/head_dim: missing, and {} heads do not divide {}", heads, hidden));
      }
      dim = hidden / heads;
    }
    model_["head_dim"] = dim;
  }

  void Attention() {
    const Json* types = Find("layers_block_type");  // which may stand for their number
    Put("num_hidden_layers", {"num_hidden_layers", "n_layer", "num_layers"},
        types != nullptr && types->is_array() ? static_cast<std::int64_t>(types->size()) : 0);
    const std::int64_t hidden = Put("hidden_size", {"hidden_size", "n_embd", "n_embed"});
    const std::int64_t heads =
        Put("num_attention_heads", {"num_attention_heads", "n_head"}, family_->heads);
    Put("num_key_value_heads", {"num_key_value_heads", "multi_query_group_num"}, KvHeads(heads));
    if (Number("kv_lora_rank") > 0) {
      for (const char* key : {"kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim"})
        Put(key, {key});
      if (const std::int64_t rank = Number("q_lora_rank")) model_["q_lora_rank"] = rank;
      const bool divides = heads > 0 && hidden % heads == 0;
      model_["head_dim"] = Put("v_head_dim", {"v_head_dim"}, divides ? hidden / heads : 0);
    } else {
      PutHeadDim(hidden, heads);
    }
    SlidingLayers();
  }

  void Widths() {
    Put("vocab_size", {"vocab_size", "padded_vocab_size"}, family_->vocabulary);
    Put("max_position_embeddings",
        {"max_position_embeddings", "n_positions", "n_ctx", "model_max_length", "seq_length"},
        family_->context);
    std::int64_t experts = 0;
    for (const char* key :
         {"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"}) {
      experts = experts > 0 ? experts : Number(key);
    }
    const bool by_list = HasLayerList(family_->type);  // which says the experts
    if (by_list && !family_->experts) experts = 0;
    if (experts > 0 && !family_->experts) {
      Complain(Format("experts in a model of the family {}", family_->type));
    }
    if (!family_->gated) {
      model_["mlp_matrices"] = 2;
      const std::int64_t hidden = model_.value("hidden_size", std::int64_t{0});
      Put("intermediate_size", {"intermediate_size", "ffn_dim", "ffn_hidden_size", "n_inner"},
          4 * hidden);
      if (NumberOr("word_embed_proj_dim", hidden) != hidden) {
        Complain("/word_embed_proj_dim: found another than the hidden size, which is not modelled");
      }
    } else if (experts == 0) {
      // Of pruned models each layer says it.
      Put("intermediate_size", {"intermediate_size", "block_ff_dim", "ffn_hidden_size"},
          Find("block_configs") != nullptr ? 1 : 0);
    } else {
      Experts(experts);
    }
  }

  void Experts(std::int64_t experts) {
    model_["num_local_experts"] = experts;
    Put("num_experts_per_tok",
        {"num_experts_per_tok", "experts_per_token", "num_experts_per_token", "moe_topk", "moe_k"});
    const std::int64_t width =
        Put("intermediate_size", {"moe_intermediate_size", "intermediate_size"});
    // Llama 4 has a shared expert as wide as the others, and a width of its own for dense layers.
    const bool llama4 = family_->type == "llama4_text";
    model_["shared_expert_intermediate_size"] =
        llama4 ? width
               : NumberOr("shared_expert_intermediate_size",
                          NumberOr("shared_intermediate_size", SharedExperts() * width));
    const std::int64_t dense = DenseLayers();
    if (dense == 0) return;
    model_["num_dense_layers"] = dense;
    model_["dense_intermediate_size"] = NumberOr(
        "intermediate_size_mlp", NumberOr("dense_intermediate_size", Number("intermediate_size")));
  }

  std::int64_t SharedExperts() {
    std::int64_t shared = 0;
    for (const char* key : {"n_shared_experts", "num_shared_experts", "num_shared_expert",
                            "moe_num_shared_experts"}) {
      shared = shared > 0 ? shared : Number(key);
    }
    return shared;
  }

  bool Lists(const char* key, std::int64_t layer) {
    const Json* list = Find(key);
    return list != nullptr && list->is_array() &&
           std::find(list->begin(), list->end(), Json(layer)) != list->end();
  }

  // Experts in one layer of so many, in all but the first, or in those of a list.
  std::int64_t DenseLayers() {
    const std::int64_t layers = Number("num_hidden_layers"),
                       first =
                           std::max({Number("first_k_dense_replace"), Number("num_dense_layers"),
                                     Number("moe_layer_start_index")});
    const std::int64_t step = std::max(
        {Number("interleave_moe_layer_step"), Number("decoder_sparse_step"), std::int64_t{1}});
    const Json* by_layer = Find("moe_layer_freq");  // a number, or 0 and 1 for each layer
    const bool marked = by_layer != nullptr && by_layer->is_array();
    const std::int64_t frequency = marked ? 1 : NumberOr("moe_layer_freq", 1);
    const Json* with = Find("moe_layers");
    std::int64_t dense = 0;
    for (std::int64_t i = 0; i < std::min<std::int64_t>(layers, 1000); ++i) {
      bool expert =
          i >= first && i % frequency == 0 && (i + 1) % step == 0 && !Lists("mlp_only_layers", i);
      if (with != nullptr && with->is_array()) expert = Lists("moe_layers", i);
      const auto place = static_cast<std::size_t>(i);
      if (marked) expert = place < by_layer->size() && (*by_layer)[place] != 0;
      dense += expert ? 0 : 1;
    }
    return dense;
  }

  void SlidingLayers() {
    if (HasLayerList(family_->type)) return;
    const std::int64_t window = NumberOr("sliding_window", family_->window);
    const std::int64_t layers = Number("num_hidden_layers");
    if (const Json* types = Find("layer_types"); types != nullptr && types->is_array()) {
      for (const Json& type : *types) {
        const bool known =
            type == "sliding_attention" || type == "full_attention" || type == "chunked_attention";
        if (known) continue;
        Complain(Format("/layer_types: found {}, which is not modelled", ShortJson(type)));
        return;
      }
      if (static_cast<std::int64_t>(types->size()) < layers) {
        Complain(Format("/layer_types: found {} entries for {} layers", types->size(), layers));
      }
    }
    if (window == 0 || family_->windows == Windows::kNone) return;
    const std::int64_t sliding = SlidingOf(layers);
    if (sliding <= 0) return;
    model_["sliding_window"] = window;
    model_["num_sliding_layers"] = sliding;
  }

  std::int64_t SlidingOf(std::int64_t layers) {
    if (family_->windows == Windows::kAsked && !Flag("use_sliding_window", false)) return 0;
    if (const Json* types = Find("layer_types"); types != nullptr && types->is_array()) {
      return std::count(types->begin(), types->end(), Json("sliding_attention"));
    }
    switch (family_->windows) {
      case Windows::kNone:
        return 0;
      case Windows::kAll:
        return layers;
      case Windows::kAsked:
        return layers - NumberOr("max_window_layers", 28);
      case Windows::kAlternate:
        return (layers + 1) / 2;
      case Windows::kPattern:
        return layers - layers / NumberOr("sliding_window_pattern",
                                          NumberOr("_sliding_window_pattern", family_->pattern));
    }
    return 0;
  }

  void Flags() {
    model_["tie_word_embeddings"] = Flag("tie_word_embeddings", family_->tied);
    model_["attention_bias"] =
        Flag("attention_bias", Flag("qkv_bias", Flag("use_qkv_bias", family_->bias)));
    // Servers load 32 bits as 16 (vLLM's --dtype auto).
    const std::string type =
        TextOf(*config_, Find("torch_dtype") != nullptr ? "torch_dtype" : "dtype");
    if (type == "float16") model_["torch_dtype"] = type;
    // A file beside this one would say; of these families it asks for top-p or top-k.
    for (const std::string_view sampled : {"llama", "qwen", "gemma", "deepseek"}) {
      if (family_->type.find(sampled) == 0) model_["top_p_by_default"] = true;
    }
  }

  void Weights() {
    const Json* quantized = Member(file_, "quantization_config");
    if (quantized == nullptr) quantized = Find("quantization_config");
    if (quantized == nullptr) return;
    const std::optional<std::string> type = WeightsOfQuantization(*quantized);
    if (!type) {
      Complain("/quantization_config: " + UnknownWeights(*quantized));
    } else if (!type->empty()) {
      model_["quantization"] = *type;
      // Experts in another type than the rest, which is in blocks of 8 bits.
      const bool mixed = !TextOf(*quantized, "moe_quant_algo").empty() &&
                         Member(*quantized, "weight_block_size") != nullptr;
      if (mixed) {
        model_["quantization"] = "fp8";
        model_["expert_quantization"] = *type;
      } else if (const std::string experts = ExpertsOfQuantization(*quantized); !experts.empty()) {
        model_["expert_quantization"] = experts;
      }
    }
  }

  // The encoders of Qwen's models, whose members are read from vision_config in place of the
  // text's.
  void Vision() {
    const Json* vision = Member(file_, "vision_config");
    const std::string_view type = family_->type;
    if (vision == nullptr || !vision->is_object()) return;
    if (type == "llama4_text") {
      if (Json encoder = TiledEncoder(*vision); !encoder.empty()) model_["vision"] = encoder;
    }
    if (type.find("_vl") == std::string_view::npos) return;
    Json text = std::exchange(model_, Json::object());
    const Json* const text_config = std::exchange(config_, vision);
    const bool first = type.find("qwen2_vl") == 0;  // hidden_size is the text's there
    Put("num_hidden_layers", {"depth"});
    const std::int64_t width =
        first ? Put("hidden_size", {"embed_dim"}) : Put("hidden_size", {"hidden_size"});
    Put("num_attention_heads", {"num_heads"});
    Put("intermediate_size", {"intermediate_size"}, width * NumberOr("mlp_ratio", first ? 4 : 0));
    if (type.find("qwen2_5_vl") == 0) model_["mlp_matrices"] = 3;
    // 65,536 and 3,136 pixels, by their preprocessor_config.json.
    model_["min_image_tokens"] = type.find("qwen3") == 0 ? 64 : 4;
    Put("patch_size", {"patch_size"});
    Put("merge_size", {"spatial_merge_size"}, 2);
    const auto entries = [this](const char* key) {
      const Json* list = Find(key);
      return list != nullptr && list->is_array() ? static_cast<std::int64_t>(list->size()) : 0;
    };
    if (const std::int64_t between = entries("deepstack_visual_indexes")) {
      model_["num_mergers"] = 1 + between;
    }
    if (const std::int64_t window = Number("window_size")) {
      model_["window_size"] = window;
      model_["num_full_layers"] = entries("fullatt_block_indexes");
    }
    config_ = text_config;
    text["vision"] = std::move(model_);
    model_ = std::move(text);
  }

  const Json& file_;
  const std::string& path_;
  const Json* config_ = &file_;
  const Family* family_ = nullptr;
  Json model_ = Json::object();
  std::string problem_;
};

}  // namespace

Result<Json> ModelOfConfig(const Json& config, const std::string& file) {
  return ConfigReader(config, file).Read();
}

std::string PooledArchitecture(const Json& config) {
  return ConfigReader(config, "").PooledArchitecture();
}

Result<std::string> ModelFromConfig(std::string_view text, const std::string& file) {
  const Result<Json> json = ParseJson(text);
  if (!json.ok()) {
    const Issue& issue = json.issues()[0];
    return Issue{file, issue.path + (issue.path.empty() ? "" : ": ") + issue.message};
  }
  if (!json.value().is_object()) return Issue{file, "no JSON object"};
  Result<Json> model = ModelOfConfig(json.value(), file);
  if (!model.ok()) return Issues(model.issues());
  return CompactJson(model.value());
}

}  // namespace servecast
