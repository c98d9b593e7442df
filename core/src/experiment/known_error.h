// What is known of the error of a scenario's step times: the set-up that it is, and the field
// there.
#pragma once

#include <optional>

#include "evidence/error_field.h"
#include "servecast/scenario.h"

namespace servecast {

struct KnownError {
  SetupFeatures features;
  StepError error;
};

// nullopt where there is none to know: step times that are stated, or of another simulator.
std::optional<KnownError> KnownErrorOf(const Scenario& scenario);

}  // namespace servecast
