// Policies of flow control, as plugins that flowControl refers to, and the settings that it says.
#include <algorithm>
#include <iterator>
#include <string_view>

#include "serving/cluster/epp/flow_control.h"

namespace servecast::epp {
namespace flow_policies {
namespace {

// Ceilings above 0: an idle pool takes whoever waits.
constexpr double kLeastCeiling = 1e-6;

constexpr SettingSpec kThreshold[] = {
    {.path = "threshold", .fallback = 1, .least = kLeastCeiling, .most = 1}};
constexpr SettingSpec kHoldback[] = {
    {.path = "minCeiling", .fallback = 1, .least = kLeastCeiling, .most = 1},
    {.path = "maxCeiling", .fallback = 1, .least = kLeastCeiling, .most = 1},
    {.path = "domain", .kind = SettingSpec::Kind::kText, .words = "rank value"}};

}  // namespace

namespace fcfs {
extern const PluginEntry kEntry = {.type = "fcfs-ordering-policy",
                                   .help = "first come, first served"};
}  // namespace fcfs

namespace edf {
extern const PluginEntry kEntry = {.type = "edf-ordering-policy",
                                   .help = "the earliest end of its TTL"};
}  // namespace edf

namespace slo_deadline {
extern const PluginEntry kEntry = {.type = "slo-deadline-ordering-policy",
                                   .help = "the earliest deadline of a first token"};
}  // namespace slo_deadline

namespace global_strict {
extern const PluginEntry kEntry = {.type = "global-strict-fairness-policy",
                                   .help = "the first of all flows by the ordering"};
}  // namespace global_strict

namespace round_robin {
extern const PluginEntry kEntry = {.type = "round-robin-fairness-policy",
                                   .help = "one flow after another"};
}  // namespace round_robin

namespace static_limit {
extern const PluginEntry kEntry = {.type = "static-usage-limit-policy",
                                   .help = "one ceiling of saturation for all bands",
                                   .settings = kThreshold};
}  // namespace static_limit

namespace holdback {
extern const PluginEntry kEntry = {.type = "priority-holdback-policy",
                                   .help = "ceilings that fall from band to band",
                                   .settings = kHoldback};
}  // namespace holdback

namespace soft_reflective {
extern const PluginEntry kEntry = {.type = "soft-reflective-ceiling-policy",
                                   .help = "lower bands pass now and then as saturation rises"};
}  // namespace soft_reflective

}  // namespace flow_policies

namespace {

// In the order of FlowSettings::Ordering.
const std::string_view kOrderings[] = {flow_policies::fcfs::kEntry.type,
                                       flow_policies::edf::kEntry.type,
                                       flow_policies::slo_deadline::kEntry.type};
const std::string_view kFairness[] = {flow_policies::global_strict::kEntry.type,
                                      flow_policies::round_robin::kEntry.type};
const std::string_view kLimits[] = {flow_policies::static_limit::kEntry.type,
                                    flow_policies::holdback::kEntry.type,
                                    flow_policies::soft_reflective::kEntry.type};

// Which of `types` the named plugin has; as many as there are: none.
template <std::size_t n>
std::size_t OneOf(const std::string_view (&types)[n], const EppConfig& config,
                  const std::string& name) {
  const PluginEntry* type = TypeOf(config, name);
  if (type == nullptr) return n;
  return static_cast<std::size_t>(std::find(types, types + n, type->type) - types);
}

Settings SettingsOf(const EppConfig& config, const std::string& name) {
  static const EppParameters kDefaults;
  const EppPlugin* plugin = PluginOf(config, name);
  return {TypeOf(config, name)->settings, plugin == nullptr ? kDefaults : plugin->parameters};
}

}  // namespace

std::vector<std::string> WrongFlow(const EppConfig& config) {
  const EppFlowControl& flow = *config.flow;
  std::vector<std::string> wrong;
  const auto expect = [&](bool good, const std::string& where, const std::string& reason) {
    if (!good) wrong.push_back(where + ": " + reason);
  };
  const PluginEntry* detector = TypeOf(config, flow.detector);
  expect(detector != nullptr && detector->detects, "saturationDetector",
         flow.detector + " is no saturation detector");
  const std::size_t limit = OneOf(kLimits, config, flow.limits);
  expect(limit < std::size(kLimits), "flowControl", flow.limits + " is no usage limit policy");
  if (limit == 1) {
    const Settings settings = SettingsOf(config, flow.limits);
    expect(settings.Has("minCeiling"), flow.limits, "needs minCeiling");
    expect(settings.Real("minCeiling") <= settings.Real("maxCeiling"), flow.limits,
           "minCeiling must not be above maxCeiling");
  }
  for (std::size_t i = 0; i < flow.bands.size(); ++i) {
    const EppBand& band = flow.bands[i];
    const std::string where = "flowControl.priorityBands." + std::to_string(i);
    expect(OneOf(kOrderings, config, band.ordering) < std::size(kOrderings), where,
           band.ordering + " is no ordering policy");
    expect(OneOf(kFairness, config, band.fairness) < std::size(kFairness), where,
           band.fairness + " is no fairness policy");
    const bool again =
        std::any_of(flow.bands.begin(), flow.bands.begin() + static_cast<std::ptrdiff_t>(i),
                    [&](const EppBand& before) { return before.priority == band.priority; });
    expect(!again, where, "priority " + std::to_string(band.priority) + " is there already");
  }
  return wrong;
}

FlowSettings FlowSettingsOf(const EppConfig& config) {
  using Ceilings = FlowSettings::Ceilings;
  const EppFlowControl& flow = *config.flow;
  FlowSettings settings;
  settings.max_requests = flow.max_requests;
  settings.max_bytes = flow.max_bytes;
  settings.ttl = settings.no_endpoint_ttl = flow.ttl_ns;
  for (const EppBand& band : flow.bands) {
    const std::size_t ordering = OneOf(kOrderings, config, band.ordering);
    settings.bands.push_back({.priority = band.priority,
                              .round_robin = OneOf(kFairness, config, band.fairness) == 1,
                              .ordering = static_cast<FlowSettings::Ordering>(ordering),
                              .max_requests = band.max_requests,
                              .max_bytes = band.max_bytes});
  }
  const Settings limits = SettingsOf(config, flow.limits);
  switch (OneOf(kLimits, config, flow.limits)) {
    case 0:
      settings.threshold = limits.Real("threshold");
      break;
    case 1:
      settings.ceilings = limits.Text("domain") == "value" ? Ceilings::kByValue : Ceilings::kByRank;
      settings.min_ceiling = limits.Real("minCeiling");
      settings.max_ceiling = limits.Real("maxCeiling");
      break;
    default:
      settings.ceilings = Ceilings::kSoftReflective;
  }
  return settings;
}

std::unique_ptr<Plugin> DetectorOf(const EppConfig& config) {
  const std::string& name = config.flow->detector;
  return TypeOf(config, name)->make(SettingsOf(config, name));
}

}  // namespace servecast::epp
