// Configurations that llm-d ships, by name.
#pragma once

#include <span>
#include <string_view>

#include "servecast/epp.h"

namespace servecast::epp {

struct ShippedProfile {
  std::string_view name;
  std::string_view source;  // where it is shipped, and since when
  EppConfig config;
};

// In the order of menus; the first is the default.
std::span<const ShippedProfile> ShippedProfiles();

// What the router runs. Requires: spec.profile is kOwnEppProfile or a shipped one.
const EppConfig& ConfigOf(const EppSpec& spec);

}  // namespace servecast::epp
