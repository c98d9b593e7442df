#include "io/epp_config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/text.h"
#include "io/json_document.h"
#include "serving/cluster/epp/picker_router.h"
#include "serving/cluster/epp/profiles.h"
#include "serving/cluster/epp/scheduler.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

constexpr const char* kPath = "/cluster/router/config";

// Of text as "1k" or "10Gi"; -1: it is none.
double QuantityOf(const Json& value) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"k", 1e3},
      {"M", 1e6},     {"G", 1e9},     {"T", 1e12},    {"", 1}};
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  const auto unit = std::find_if(std::begin(kUnits), std::end(kUnits),
                                 [&](const auto& each) { return text.ends_with(each.first); });
  const auto digits = std::string_view(text).substr(0, text.size() - unit->first.size());
  return Real(ParseCount(digits).value_or(-1)) * unit->second;
}

class ConfigReader {
 public:
  EppReading Read(const Json& document) {
    if (Gates(document)) out_.config.flow.emplace();
    for (const auto& [key, value] : document.items()) {
      if (key == "plugins") {
        ReadList(value, key, [&](const Json& item, const std::string& at) { Plugin(item, at); });
      } else if (key == "schedulingProfiles") {
        ReadList(value, key, [&](const Json& item, const std::string& at) { Profile(item, at); });
      } else if (key == "saturationDetector" || key == "flowControl") {
        OfFlow(key, value);
      } else if (key != "apiVersion" && key != "kind" && key != "featureGates") {
        out_.left_out.push_back({key, kNotModelled});
      }
    }
    for (std::string& reason : epp::WrongConfig(out_.config)) {
      out_.wrong.push_back(std::move(reason));
    }
    return std::move(out_);
  }

 private:
  static constexpr const char* kNotModelled = "is not modelled";

  void Wrong(const std::string& where, const std::string& reason) {
    out_.wrong.push_back(where + ": " + reason);
  }

