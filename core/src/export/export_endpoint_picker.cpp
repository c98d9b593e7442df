// The router epp as the file that llm-d's endpoint picker reads.
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "export/targets.h"
#include "io/epp_config.h"
#include "io/json_document.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

// What a profile refers to and the configuration does not list: the picker wants each listed.
EppConfig Complete(EppConfig config) {
  for (const EppProfile& profile : config.profiles) {
    for (const EppReference& reference : profile.plugins) {
      bool listed = false;
      for (const EppPlugin& plugin : config.plugins) listed |= plugin.name == reference.plugin;
      if (!listed) config.plugins.push_back({reference.plugin, reference.plugin, {}});
    }
  }
  return config;
}

std::string Scalar(const Json& value) {
  return value.is_string() ? QuotedText(value.get<std::string>()) : CompactJson(value);
}

// Members and items, each on a line of its own below `indent`.
std::string Lines(const Json& value, const std::string& indent) {
  std::string text;
  for (const auto& [key, member] : value.items()) {
    const std::string name = value.is_array() ? "-" : key + ":";
    if (member.is_structured()) {
      std::string inner = Lines(member, indent + "  ");
      if (value.is_array()) {  // its first member stands behind the dash
        text += indent + "- " + inner.substr(indent.size() + 2);
      } else {
        text += indent + name + "\n" + inner;
      }
    } else {
      text += indent + name + " " + Scalar(member) + "\n";
    }
  }
  return text;
}

}  // namespace

std::string WriteEndpointPicker(ExportJob& job) {
  const ClusterSpec& cluster = job.scenario().cluster;
  job.LeaveOutSections({"model", "hardware", "engine", "scheduler", "workload", "slo"},
                       "the router's file has nothing of the servers and their load");
  if (cluster.router != "epp") {
    job.LeaveOut("cluster.router.policy = " + cluster.router,
                 "is none of llm-d's router; written is its built-in profile");
  }
  const EppSpec spec = cluster.router == "epp" ? cluster.epp : EppSpec{};
  return "apiVersion: inference.networking.x-k8s.io/v1alpha1\nkind: EndpointPickerConfig\n" +
         Lines(WriteEppConfig(Complete(ConfigOf(spec))), "");
}

}  // namespace servecast
