// From the names that people give to models, GPUs and engines to a scenario of ours.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "measured_sets.h"
#include "servecast/result.h"
#include "servecast/scenario.h"

namespace servecast {

// The preset that a name means: "meta-llama/Llama-3.1-8B-Instruct" is llama-3.1-8b, "H100 80GB
// HBM3" is h100-sxm. "" when none is meant.
std::string ModelPresetOf(std::string_view name);
std::string HardwarePresetOf(std::string_view name);
// The newest preset of the engine that is not newer than the version; any version's without one.
std::string EnginePresetOf(std::string_view engine, std::string_view version);

// Turns set-ups into scenarios. `folder`/models may hold Hugging Face config files of models
// without a preset; `overrides` are as of ApplyOverrides.
class SetupReader {
 public:
  SetupReader(std::string folder, std::vector<std::string> overrides)
      : folder_(std::move(folder)), overrides_(std::move(overrides)) {}

  // Everything but the workload. Issues: why it cannot be simulated.
  Result<Scenario> Read(const MeasuredSetup& setup) const;

 private:
  Result<std::string> ModelText(const MeasuredSetup& setup) const;

  std::string folder_;
  std::vector<std::string> overrides_;
};

}  // namespace servecast
