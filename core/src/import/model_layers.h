// The layers of models that have several kinds, from a config.json: model.layers, and what else of
// such models a scenario says in other words than the file.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace servecast {

// Families that have a list of layers, by model_type.
bool HasLayerList(std::string_view type);

// Writes `layers`, and what goes with them, into `model`, whose other figures are there. Returns a
// problem as "/member: what is wrong"; "": there is none. Requires: HasLayerList.
std::string WriteLayers(std::string_view type, const nlohmann::json& config, nlohmann::json& model);

}  // namespace servecast
