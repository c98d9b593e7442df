#include "metrics/unseen.h"

#include "base/text.h"
#include "metrics/words.h"
#include "servecast/workload_spec.h"

namespace servecast {
namespace {

std::string At(double seconds) { return Ms(seconds * 1e3); }

// The first of the rows that begins at the run's end or later.
void AddFirst(const NumberTable& rows, double run_s, const char* words,
              std::vector<std::string>& unseen) {
  for (const std::vector<double>& row : rows) {
    if (row[0] < run_s) continue;
    unseen.push_back(Format("{} {}", words, At(row[0])));
    return;
  }
}

}  // namespace

Unseen UnseenOf(const Scenario& s, double run_s) {
  Unseen unseen;
  if (s.measure.horizon_s) return unseen;
  const ArrivalSpec& a = s.workload->arrivals;
  if (HasRate(a.process)) {
    const double day_s = a.period_h * 3600;
    if (a.profile == RateProfile::kDiurnal && day_s > run_s) {
      unseen.load.push_back("the rest of its day of " + At(day_s));
    }
    if (a.profile == RateProfile::kRamp && a.ramp_s > run_s) {
      unseen.load.push_back("the end of its ramp at " + At(a.ramp_s));
    }
    if (a.profile == RateProfile::kPiecewise) {
      AddFirst(a.rate_factors, run_s, "the rate from", unseen.load);
    }
    AddFirst(a.spikes, run_s, "the spike at", unseen.load);
  }
  const ClusterSpec& c = s.cluster;
  AddFirst(c.failures.schedule, run_s, "the failure at", unseen.events);
  AddFirst(c.slowdowns.schedule, run_s, "the slow replica from", unseen.events);
  for (const PoolSpec& pool : c.pools) {
    if (!c.ScalingOf(pool).On()) continue;
    AddFirst(c.ScalingOf(pool).schedule, run_s, "the number of replicas from", unseen.events);
  }
  if (c.rolling_update.On() && *c.rolling_update.at_s >= run_s) {
    unseen.events.push_back("the rolling update at " + At(*c.rolling_update.at_s));
  }
  return unseen;
}

std::string UnseenWords(const Scenario& scenario, double run_s, std::string_view run) {
  const Unseen unseen = UnseenOf(scenario, run_s);
  std::string words;
  for (const auto* part : {&unseen.load, &unseen.events}) {
    for (const std::string& each : *part) words += (words.empty() ? "" : " and ") + each;
  }
  if (words.empty()) return "";
  return Format(
      "{} ended after {}, before {}: with more requests (workload.requests) it is longer.", run,
      MeasuredMs(run_s * 1e3), words);
}

}  // namespace servecast
