// Writes the fields that describe a scenario as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "servecast/scenario.h"

namespace servecast {

// Which fields: all; those that differ from their base; of these what is hashed, or the figures
// that a comparison with servers hangs on.
enum class FieldsWritten { kAll, kChanged, kHashed, kCompared };

// A scenario document. `scenario` is not changed, though visitors may.
nlohmann::json WriteScenario(Scenario& scenario, const Scenario& base, FieldsWritten what);

}  // namespace servecast
