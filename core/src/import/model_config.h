// Hugging Face's config.json of a model as the model of a scenario.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "servecast/result.h"

namespace servecast {

// The members of a scenario's "model", as JSON. Of a wrapper around a language model (text_config)
// the language model. Issues: a family whose layers ModelSpec cannot say, members that are missing
// or cannot be; each begins with `file`.
Result<std::string> ModelFromConfig(std::string_view text, const std::string& file);

// The same of a file that has been read. Requires: an object.
Result<nlohmann::json> ModelOfConfig(const nlohmann::json& config, const std::string& file);

// What a quantization_config, or a hf_quant_config.json's "quantization", says beside the type of
// the weights. KV cache: "fp8" where its scales are in the checkpoint, so that servers take it
// unless told otherwise; "" else. The layers that stay in 16 bits, of those whose weights are
// counted.
std::string KvCacheOf(const nlohmann::json& quantized);
std::vector<std::string> LeftOutOf(const nlohmann::json& quantized);
// "FP8", "NVFP4" by the words of a scenario; nullopt for what is not modelled.
// Of mixed ones the type of all but the experts, where these have another.
std::optional<std::string> WeightsOfQuantization(const nlohmann::json& quantized);
// That other type; "": none.
std::string ExpertsOfQuantization(const nlohmann::json& quantized);

}  // namespace servecast
