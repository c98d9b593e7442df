// Scheduling cycles and saturation rows of the endpoint picker.
#include <algorithm>
#include <cmath>
#include <memory>

#include "fmt/format.h"
#include "testing/epp_golden_parts.h"

namespace servecast::testing::epp_golden {
namespace {

void Flatten(const std::string& path, const Json& value, EppParameters& parameters) {
  if (value.is_structured()) {
    for (const auto& [key, member] : value.items()) {
      Flatten(path.empty() ? key : path + "." + key, member, parameters);
    }
  } else if (value.is_boolean()) {
    parameters[path] = value.get<bool>();
  } else if (value.is_number()) {
    parameters[path] = value.get<double>();
  } else {
    parameters[path] = value.get<std::string>();
  }
}

constexpr double kProbability = 1e-12;

Difference DiffersInChance(const Json& wanted, const std::vector<double>& found) {
  if (wanted.size() != found.size()) return "prob: other survivors";
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!(std::abs(wanted[i].get<double>() - found[i]) <= kProbability)) {
      return fmt::format("prob[{}]: {}, found {}", i, wanted[i].dump(), found[i]);
    }
  }
  return std::nullopt;
}

std::vector<std::int32_t> Highest(const epp::ProfileRun& run) {
  std::vector<std::int32_t> highest;
  for (std::size_t s = 0; s < run.totals.size(); ++s) {
    const double most = *std::max_element(run.totals.begin(), run.totals.end());
    if (run.totals[s] == most) highest.push_back(run.survivors[s]);
  }
  return highest;
}

Difference CompareRun(const Json& wanted, const epp::ProfileRun& run) {
  const std::string name = wanted["profile"];
  Json scores = run.scores;
  if (run.survivors.empty()) {
    // Nobody was scored: lists are empty, or absent.
    return Differs(name + ": filters", wanted["filters"], run.filters);
  }
  for (const auto& difference : {Differs(name + ": filters", wanted["filters"], run.filters),
                                 Differs(name + ": scores", wanted["scores"], scores),
                                 Differs(name + ": total", wanted["total"], run.totals),
                                 Differs(name + ": max", wanted["max"], Highest(run))}) {
    if (difference) return difference;
  }
  return wanted.contains("prob") ? DiffersInChance(wanted["prob"], run.chances) : std::nullopt;
}

const Json* RunOf(const Json& row, const std::string& profile) {
  for (const Json& run : row["runs"]) {
    if (run["profile"] == profile) return &run;
  }
  return nullptr;
}

std::vector<std::int32_t> Numbers(const Json& names, Names& numbers) {
  std::vector<std::int32_t> list;
  for (const Json& name : names) list.push_back(numbers(name));
  return list;
}

// Whether the handler ran the profile: said of each where there are several and none failed.
bool WasRun(const Json& row, const epp::Scheduler& scheduler, const std::string& profile) {
  const auto primary = static_cast<std::size_t>(scheduler.primary());
  const bool failed = row.contains("error");
  return RunOf(row, profile)
      ->value("ran", !failed || profile == scheduler.profiles()[primary].name);
}

// The endpoints of a row of cycles, and what they refer to.
struct State {
  std::vector<epp::Endpoint> endpoints;
  std::vector<epp::Adapters> adapters;
};

