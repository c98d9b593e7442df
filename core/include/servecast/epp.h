// Configuration of llm-d's endpoint picker (EPP), in the terms of its EndpointPickerConfig: plugins
// by type with parameters, and scheduling profiles that refer to them by name.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace servecast {

// A parameter's value. Durations are text, as "200ms".
using EppValue = std::variant<double, bool, std::string>;

// By path: members of objects and items of lists joined by dots, as "conditions.0.maxValue".
using EppParameters = std::map<std::string, EppValue, std::less<>>;

struct EppPlugin {
  std::string name;  // what profiles refer to; by default its type
  std::string type;
  EppParameters parameters;  // absent ones have the defaults of the type

  friend bool operator==(const EppPlugin&, const EppPlugin&) = default;
};

struct EppReference {
  std::string plugin;  // name of a plugin, or a type with its defaults
  double weight = 1;   // of a scorer

  friend bool operator==(const EppReference&, const EppReference&) = default;
};

struct EppProfile {
  std::string name;
  std::vector<EppReference> plugins;  // filters and scorers run in this order

  friend bool operator==(const EppProfile&, const EppProfile&) = default;
};

struct EppConfig {
  std::vector<EppPlugin> plugins;
  std::vector<EppProfile> profiles;

  friend bool operator==(const EppConfig&, const EppConfig&) = default;
};

// Rules of a scenario's router "epp".
struct EppSpec {
  std::string profile = "default";       // shipped ones by name, or kOwnEppProfile
  std::string config = "{}";             // of kOwnEppProfile: an EndpointPickerConfig as JSON
  std::shared_ptr<const EppConfig> own;  // what that says; shared by copies of a scenario

  friend bool operator==(const EppSpec& a, const EppSpec& b) {
    return a.profile == b.profile && a.config == b.config;
  }
};
inline constexpr const char* kOwnEppProfile = "own";

}  // namespace servecast
