#include "serving/cluster/epp/scheduler.h"

#include <algorithm>

#include "serving/cluster/epp/flow_control.h"

namespace servecast::epp {
namespace {

constexpr std::string_view kDisaggregated = "disagg-profile-handler";
constexpr std::string_view kSingle = "single-profile-handler";
constexpr std::string_view kDefaultPicker = "max-score-picker";
constexpr std::string_view kDecode = "decode", kPrefill = "prefill";

const EppPlugin* HandlerOf(const EppConfig& config) {
  const auto found =
      std::find_if(config.plugins.begin(), config.plugins.end(), [](const EppPlugin& plugin) {
        return plugin.type == kDisaggregated || plugin.type == kSingle;
      });
  return found == config.plugins.end() ? nullptr : &*found;
}

int IndexOf(const EppConfig& config, std::string_view profile) {
  const auto found =
      std::find_if(config.profiles.begin(), config.profiles.end(),
                   [&](const EppProfile& candidate) { return candidate.name == profile; });
  return found == config.profiles.end() ? -1 : static_cast<int>(found - config.profiles.begin());
}

std::string DeciderOf(const EppPlugin& handler) {
  const auto decider = handler.parameters.find("deciders.prefill");
  if (decider == handler.parameters.end()) return {};
  const std::string* name = std::get_if<std::string>(&decider->second);
  return name == nullptr ? std::string() : *name;
}

std::string WrongHandler(const EppConfig& config) {
  const EppPlugin* handler = HandlerOf(config);
  if (handler == nullptr || handler->type == kSingle) {
    return config.profiles.size() == 1 ? "" : "one profile needs single-profile-handler";
  }
  if (IndexOf(config, kDecode) < 0) return "disagg-profile-handler needs a profile \"decode\"";
  const std::string decider = DeciderOf(*handler);
  const PluginEntry* type = TypeOf(config, decider);
  if (decider.empty()) return "";
  if (type == nullptr || !type->decides) return "deciders.prefill names no decider";
  return IndexOf(config, kPrefill) < 0 ? "deciders.prefill needs a profile \"prefill\"" : "";
}

std::string WrongReference(const EppConfig& config, const EppReference& reference) {
  const PluginEntry* type = TypeOf(config, reference.plugin);
  if (type == nullptr) return reference.plugin + ": no plugin of this name";
  if (type->filters || type->scores || type->picks) return "";
  return reference.plugin + ": neither filters, scores nor picks";
}

}  // namespace

std::vector<std::string> WrongConfig(const EppConfig& config) {
  std::vector<std::string> wrong;
  for (const EppPlugin& plugin : config.plugins) {
    const PluginEntry* type = FindPluginType(plugin.type);
    if (type == nullptr) {
      wrong.push_back(plugin.name + ": no plugin has type \"" + plugin.type + "\"");
      continue;
    }
    for (const std::string& reason : WrongSettings(type->settings, plugin.parameters)) {
      wrong.push_back(plugin.name + ": " + reason);
    }
  }
  for (const EppProfile& profile : config.profiles) {
    int pickers = 0;
    for (const EppReference& reference : profile.plugins) {
      const std::string reason = WrongReference(config, reference);
      if (!reason.empty()) wrong.push_back(profile.name + ": " + reason);
      const PluginEntry* type = TypeOf(config, reference.plugin);
      pickers += type != nullptr && type->picks ? 1 : 0;
    }
    if (pickers > 1) wrong.push_back(profile.name + ": has more than one picker");
  }
  if (config.flow && wrong.empty()) {
    for (std::string& reason : WrongFlow(config)) wrong.push_back(std::move(reason));
  }
  if (config.profiles.empty()) return wrong;
  const std::string handler = WrongHandler(config);
  if (!handler.empty()) wrong.push_back("profiles: " + handler);
  return wrong;
}

EppProfile DefaultProfile() {
  return {"default",
          {{"queue-scorer", 2}, {"kv-cache-utilization-scorer", 2}, {"prefix-cache-scorer", 3}}};
}

bool Profile::Run(const Request& request, Endpoints endpoints, ProfileRun& run) const {
  run.survivors.resize(endpoints.size());
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    run.survivors[i] = static_cast<std::int32_t>(i);
  }
  run.filters.resize(filters.size());
  for (std::size_t f = 0; f < run.filters.size(); ++f) {
    filters[f]->Filter(request, endpoints, run.survivors);
    run.filters[f] = run.survivors;
    if (run.survivors.empty()) run.filters.resize(f + 1);
  }
  const std::size_t count = run.survivors.size();
  run.scores.resize(scorers.size());
  run.totals.assign(count, 0.0);
  run.chances.assign(count, 0.0);
  for (std::size_t k = 0; k < scorers.size(); ++k) {
    std::vector<double>& scores = run.scores[k];
    scores.resize(count);
    if (count == 0) continue;
    scorers[k].plugin->Score(request, endpoints, run.survivors, scores);
    for (std::size_t s = 0; s < count; ++s) {
      run.totals[s] += std::clamp(scores[s], 0.0, 1.0) * scorers[k].weight;
    }
  }
  if (count > 0) picker->Chances(run.totals, run.chances);
  return count > 0;
}

