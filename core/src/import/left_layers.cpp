// See left_layers.h.
#include "import/left_layers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/printable.h"
#include "base/text.h"

namespace servecast {
namespace {

using LeftJson = nlohmann::json;

double FigureOf(const LeftJson& model, const char* key, double otherwise = 0) {
  const auto at = model.find(key);
  return at != model.end() && at->is_number() ? at->get<double>() : otherwise;
}

bool Names(const std::string& name, std::string_view part) {
  return name.find(part) != std::string::npos;
}

// Parameters of one layer's attention by its matrices.
std::map<std::string, double> AttentionOf(const LeftJson& model) {
  const double hidden = FigureOf(model, "hidden_size"),
               heads = FigureOf(model, "num_attention_heads"),
               kv = FigureOf(model, "num_key_value_heads", heads),
               dim = FigureOf(model, "head_dim", heads > 0 ? hidden / heads : 0),
               rank = FigureOf(model, "kv_lora_rank");
  if (rank == 0) {
    return {{"q_proj", hidden * heads * dim},
            {"k_proj", hidden * kv * dim},
            {"v_proj", hidden * kv * dim},
            {"o_proj", hidden * heads * dim}};
  }
  const double nope = FigureOf(model, "qk_nope_head_dim"),
               rope = FigureOf(model, "qk_rope_head_dim"), q = FigureOf(model, "q_lora_rank"),
               value = FigureOf(model, "v_head_dim", dim);
  return {{"q_a_proj", hidden * q},
          {"q_b_proj", (q > 0 ? q : hidden) * heads * (nope + rope)},
          {"kv_a_proj", hidden * (rank + rope)},
          {"kv_b_proj", rank * heads * (nope + value)},
          {"o_proj", heads * value * hidden}};
}

// The parts of a model that names can be of, and how many of its layers have each in 16 bits.
class Parts {
 public:
  explicit Parts(const LeftJson& model)
      : layers_(FigureOf(model, "num_hidden_layers")), attention_(AttentionOf(model)) {}

  void Add(const std::string& name) {
    if (Names(name, "indexer") || Names(name, "conv1d")) return;
    const bool attention = Names(name, "attn") || Names(name, "mixer");
    const bool shared = Names(name, "shared_expert"), mlp = Names(name, "mlp");
    if (!attention && !shared && !mlp && Names(name, "layers.")) return Cover("layer", name);
    if (shared) return Cover("shared", name);
    if (mlp && !attention) return Cover("dense", name);
    if (!attention) return;
    for (const auto& [matrix, size] : attention_) {
      if (Names(name, "_proj") && !Names(name, matrix)) continue;
      Cover(matrix, name);
    }
  }

  // Of these parts, the share of layers that have it in 16 bits.
  double Share(const std::string& part) const {
    const auto of = covered_.find(part), whole = covered_.find("layer");
    std::set<long> layers;
    for (const auto found : {of, whole}) {
      if (found == covered_.end()) continue;
      if (found->second.count(-1) > 0) return 1;
      layers.insert(found->second.begin(), found->second.end());
    }
    return layers_ > 0 ? std::min(1.0, static_cast<double>(layers.size()) / layers_) : 0;
  }

  // Layers whose MLP is there beside experts: the first of them.
  double ShareOfDense(double dense) const {
    if (Share("dense") == 1) return 1;
    return dense > 0 ? std::min(1.0, Share("dense") * layers_ / dense) : 0;
  }

  double Attention(bool left) const {
    double sum = 0;
    for (const auto& [matrix, size] : attention_) {
      sum += size * layers_ * (left ? Share(matrix) : 1);
    }
    return sum;
  }

 private:
  // -1: every layer, by a pattern without a number.
  void Cover(const std::string& part, const std::string& name) {
    const std::size_t at = name.find("layers.");
    long layer = -1;
    if (at != std::string::npos && at + 7 < name.size() && IsDigit(name[at + 7])) {
      const std::string digits =
          name.substr(at + 7, name.find_first_not_of("0123456789", at + 7) - at - 7);
      layer = static_cast<long>(ParseCount(digits).value_or(0));
      if (static_cast<double>(layer) >= layers_) return;  // of a drafter behind the model
    }
    covered_[part].insert(layer);
  }

