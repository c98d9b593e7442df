// Configuration of llm-d's endpoint picker (EPP), in the terms of its EndpointPickerConfig: plugins
// by type with parameters, and scheduling profiles that refer to them by name.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
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

// Of flow control: requests of one priority, or of any other without a band where that is 0.
struct EppBand {
  std::int64_t priority = 0;  // higher goes first
  std::string ordering = "fcfs-ordering-policy", fairness = "global-strict-fairness-policy";
  std::int64_t max_requests = 5000, max_bytes = 1'000'000'000;

  friend bool operator==(const EppBand&, const EppBand&) = default;
};

// Requests wait at the picker while its pool is saturated. Policies and the detector are names of
// plugins.
struct EppFlowControl {
  std::string detector = "utilization-detector", limits = "static-usage-limit-policy";
  std::vector<EppBand> bands;
  std::int64_t max_requests = 0, max_bytes = 0;  // of all bands; 0: no limit
  std::int64_t ttl_ns = 60'000'000'000;          // 0: never

  friend bool operator==(const EppFlowControl&, const EppFlowControl&) = default;
};

struct EppConfig {
  std::vector<EppPlugin> plugins;
  std::vector<EppProfile> profiles;
  std::optional<EppFlowControl> flow = {};  // none: it is off

  friend bool operator==(const EppConfig&, const EppConfig&) = default;
};

inline constexpr const char* kOwnEppProfile = "own";
inline constexpr const char* kFlowControlProfile = "flow-control";  // the shipped one that has it

// Rules of a scenario's router "epp".
struct EppSpec {
  std::string profile = "default";       // shipped ones by name, or kOwnEppProfile
  std::string config = "{}";             // of kOwnEppProfile: an EndpointPickerConfig as JSON
  std::shared_ptr<const EppConfig> own;  // what that says; shared by copies of a scenario

  bool ControlsFlow() const {
    return own != nullptr && profile == kOwnEppProfile ? own->flow.has_value()
                                                       : profile == kFlowControlProfile;
  }

  friend bool operator==(const EppSpec& a, const EppSpec& b) {
    return a.profile == b.profile && a.config == b.config;
  }
};

}  // namespace servecast
