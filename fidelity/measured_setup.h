// From what a file says of a server to a scenario of ours.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "measured_sets.h"
#include "servecast/result.h"
#include "servecast/scenario.h"

namespace servecast {

// What a measured server is simulated as.
struct SimulatedSetup {
  Scenario scenario;  // everything but the workload
  // Presets, or the file of a model's config; weights in the words of a scenario.
  std::string model, gpu, engine, weights;
  bool same_engine = true;  // a preset of that very version
};

// Turns set-ups into scenarios. `folder`/models may hold Hugging Face config files of models
// without a preset; `overrides` are as of ApplyOverrides, and win over what the files say.
class SetupReader {
 public:
  SetupReader(std::string folder, std::vector<std::string> overrides);

  // What is wrong with the overrides, whatever they are applied to.
  Issues OverrideIssues() const;

  // Issues: why it cannot be simulated. Valid until the next call; the same set-up is read once.
  const Result<SimulatedSetup>& Read(const MeasuredSetup& setup);

 private:
  struct ModelText {
    std::string text;                 // the scenario's "model"
    std::string name;                 // a preset, or a file
    bool experts = false;             // it has them
    std::string quantization;         // of the weights as published; "": 16 bits
    std::string expert_quantization;  // of experts, where it is another; "": it is not
  };
  Result<ModelText> FindModel(const std::string& name) const;
  Result<SimulatedSetup> ReadAnew(const MeasuredSetup& setup) const;
  // All of it, the workload included, by a scenario beside the row.
  Result<SimulatedSetup> ReadScenario(const MeasuredSetup& setup) const;

  std::string folder_;
  std::vector<std::string> overrides_;
  std::vector<std::string> config_files_;  // below folder/models
  std::map<std::string, Result<SimulatedSetup>> read_;
};

// All of it in one text: equal ones are one set-up.
std::string KeyOf(const MeasuredSetup& setup);

}  // namespace servecast
