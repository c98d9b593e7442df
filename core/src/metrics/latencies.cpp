#include "metrics/latencies.h"

#include "metrics/samples.h"

namespace servecast {

Distribution Latencies::Distribute() {
  Distribution d = DistributionOf(ns, kMs);
  d.censored = censored;
  if (const auto ranks = ConfidenceRanks(d.n, 99)) {
    d.p99_low = ns[ranks->low] / kMs;
    d.p99_high = ns[ranks->high] / kMs;
  }
  return d;
}

Distribution DistributionOf(std::vector<double>& values, double ms) {
  Distribution d;
  d.n = static_cast<std::int64_t>(values.size());
  if (values.empty()) return d;
  double sum = 0;
  for (const double v : values) sum += v;
  SortValues(values);
  d.mean = sum / static_cast<double>(values.size()) / ms;
  d.min = values.front() / ms;
  d.max = values.back() / ms;
  d.p50 = Percentile(values, 50) / ms;
  d.p90 = Percentile(values, 90) / ms;
  d.p95 = Percentile(values, 95) / ms;
  d.p99 = Percentile(values, 99) / ms;
  return d;
}

std::vector<double> CdfPercents() {
  constexpr int kPoints = 401;
  std::vector<double> percents;
  for (int i = 0; i < kPoints - 1; ++i) percents.push_back(100.0 * i / (kPoints - 1));
  percents.insert(percents.end(), {99.8, 99.85, 99.9, 99.95, 99.99, 100});
  return percents;
}

std::vector<double> CdfOf(const std::vector<double>& sorted, double ms) {
  std::vector<double> values;
  if (sorted.empty()) return values;
  for (const double percent : CdfPercents()) values.push_back(Percentile(sorted, percent) / ms);
  return values;
}

}  // namespace servecast
