// Options that stand as members of JSON or YAML: {"tensor_parallel_size": 2}, maxModelLen: 8192.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "import/words.h"

namespace servecast {

// "maxModelLen", "max_model_len" -> max-model-len.
std::string OptionName(std::string_view member);

// As the words of a command, "--max-model-len=8192" each; a list's items follow their option, an
// object is one word of JSON. What is null or "None" is not given.
CommandWords OptionWords(const nlohmann::json& members);

// With numbers and truths for the texts that are ones: scalars of YAML are texts all.
nlohmann::json WithTypes(const nlohmann::json& value);

}  // namespace servecast
