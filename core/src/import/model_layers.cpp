// See model_layers.h. Members are those of transformers (models/*/configuration_*.py), or of the
// file that a repository brings with it.
#include "import/model_layers.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/text.h"
#include "io/json_document.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMostLayers = 1000;

// Members by name; what is no number counts as absent.
class Members {
 public:
  explicit Members(const Json& config) : config_(config) {}

  const Json* Find(const char* key) const {
    const auto at = config_.find(key);
    return at == config_.end() || at->is_null() ? nullptr : &*at;
  }
  std::int64_t Number(const char* key, std::int64_t otherwise = 0) const {
    const Json* member = Find(key);
    if (member == nullptr || !member->is_number()) return otherwise;
    const double value = member->get<double>();
    return value >= 0 && value <= 1e9 ? static_cast<std::int64_t>(value) : otherwise;
  }
  bool Flag(const char* key, bool otherwise = false) const {
    const Json* member = Find(key);
    return member != nullptr && member->is_boolean() ? member->get<bool>() : otherwise;
  }
  std::string Text(const char* key) const {
    const Json* member = Find(key);
    return member != nullptr && member->is_string() ? member->get<std::string>() : "";
  }
  // The member of a list at a place; null where there is none.
  Json Listed(const char* key, std::int64_t at) const {
    const Json* list = Find(key);
    const auto place = static_cast<std::size_t>(at);
    return list != nullptr && list->is_array() && place < list->size() ? (*list)[place] : Json();
  }
  bool Holds(const char* key, std::int64_t number) const {
    const Json* list = Find(key);
    return list != nullptr && list->is_array() &&
           std::find(list->begin(), list->end(), Json(number)) != list->end();
  }
  // What is wrong with a list of one entry a layer that is there; "": nothing.
  std::string Short(const char* key, std::int64_t layers) const {
    const Json* list = Find(key);
    const bool is_list = list != nullptr && list->is_array();
    if (!is_list || static_cast<std::int64_t>(list->size()) >= layers) return "";
    return Format("/{}: found {} entries for {} layers", key, list->size(), layers);
  }
  std::int64_t Layers() const { return std::min(Number("num_hidden_layers"), kMostLayers); }

 private:
  const Json& config_;
};

// Runs of equal layers; of these the shortest period that gives all of them.
Json Compact(const std::vector<Json>& layers) {
  std::size_t period = 1;
  const auto repeats = [&] {
    for (std::size_t i = period; i < layers.size(); ++i) {
      if (layers[i] != layers[i - period]) return false;
    }
    return true;
  };
  while (period < layers.size() && !repeats()) ++period;
  Json runs = Json::array();
  Json last;
  for (std::size_t i = 0; i < std::min(period, layers.size()); ++i) {
    if (!runs.empty() && layers[i] == last) {
      runs.back()["count"] = runs.back().value("count", 1) + 1;
    } else {
      runs.push_back(layers[i]);
      last = layers[i];
    }
  }
  return runs;
}

// Qwen3-Next, Qwen3.5, Qwen3.6: a gated delta net but for each fourth layer.
std::string GatedDelta(const Members& m, Json& model) {
  const Json full = {{"kind", "full"}, {"gated", m.Flag("attn_output_gate", true)}};
  Json linear = {{"kind", "gated_delta"},
                 {"state_heads", m.Number("linear_num_value_heads")},
                 {"state_key_heads", m.Number("linear_num_key_heads")},
                 {"state_key_dim", m.Number("linear_key_head_dim")},
                 {"state_value_dim", m.Number("linear_value_head_dim")},
                 {"conv_kernel", m.Number("linear_conv_kernel_dim", 4)}};
  if (m.Text("mamba_ssm_dtype") == "float32") linear["float32_state"] = true;
  const std::int64_t interval = std::max<std::int64_t>(1, m.Number("full_attention_interval", 4));
  std::vector<Json> layers;
  for (std::int64_t i = 0; i < m.Layers(); ++i) {
    const Json type = m.Listed("layer_types", i);
    const bool is_full = type.is_null() ? (i + 1) % interval == 0 : type == "full_attention";
    layers.push_back(is_full ? full : linear);
  }
  model["layers"] = Compact(layers);
  return "";
}

