#include "testing/warm_reference.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "fmt/format.h"
#include "testing/cluster_run.h"
#include "testing/dice.h"
#include "testing/random_cases.h"

namespace servecast::testing {

WarmComparison CompareWarm(std::uint64_t seed) {
  WarmComparison found;
  RandomCase random_case = MakeRandomCase(seed);
  if (MakeLatency(random_case)->DelayByLoad()) return found;
  random_case.engine.max_num_queued_reqs = random_case.engine.max_num_queued_tokens = {};
  Dice dice(seed * 0x9e3779b97f4a7c15u + 61);
  const double length_s = static_cast<double>(RunCluster(random_case, 1, {}).now) / 1e9;
  const auto part = [&](std::int64_t percent) {
    return std::max(1e-6, static_cast<double>(dice.Between(0, percent)) * 0.01 * length_s);
  };
  ClusterScaling scaling;
  ScalingSpec& spec = scaling.spec;
  spec.policy = "schedule";
  spec.max_replicas = 12;
  spec.warm_replicas = dice.Between(1, 3);
  spec.wake_s = part(10);
  spec.warm_gpu_share = static_cast<double>(dice.Between(0, 4)) / 4;
  const auto ns = [](double s) { return static_cast<TimeNs>(std::nearbyint(s * 1e9)); };
  scaling.cold_start = ns(part(30));
  std::vector<TimeNs> asleep(static_cast<std::size_t>(spec.warm_replicas), 0), up = {0}, from = {0};
  std::vector<std::optional<TimeNs>> refills;  // by start; none: it took no warm one
  double at = 0, replicas = 1;
  for (int row = 0; row < 4; ++row) {
    at += part(20);
    const std::int64_t more = dice.Between(0, 2);
    replicas += static_cast<double>(more);
    spec.schedule.push_back({at, replicas});
    for (std::int64_t i = 0; i < more; ++i) {
      const auto warm = std::min_element(asleep.begin(), asleep.end());
      const bool wakes = *warm <= ns(at);
      from.push_back(ns(at));
      up.push_back(ns(at) + (wakes ? ns(*spec.wake_s) : scaling.cold_start));
      refills.push_back(wakes ? std::optional(ns(at)) : std::nullopt);
      if (wakes) *warm = ns(at) + scaling.cold_start;
    }
  }
  const ClusterRun run = RunCluster(random_case, 1, {}, INT64_MAX, &scaling);
  if (run.now == 0) return found;  // nobody was there for any time
  const auto count = [](const std::vector<TimeNs>& times, TimeNs by) {
    return std::count_if(times.begin(), times.end(), [by](TimeNs time) { return time <= by; });
  };
  for (const ScalingReport::Step& step : run.scaling.steps) {
    const TimeNs time = ns(step.at_s);
    if (step.up == count(up, time) && step.starting == count(from, time) - step.up) continue;
    found.mismatch = fmt::format("seed {}: {} up and {} starting at {} s", seed, step.up,
                                 step.starting, step.at_s);
  }
  double warm_s = static_cast<double>(spec.warm_replicas) * spec.warm_gpu_share * Seconds(run.now);
  found.starts = run.scaling.starts;  // the run may end before the schedule
  for (std::int64_t i = 0; i < found.starts; ++i) {
    const std::optional<TimeNs> begin = refills[static_cast<std::size_t>(i)];
    if (!begin || *begin >= run.now) continue;
    ++found.wakes;
    warm_s += (1 - spec.warm_gpu_share) * Seconds(std::min(scaling.cold_start, run.now - *begin));
  }
  if (run.scaling.wakes != found.wakes ||
      std::fabs(run.scaling.warm_s - warm_s) > 1e-9 * (1e-9 + warm_s)) {
    found.mismatch = fmt::format("seed {}: {} wakes and {} s, not {} and {}", seed,
                                 run.scaling.wakes, run.scaling.warm_s, found.wakes, warm_s);
  }
  return found;
}

}  // namespace servecast::testing
