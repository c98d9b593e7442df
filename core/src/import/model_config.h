// Hugging Face's config.json of a model as the model of a scenario.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "servecast/result.h"

namespace servecast {

// The members of a scenario's "model", as JSON. Of a wrapper around a language model (text_config)
// the language model. Issues: a family whose layers ModelSpec cannot say, members that are missing
// or cannot be; each begins with `file`.
Result<std::string> ModelFromConfig(std::string_view text, const std::string& file);

// The same of a file that has been read. Requires: an object.
Result<nlohmann::json> ModelOfConfig(const nlohmann::json& config, const std::string& file);

// The first of its /architectures if that pools what it read ("Qwen2Model",
// "Qwen3ForSequenceClassification") and generates nothing; else "".
std::string PooledArchitecture(const nlohmann::json& config);

// model.vision of Llama 4's vision_config, with the 16 tiles of its processor, which no config.json
// says; empty: something is not said there.
nlohmann::json TiledEncoder(const nlohmann::json& vision_config);

}  // namespace servecast