// DeepSeek-V3.2, GLM-5: latent attention to what an indexer chooses.
std::string SparseLatent(const Members& m, Json& model) {
  model["layers"] = Json::array({{{"kind", "sparse_latent"},
                                  {"index_n_heads", m.Number("index_n_heads")},
                                  {"index_head_dim", m.Number("index_head_dim")},
                                  {"index_topk", m.Number("index_topk")}}});
  return "";
}

// DeepSeek-V4: compressed caches; of its experts the type is said apart.
std::string Compressed(const Members& m, Json& model) {
  const Json* ratios = m.Find("compress_ratios");
  if (ratios == nullptr || !ratios->is_array() ||
      static_cast<std::int64_t>(ratios->size()) < m.Layers()) {
    return "/compress_ratios: missing, or shorter than the layers";
  }
  std::vector<Json> layers;
  for (std::int64_t i = 0; i < m.Layers(); ++i) {
    const Json& ratio = (*ratios)[static_cast<std::size_t>(i)];
    Json layer = {{"kind", "compressed"}, {"window", m.Number("sliding_window", 128)}};
    if (ratio.is_number() && ratio.get<double>() > 0) layer["compress_ratio"] = ratio;
    if (ratio == 4) {
      layer["index_n_heads"] = m.Number("index_n_heads");
      layer["index_head_dim"] = m.Number("index_head_dim");
      layer["index_topk"] = m.Number("index_topk");
    }
    layers.push_back(layer);
  }
  model["layers"] = Compact(layers);
  model["q_lora_rank"] = m.Number("q_lora_rank");
  if (m.Text("expert_dtype") == "fp4" && !model.contains("expert_quantization")) {
    model["expert_quantization"] = "mxfp4";
  }
  return "";
}

// Gemma 4: windows and, with heads of another width, full layers whose values are their keys.
std::string Gemma4(const Members& m, Json& model) {
  if (m.Number("hidden_size_per_layer_input") > 0) {
    return "/hidden_size_per_layer_input: found one, and embeddings by layer are not modelled";
  }
  const std::int64_t shared = m.Number("num_kv_shared_layers");
  std::vector<Json> layers;
  for (std::int64_t i = 0; i < m.Layers(); ++i) {
    const Json type = m.Listed("layer_types", i);
    const bool full = type.is_null() ? (i + 1) % 6 == 0 : type == "full_attention";
    Json layer = {{"kind", full ? "full" : "sliding"}};
    if (full) {
      if (const std::int64_t dim = m.Number("global_head_dim")) layer["head_dim"] = dim;
      if (const std::int64_t kv = m.Number("num_global_key_value_heads")) {
        layer["num_key_value_heads"] = kv;
      }
      if (m.Flag("attention_k_eq_v")) layer["k_eq_v"] = true;
    } else {
      layer["window"] = m.Number("sliding_window");
    }
    if (i >= m.Layers() - shared) layer["shares_kv"] = true;
    layers.push_back(layer);
  }
  model["layers"] = Compact(layers);
  if (m.Flag("enable_moe_block")) {  // beside an MLP that every token goes through
    model["num_local_experts"] = m.Number("num_experts");
    model["num_experts_per_tok"] = m.Number("top_k_experts");
    model["shared_expert_intermediate_size"] = m.Number("intermediate_size");
    model["intermediate_size"] = m.Number("moe_intermediate_size");
  }
  return "";
}

