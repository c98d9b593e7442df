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
  const Json* types = m.Find("layer_types");
  const std::int64_t interval = std::max<std::int64_t>(1, m.Number("full_attention_interval", 4));
  std::vector<Json> layers;
  for (std::int64_t i = 0; i < m.Layers(); ++i) {
    const auto place = static_cast<std::size_t>(i);
    const bool listed = types != nullptr && types->is_array() && place < types->size();
    const bool is_full = listed ? (*types)[place] == "full_attention" : (i + 1) % interval == 0;
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
  const Json* types = m.Find("layer_types");
  const std::int64_t shared = m.Number("num_kv_shared_layers");
  std::vector<Json> layers;
  for (std::int64_t i = 0; i < m.Layers(); ++i) {
    const auto place = static_cast<std::size_t>(i);
    const bool listed = types != nullptr && types->is_array() && place < types->size();
    const bool full = listed ? (*types)[place] == "full_attention" : (i + 1) % 6 == 0;
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
  if (static_cast<std::int64_t>(pattern.size()) != m.Layers()) {
    return Format("/hybrid_override_pattern: found {} letters for {} layers", pattern.size(),
                  m.Layers());
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

struct Reader {
  std::string_view type;
  std::string (*write)(const Members& members, Json& model);
};
constexpr std::array kReaders = {
    Reader{"qwen3_next", GatedDelta},       Reader{"qwen3_5_text", GatedDelta},
    Reader{"qwen3_5_moe_text", GatedDelta}, Reader{"deepseek_v32", SparseLatent},
    Reader{"glm_moe_dsa", SparseLatent},    Reader{"deepseek_v4", Compressed},
    Reader{"gemma4_text", Gemma4},          Reader{"nemotron_h", NemotronH},
    Reader{"nemotron-nas", Pruned},
};

const Reader* Find(std::string_view type) {
  const auto at = std::find_if(kReaders.begin(), kReaders.end(),
                               [type](const Reader& reader) { return reader.type == type; });
  return at == kReaders.end() ? nullptr : &*at;
}

}  // namespace

bool HasLayerList(std::string_view type) { return Find(type) != nullptr; }

std::string WriteLayers(std::string_view type, const Json& config, Json& model) {
  return Find(type)->write(Members(config), model);
}

}  // namespace servecast
