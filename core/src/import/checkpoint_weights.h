// What a quantised checkpoint says of its weights and KV cache: a quantization_config, or the
// "quantization" of a hf_quant_config.json.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace servecast {

// The type of the weights by the words of a scenario ("int8_w8a16"); nullopt for what is not
// modelled. Of mixed ones the type of all but the experts, where these have another.
std::optional<std::string> WeightsOfQuantization(const nlohmann::json& quantized);
// That other type; "": none.
std::string ExpertsOfQuantization(const nlohmann::json& quantized);
// What of it is not modelled, and what to do next.
std::string UnknownWeights(const nlohmann::json& quantized);

// Weights that share a scale of 16 bits. `group` is 0 where the file does not say, -1: a row.
struct ScaleGroups {
  double group = 0;
  bool zero_points = false;  // each has one, as wide as a weight
};
ScaleGroups ScaleGroupsOf(const nlohmann::json& quantized);

// KV cache: "fp8" where its scales are in the checkpoint, so that servers take it unless told
// otherwise; "" else.
std::string KvCacheOf(const nlohmann::json& quantized);
// The type of a KV cache that is quantised and not modelled; "": none.
std::string UnknownKvCache(const nlohmann::json& quantized);

// The layers that stay in 16 bits, of those whose weights are counted.
std::vector<std::string> LeftOutOf(const nlohmann::json& quantized);

}  // namespace servecast
