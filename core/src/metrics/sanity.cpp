// Laws and bounds that hold for every serving system, beside what a run found. A false one is a
// fault of the engine, or of a latency model of ours that bills less than physics allows.
#include <algorithm>
#include <cmath>

#include "cost/own_models.h"
#include "metrics/summarize.h"

namespace servecast {
namespace {

// Both sides of the law are sums of whole nanoseconds, added up apart.
constexpr double kOfLaw = 1e-9;
constexpr double kOfBound = 1e-9;

bool Below(double value, double bound) { return value <= bound * (1 + kOfBound); }

// Share of the time that steps run, and the least by the data sheet: of the pool that is nearest to
// it, as pools of different GPUs share no average.
struct Roofline {
  double busy = 0, floor = 0;

  bool Nearer(const Roofline& other) const { return floor * other.busy > other.floor * busy; }
};

Roofline NearestRoofline(const Report& r) {
  Roofline nearest{r.binding.busy_share, std::max(*r.mfu, *r.bandwidth_use)};
  for (std::size_t p = 0; p < r.pools.size(); ++p) {
    const PoolReport& pool = r.pools[p];
    const Roofline own{pool.busy_share, std::max(pool.mfu, pool.bandwidth_use)};
    if (p == 0 || own.Nearer(nearest)) nearest = own;
  }
  return nearest;
}

}  // namespace

std::vector<SanityCheck> SanityOf(const Report& r) {
  std::vector<SanityCheck> checks;
  if (r.rate_times_time) {
    const double law = *r.rate_times_time;
    checks.push_back({"littles_law", "requests",
                      "Requests in the system, over time, are the rate of requests times their "
                      "mean time in it (Little's law).",
                      r.mean_in_system, law,
                      std::fabs(r.mean_in_system - law) <= kOfLaw * std::max(law, 1e-3)});
  }
  if (r.mfu && r.bandwidth_use && IsOwnModel(r.latency_model.backend)) {
    const Roofline pool = NearestRoofline(r);
    checks.push_back({"roofline", "share of the time",
                      "Steps take at least what their arithmetic and memory traffic take at the "
                      "peaks of the data sheet.",
                      pool.busy, pool.floor, Below(pool.floor, pool.busy)});
  }
  checks.push_back({"kv", "share of the blocks",
                    "KV blocks in use are at most those that there are, in every pool.",
                    r.kv_peak_usage, 1, Below(r.kv_peak_usage, 1)});
  double busiest = r.binding.busy_share;
  for (const ReplicaReport& replica : r.replicas) busiest = std::max(busiest, replica.busy_share);
  checks.push_back({"utilisation", "share of the time",
                    "No replica runs steps for longer than there is time.", busiest, 1,
                    Below(busiest, 1)});
  return checks;
}

}  // namespace servecast
