#include "workload/adapters.h"

#include <algorithm>

#include "base/math.h"
#include "base/random.h"
#include "servecast/workload_spec.h"

namespace servecast {

bool ServesAdapters(const Scenario& s) {
  return std::any_of(s.cluster.pools.begin(), s.cluster.pools.end(), [&](const PoolSpec& pool) {
    return (pool.engine ? *pool.engine : s.engine).max_loras > 0;
  });
}

bool MayLackSeats(const Scenario& s) {
  const WorkloadSpec& w = *s.workload;
  std::int64_t adapters = w.adapters.count;
  for (const ClassSpec& c : w.classes) adapters += c.adapters.value_or(0);
  const bool traced = w.arrivals.process == ArrivalProcess::kTrace ||
                      w.prompt_tokens.distribution == LengthDistribution::kTrace ||
                      w.output_tokens.distribution == LengthDistribution::kTrace;
  return std::any_of(s.cluster.pools.begin(), s.cluster.pools.end(), [&](const PoolSpec& pool) {
    const std::int64_t seats = (pool.engine ? *pool.engine : s.engine).max_loras;
    return seats > 0 && (traced || adapters > seats);
  });
}

AdapterDrawer::AdapterDrawer(const AdapterSpec& spec) {
  double sum = 0;
  for (std::int64_t k = 1; k <= spec.count; ++k) {
    sum += spec.theta == 0 ? 1 : Exp(-spec.theta * Log(static_cast<double>(k)));
    until_.push_back(sum);
  }
}

std::int32_t AdapterDrawer::Draw(std::int64_t seed, std::int64_t session) const {
  if (until_.empty()) return 0;
  const double u = Uniform(seed, Stream::kAdapter, session) * until_.back();
  const auto at = std::upper_bound(until_.begin(), until_.end() - 1, u);
  return static_cast<std::int32_t>(at - until_.begin()) + 1;
}

}  // namespace servecast
