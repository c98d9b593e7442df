// A scheduling cycle of the endpoint picker: which endpoint serves a request, and which prefills
// its prompt.
//
//   profile:  filters in order -> scorers on the survivors -> total = sum of score x weight ->
//   picker single:   the one profile disagg:   profile "decode", then, if the decider says so of
//   the endpoint that was picked,
//             profile "prefill" over all endpoints again
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "serving/cluster/epp/plugin.h"

namespace servecast::epp {

// What a run of a profile found. `scores` is one list per scorer, all others are per survivor.
struct ProfileRun {
  std::vector<Survivors> filters;  // what each left, up to the first that left nothing
  Survivors survivors;
  std::vector<std::vector<double>> scores;
  std::vector<double> totals, chances;
};

class Profile {
 public:
  struct Scorer {
    Plugin* plugin = nullptr;
    double weight = 1;
  };
  std::string name;
  std::vector<Plugin*> filters;
  std::vector<Scorer> scorers;
  Plugin* picker = nullptr;

  // False: the filters leave nothing. O(endpoints x plugins).
  bool Run(const Request& request, Endpoints endpoints, ProfileRun& run) const;
};

// Why the configuration cannot be run, each "where: reason"; empty: it can.
std::vector<std::string> WrongConfig(const EppConfig& config);

class Scheduler {
 public:
  // Requires: WrongConfig() finds nothing.
  explicit Scheduler(const EppConfig& config);

  // Chooses one of run.survivors, as its position among the candidates.
  using Pick = std::function<std::int32_t(const Profile&, const ProfileRun&)>;
  // primary < 0: the primary profile's filters leave no endpoint.
  Choice Schedule(const Request& request, Endpoints endpoints, const Pick& pick);

  const std::vector<Profile>& profiles() const { return profiles_; }
  // Index of the primary profile, and of the one that prefills; -1: none.
  int primary() const { return primary_; }
  int prefill() const { return prefill_; }
  // Null: one profile only.
  const Plugin* decider() const { return decider_; }
  // Of the last Schedule(), by profile, and whether it ran.
  const std::vector<ProfileRun>& runs() const { return runs_; }
  bool Ran(int profile) const { return ran_[static_cast<std::size_t>(profile)]; }

 private:
  Plugin* Instance(const EppConfig& config, const std::string& name);
  void Add(const EppConfig& config, const EppProfile& spec);
  // The position that profile picks; -1: none.
  std::int32_t RunProfile(int profile, const Request& request, Endpoints endpoints,
                          const Pick& pick);

  struct Made {
    std::string name;
    const PluginEntry* entry = nullptr;
    std::unique_ptr<Plugin> plugin;
  };
  std::vector<Made> made_;
  std::vector<Profile> profiles_;
  std::vector<ProfileRun> runs_;
  std::vector<bool> ran_;
  int primary_ = 0, prefill_ = -1;
  Plugin* decider_ = nullptr;
};

// The profile of a picker without a configuration file: queue 2, KV 2, prefix 3.
EppProfile DefaultProfile();

}  // namespace servecast::epp
