// Coefficient files of the latency model "physics": what a training wrote, with where it comes
// from. docs/physics-model.md states the form.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "servecast/result.h"
#include "servecast/scenario.h"

namespace servecast {

// Of the features and their order; other versions are refused.
inline constexpr std::string_view kPhysicsSpecVersion = "1.0";

// What the coefficients were trained on.
struct PhysicsProvenance {
  std::string model, hardware, engine_version, training_date;
  std::int64_t tp = 1;
  std::int64_t n_samples_alpha = 0, n_samples_beta = 0;
  double lambda_alpha = 0, lambda_beta = 0, gamma = 0;
  double hold_out_rmse_alpha = 0, hold_out_rmse_beta = 0;  // us
};

struct PhysicsCoefficients {
  std::string latency;  // the section "latency" of a document, JSON
  PhysicsProvenance trained_on;
};

// Issues: another version, variant or target, another number of coefficients, provenance missing.
Result<PhysicsCoefficients> ReadPhysicsCoefficients(std::string_view file);

// A line for each thing of the scenario that the coefficients were not trained on.
std::vector<std::string> Mismatches(const PhysicsProvenance& trained_on, const Scenario& scenario);

// Whether one of two names of a thing is part of the other, but for case, signs and an owner.
bool SameName(std::string_view a, std::string_view b);

}  // namespace servecast