// Nemotron-H and Nemotron 3: each layer is Mamba 2, attention, an MLP or experts.
std::string NemotronH(const Members& m, Json& model) {
  std::string pattern = m.Text("hybrid_override_pattern");
  const Json* types = m.Find("layers_block_type");  // the same as a list of words
  if (pattern.empty() && types != nullptr && types->is_array()) {
    for (const Json& type : *types) {
      pattern += type == "mamba" ? 'M' : type == "attention" ? '*' : type == "moe" ? 'E' : '-';
    }
  }
  if (pattern.empty()) return "/hybrid_override_pattern: missing";
  const std::int64_t said = model["num_hidden_layers"].get<std::int64_t>();
  if (static_cast<std::int64_t>(pattern.size()) != said) {
    return Format("/hybrid_override_pattern: found {} letters for {} layers", pattern.size(), said);
  }
  Json mamba = {{"kind", "mamba2"},
                {"mlp", "none"},
                {"state_heads", m.Number("mamba_num_heads")},
                {"state_value_dim", m.Number("mamba_head_dim")},
                {"state_size", m.Number("ssm_state_size")},
                {"state_groups", m.Number("n_groups")},
                {"conv_kernel", m.Number("conv_kernel", 4)},
                {"state_chunk", m.Number("chunk_size", 128)}};
  if (m.Text("mamba_ssm_cache_dtype") == "float32") mamba["float32_state"] = true;
  std::vector<Json> layers;
  for (const char letter : pattern) {
    if (letter == 'M') {
      layers.push_back(mamba);
    } else if (letter == '*') {
      layers.push_back({{"kind", "full"}, {"mlp", "none"}});
    } else if (letter == 'E' || letter == '-') {
      layers.push_back({{"kind", "none"}, {"mlp", letter == 'E' ? "experts" : "dense"}});
    } else {
      return Format("/hybrid_override_pattern: found {}, allowed M, *, E and -",
                    std::string(1, letter));
    }
  }
  model["layers"] = Compact(layers);
  model["mlp_matrices"] = 2;  // squared ReLU, no gate
  if (m.Number("n_routed_experts") == 0) return "";
  model["num_local_experts"] = m.Number("n_routed_experts");
  model["num_experts_per_tok"] = m.Number("num_experts_per_tok");
  if (const std::int64_t dense = m.Number("intermediate_size")) {
    model["dense_intermediate_size"] = dense;
  }
  model["intermediate_size"] = m.Number("moe_intermediate_size");
  model["shared_expert_intermediate_size"] =
      m.Number("moe_shared_expert_intermediate_size",
               m.Number("n_shared_experts") * m.Number("moe_intermediate_size"));
  if (const std::int64_t latent = m.Number("moe_latent_size")) {
    model["expert_hidden_size"] = latent;
  }
  return "";
}

// Models that a search has pruned (Puzzle; DeciLM): each layer says what is left of it.
std::string Pruned(const Members& m, Json& model) {
  const Json* blocks = m.Find("block_configs");
  if (blocks == nullptr || !blocks->is_array() ||
      static_cast<std::int64_t>(blocks->size()) != m.Layers()) {
    return "/block_configs: missing, or not one a layer";
  }
  const std::int64_t hidden = m.Number("hidden_size"), heads = m.Number("num_attention_heads");
  std::vector<Json> layers;
  std::int64_t widest = 0, most_heads = 1;
  for (const Json& block : *blocks) {
    if (!block.is_object()) return "/block_configs: found what is no object";
    const Json none = Json::object();
    const Json& attention = block.contains("attention") ? block["attention"] : none;
    const Json& ffn = block.contains("ffn") ? block["ffn"] : none;
    const Members a(attention.is_object() ? attention : none), f(ffn.is_object() ? ffn : none);
    if (a.Flag("replace_with_linear") || f.Flag("replace_with_linear")) {
      return "/block_configs: found a layer replaced by one matrix, which is not modelled";
    }
    Json layer = {{"kind", a.Flag("no_op") ? "none" : "full"}};
    if (const std::int64_t group = a.Number("n_heads_in_group"); group > 0 && !a.Flag("no_op")) {
      layer["num_key_value_heads"] = heads / group;
      most_heads = std::max(most_heads, heads / group);
    }
    if (f.Flag("no_op")) {
      layer["mlp"] = "none";
    } else if (const Json* factor = f.Find("ffn_mult"); factor != nullptr && factor->is_number()) {
      // Two thirds of so many hidden sizes, up to a multiple of 256 (modeling_decilm.py).
      const auto width =
          static_cast<std::int64_t>(2 * factor->get<double>() * static_cast<double>(hidden) / 3);
      const std::int64_t rounded = width % 256 == 0 ? width : width + 256 - width % 256;
      layer["intermediate_size"] = rounded;
      widest = std::max(widest, rounded);
    } else if (const std::int64_t width = f.Number("intermediate_size")) {
      layer["intermediate_size"] = width;
      widest = std::max(widest, width);
    }
    layers.push_back(layer);
  }
  model["layers"] = Compact(layers);
  model["num_key_value_heads"] = most_heads;
  if (widest > 0) model["intermediate_size"] = widest;
  return "";
}

