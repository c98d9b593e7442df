// Layers that a quantised checkpoint leaves in 16 bits, and how a scenario says that.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "import/checkpoint_weights.h"

namespace servecast {

struct LeftLayers {
  std::vector<std::string>
      names;  // "model.layers.3.self_attn*"; the head and norms are not among them
  ScaleGroups scales;
  std::string from;  // "quantization_config of config.json"
};

// A scenario has one type for experts and one for the rest. Where most of the rest stays in 16
// bits, `members`, which are said over `model`, get "quantization" none and "expert_quantization".
// Returns what is left to warn of: the weights are then planned so much larger or smaller than they
// are; "" for 0.5 % or less. `model`: all members that differ from the defaults.
std::string SettleLeftLayers(const LeftLayers& left, const nlohmann::json& model,
                             nlohmann::json& members);

}  // namespace servecast