Scheduler::Scheduler(const EppConfig& config) {
  const std::vector<EppProfile> defaults{DefaultProfile()};
  for (const EppProfile& profile : config.profiles.empty() ? defaults : config.profiles) {
    Add(config, profile);
  }
  runs_.resize(profiles_.size());
  ran_.resize(profiles_.size());
  const EppPlugin* handler = HandlerOf(config);
  if (handler == nullptr || handler->type == kSingle) return;
  primary_ = IndexOf(config, kDecode);
  prefill_ = IndexOf(config, kPrefill);
  const std::string decider = DeciderOf(*handler);
  if (!decider.empty()) decider_ = Instance(config, decider);
}

Plugin* Scheduler::Instance(const EppConfig& config, const std::string& name) {
  const auto found =
      std::find_if(made_.begin(), made_.end(), [&](const Made& made) { return made.name == name; });
  if (found != made_.end()) return found->plugin.get();
  static const EppParameters kDefaults;
  const EppPlugin* plugin = PluginOf(config, name);
  const PluginEntry* type = TypeOf(config, name);
  SERVECAST_CHECK(type != nullptr && type->make != nullptr, "a profile's plugins are registered");
  const Settings settings(type->settings, plugin == nullptr ? kDefaults : plugin->parameters);
  made_.push_back({name, type, type->make(settings)});
  return made_.back().plugin.get();
}

void Scheduler::Add(const EppConfig& config, const EppProfile& spec) {
  Profile profile;
  profile.name = spec.name;
  for (const EppReference& reference : spec.plugins) {
    const PluginEntry* type = TypeOf(config, reference.plugin);
    Plugin* plugin = Instance(config, reference.plugin);
    if (type->filters) profile.filters.push_back(plugin);
    if (type->scores) profile.scorers.push_back({plugin, reference.weight});
    if (type->picks) profile.picker = plugin;
  }
  if (profile.picker == nullptr) profile.picker = Instance(config, std::string(kDefaultPicker));
  profiles_.push_back(std::move(profile));
}

std::int32_t Scheduler::RunProfile(int profile, const Request& request, Endpoints endpoints,
                                   const Pick& pick) {
  const auto p = static_cast<std::size_t>(profile);
  ran_[p] = true;
  return profiles_[p].Run(request, endpoints, runs_[p]) ? pick(profiles_[p], runs_[p]) : -1;
}

Choice Scheduler::Schedule(const Request& request, Endpoints endpoints, const Pick& pick) {
  std::fill(ran_.begin(), ran_.end(), false);
  Choice choice;
  const std::int32_t primary = RunProfile(primary_, request, endpoints, pick);
  if (primary < 0) return choice;
  choice.primary = At(endpoints, primary).id;
  if (decider_ != nullptr && decider_->Disaggregates(request, At(endpoints, primary))) {
    const std::int32_t prefill = RunProfile(prefill_, request, endpoints, pick);
    if (prefill >= 0) choice.prefill = At(endpoints, prefill).id;
  }
  for (const Made& made : made_) made.plugin->Chosen(request, choice);
  return choice;
}

}  // namespace servecast::epp