// State spaces of Mamba 2, by the names that a family has for their sizes; a head's width of "auto"
// is what the inner width leaves to each head.
Json Mamba2(const Members& m, const char* inner) {
  const std::int64_t heads = std::max<std::int64_t>(1, m.Number("mamba_n_heads"));
  const std::int64_t width = m.Number(inner, m.Number("mamba_expand", 2) * m.Number("hidden_size"));
  Json layer = {{"kind", "mamba2"},
                {"state_heads", heads},
                {"state_value_dim", m.Number("mamba_d_head", width / heads)},
                {"state_size", m.Number("mamba_d_state", 256)},
                {"state_groups", m.Number("mamba_n_groups", 1)},
                {"conv_kernel", m.Number("mamba_d_conv", 4)},
                {"state_chunk", m.Number("mamba_chunk_size", 256)}};
  if (m.Text("mamba_ssm_cache_dtype") == "float32") layer["float32_state"] = true;
  return layer;
}

// Granite 4 (modeling_granitemoehybrid.py): Mamba 2 or attention by a list; a shared MLP in every
// layer, beside experts where it has them.
std::string GraniteHybrid(const Members& m, Json& model) {
  const Json mamba = Mamba2(m, "");
  std::vector<Json> layers;
  for (std::int64_t i = 0; i < m.Layers(); ++i) {
    layers.push_back(m.Listed("layer_types", i) == "mamba" ? mamba : Json{{"kind", "full"}});
  }
  model["layers"] = Compact(layers);
  const std::int64_t shared = m.Number("shared_intermediate_size");
  const bool experts = model.contains("num_local_experts");
  if (shared > 0) model[experts ? "shared_expert_intermediate_size" : "intermediate_size"] = shared;
  return "";
}

// Bamba (modeling_bamba.py): attention in the layers of a list.
std::string Bamba(const Members& m, Json& model) {
  const Json mamba = Mamba2(m, "");
  std::vector<Json> layers;
  for (std::int64_t i = 0; i < m.Layers(); ++i) {
    layers.push_back(m.Holds("attn_layer_indices", i) ? Json{{"kind", "full"}} : mamba);
  }
  model["layers"] = Compact(layers);
  return "";
}

// Falcon-H1 (modeling_falcon_h1.py): attention and Mamba 2 side by side before each MLP. Two layers
// of ours, of which one only mixes tokens: vLLM plans their caches so, too.
std::string FalconH1(const Members& m, Json& model) {
  model["layers"] = Json::array({{{"kind", "full"}, {"mlp", "none"}}, Mamba2(m, "mamba_d_ssm")});
  model["num_hidden_layers"] = 2 * m.Layers();
  return "";
}

// Jamba (modeling_jamba.py): Mamba but for one layer of a period, experts in each second.
std::string Jamba(const Members& m, Json& model) {
  const Json mamba = {{"kind", "mamba1"},
                      {"inner_size", m.Number("mamba_expand", 2) * m.Number("hidden_size")},
                      {"state_size", m.Number("mamba_d_state", 16)},
                      {"conv_kernel", m.Number("mamba_d_conv", 4)}};
  const bool experts = m.Number("num_experts") > 1;
  const auto at = [&m](std::int64_t i, const char* period, const char* offset, std::int64_t of,
                       std::int64_t from) {
    return i % std::max<std::int64_t>(1, m.Number(period, of)) == m.Number(offset, from);
  };
  std::vector<Json> layers;
  for (std::int64_t i = 0; i < m.Layers(); ++i) {
    Json layer =
        at(i, "attn_layer_period", "attn_layer_offset", 8, 4) ? Json{{"kind", "full"}} : mamba;
    if (experts) {
      layer["mlp"] =
          at(i, "expert_layer_period", "expert_layer_offset", 2, 1) ? "experts" : "dense";
    }
    layers.push_back(layer);
  }
  model["layers"] = Compact(layers);
  if (experts) model["dense_intermediate_size"] = m.Number("intermediate_size");
  return "";
}

