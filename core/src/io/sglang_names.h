// What SGLang and vLLM have in common is in `engine` by vLLM's names. Beside the scheduler sglang
// its own names are taken as well: scheduler.page_size is engine.block_size.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "servecast/result.h"

namespace servecast {

// Moves them to the engine, of the document and of its pools, before any preset is merged. Where
// both names are there, an issue says so.
void TakeSglangNames(nlohmann::json& document, Issues& issues);

}  // namespace servecast
