// What packs of a calibration and of a training share, and answers with them.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "calibrate/pack.h"
#include "calibrate/replay.h"

namespace servecast {

// Its first members: kind, schema and version, and the model that was fitted.
nlohmann::ordered_json PackHead(std::string_view backend);

// Its member `provenance`.
nlohmann::ordered_json OriginJson(const PackOrigin& origin);

// Distances of a replay, a member a figure; `ks_before` where that was compared as well.
nlohmann::ordered_json ReplayJson(const std::vector<ReplayDistance>& before,
                                  const std::vector<ReplayDistance>& after);

}  // namespace servecast
