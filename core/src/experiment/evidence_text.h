// What a band rests on, and a verdict with its probability, in words.
#pragma once

#include "evidence/error_field.h"
#include "servecast/error_band.h"
#include "servecast/report.h"
#include "servecast/scenario.h"

namespace servecast {

ModelError ModelErrorOf(const SetupFeatures& features, const StepError& error);

// The state by the probability that all targets are met, and the sentence with it. A verdict that
// is near for another reason, as saturation, stays near. Requires: a probability, and so a
// band of each target.
void RestateVerdict(const Scenario& scenario, const Sureness& sureness, const Banded& banded,
                    Report& report);

}  // namespace servecast
