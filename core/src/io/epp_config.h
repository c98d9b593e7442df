// Configurations of llm-d's endpoint picker (EndpointPickerConfig) as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "servecast/epp.h"
#include "servecast/result.h"
#include "servecast/scenario.h"

namespace servecast {

struct EppReading {
  EppConfig config;
  struct LeftOut {
    std::string member, why;  // why: "is not modelled"
  };
  std::vector<std::string> wrong;  // "where: reason": the picker would not start with it
  std::vector<LeftOut> left_out;   // members that say what no scenario has, or do nothing
};
EppReading ReadEppConfig(const nlohmann::json& document);

// The document that says the same, but for its apiVersion and kind.
nlohmann::json WriteEppConfig(const EppConfig& config);

// Why no scenario can have that router; "": it can. Requires: it was read without anything wrong.
std::string NotModelled(const EppConfig& config);

// The shipped profile with that configuration; "": none.
std::string_view ShippedName(const EppConfig& config);

// The configuration of a scenario's router.
const EppConfig& ConfigOf(const EppSpec& spec);

// Reads spec.config into spec.own where the profile is that; issues: what is wrong with it, or not
// modelled. In a file of its own, as CheckScaling is.
void ReadEpp(EppSpec& spec, Issues& issues);

// Where the router cannot stand: before pools of a role. Likewise.
void CheckEpp(const ClusterSpec& cluster, Issues& issues);

}  // namespace servecast
