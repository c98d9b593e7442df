#include "metrics/latencies.h"

#include "metrics/samples.h"

namespace servecast {

Distribution Latencies::Distribute() {
  Distribution d;
  d.censored = censored;
  d.n = static_cast<std::int64_t>(ns.size());
  if (ns.empty()) return d;
  double sum = 0;
  for (const double v : ns) sum += v;
  SortValues(ns);
  d.mean = sum / static_cast<double>(ns.size()) / kMs;
  d.min = ns.front() / kMs;
  d.max = ns.back() / kMs;
  d.p50 = Percentile(ns, 50) / kMs;
  d.p90 = Percentile(ns, 90) / kMs;
  d.p95 = Percentile(ns, 95) / kMs;
  d.p99 = Percentile(ns, 99) / kMs;
  if (const auto ranks = ConfidenceRanks(d.n, 99)) {
    d.p99_low = ns[ranks->low] / kMs;
    d.p99_high = ns[ranks->high] / kMs;
  }
  return d;
}

}  // namespace servecast
