// Which limit is the limit: each resource is made larger by a tenth, the same requests run again,
// and the one whose relief helps most is named.
#pragma once

#include <string_view>
#include <vector>

#include "experiment/observations.h"
#include "servecast/experiment.h"
#include "servecast/report.h"
#include "servecast/scenario.h"

namespace servecast {

// A gain of less than this, by ten per cent of relief or by a change, is noise of the batches.
inline constexpr double kHelps = 0.01;

inline constexpr double kRelief = 1.1;

// What a scenario has more or less of. `change`: that many times as much of it, or as fast;
// `report`: of a run, for the blocks of its KV cache. Of counts, at least one more or one less.
struct Resource {
  std::string_view name, words;
  void (*change)(Scenario& scenario, double factor, const Report& report);
  bool (*has)(const Scenario& scenario) = nullptr;  // null: every one has it
};
std::vector<Resource> ResourcesOf(const Scenario& scenario);

// The scenario with more of one resource.
struct Relaxed {
  std::string_view name;  // "none": as it is
  Scenario scenario;
};

// As it is, then with relief of whatever it has. `report`: of a run, for the blocks of its KV
// cache.
std::vector<Relaxed> RelaxedScenarios(const Scenario& scenario, const Report& report);

// Adds the greatest relief again, in one pool alone after another; nothing where there is one pool,
// where none helps clearly, and where what helps is of no pool. `relaxed`: of RelaxedScenarios.
void RelaxInPools(const std::vector<Relief>& reliefs, std::vector<Relaxed>& relaxed);

// How bad a run is, by one number that relief of the limit brings down: the mean of the slowest of
// the target's latencies, five times as many as the target lets pass, which scatters less than the
// percentile itself; overloaded: seconds that a completion takes. Requires: `target` is of latency.
double Badness(const Scenario& scenario, const Observations& run, std::size_t target,
               bool overloaded);

// The sentence about the limit, and the report's binding constraint, from reliefs by falling gain.
// Leaves both as they are where none helps clearly.
void NameTheLimit(const Scenario& scenario, const std::vector<Relief>& reliefs, bool overloaded,
                  std::size_t target, Report& report);

}  // namespace servecast
