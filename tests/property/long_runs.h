// What a load comes to in the long run, by brute force: pooled requests of long runs, the beginning
// and the end of each cut off. Shares with plans what a single run tells, and nothing else.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/documents.h"
#include "experiment/observations.h"
#include "experiment/replications.h"
#include "metrics/samples.h"
#include "servecast/workload_spec.h"

namespace servecast::testing {

// The worst target's share of its limit; infinite where less is completed than comes.
inline double LongStrain(Scenario scenario, std::int64_t requests, std::size_t runs = 1) {
  const std::uint64_t seed = scenario.seed;
  std::vector<std::vector<double>> pooled(scenario.slo.size());
  std::vector<double> beyond(scenario.slo.size()), all(scenario.slo.size());
  scenario.workload->requests = requests;
  for (std::size_t run = 0; run < runs; ++run) {
    scenario.seed = SeedOfRun(seed + 4242, run);
    Simulation simulation = Good(Simulation::Create(scenario));
    while (!simulation.Advance(INT64_MAX)) {
    }
    const Observations seen = ObservationsOf(scenario, simulation.Records(), Report());
    std::size_t come = 0;
    for (const TimeNs arrival : seen.arrival) come += arrival > seen.last_offered / 2 ? 1 : 0;
    std::size_t gone = 0;
    for (const auto& done : seen.completions) {
      gone += done.time > seen.last_offered / 2 && done.time <= seen.last_offered ? 1 : 0;
    }
    if (static_cast<double>(gone) < 0.985 * static_cast<double>(come)) {
      return std::numeric_limits<double>::infinity();
    }
    for (std::size_t i = seen.arrival.size() / 20; i < seen.arrival.size(); ++i) {
      if (seen.arrival[i] > seen.last_offered - seen.usual_e2e) break;
      for (std::size_t k = 0; k < scenario.slo.size(); ++k) {
        if (seen.unserved[k][i] == Observations::kForeign) continue;
        all[k] += 1;
        beyond[k] += seen.unserved[k][i];
        if (seen.latency_ms[k][i] >= 0) pooled[k].push_back(seen.latency_ms[k][i]);
      }
    }
  }
  double strain = 0;
  for (std::size_t k = 0; k < scenario.slo.size(); ++k) {
    const SloSpec& slo = scenario.slo[k];
    strain = std::max(strain, beyond[k] / all[k] / (1 - slo.percentile / 100));
    if (slo.metric == SloMetric::kAttainment) continue;
    SortValues(pooled[k]);
    strain = std::max(strain, Percentile(pooled[k], slo.percentile) / slo.limit_ms);
  }
  return strain;
}

// The rate at which it passes 1, by bisection within a factor of `widest` of `near`; 0: at none.
inline double LongMaxRate(const Scenario& scenario, double near, double widest,
                          std::int64_t requests, std::size_t runs = 1) {
  const auto at = [&](double rate) {
    Scenario s = scenario;
    s.workload->arrivals.rate_per_s = rate;
    return LongStrain(std::move(s), requests, runs);
  };
  double low = near / widest, high = near * widest;
  if (at(low) > 1 || at(high) <= 1) return 0;
  while (high > 1.002 * low) {
    const double middle = std::sqrt(low * high);
    (at(middle) <= 1 ? low : high) = middle;
  }
  return std::sqrt(low * high);
}

// The same, straight (in logarithms) between two rates `apart` to either side of `near`: a few
// thousandths off where strain bends, and a quarter of the work.
inline double StraightMaxRate(const Scenario& scenario, double near, double apart,
                              std::int64_t requests, std::size_t runs) {
  const auto at = [&](double rate) {
    Scenario s = scenario;
    s.workload->arrivals.rate_per_s = rate;
    return std::log(LongStrain(std::move(s), requests, runs));
  };
  const double low = at(near / apart), high = at(near * apart);
  return near / apart * std::exp(-low / (high - low) * 2 * std::log(apart));
}

}  // namespace servecast::testing
