// See UnfitReport in servecast/simulation.h.
#include <cctype>

#include "cost/model_cost.h"
#include "servecast/simulation.h"
#include "serving/cluster/deployment.h"

namespace servecast {

std::optional<Report> UnfitReport(const Scenario& scenario) {
  const std::vector<PoolSpec>& pools = scenario.cluster.pools;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    Scenario alone = scenario;
    alone.UsePool(i);
    std::optional<Unfit> unfit = UnfitOf(alone);
    if (!unfit) continue;
    const Result<Deployment> refused = Deploy(pools.size() == 1 ? alone : scenario);
    if (refused.ok()) return std::nullopt;
    Report r;
    r.name = scenario.name;
    r.scenario_id = scenario.id;
    r.finished = true;
    r.resolved_scenario = scenario.resolved_text;
    if (pools.size() > 1) unfit->pool = pools[i].name;
    r.gpus = scenario.cluster.Gpus();
    r.memory = {unfit->total_gib, unfit->usable_gib, unfit->weights_gib, unfit->overhead_gib, 0, 0};
    r.unfit = std::move(unfit);
    r.verdict.state = VerdictState::kDoesNotFit;
    for (const Issue& issue : refused.issues()) {
      if (issue.kind != "does_not_fit" || !r.verdict.sentence.empty()) continue;
      r.verdict.sentence = issue.message + ".";
    }
    char& first = r.verdict.sentence[0];
    first = static_cast<char>(std::toupper(static_cast<unsigned char>(first)));
    return r;
  }
  return std::nullopt;
}

}  // namespace servecast
