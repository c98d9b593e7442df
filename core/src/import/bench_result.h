// Figures of a benchmark's result, as vllm bench serve names them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "import/draft.h"

namespace servecast {

// What was measured is a remark, and `traffic` takes what was sent, too. `what`: "a result of vllm
// bench serve".
void ReadBenchFigures(const nlohmann::json& figures, std::string_view what, bool traffic,
                      Draft& draft);

}  // namespace servecast
