// See targets.h.
#include "metrics/targets.h"

#include <algorithm>
#include <limits>

#include "metrics/summarize.h"

namespace servecast {
namespace {

constexpr double kBeyond = std::numeric_limits<double>::infinity();

// As StrainOf, of one limit, of a request that was not lost.
std::optional<double> StrainOfLimit(const SloLimit& limit, const RequestTable& requests,
                                    const RequestResults& results, std::size_t i, TimeNs end) {
  const TimeNs arrival = requests.arrival[i], first = results.first_token[i],
               completion = results.completion[i];
  const double ns = limit.ms * kMs;
  switch (limit.metric) {
    case SloMetric::kTtft:
      if (first >= 0) return static_cast<double>(first - arrival) / ns;
      return end >= 0 ? std::optional(kBeyond) : std::nullopt;
    case SloMetric::kE2e:
      if (completion >= 0) return static_cast<double>(completion - arrival) / ns;
      return static_cast<double>(end - arrival) > ns ? std::optional(kBeyond) : std::nullopt;
    case SloMetric::kTpot:
    case SloMetric::kItl:  // of one request: its mean gap
    case SloMetric::kAttainment:
      if (completion < 0) return end == kNever ? std::optional(kBeyond) : std::nullopt;
      if (results.generated[i] <= 1) return 0;
      return static_cast<double>(completion - first) /
             static_cast<double>(results.generated[i] - 1) / ns;
  }
  return std::nullopt;
}

}  // namespace

std::vector<SloLimit> LimitsOf(const SloSpec& slo) {
  if (slo.metric != SloMetric::kAttainment) return {{slo.metric, slo.limit_ms}};
  std::vector<SloLimit> limits;
  if (slo.ttft_ms) limits.push_back({SloMetric::kTtft, *slo.ttft_ms});
  if (slo.tpot_ms) limits.push_back({SloMetric::kTpot, *slo.tpot_ms});
  if (slo.e2e_ms) limits.push_back({SloMetric::kE2e, *slo.e2e_ms});
  return limits;
}

TimeNs WaitsUntil(const Scenario& scenario, bool finished, TimeNs end) {
  return finished && !scenario.measure.horizon_s ? kNever : end;
}

std::optional<double> StrainOf(const std::vector<SloLimit>& limits, const RequestTable& requests,
                               const RequestResults& results, std::size_t i, TimeNs end) {
  if (IsLost(results.state[i])) return kBeyond;
  double most = 0;
  bool open = false;
  for (const SloLimit& limit : limits) {
    const std::optional<double> strain = StrainOfLimit(limit, requests, results, i, end);
    open = open || !strain;
    most = std::max(most, strain.value_or(0));
  }
  if (open && most <= 1) return std::nullopt;
  return most;
}

// Who has not finished may yet be within.
void MeasureAttainment(const RunView& run, const std::vector<std::size_t>& of_class, Report& r) {
  for (std::size_t k = 0; k < r.slo.size(); ++k) {
    if (r.slo[k].slo.metric != SloMetric::kAttainment) continue;
    const std::vector<SloLimit> limits = LimitsOf(r.slo[k].slo);
    const TimeNs end = run.finished ? WaitsUntil(run.scenario, true, run.end) : -1;
    std::int64_t within = 0, all = 0;
    for (std::size_t i = 0; i < run.requests.arrival.size(); ++i) {
      if (!run.Arrived(i) || !run.Measured(i)) continue;
      if (of_class[k] != RunView::kNoClass && of_class[k] != run.ClassOf(i)) continue;
      const auto strain = StrainOf(limits, run.requests, run.results, i, end);
      if (!strain) continue;
      ++all;
      within += *strain <= 1 ? 1 : 0;
    }
    if (all > 0) r.slo[k].share = static_cast<double>(within) / static_cast<double>(all);
  }
}

void PutMargin(SloResult& result) {
  const double allowed = 1 - result.slo.percentile / 100;
  if (result.share) {
    result.met = 1 - *result.share <= allowed;
    if (allowed > 0) result.margin = 1 - (1 - *result.share) / allowed;
  }
  if (!result.value_ms) return;
  result.margin = 1 - *result.value_ms / result.slo.limit_ms;
  result.met = *result.value_ms <= result.slo.limit_ms && result.unserved_share <= allowed;
}

}  // namespace servecast