State StateOf(const Json& eps, const epp::Request& request, Names& models) {
  State state;
  const std::size_t count = eps["id"].size();
  state.adapters.resize(count);
  const auto whole = [&](const char* name, std::size_t i, std::int64_t absent) {
    if (!eps.contains(name) || eps[name][i].is_null()) return absent;
    return eps[name][i].get<std::int64_t>();
  };
  const auto text = [&](const char* name, std::size_t i) {
    return eps.contains(name) ? eps[name][i].get<std::string>() : std::string();
  };
  for (std::size_t i = 0; i < count; ++i) {
    epp::Endpoint endpoint;
    endpoint.id = eps["id"][i];
    endpoint.waiting = eps["waiting"][i];
    endpoint.running = eps["running"][i];
    endpoint.kv = eps["kv"][i];
    endpoint.age = NearestNs(eps["age_ms"][i].get<double>() * kMs);
    endpoint.matched_blocks = whole("match_blocks", i, epp::kUnknown);
    endpoint.cached_blocks = whole("cached_blocks", i, epp::kUnknown);
    endpoint.inflight_requests = whole("inflight_requests", i, 0);
    endpoint.inflight_tokens = whole("inflight_tokens", i, 0);
    endpoint.uncached_tokens = whole("uncached_tokens", i, request.tokens);
    endpoint.role = epp::RoleOf(text("role", i));
    endpoint.context = epp::ContextRangeOf(text("context_range", i));
    if (eps.contains("lora_max")) {
      state.adapters[i] = {Numbers(eps["lora_active"][i], models),
                           Numbers(eps["lora_waiting"][i], models), eps["lora_max"][i]};
      endpoint.adapters = &state.adapters[i];
    }
    state.endpoints.push_back(endpoint);
  }
  return state;
}

epp::Request RequestOf(const Json& row, Names& models, Names& sessions) {
  const Json& req = row["req"];
  epp::Request request;
  request.tokens = req["tokens"];
  request.total_blocks = req.value("total_blocks", 0);
  request.block_tokens = req.value("block_tokens", 0);
  if (req.contains("model")) request.adapter = models(req["model"]);
  if (req.contains("session")) request.session = sessions(req["session"]);
  request.named_endpoint = req.value("session_token_of", epp::kUnknown);
  request.time = NearestNs(row["t_s"].get<double>() * 1e9);
  return request;
}

Difference CompareDecider(const Json& row, const epp::Scheduler& scheduler,
                          const epp::Request& request, epp::Endpoints endpoints) {
  if (scheduler.decider() == nullptr) return std::nullopt;
  std::vector<std::int32_t> yes;
  for (const std::int32_t i :
       Highest(scheduler.runs()[static_cast<std::size_t>(scheduler.primary())])) {
    if (scheduler.decider()->Disaggregates(request, epp::At(endpoints, i))) yes.push_back(i);
  }
  return Differs("prefill_if_picked", row.value("prefill_if_picked", Json::array()), yes);
}

}  // namespace

EppParameters ParametersOf(const Json& members) {
  EppParameters parameters;
  Flatten("", members, parameters);
  return parameters;
}

EppConfig ConfigOf(const Json& manifest, const std::string& profile) {
  EppConfig config;
  for (const Json& candidate : manifest["profiles"]) {
    if (candidate["name"] != profile) continue;
    for (const Json& plugin : candidate["plugins"]) {
      const std::string type = plugin["type"];
      config.plugins.push_back({plugin.value("name", type), type,
                                ParametersOf(plugin.value("parameters", Json::object()))});
    }
    for (const Json& of : candidate["scheduling_profiles"]) {
      EppProfile& added = config.profiles.emplace_back();
      added.name = of["name"];
      for (const Json& reference : of["plugins"]) {
        added.plugins.push_back({reference["plugin"], reference.value("weight", 1.0)});
      }
    }
  }
  return config;
}

Difference Differs(const std::string& what, const Json& wanted, const Json& found) {
  if (wanted == found) return std::nullopt;
  return fmt::format("{}: {}, found {}", what, wanted.dump(), found.dump());
}

