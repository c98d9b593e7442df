// Coefficient sets of the latency model "blackbox": presets/coefficients/blis-blackbox.json. The
// command has them embedded; the page has not (they would be a tenth of its budget), so a document
// always holds the numbers themselves.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "servecast/result.h"

namespace servecast {

struct CoefficientSet {
  std::string id;
  std::string latency;                // the section "latency" of a document, JSON
  double prefill_time_over_peak = 0;  // below 1: faster than light; 0: not known
};

// All sets of a file of that form, as they stand there.
Result<std::vector<CoefficientSet>> ReadCoefficientSets(std::string_view file);

// The set of that id; an issue names the nearest.
Result<CoefficientSet> FindCoefficientSet(std::string_view file, std::string_view id);

}  // namespace servecast
