// See checkpoint_weights.h.
#include "import/checkpoint_weights.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/text.h"
#include "import/draft.h"
#include "import/json_members.h"
#include "import/names.h"

namespace servecast {
namespace {

using WeightsJson = nlohmann::json;
using Type = std::optional<std::string>;

double WrittenNumber(const WeightsJson& of, const char* key) {
  return NumberIn(TextIn(of, key)).value_or(0);
}

// The types where each layer has its own. Of experts, and of what else there is; of a dense model
// the MLPs', which are most. nullopt: more than one of a kind, or one that is not modelled.
struct MixedTypes {
  std::string experts, rest;  // "": none of them
};
std::optional<MixedTypes> MixedWeights(const WeightsJson& quantized) {
  const WeightsJson* layers = ObjectIn(quantized, "quantized_layers");
  if (layers == nullptr) return std::nullopt;
  std::string experts, mlp, others;
  bool several = false;
  for (const auto& [name, layer] : layers->items()) {
    const auto is = [&n = name](const char* part) { return n.find(part) != std::string::npos; };
    if (is("lm_head")) continue;
    const std::string algorithm = TextIn(layer, "quant_algo");
    const char* type = algorithm.find("NVFP4") != std::string::npos ? "nvfp4"
                       : algorithm.find("FP8") != std::string::npos ? "fp8"
                                                                    : nullptr;
    if (type == nullptr) return std::nullopt;
    const bool routed = is("experts") && !is("shared_expert");
    const bool of_mlp = is(".mlp") || is(".ffn") || is("shared_expert");
    std::string& of = routed ? experts : of_mlp ? mlp : others;
    several = several || (&of != &others && !of.empty() && of != type);
    of = type;
  }
  if (several || (experts.empty() && mlp.empty())) return std::nullopt;
  return MixedTypes{experts, mlp.empty() ? others : mlp};
}

// Of GPTQ and AWQ, whose activations keep 16 bits.
Type OfBits(double bits) {
  if (bits == 4) return "int4";
  return bits == 8 ? Type("int8_w8a16") : std::nullopt;
}

// GPTQModel's patterns of layers: "-:" leaves them out, others say what is different in them.
bool HasOtherBits(const WeightsJson& quantized) {
  const WeightsJson* dynamic = ObjectIn(quantized, "dynamic");
  if (dynamic == nullptr) return false;
  const std::string bits = TextIn(quantized, "bits");
  return std::any_of(dynamic->begin(), dynamic->end(), [&bits](const WeightsJson& each) {
    const std::string own = each.is_object() ? TextIn(each, "bits") : "";
    return !own.empty() && own != bits;
  });
}

// compressed-tensors: what each group of layers has; nullopt for several types.
Type OfGroups(const WeightsJson& quantized) {
  for (const auto& [format, type] : {std::pair("nvfp4", "nvfp4"), {"mxfp4", "mxfp4_all"}}) {
    if (TextIn(quantized, "format").find(format) == 0) return type;
  }
  // Half of the weights, and which: 24-bitmask.
  const WeightsJson* sparse = ObjectIn(quantized, "sparsity_config");
  if (sparse != nullptr && TextIn(*sparse, "format").find("sparse") == 0) return std::nullopt;
  const WeightsJson* groups = ObjectIn(quantized, "config_groups");
  if (groups == nullptr) return std::nullopt;
  Type found;
  for (const WeightsJson& group : *groups) {
    const WeightsJson* weights = ObjectIn(group, "weights");
    if (weights == nullptr) return std::nullopt;
    const double bits = WrittenNumber(*weights, "num_bits");
    const WeightsJson* rows = ObjectIn(group, "input_activations");
    const bool rounded = rows != nullptr && WrittenNumber(*rows, "num_bits") == 8;
    Type type = OfBits(bits);
    if (TextIn(*weights, "type") == "float") {
      type = bits == 8 ? Type("fp8") : bits == 4 ? Type("nvfp4") : std::nullopt;
      if (bits == 4 && WrittenNumber(*weights, "group_size") == 32) type = "mxfp4_all";
    } else if (bits == 8 && rounded) {
      type = "int8";
    }
    if (!type || (found && *found != *type)) return std::nullopt;
    found = type;
  }
  return found;
}

// AMD's Quark: one type for all layers but those that it excludes.
Type OfQuark(const WeightsJson& quantized) {
  const WeightsJson* global = ObjectIn(quantized, "global_quant_config");
  const auto of = [](const WeightsJson& config) -> Type {
    const WeightsJson* weight = ObjectIn(config, "weight");
    const std::string type = weight == nullptr ? "" : TextIn(*weight, "dtype");
    if (type.find("fp8") == 0) return "fp8";
    if (type == "int8") {
      return ObjectIn(config, "input_tensors") != nullptr ? "int8" : "int8_w8a16";
    }
    if (type == "int4" || type == "uint4") return "int4";
    const bool blocks = type == "fp4" && WrittenNumber(*weight, "group_size") == 32;
    return blocks ? Type("mxfp4_all") : std::nullopt;
  };
  if (global == nullptr) return std::nullopt;
  const Type type = of(*global);
  const WeightsJson* layers = ObjectIn(quantized, "layer_quant_config");
  if (layers == nullptr) return type;
  const bool alike = std::all_of(layers->begin(), layers->end(),
                                 [&](const WeightsJson& each) { return of(each) == type; });
  return alike ? type : std::nullopt;
}

// "Int8WeightOnlyConfig", of later versions, and "int8_weight_only".
std::string TorchaoType(const WeightsJson& quantized) {
  const WeightsJson* by_default = ObjectAt(quantized, {"quant_type", "default"});
  std::string name = LowerCase(by_default == nullptr ? TextIn(quantized, "quant_type")
                                                     : TextIn(*by_default, "_type"));
  name.erase(std::remove(name.begin(), name.end(), '_'), name.end());
  return name;
}

Type OfTorchao(const WeightsJson& quantized) {
  const std::string type = TorchaoType(quantized);
  const auto has = [&type](const char* part) { return type.find(part) != std::string::npos; };
  // Its default takes the head and the embedding as they are.
  if (TextIn(quantized, "include_input_output_embeddings") == "true") return std::nullopt;
  if (has("int4weight")) return "int4";
  if (has("float8weight")) return "fp8";
  if (has("int8dynamicactivationint8weight")) return "int8";
  return has("int8weight") ? Type("int8_w8a16") : std::nullopt;
}

bool IsTrue(const WeightsJson& quantized, const char* key) {
  return TextIn(quantized, key) == "true";
}

Type OfBitsandbytes(const WeightsJson& quantized) {
  if (IsTrue(quantized, "load_in_8bit") || IsTrue(quantized, "_load_in_8bit")) return "int8";
  const bool four = IsTrue(quantized, "load_in_4bit") || IsTrue(quantized, "_load_in_4bit");
  return four ? Type("nf4") : std::nullopt;
}

// The method that its writer names. ModelOpt's files of their own have none.
std::string MethodOf(const WeightsJson& quantized) {
  const WeightsJson* producer = ObjectIn(quantized, "producer");
  const std::string method = LowerCase(TextIn(quantized, "quant_method"));
  const bool modelopt = (producer != nullptr && TextIn(*producer, "name") == "modelopt") ||
                        (method.empty() && !TextIn(quantized, "quant_algo").empty());
  return modelopt ? "modelopt" : method;
}

}  // namespace

std::optional<std::string> WeightsOfQuantization(const WeightsJson& quantized) {
  const std::string method = MethodOf(quantized);
  if (method == "mxfp4") return "mxfp4";
  if (method == "fp8" || method == "fbgemm_fp8") return "fp8";
  if (method == "awq" || method == "gptq" || method == "auto-round") {
    if (HasOtherBits(quantized)) return std::nullopt;
    return OfBits(std::max(WrittenNumber(quantized, "bits"), WrittenNumber(quantized, "w_bit")));
  }
  if (method == "bitsandbytes") return OfBitsandbytes(quantized);
  if (method == "quark") return OfQuark(quantized);
  if (method == "torchao") return OfTorchao(quantized);
  if (method == "compressed-tensors") return OfGroups(quantized);
  const std::string algorithm = TextIn(quantized, "quant_algo");
  if (algorithm == "MIXED_PRECISION") {
    const std::optional<MixedTypes> types = MixedWeights(quantized);
    if (!types) return std::nullopt;
    return types->rest.empty() ? types->experts : types->rest;
  }
  const bool modelopt = method == "modelopt" || method == "modelopt_fp4";
  return modelopt && !algorithm.empty() ? WeightsOf(algorithm) : std::nullopt;
}

std::string ExpertsOfQuantization(const WeightsJson& quantized) {
  if (TextIn(quantized, "quant_algo") != "MIXED_PRECISION") return "";
  const std::optional<MixedTypes> types = MixedWeights(quantized);
  return types && !types->rest.empty() && types->rest != types->experts ? types->experts : "";
}

std::string UnknownWeights(const WeightsJson& quantized) {
  std::string what = MethodOf(quantized);
  for (const char* key : {"bits", "w_bit", "quant_algo", "format"}) {
    const std::string said = TextIn(quantized, key);
    if (!said.empty()) what += Format(" ({} {})", key, said);
  }
  if (const std::string type = TorchaoType(quantized); !type.empty()) what += " (" + type + ")";
  return Format(
      "found weights of {}, which are not modelled; next: leave quantization_config out of the "
      "file, which plans them in 16 bits, or set model.quantization to the type that is nearest in "
      "bytes (int8_w8a16, int4, nf4)",
      ShownText(what.empty() ? "no method that is named" : what, 80));
}

ScaleGroups ScaleGroupsOf(const WeightsJson& quantized) {
  ScaleGroups scales;
  const std::string method = MethodOf(quantized);
  scales.group = WrittenNumber(quantized, "group_size");
  if (scales.group == 0) scales.group = WrittenNumber(quantized, "q_group_size");
  // GPTQ's files have zero points even where all are alike.
  scales.zero_points = method == "gptq" || method == "auto-round" ||
                       (method == "awq" && TextIn(quantized, "zero_point") != "false");
  if (const WeightsJson* groups = ObjectIn(quantized, "config_groups"); groups != nullptr) {
    for (const WeightsJson& group : *groups) {
      const WeightsJson* weights = ObjectIn(group, "weights");
      if (weights == nullptr) continue;
      const double size = WrittenNumber(*weights, "group_size");
      if (size >= 1) scales.group = size;
      if (size <= 0 && TextIn(*weights, "strategy") == "channel") scales.group = -1;
      if (TextIn(*weights, "symmetric") == "false") scales.zero_points = true;
    }
  }
  if (const WeightsJson* weight = ObjectAt(quantized, {"global_quant_config", "weight"});
      weight != nullptr) {
    const std::string scheme = TextIn(*weight, "qscheme");
    scales.group = scheme == "per_group" ? WrittenNumber(*weight, "group_size") : -1;
    scales.zero_points = TextIn(*weight, "dtype").find("uint") == 0;
  }
  if (method == "torchao" && TorchaoType(quantized).find("int4weight") != std::string::npos) {
    const WeightsJson* data = ObjectAt(quantized, {"quant_type", "default", "_data"});
    if (data == nullptr) data = ObjectIn(quantized, "quant_type_kwargs");
    const double size = data == nullptr ? 0 : WrittenNumber(*data, "group_size");
    // A scale and a zero point of 16 bits each (torchao's tinygemm layout).
    scales.group = (size > 0 ? size : 128) / 2;
  }
  // bitsandbytes: a maximum of 32 bits for 64 weights, or one of 8 and one of 32 for 256 of these.
  if (IsTrue(quantized, "bnb_4bit_use_double_quant")) {
    scales.group = 126;  // 2 / 126 = 1 / 64 + 4 / (64 * 256) bytes
  }
  return scales;
}

std::string KvCacheOf(const WeightsJson& quantized) {
  // vllm/utils/torch_utils.py get_kv_cache_quant_algo_string; attention/layer.py for
  // llm-compressor; quark.py.
  if (LowerCase(TextIn(quantized, "kv_cache_quant_algo")) == "fp8") return "fp8";
  const WeightsJson* scheme = ObjectIn(quantized, "kv_cache_scheme");
  const bool fp8 =
      scheme != nullptr && TextIn(*scheme, "num_bits") == "8" && TextIn(*scheme, "type") == "float";
  if (fp8) return "fp8";
  const WeightsJson* written = ObjectIn(quantized, "export");
  const bool quark = written != nullptr && !ListIn(*written, "kv_cache_group").empty();
  return quark && WeightsOfQuantization(quantized) == "fp8" ? "fp8" : "";
}

std::string UnknownKvCache(const WeightsJson& quantized) {
  if (!KvCacheOf(quantized).empty()) return "";
  const std::string algorithm = TextIn(quantized, "kv_cache_quant_algo");
  const WeightsJson* scheme = ObjectIn(quantized, "kv_cache_scheme");
  if (scheme != nullptr) return TextIn(*scheme, "type") + TextIn(*scheme, "num_bits");
  return LowerCase(algorithm) == "none" ? "" : algorithm;
}

std::vector<std::string> LeftOutOf(const WeightsJson& quantized) {
  // Heads, embeddings, norms and routers have 16 bits here as well; towers of images are not
  // modelled.
  static constexpr std::string_view kOthers[] = {"lm_head", "embed",       "norm",   "router",
                                                 "vision",  "visual",      "mtp",    "audio",
                                                 "mm_",     "multi_modal", "eh_proj"};
  std::vector<std::string> left;
  std::vector<std::string> names;
  for (const char* key : {"ignore", "modules_to_not_convert", "exclude_modules", "ignored_layers",
                          "exclude", "llm_int8_skip_modules"}) {
    for (const WeightsJson& each : ListIn(quantized, key)) names.push_back(TextOf(each));
  }
  // GPTQModel's.
  if (const WeightsJson* dynamic = ObjectIn(quantized, "dynamic"); dynamic != nullptr) {
    for (const auto& [pattern, bits] : dynamic->items()) {
      if (pattern.rfind("-:", 0) == 0) names.push_back(pattern.substr(2));
    }
  }
  for (std::string& name : names) {
    name.erase(std::remove(name.begin(), name.end(), '\\'), name.end());
    const bool other = std::any_of(std::begin(kOthers), std::end(kOthers), [&name](auto part) {
      return name.find(part) != std::string::npos;
    });
    const bool gate = (name.size() > 3 && name.compare(name.size() - 4, 4, "gate") == 0) ||
                      name.find("score_correction_bias") != std::string::npos;
    if (!name.empty() && !other && !gate) left.push_back(name);
  }
  return left;
}

}  // namespace servecast
