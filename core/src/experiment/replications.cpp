// See replications.h.
#include "experiment/replications.h"

#include "base/random.h"
#include "servecast/workload_spec.h"

namespace servecast {

std::int64_t SeedOfRun(std::int64_t seed, std::size_t run) {
  if (run == 0) return seed;
  return static_cast<std::int64_t>(
      RandomBits(seed, Stream::kReplication, static_cast<std::int64_t>(run)) >> 1);
}

bool ReplaysTrace(const Scenario& scenario) {
  return scenario.workload->arrivals.process == ArrivalProcess::kTrace;
}

bool IsSteady(const Scenario& scenario) {
  const ArrivalSpec& a = scenario.workload->arrivals;
  return a.process != ArrivalProcess::kStatic && a.profile == RateProfile::kFlat &&
         a.spikes.empty() && !scenario.measure.horizon_s &&
         scenario.cluster.failures.schedule.empty() &&
         scenario.cluster.slowdowns.schedule.empty() && !scenario.cluster.rolling_update.On() &&
         !scenario.cluster.Scales();
}

}  // namespace servecast
