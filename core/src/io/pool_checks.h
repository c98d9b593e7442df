// What the pools of a cluster must have in common, and what each must be, with its scheduler and
// its pipeline stages.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "servecast/result.h"
#include "servecast/scenario.h"

namespace servecast {

void CheckPools(const Scenario& scenario, Issues& issues);

// What ParseScenario refuses in members that do not go together, of a scenario whose members were
// changed after it was read. Cost: some copies of the scenario.
Issues IssuesTogether(Scenario scenario);

// Where a pool has pipeline stages, an engine's async scheduling yields, unless the document, which
// names presets still, says that it be on.
void TurnOffAsyncForStages(nlohmann::json& document);

// Where an issue of the scenario with that pool alone stands in the document.
inline std::string PathIn(const PoolSpec& pool, std::size_t number, const std::string& path) {
  constexpr std::string_view kOnly = "/cluster/pools/0/";
  const std::string of_pool = Format("/cluster/pools/{}", number);
  if (path.rfind(kOnly, 0) == 0) return of_pool + path.substr(kOnly.size() - 1);
  const bool own = (pool.engine && path.rfind("/engine/", 0) == 0) ||
                   (pool.scheduler && path.rfind("/scheduler/", 0) == 0);
  constexpr std::string_view kScaling = "/cluster/scaling/";
  if (pool.scaling && path.rfind(kScaling, 0) == 0) {
    return of_pool + path.substr(std::string_view("/cluster").size());
  }
  return own ? of_pool + path : path;
}

// Unless one at that place is there.
inline void AddOnce(Issue issue, Issues& issues) {
  for (const Issue& other : issues) {
    if (other.path == issue.path) return;
  }
  issues.push_back(std::move(issue));
}

}  // namespace servecast
