// See saturation.h.
#include "metrics/saturation.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/text.h"
#include "metrics/samples.h"

namespace servecast {
namespace {

constexpr int kBatches = 16;
constexpr double kT99 = 2.624;  // Student's t, 14 degrees of freedom, one-sided 99 %
constexpr double kNearUse = 0.9;
constexpr double kNearBlocked = 0.05;

struct Trend {
  double slope = 0;  // per batch
  double t = 0;
};

// Ordinary least squares over means of batches, whose noise is less correlated than the bins'.
Trend TrendOf(const std::vector<double>& values) {
  const std::size_t size = values.size() / kBatches;
  std::vector<double> means(kBatches, 0.0);
  for (std::size_t i = 0; i < size * kBatches; ++i) {
    means[i / size] += values[i] / static_cast<double>(size);
  }
  constexpr double n = kBatches;
  double mean = 0, sxy = 0, sxx = 0, residual = 0;
  for (const double m : means) mean += m / n;
  for (int b = 0; b < kBatches; ++b) {
    const double x = b - (n - 1) / 2;
    sxy += x * (means[static_cast<std::size_t>(b)] - mean);
    sxx += x * x;
  }
  Trend trend;
  trend.slope = sxy / sxx;
  for (int b = 0; b < kBatches; ++b) {
    const double x = b - (n - 1) / 2;
    const double e = means[static_cast<std::size_t>(b)] - mean - trend.slope * x;
    residual += e * e;
  }
  const double error = std::sqrt(residual / (n - 2) / sxx);
  constexpr double kNoNoise = 1e6;  // a line without any scatter
  trend.t = error > 0 ? trend.slope / error : trend.slope > 0 ? kNoNoise : 0;
  return trend;
}

// Mean use of the scarcest of KV blocks, seats, the token budget and arithmetic.
double Utilization(const EngineSpec& engine, const Report& report, const QueueHistory& h) {
  if (h.first_bin >= h.last_bin) return 0;
  if (h.scarcest_use) return std::max(*h.scarcest_use, h.compute_share);
  const auto mean = [&](std::string_view column, double full) {
    const std::vector<double>& values = report.ColumnOf(column);
    double sum = 0;
    for (std::size_t b = h.first_bin; b < h.last_bin; ++b) sum += values[b];
    return sum / full / static_cast<double>(h.last_bin - h.first_bin);
  };
  const double n = h.replicas;
  return std::max(
      {mean("series_kv_usage", 1),
       mean("series_running", n * static_cast<double>(engine.max_num_seqs)),
       mean("series_batch_tokens", n * static_cast<double>(engine.max_num_batched_tokens)),
       h.compute_share});
}

bool Strains(const Saturation& s, double blocked_share) {
  return s.utilization >= kNearUse || blocked_share > kNearBlocked;
}

}  // namespace

bool IsStrained(const Report& report) {
  const auto& shares = report.binding.shares;
  double blocked = shares[0] + shares[1] + shares[2];
  for (const PoolReport& pool : report.pools) blocked = std::max(blocked, pool.blocked_share);
  return Strains(report.saturation, blocked);
}

Saturation AssessSaturation(const EngineSpec& engine, const Report& report, const QueueHistory& h) {
  Saturation s;
  std::vector<double> queue, in_system;
  const std::vector<double>&waiting = report.ColumnOf("series_waiting"),
        &running = report.ColumnOf("series_running");
  for (std::size_t b = h.first_bin; b < h.last_bin; ++b) {
    queue.push_back(waiting[b]);
    in_system.push_back(waiting[b] + running[b]);
  }
  const bool brief = queue.size() < kBatches && !h.closed_loop;
  const auto behind = [&h](std::int64_t served) {
    return static_cast<double>(h.arrived - served) > std::sqrt(static_cast<double>(h.arrived));
  };
  if (!brief && !h.closed_loop) {
    const Trend trend = TrendOf(queue);
    const auto size = static_cast<double>(queue.size() / kBatches);
    s.queue_slope_per_s = trend.slope / (size * h.bin_s);
    s.queue_slope_t = trend.t;
    s.queue_grows = trend.slope > 0 && trend.t > kT99;
    const Trend filling = TrendOf(in_system);
    s.filling = filling.slope > 0 && filling.t > kT99 && behind(h.completed);
  }
  if (!queue.empty()) {
    SortValues(queue);
    s.queue_p95 = Percentile(queue, 95);
  }
  s.utilization = Utilization(engine, report, h);
  // A queue whose members give up does not grow for ever.
  const bool leaves = static_cast<double>(h.gave_up) > std::sqrt(static_cast<double>(h.arrived));
  if ((brief || s.queue_grows || leaves) && behind(h.started) && !h.closed_loop) {
    s.state = SaturationState::kOverloaded;
  } else if (Strains(s, h.blocked_share) || s.filling) {
    s.state = SaturationState::kNear;
  }
  const char* what = h.capped        ? "cannot grow beyond what clients have in flight at most"
                     : h.closed_loop ? "cannot grow beyond the clients of the closed loop"
                     : brief         ? "was not watched for long"
                     : s.queue_grows ? "grew"
                                     : "did not grow";
  s.evidence = Format(
      "over the last half of the {} {} requests came, {} were started and {} completed{}; "
      "the queue {} "
      "(slope {} requests/s, t = {}); the scarcest of KV blocks, seats, tokens and "
      "arithmetic was {} % used; "
      "admission was blocked {} % of the time",
      h.closed_loop ? "run" : "arrivals", h.arrived, h.started, h.completed,
      h.gave_up > 0 ? Format(", {} gave up in the queue", h.gave_up) : "", what,
      ShortNumber(s.queue_slope_per_s), ShortNumber(s.queue_slope_t),
      ShortNumber(100 * s.utilization), ShortNumber(100 * h.blocked_share));
  return s;
}

void PutFilling(bool filling, Report& report) {
  Saturation& s = report.saturation;
  s.filling = filling;
  s.state = filling || IsStrained(report) ? SaturationState::kNear : SaturationState::kStable;
}

}  // namespace servecast