Difference CompareCycle(const Json& row, epp::Scheduler& scheduler, const epp::Request& request,
                        epp::Endpoints endpoints, epp::Choice& choice) {
  // Profiles that the handler did not run were asked directly, before it ran.
  for (const epp::Profile& profile : scheduler.profiles()) {
    const Json* run = RunOf(row, profile.name);
    if (run == nullptr) return profile.name + ": no such run";
    if (WasRun(row, scheduler, profile.name)) continue;
    epp::ProfileRun direct;
    profile.Run(request, endpoints, direct);
    if (auto difference = CompareRun(*run, direct)) return difference;
  }
  Difference difference;
  choice = scheduler.Schedule(request, endpoints,
                              [&](const epp::Profile& profile, const epp::ProfileRun& run) {
                                const Json& wanted = *RunOf(row, profile.name);
                                if (!difference) difference = CompareRun(wanted, run);
                                return wanted.value("picked", run.survivors.front());
                              });
  if (difference) return difference;
  for (std::size_t p = 0; p < scheduler.profiles().size(); ++p) {
    const std::string& name = scheduler.profiles()[p].name;
    // One that left nothing does not count, but for the primary one, whose failure is the cycle's.
    const bool ran =
        scheduler.Ran(static_cast<int>(p)) &&
        (static_cast<int>(p) == scheduler.primary() || !scheduler.runs()[p].survivors.empty());
    if (WasRun(row, scheduler, name) != ran) return name + (ran ? ": ran" : ": did not run");
    // Also of one that failed.
    if (ran) difference = CompareRun(*RunOf(row, name), scheduler.runs()[p]);
    if (difference) return difference;
  }
  return CompareDecider(row, scheduler, request, endpoints);
}

Difference ReplayCycles(const Json& manifest, const std::string& profile,
                        const std::vector<Json>& rows, std::size_t& decisions) {
  const EppConfig config = ConfigOf(manifest, profile);
  const std::vector<std::string> wrong = epp::WrongConfig(config);
  if (!wrong.empty()) return wrong.front();
  std::unique_ptr<epp::Scheduler> scheduler;
  std::int64_t sequence = -1;
  Names models, sessions;
  for (const Json& row : rows) {
    if (row["seq"] != sequence) scheduler = std::make_unique<epp::Scheduler>(config);
    sequence = row["seq"];
    const epp::Request request = RequestOf(row, models, sessions);
    const State state = StateOf(row["eps"], request, models);
    epp::Choice choice;
    Difference difference = CompareCycle(row, *scheduler, request, state.endpoints, choice);
    if (!difference) {
      difference = Differs("error", row.contains("error"), choice.primary < 0);
    }
    if (difference) return fmt::format("c={}: {}", row["c"].dump(), *difference);
    ++decisions;
  }
  return std::nullopt;
}

Difference ReplaySaturation(const std::vector<Json>& rows, std::size_t& decisions) {
  for (const Json& row : rows) {
    const epp::PluginEntry* entry = epp::FindPluginType(row["detector"].get<std::string>());
    if (entry == nullptr) return "no such detector: " + row["detector"].dump();
    const EppParameters parameters = ParametersOf(row["parameters"]);
    const auto detector = entry->make(epp::Settings(entry->settings, parameters));
    std::vector<epp::Endpoint> endpoints;
    epp::Survivors survivors;
    for (const Json& values : row["endpoints"]) {
      epp::Endpoint& endpoint = endpoints.emplace_back();
      survivors.push_back(static_cast<std::int32_t>(survivors.size()));
      if (values.size() == 3) {
        endpoint.waiting = values[0];
        endpoint.kv = values[1];
        endpoint.age = NearestNs(values[2].get<double>() * kMs);
      } else {
        endpoint.inflight_requests = values[0];
        endpoint.inflight_tokens = values[1];
      }
    }
    Difference difference =
        Differs("saturation", row["saturation"].get<double>(), detector->Saturation(endpoints));
    detector->Filter({}, endpoints, survivors);
    if (!difference) difference = Differs("filter_keeps", row["filter_keeps"], survivors);
    if (difference) return fmt::format("row {}: {}", decisions, *difference);
    ++decisions;
  }
  return std::nullopt;
}

}  // namespace servecast::testing::epp_golden
