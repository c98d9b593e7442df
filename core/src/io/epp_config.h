// Configurations of llm-d's endpoint picker (EndpointPickerConfig) as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "servecast/epp.h"
#include "servecast/result.h"

namespace servecast {

struct EppReading {
  EppConfig config;
  std::vector<std::string> wrong;     // "where: reason": the picker would not start with it
  std::vector<std::string> left_out;  // members that say what no scenario has
};
EppReading ReadEppConfig(const nlohmann::json& document);

// The members plugins and schedulingProfiles of the document that says the same.
nlohmann::json WriteEppConfig(const EppConfig& config);

// Reads spec.config into spec.own where the profile is that; issues: what is wrong with it, or not
// modelled. In a file of its own, as CheckScaling is.
void ReadEpp(EppSpec& spec, Issues& issues);

}  // namespace servecast
