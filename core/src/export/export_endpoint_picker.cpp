// The router epp as the file that llm-d's endpoint picker reads.
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "export/targets.h"
#include "io/epp_config.h"
#include "io/json_document.h"

namespace servecast {
namespace {

// What the configuration refers to and does not list: the picker wants each listed.
EppConfig Complete(EppConfig config) {
  const auto list = [&](const std::string& name) {
    bool listed = false;
    for (const EppPlugin& plugin : config.plugins) listed |= plugin.name == name;
    if (!listed) config.plugins.push_back({name, name, {}});
  };
  for (const EppProfile& profile : config.profiles) {
    for (const EppReference& reference : profile.plugins) list(reference.plugin);
  }
  if (!config.flow) return config;
  list(config.flow->detector);
  list(config.flow->limits);
  for (const EppBand& band : config.flow->bands) {
    list(band.ordering);
    list(band.fairness);
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
