// A training as a pack: servecast run FILE --calibration pack.json. docs/how-to/traces.md states
// the form.
#pragma once

#include <string>
#include <vector>

#include "calibrate/replay.h"
#include "calibrate/training.h"

namespace servecast {

// Names of the features, as docs/physics-model.md has them, from 0.
const char* FeatureName(std::string_view backend, std::string_view vector, std::size_t feature);

// `date`: of the training, as its coefficients will say; the engine has no clock.
std::string TrainingPackJson(const Training& training, const std::vector<TracedServer>& servers,
                             const std::vector<ReplayDistance>& before,
                             const std::vector<ReplayDistance>& after, const std::string& date);

}  // namespace servecast
