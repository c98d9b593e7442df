// The router epp as the file that llm-d's endpoint picker reads.
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "export/targets.h"
#include "io/epp_config.h"
#include "io/json_document.h"

namespace servecast {
namespace {

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
         YamlText(WriteEppConfig(Complete(ConfigOf(spec))));
}

}  // namespace servecast
