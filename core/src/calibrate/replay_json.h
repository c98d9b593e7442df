// Distances of replays as packs and answers write them.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "calibrate/replay.h"

namespace servecast {

// A member a figure; `ks_before` where that was compared as well.
nlohmann::ordered_json ReplayJson(const std::vector<ReplayDistance>& before,
                                  const std::vector<ReplayDistance>& after);

}  // namespace servecast
