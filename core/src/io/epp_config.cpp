#include "io/epp_config.h"

#include <algorithm>
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

class ConfigReader {
 public:
  EppReading Read(const Json& document) {
    for (const auto& [key, value] : document.items()) {
      if (key == "plugins") {
        ReadList(value, key, [&](const Json& item, const std::string& at) { Plugin(item, at); });
      } else if (key == "schedulingProfiles") {
        ReadList(value, key, [&](const Json& item, const std::string& at) { Profile(item, at); });
      } else if (key != "apiVersion" && key != "kind") {
        out_.left_out.push_back(key);
      }
    }
    for (std::string& reason : epp::WrongConfig(out_.config)) {
      out_.wrong.push_back(std::move(reason));
    }
    return std::move(out_);
  }

 private:
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
  return {{"plugins", std::move(plugins)}, {"schedulingProfiles", std::move(profiles)}};
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
  for (const std::string& member : reading.left_out) {
    issues.push_back({kPath, Format("{} is not modelled; allowed plugins and schedulingProfiles",
                                    ShownText(member))});
  }
  if (!reading.wrong.empty()) return;
  const std::string reason = epp::NotModelled(reading.config);
  spec.own = std::make_shared<const EppConfig>(std::move(reading.config));
  if (!reason.empty()) issues.push_back({kPath, ShownText(reason, 300)});
}

}  // namespace servecast
