// Sentences of the verdict's note that no first visit has: see wasm/first_module.cpp.
#include <string>

#include "base/text.h"
#include "metrics/summarize.h"
#include "metrics/words.h"

namespace servecast {

std::string ClusterNotes(const Scenario& scenario, const Report& report) {
  std::string notes;
  const auto add = [&notes](const std::string& sentence) {
    notes += (notes.empty() ? "" : " ") + sentence;
  };
  if (const SlowReport& slow = report.scaling.slow; slow.requests > 0) {
    add(Format(
        "{} of the answered requests were on a slow replica (steps {} times as long), and {} "
        "of the slowest 1 %.",
        Percent(slow.share), NumberText(scenario.cluster.slowdowns.factor),
        Percent(slow.tail_share)));
  }
  const RollingUpdateSpec& update = scenario.cluster.rolling_update;
  if (report.finished && update.On() && *update.at_s < report.simulated_s &&
      !report.scaling.rolling_update_s) {
    add("The rolling update was not over when the run ended.");
  }
  const std::vector<PoolSpec>& pools = scenario.cluster.pools;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    const ScalingSpec& scaling = scenario.cluster.ScalingOf(pools[i]);
    const std::vector<ScalingReport>& apart = report.scaling.pools;
    const double cold_s = (i < apart.size() ? apart[i] : report.scaling).cold_start_s;
    if (!scaling.On() || scaling.warm_replicas == 0 || scaling.wake_s.value_or(0) <= cold_s) {
      continue;
    }
    add(Format("A warm replica takes {} s to wake (wake_s), longer than the {} s of a cold start.",
               ShortNumber(*scaling.wake_s), ShortNumber(cold_s)));
    break;
  }
  const TrtllmSpec* trtllm = scenario.scheduler.Trtllm();
  const TrtllmSpec usual;
  if (trtllm != nullptr && !trtllm->attention_dp_enable_balance &&
      (trtllm->attention_dp_timeout_iters != usual.attention_dp_timeout_iters ||
       trtllm->attention_dp_batching_wait_iters != usual.attention_dp_batching_wait_iters)) {
    add("No prompt waited for other ranks: attention_dp_timeout_iters and "
        "attention_dp_batching_wait_iters count with attention_dp_enable_balance alone.");
  }
  return notes;
}

}  // namespace servecast