// Kimi Linear (its modeling_kimi.py): delta attention but for listed layers, which count from one.
std::string KimiLinear(const Members& m, Json& model) {
  const Json* of = m.Find("linear_attn_config");
  if (of == nullptr || !of->is_object()) return "/linear_attn_config: missing";
  const Members a(*of);
  const Json delta = {{"kind", "kimi_delta"},
                      {"state_heads", a.Number("num_heads")},
                      {"state_key_dim", a.Number("head_dim")},
                      {"conv_kernel", a.Number("short_conv_kernel_size", 4)}};
  std::vector<Json> layers;
  for (std::int64_t i = 1; i <= m.Layers(); ++i) {
    const bool linear = a.Holds("kda_layers", i);
    if (!linear && !a.Holds("full_attn_layers", i)) {
      return Format("/linear_attn_config: layer {} is in neither list", i);
    }
    layers.push_back(linear ? delta : Json{{"kind", "latent"}});
  }
  model["layers"] = Compact(layers);
  if (const std::int64_t latent = m.Number("routed_expert_hidden_size")) {
    model["expert_hidden_size"] = latent;
  }
  return "";
}

// LFM2 (modeling_lfm2.py, modeling_lfm2_moe.py): short convolutions but for some layers.
std::string ShortConvolutions(const Members& m, Json& model) {
  const Json conv = {{"kind", "short_conv"},
                     {"inner_size", m.Number("conv_dim", m.Number("hidden_size"))},
                     {"conv_kernel", m.Number("conv_L_cache", 3)}};
  std::vector<Json> layers;
  for (std::int64_t i = 0; i < m.Layers(); ++i) {
    const bool full = m.Find("layer_types") != nullptr
                          ? m.Listed("layer_types", i) == "full_attention"
                          : m.Holds("full_attn_idxs", i);
    layers.push_back(full ? Json{{"kind", "full"}} : conv);
  }
  model["layers"] = Compact(layers);
  if (m.Flag("block_auto_adjust_ff_dim", !model.contains("num_local_experts"))) {
    const Json* by = m.Find("block_ffn_dim_multiplier");
    const double factor = by != nullptr && by->is_number() ? by->get<double>() : 1;
    const std::int64_t width = m.Number("block_ff_dim", m.Number("intermediate_size"));
    const auto part = static_cast<std::int64_t>(factor * static_cast<double>(2 * width / 3));
    const std::int64_t unit = std::max<std::int64_t>(1, m.Number("block_multiple_of", 256));
    model["intermediate_size"] = (part + unit - 1) / unit * unit;
  }
  return "";
}

// MiniMax-Text-01 and M1 (modeling_minimax.py): linear attention but for the layers of a list.
std::string Lightning(const Members& m, Json& model) {
  const Json linear = {{"kind", "linear"},
                       {"state_heads", m.Number("num_attention_heads")},
                       {"state_key_dim", model["head_dim"]}};
  std::vector<Json> layers;
  for (std::int64_t i = 0; i < m.Layers(); ++i) {
    const bool full = m.Find("layer_types") != nullptr
                          ? m.Listed("layer_types", i) == "full_attention"
                          : m.Listed("attn_type_list", i) == 1;
    layers.push_back(full ? Json{{"kind", "full"}} : linear);
  }
  model["layers"] = Compact(layers);
  return "";
}