  template <class ReadItem>
  void ReadList(const Json& list, const std::string& name, const ReadItem& read) {
    if (!list.is_array()) return Wrong(name, "must be a list");
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string at = Format("{}.{}", name, i);
      list[i].is_object() ? read(list[i], at) : Wrong(at, "must be an object");
    }
  }

  // Only members of those names.
  void Members(const Json& object, const std::string& at,
               std::initializer_list<const char*> known) {
    for (const auto& [key, value] : object.items()) {
      const bool is_known = std::any_of(known.begin(), known.end(),
                                        [&name = key](const char* each) { return name == each; });
      if (!is_known) Wrong(at, Format("\"{}\" is no member", ShownText(key)));
    }
  }

  std::string Text(const Json& object, const char* name, const std::string& at) {
    const auto found = object.find(name);
    if (found == object.end()) return "";
    if (!found->is_string()) Wrong(at, Format("{} must be text", name));
    return found->is_string() ? found->get<std::string>() : "";
  }

  // Whether flow control is on.
  bool Gates(const Json& document) {
    constexpr const char* kGate = "flowControl";
    const auto gates = document.find("featureGates");
    if (gates == document.end()) return false;
    if (!gates->is_array()) {
      Wrong("featureGates", "must be a list");
      return false;
    }
    for (const Json& gate : *gates) {
      if (gate != kGate) out_.left_out.push_back({"featureGates " + ShortJson(gate), kNotModelled});
    }
    return std::find(gates->begin(), gates->end(), kGate) != gates->end();
  }

  void OfFlow(const std::string& key, const Json& value) {
    if (!out_.config.flow) {
      out_.left_out.push_back({key, "does nothing without featureGates: [flowControl]"});
    } else if (value.is_null()) {  // as YAML has an empty member
      return;
    } else if (!value.is_object()) {
      Wrong(key, "must be an object");
    } else {
      key == "flowControl" ? Flow(value, *out_.config.flow) : Detector(value, *out_.config.flow);
    }
  }

  void Detector(const Json& item, EppFlowControl& flow) {
    Members(item, "saturationDetector", {"pluginRef"});
    Name(item, "pluginRef", "saturationDetector", flow.detector);
  }

  void Flow(const Json& item, EppFlowControl& flow) {
    const std::string at = "flowControl";
    for (const auto& [key, value] : item.items()) {
      if (key == "priorityBands") {
        ReadList(value, at + "." + key,
                 [&](const Json& band, const std::string& place) { Band(band, place, flow); });
      } else if (key == "defaultRequestTTL") {
        const auto ttl =
            value.is_string() ? epp::DurationNs(value.get<std::string>()) : std::optional<TimeNs>();
        if (!ttl) Wrong(at + "." + key, "must be a duration, for example \"60s\"");
        flow.ttl_ns = ttl.value_or(flow.ttl_ns);
      } else if (key == "noEndpointRequestTTL" || key == "defaultPriorityBand") {
        out_.left_out.push_back({at + "." + key, kNotModelled});
      } else if (key != "maxRequests" && key != "maxBytes" && key != "usageLimitPolicyPluginRef") {
        Wrong(at, Format("\"{}\" is no member", ShownText(key)));
      }
    }
    Quantity(item, "maxRequests", at, flow.max_requests);
    Quantity(item, "maxBytes", at, flow.max_bytes);
    Name(item, "usageLimitPolicyPluginRef", at, flow.limits);
  }

  void Band(const Json& item, const std::string& at, EppFlowControl& flow) {
    constexpr double kFarthest = 1e9;
    Members(item, at,
            {"priority", "orderingPolicyRef", "fairnessPolicyRef", "maxRequests", "maxBytes"});
    EppBand band;
    const auto priority = item.find("priority");
    const bool given = priority != item.end() && priority->is_number();
    const double value = given ? priority->get<double>() : kFarthest + 1;
    if (!(std::abs(value) <= kFarthest && value == std::floor(value))) {
      return Wrong(at, Format("needs a priority, a whole number from -{} to {}",
                              NumberText(kFarthest), NumberText(kFarthest)));
    }
    band.priority = static_cast<std::int64_t>(value);
    Name(item, "orderingPolicyRef", at, band.ordering);
    Name(item, "fairnessPolicyRef", at, band.fairness);
    // 0 of a band is its default.
    const EppBand defaults;
    Quantity(item, "maxRequests", at, band.max_requests);
    Quantity(item, "maxBytes", at, band.max_bytes);
    if (band.max_requests == 0) band.max_requests = defaults.max_requests;
    if (band.max_bytes == 0) band.max_bytes = defaults.max_bytes;
    flow.bands.push_back(std::move(band));
  }

  // Changes `value` where the member is there.
  void Name(const Json& item, const char* name, const std::string& at, std::string& value) {
    const std::string text = Text(item, name, at);
    if (!text.empty()) value = text;
  }

  // A quantity of Kubernetes: 500, "1k", "10Gi".
  void Quantity(const Json& item, const char* name, const std::string& at, std::int64_t& value) {
    constexpr double kMost = 1e15;
    const auto found = item.find(name);
    if (found == item.end()) return;
    const double all = found->is_number() ? found->get<double>() : QuantityOf(*found);
    if (!(all >= 0 && all <= kMost && all == std::floor(all))) {
      return Wrong(at + "." + name, Format("found {}, allowed 0 to {}, as 500, \"1k\" or \"10Gi\"",
                                           ShortJson(*found), NumberText(kMost)));
    }
    value = static_cast<std::int64_t>(all);
  }

  void Plugin(const Json& item, const std::string& at) {
    Members(item, at, {"name", "type", "parameters"});
    EppPlugin plugin{Text(item, "name", at), Text(item, "type", at), {}};
    if (plugin.type.empty()) return Wrong(at, "has no type");
    if (plugin.name.empty()) plugin.name = plugin.type;
    const bool again =
        std::any_of(out_.config.plugins.begin(), out_.config.plugins.end(),
                    [&](const EppPlugin& other) { return other.name == plugin.name; });
    if (again) return Wrong(at, Format("\"{}\" is there already", ShownText(plugin.name)));
    const auto parameters = item.find("parameters");
    if (parameters != item.end() && !parameters->is_null()) {  // as YAML has an empty member
      if (!parameters->is_object()) return Wrong(at, "parameters must be an object");
      for (const auto& [key, value] : parameters->items()) {
        Flatten(value, key, at, plugin.parameters);
      }
    }
    out_.config.plugins.push_back(std::move(plugin));
  }

  void Flatten(const Json& value, const std::string& path, const std::string& at,
               EppParameters& parameters) {
    // Paths know items of a list by their numbers, so no member is called by one.
    bool numbered = false;
    for (const auto& [key, member] : value.items()) {
      numbered |= value.is_object() && ParseCount(key).has_value();
    }
    if (numbered) {
      Wrong(at, Format("{} must be a list, its members are numbers", ShownText(path)));
    } else if (value.is_structured() && value.empty()) {
      Wrong(at, Format("{} is empty: leave it out", ShownText(path)));
    } else if (value.is_object()) {
      for (const auto& [key, member] : value.items()) {
        Flatten(member, path + "." + key, at, parameters);
      }
    } else if (value.is_array()) {
      for (std::size_t i = 0; i < value.size(); ++i) {
        Flatten(value[i], path + "." + std::to_string(i), at, parameters);
      }
    } else if (value.is_boolean()) {
      parameters[path] = value.get<bool>();
    } else if (value.is_number()) {
      parameters[path] = value.get<double>();
    } else if (value.is_string()) {
      parameters[path] = value.get<std::string>();
    } else {
      Wrong(at, Format("{} must have a value", ShownText(path)));
    }
  }

  void Profile(const Json& item, const std::string& at) {
    Members(item, at, {"name", "plugins"});
    EppProfile profile{Text(item, "name", at), {}};
    if (profile.name.empty()) profile.name = "default";
    const auto plugins = item.find("plugins");
    if (plugins == item.end()) return Wrong(at, "has no plugins");
    ReadList(*plugins, at + ".plugins",
             [&](const Json& each, const std::string& place) { Reference(each, place, profile); });
    out_.config.profiles.push_back(std::move(profile));
  }

  void Reference(const Json& item, const std::string& at, EppProfile& profile) {
    constexpr double kMostWeight = 1e6;
    Members(item, at, {"pluginRef", "weight"});
    EppReference reference{Text(item, "pluginRef", at)};
    if (reference.plugin.empty()) return Wrong(at, "has no pluginRef");
    if (const auto weight = item.find("weight"); weight != item.end()) {
      reference.weight = weight->is_number() ? weight->get<double>() : -1;
      if (!(reference.weight >= 0 && reference.weight <= kMostWeight)) {
        return Wrong(at, Format("found weight {}, allowed 0 to {}", ShortJson(*weight),
                                NumberText(kMostWeight)));
      }
    }
    profile.plugins.push_back(std::move(reference));
  }

  EppReading out_;
};

