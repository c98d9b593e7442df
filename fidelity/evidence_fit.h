// presets/evidence.json: the model of the error from forecasts that no fit had seen, its scale from
// set-ups and laboratories that are left out, and how well its bands and probabilities then hold.
#pragma once

#include <string>
#include <vector>

#include "forecast_errors.h"
#include "servecast/result.h"

namespace servecast {

struct EvidenceTexts {
  std::string evidence;  // presets/evidence.json
  std::string tables;    // docs/fidelity.md, "Bands": coverage and reliability
};
// Issues: nothing to fit to.
Result<EvidenceTexts> FitEvidence(const std::vector<ForecastError>& errors);

// The class of tables of coverage: "serving near", "dense near" (on vLLM), "others near", "middle",
// "far".
std::string_view ClassOf(const SetupFeatures& where, Nearness nearness);

}  // namespace servecast