  double layers_;
  std::map<std::string, double> attention_;
  std::map<std::string, std::set<long>> covered_;
};

// As QuantizedBytes of cost/model_bytes.cpp.
double BytesOf(const std::string& type, double group, bool zero_points) {
  if (type == "fp8" || type == "int8") return 1;
  if (type == "mxfp4_all") return 0.53125;
  if (type == "nvfp4") return 0.5625;
  const double bytes = type == "int8_w8a16" ? 1 : 0.5;
  if (group == 0) group = type == "int4" ? 128 : type == "nf4" ? 32 : 0;
  return group > 0 ? bytes + (2 + (zero_points ? bytes : 0)) / group : bytes;
}

// Writes what scales and zero points take beside weights of `type`; returns bytes of a weight.
double SettleScales(const ScaleGroups& scales, const std::string& type, const LeftJson& model,
                    LeftJson& members) {
  if (type != "int4" && type != "int8_w8a16" && type != "nf4") return BytesOf(type, 0, false);
  const double group = scales.group >= 0 ? scales.group : FigureOf(model, "hidden_size");
  const double usual = type == "int4" ? 128 : type == "nf4" ? 32 : 0;
  if (group > 0 && group != usual) {
    members["quantization_group_size"] = static_cast<std::int64_t>(std::clamp(group, 1.0, 1e7));
  }
  const bool zero_points = scales.zero_points && type != "nf4";
  if (zero_points) members["quantization_zero_points"] = true;
  return BytesOf(type, group, zero_points);
}

}  // namespace

std::string SettleLeftLayers(const LeftLayers& left, const LeftJson& model, LeftJson& members) {
  const auto text = [&](const char* key) {
    const LeftJson& of = members.contains(key) ? members : model;
    return of.contains(key) && of[key].is_string() ? of[key].get<std::string>() : "none";
  };
  const std::string type = text("quantization");
  // MXFP4 is of experts alone, and experts with a type of their own leave the rest to its.
  if (type == "none" || type == "mxfp4" || text("expert_quantization") != "none") return "";
  Parts parts(model);
  for (const std::string& name : left.names) parts.Add(name);
  const double hidden = FigureOf(model, "hidden_size"),
               layers = FigureOf(model, "num_hidden_layers"),
               matrices = FigureOf(model, "mlp_matrices", 3),
               count = FigureOf(model, "num_local_experts"),
               width = FigureOf(model, "intermediate_size"),
               dense = count > 0 ? FigureOf(model, "num_dense_layers") : layers;
  const double shared =
      matrices * hidden * FigureOf(model, "shared_expert_intermediate_size") * (layers - dense);
  const double mlp =
      matrices * hidden * dense * (count > 0 ? FigureOf(model, "dense_intermediate_size") : width);
  const double experts = matrices * hidden * width * count * (layers - dense);
  // Of a Gemma the MLP beside its experts is called "mlp".
  const double share =
      parts.Share("shared") > 0 || dense > 0 ? parts.Share("shared") : parts.Share("dense");
  const double rest = parts.Attention(false) + shared + mlp;
  const double plain = parts.Attention(true) +
                       shared * std::min(1.0, share * layers / std::max(layers - dense, 1.0)) +
                       mlp * parts.ShareOfDense(dense);
  const double bytes = SettleScales(left.scales, type, model, members);
  const double all = experts * bytes + (rest - plain) * bytes + plain * 2 +
                     2 * FigureOf(model, "vocab_size") * hidden * 2;
  const bool apart = count > 0 && plain > rest - plain;
  if (apart) {
    members["quantization"] = type == "mxfp4_all" ? "mxfp4" : "none";
    if (type != "mxfp4_all") members["expert_quantization"] = type;
  }
  const double error = apart ? (rest - plain) * (2 - bytes) : plain * (bytes - 2);
  const double percent = all > 0 ? 100 * error / all : 0;
  if (std::fabs(percent) <= 0.5) return "";
  return Format(
      "{}: {} of its layers stay in 16 bits; the weights are planned {} % {} than they are",
      left.from, left.names.size(), ShortNumber(std::fabs(percent)),
      percent > 0 ? "larger" : "smaller");
}

}  // namespace servecast
