// What a plugin of the endpoint picker may do. A plugin is one file here and one line in
// registry.cpp; an instance serves all profiles that refer to its name.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "serving/cluster/epp/facts.h"
#include "serving/cluster/epp/settings.h"

namespace servecast::epp {

// Candidates by position, which `survivors` lists in rising order.
using Endpoints = std::span<const Endpoint>;
using Survivors = std::vector<std::int32_t>;

inline const Endpoint& At(Endpoints endpoints, std::int32_t position) {
  return endpoints[static_cast<std::size_t>(position)];
}

class Plugin {
 public:
  virtual ~Plugin() = default;

  // A filter: removes survivors.
  virtual void Filter(const Request&, Endpoints, Survivors&) {}

  // A scorer: writes a score per survivor. Those outside [0, 1] are clamped by the profile.
  virtual void Score(const Request&, Endpoints, const Survivors&, std::span<double> /*scores*/) {}

  // A picker: writes the probability of each survivor, given the weighted totals. They add up to 1.
  virtual void Chances(std::span<const double> /*totals*/, std::span<double> /*chances*/) const {}

  // A decider: whether the prompt goes to a prefill endpoint although `decode` was chosen.
  virtual bool Disaggregates(const Request&, const Endpoint& /*decode*/) const { return false; }

  // A saturation detector: of the pool of those endpoints; 1 and more is saturated.
  virtual double Saturation(Endpoints) const { return 0; }
  // What alone can take a saturated pool below 1: endpoints report again; a request ends.
  enum class Falls { kAtReports, kAtEnds, kAnyTime };
  virtual Falls falls() const { return Falls::kAnyTime; }

  // The cycle of the request that was scored last has ended with that choice.
  virtual void Chosen(const Request&, const Choice&) {}
};

// Removes the survivors that `keeps` does not.
template <class Keeps>
void KeepIf(Endpoints endpoints, Survivors& survivors, const Keeps& keeps) {
  std::erase_if(survivors, [&](std::int32_t i) { return !keeps(At(endpoints, i)); });
}

// What `keeps` leaves; all where that is nothing.
template <class Keeps>
void KeepIfAny(Endpoints endpoints, Survivors& survivors, const Keeps& keeps) {
  Survivors kept = survivors;
  KeepIf(endpoints, kept, keeps);
  if (!kept.empty()) survivors = std::move(kept);
}

// A score per survivor, from its endpoint alone.
template <class ScoreOf>
void ScoreEach(Endpoints endpoints, const Survivors& survivors, std::span<double> scores,
               const ScoreOf& score) {
  for (std::size_t s = 0; s < survivors.size(); ++s) scores[s] = score(At(endpoints, survivors[s]));
}

struct PluginEntry {
  std::string_view type, help;
  bool filters = false, scores = false, picks = false, decides = false, detects = false;
  // Null: a profile handler, which scheduler.h reads, or a producer (producers.h).
  std::unique_ptr<Plugin> (*make)(const Settings&) = nullptr;
  std::span<const SettingSpec> settings = {};
};

// The registered ones; see registry.cpp.
std::span<const PluginEntry> PluginTypes();
const PluginEntry* FindPluginType(std::string_view type);  // null: none of that name

// What a reference by that name means: a plugin of the configuration, which may be of an unknown
// type, or else a type with its defaults. Null: none.
const EppPlugin* PluginOf(const EppConfig& config, std::string_view name);
const PluginEntry* TypeOf(const EppConfig& config, std::string_view name);

}  // namespace servecast::epp