// MiMo-V2-Flash (its modeling_mimo_v2_flash.py): windows with KV heads of their own in the layers
// marked 1.
std::string MimoV2(const Members& m, Json& model) {
  const auto sized = [&m](Json layer, const char* kv, const char* key, const char* value) {
    if (const std::int64_t heads = m.Number(kv)) layer["num_key_value_heads"] = heads;
    if (const std::int64_t dim = m.Number(key)) layer["head_dim"] = dim;
    if (const std::int64_t dim = m.Number(value)) layer["v_head_dim"] = dim;
    return layer;
  };
  const Json full = sized({{"kind", "full"}}, "num_key_value_heads", "head_dim", "v_head_dim");
  const std::int64_t window = m.Number("sliding_window", m.Number("sliding_window_size"));
  const Json sliding = sized({{"kind", "sliding"}, {"window", window}}, "swa_num_key_value_heads",
                             "swa_head_dim", "swa_v_head_dim");
  if (m.Find("hybrid_layer_pattern") == nullptr) return "/hybrid_layer_pattern: missing";
  std::vector<Json> layers;
  for (std::int64_t i = 0; i < m.Layers(); ++i) {
    Json layer = m.Listed("hybrid_layer_pattern", i) == 1 ? sliding : full;
    layer["mlp"] = m.Listed("moe_layer_freq", i) == 0 ? "dense" : "experts";
    layers.push_back(layer);
  }
  model["layers"] = Compact(layers);
  model["dense_intermediate_size"] = m.Number("intermediate_size");
  return "";
}

// MiniMax-M3 (its config.json, sparse_attention_config): layers marked 1 see the best blocks only.
std::string SparseBlocks(const Members& m, Json& model) {
  const Json* of = m.Find("sparse_attention_config");
  if (of == nullptr || !of->is_object()) return "/sparse_attention_config: missing";
  const Members a(*of);
  if (a.Find("sparse_attention_freq") == nullptr) {
    return "/sparse_attention_config/sparse_attention_freq: missing";
  }
  if (std::string wrong = a.Short("sparse_attention_freq", m.Layers()); !wrong.empty()) {
    return "/sparse_attention_config" + wrong;
  }
  const Json sparse = {
      {"kind", "sparse"},
      {"index_n_heads", a.Number("sparse_num_index_heads")},
      {"index_head_dim", a.Number("sparse_index_dim")},
      {"index_topk", a.Number("sparse_topk_blocks") * a.Number("sparse_block_size")}};
  std::vector<Json> layers;
  for (std::int64_t i = 0; i < m.Layers(); ++i) {
    layers.push_back(a.Listed("sparse_attention_freq", i) == 1 ? sparse : Json{{"kind", "full"}});
  }
  model["layers"] = Compact(layers);
  return "";
}

struct Reader {
  std::string_view type;
  std::string (*write)(const Members& members, Json& model);
};
constexpr std::array kReaders = {
    Reader{"qwen3_next", GatedDelta},
    Reader{"qwen3_5_text", GatedDelta},
    Reader{"qwen3_5_moe_text", GatedDelta},
    Reader{"deepseek_v32", SparseLatent},
    Reader{"glm_moe_dsa", SparseLatent},
    Reader{"deepseek_v4", Compressed},
    Reader{"gemma4_text", Gemma4},
    Reader{"nemotron_h", NemotronH},
    Reader{"nemotron-nas", Pruned},
    Reader{"granitemoehybrid", GraniteHybrid},
    Reader{"bamba", Bamba},
    Reader{"falcon_h1", FalconH1},
    Reader{"jamba", Jamba},
    Reader{"kimi_linear", KimiLinear},
    Reader{"lfm2", ShortConvolutions},
    Reader{"lfm2_moe", ShortConvolutions},
    Reader{"minimax", Lightning},
    Reader{"minimax_text_01", Lightning},
    Reader{"minimax_m3", SparseBlocks},
    Reader{"minimax_m3_vl", SparseBlocks},
    Reader{"minimax_m1", Lightning},
    Reader{"mimo_v2_flash", MimoV2},
};

const Reader* Find(std::string_view type) {
  const auto at = std::find_if(kReaders.begin(), kReaders.end(),
                               [type](const Reader& reader) { return reader.type == type; });
  return at == kReaders.end() ? nullptr : &*at;
}

}  // namespace

bool HasLayerList(std::string_view type) { return Find(type) != nullptr; }

std::string WriteLayers(std::string_view type, const Json& config, Json& model) {
  const Members members(config);
  for (const char* key :
       {"layer_types", "attn_type_list", "hybrid_layer_pattern", "moe_layer_freq"}) {
    if (std::string wrong = members.Short(key, members.Layers()); !wrong.empty()) return wrong;
  }
  return Find(type)->write(members, model);
}

}  // namespace servecast
