// Axes by name: what a person asks a search to vary without writing paths and values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "servecast/design.h"
#include "servecast/result.h"

namespace servecast {

// What is varied where nothing is asked for.
inline constexpr std::string_view kUsualAxes = "gpu,tp,quantization";

// gpu: those with a price and the document's own; tp, pp, dp: parallelism of tensors, stages and
// attention; ep: experts whole on a GPU; roles: prefill and decode together or apart; quantization:
// of the weights; max_num_seqs, max_num_batched_tokens: limits of the engine. `names`: some of
// these, between commas; "" is all that `over` has, or the usual ones. Each has its usual values,
// or those that `over` gives for its path; what else is in `over` follows. Issues: another name, or
// one twice.
Result<std::vector<Axis>> AxesAsked(const std::string& document, std::string_view names,
                                    std::vector<Axis> over);

}  // namespace servecast