Json ValueJson(const EppValue& value) {
  if (const double* number = std::get_if<double>(&value)) {
    const auto whole = static_cast<std::int64_t>(*number);  // within SettingSpec's limits
    if (static_cast<double>(whole) == *number) return whole;
    return *number;
  }
  if (const bool* flag = std::get_if<bool>(&value)) return *flag;
  return std::get<std::string>(value);
}

// Without plugins that are listed as they are by default: a reference by type is the same.
EppConfig Plain(EppConfig config) {
  std::erase_if(config.plugins, [](const EppPlugin& plugin) {
    return plugin.name == plugin.type && plugin.parameters.empty();
  });
  return config;
}

// The member of `value` that a part of a parameter's path stands for: an item of a list by number.
Json& Member(Json& value, std::string_view part) {
  const std::optional<std::int64_t> index = ParseCount(part);
  if (!index) return value[std::string(part)];
  if (value.is_null()) value = Json::array();
  while (value.size() <= static_cast<std::size_t>(*index)) value.push_back(nullptr);
  return value[static_cast<std::size_t>(*index)];
}

// Parameters with the objects and lists that their paths stand for. Requires: WrongConfig() finds
// nothing.
Json Nested(const EppParameters& parameters) {
  Json nested = Json::object();
  for (const auto& [path, value] : parameters) {
    Json* at = &nested;
    for (std::size_t start = 0; start <= path.size();) {
      const std::size_t end = std::min(path.find('.', start), path.size());
      at = &Member(*at, std::string_view(path).substr(start, end - start));
      start = end + 1;
    }
    *at = ValueJson(value);
  }
  return nested;
}

}  // namespace

EppReading ReadEppConfig(const Json& document) { return ConfigReader().Read(document); }

Json WriteEppConfig(const EppConfig& config) {
  Json plugins = Json::array(), profiles = Json::array();
  for (const EppPlugin& plugin : config.plugins) {
    Json item = {{"type", plugin.type}};
    if (plugin.name != plugin.type) item["name"] = plugin.name;
    if (!plugin.parameters.empty()) item["parameters"] = Nested(plugin.parameters);
    plugins.push_back(std::move(item));
  }
  for (const EppProfile& profile : config.profiles) {
    Json references = Json::array();
    for (const EppReference& reference : profile.plugins) {
      Json item = {{"pluginRef", reference.plugin}};
      if (reference.weight != EppReference{}.weight) item["weight"] = ValueJson(reference.weight);
      references.push_back(std::move(item));
    }
    profiles.push_back({{"name", profile.name}, {"plugins", std::move(references)}});
  }
  Json document = {{"plugins", std::move(plugins)}, {"schedulingProfiles", std::move(profiles)}};
  if (!config.flow) return document;
  const EppFlowControl& flow = *config.flow;
  Json bands = Json::array();
  for (const EppBand& band : flow.bands) {
    bands.push_back({{"priority", band.priority},
                     {"orderingPolicyRef", band.ordering},
                     {"fairnessPolicyRef", band.fairness},
                     {"maxRequests", band.max_requests},
                     {"maxBytes", band.max_bytes}});
  }
  document["featureGates"] = {"flowControl"};
  document["saturationDetector"] = {{"pluginRef", flow.detector}};
  document["flowControl"] = {{"defaultRequestTTL", NumberText(Seconds(flow.ttl_ns)) + "s"},
                             {"maxRequests", flow.max_requests},
                             {"maxBytes", flow.max_bytes},
                             {"priorityBands", std::move(bands)},
                             {"usageLimitPolicyPluginRef", flow.limits}};
  return document;
}

std::string NotModelled(const EppConfig& config) { return epp::NotModelled(config); }

std::string_view ShippedName(const EppConfig& config) {
  for (const epp::ShippedProfile& shipped : epp::ShippedProfiles()) {
    if (Plain(shipped.config) == Plain(config)) return shipped.name;
  }
  return "";
}

const EppConfig& ConfigOf(const EppSpec& spec) { return epp::ConfigOf(spec); }

void CheckEpp(const ClusterSpec& cluster, Issues& issues) {
  constexpr const char* kWhy =
      "found \"epp\", allowed any other with pools of role \"prefill\" and \"decode\": llm-d's "
      "endpoint picker chooses both replicas at once, which is not modelled";
  if (!cluster.Has(PoolRole::kPrefill) && !cluster.Has(PoolRole::kDecode)) return;
  if (cluster.router == "epp") issues.push_back({"/cluster/router/policy", kWhy});
  if (cluster.decode_router == "epp") issues.push_back({"/cluster/decode_router/policy", kWhy});
}

void ReadEpp(EppSpec& spec, Issues& issues) {
  if (spec.profile != kOwnEppProfile) return;
  EppReading reading = ReadEppConfig(LooseJson(spec.config));
  for (const std::string& reason : reading.wrong) issues.push_back({kPath, ShownText(reason, 300)});
  for (const EppReading::LeftOut& each : reading.left_out) {
    issues.push_back({kPath, Format("{} {}: leave it out", ShownText(each.member), each.why)});
  }
  if (!reading.wrong.empty()) return;
  const std::string reason = epp::NotModelled(reading.config);
  spec.own = std::make_shared<const EppConfig>(std::move(reading.config));
  if (!reason.empty()) issues.push_back({kPath, ShownText(reason, 300)});
}

}  // namespace servecast
