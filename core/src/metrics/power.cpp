// See power.h.
#include "metrics/power.h"

#include <algorithm>
#include <vector>

#include "metrics/summarize.h"

namespace servecast {
namespace {

double AsReal(std::int64_t n) { return static_cast<double>(n); }

// Of all GPUs of a pool, or of several.
struct Energy {
  double joules = 0, serving_joules = 0, serving_s = 0;  // the last two: a GPU's, summed
  std::vector<double> watts;                             // by interval of the series
};

Energy EnergyOf(const PoolRun& pool, TimeNs end) {
  const HardwareSpec& hardware = pool.scenario.hardware;
  const PoolSpec& spec = pool.spec();
  const double groups = AsReal(spec.replicas * spec.pipeline_parallel), gpus = AsReal(spec.Gpus());
  TimeNs width = 0;
  const std::vector<SeriesBin> bins = pool.recorder.BinsUpTo(end, &width);
  Energy energy;
  for (std::size_t b = 0; b < bins.size(); ++b) {
    const TimeNs start = static_cast<TimeNs>(b) * width;
    const double seconds = AsReal(std::min(end - start, width)) / 1e9;
    if (seconds <= 0) continue;
    const double busy_s = static_cast<double>(bins[b].busy) / 1e9;
    const double busy = std::min(1.0, busy_s / (seconds * AsReal(spec.replicas)));
    const double watts = MeanWatts(
        hardware, busy,
        UseOf(bins[b].work, bins[b].output_tokens, seconds * groups, pool.cost, hardware));
    energy.watts.push_back(watts * gpus);
    energy.joules += watts * gpus * seconds;
    energy.serving_joules += (watts - (1 - busy) * hardware.idle_w) * gpus * seconds;
    energy.serving_s += busy * gpus * seconds;
  }
  return energy;
}

void AddEnergy(const Energy& more, Energy& sum) {
  sum.joules += more.joules;
  sum.serving_joules += more.serving_joules;
  sum.serving_s += more.serving_s;
  sum.watts.resize(std::max(sum.watts.size(), more.watts.size()), 0);
  for (std::size_t b = 0; b < more.watts.size(); ++b) sum.watts[b] += more.watts[b];
}

PowerReport PowerReportOf(const Energy& energy, double gpus, double seconds, std::int64_t tokens) {
  PowerReport r;
  r.energy_j = energy.joules;
  r.mean_w = energy.joules / (gpus * seconds);
  for (const double watts : energy.watts) r.peak_w = std::max(r.peak_w, watts / gpus);
  if (energy.serving_s > 0) r.serving_w = energy.serving_joules / energy.serving_s;
  r.kwh_per_hour = r.mean_w * gpus / 1000;
  if (tokens > 0) r.j_per_output_token = energy.joules / AsReal(tokens);
  return r;
}

}  // namespace

double MeanWatts(const HardwareSpec& hardware, double busy, const PeakUse& use) {
  const double added =
      busy * hardware.busy_w + use.mfu * hardware.compute_w + use.bandwidth * hardware.memory_w;
  const double room = std::max(0.0, hardware.power_cap_w - hardware.idle_w);
  return hardware.idle_w + std::min(added, busy * room);
}

void ReportPower(const RunView& run, Report& report) {
  // Power of replicas that come and go is not known: starting ones draw what nobody measured.
  if (run.end <= 0 || run.scaling.starts + run.scaling.stops > 0) return;
  const double seconds = AsReal(run.end) / 1e9;
  bool known = true;
  double gpus = 0;
  Energy all;
  for (std::size_t p = 0; p < run.pools.size(); ++p) {
    const PoolRun& pool = run.pools[p];
    known = known && KnowsPower(pool.scenario.hardware);
    if (!KnowsPower(pool.scenario.hardware)) continue;
    const Energy energy = EnergyOf(pool, run.end);
    const double own = AsReal(pool.spec().Gpus());
    gpus += own;
    AddEnergy(energy, all);
    if (run.HasPools()) {
      report.pools[p].power = PowerReportOf(energy, own, seconds, pool.recorder.output_tokens());
    }
  }
  if (!known) return;
  report.power = PowerReportOf(all, gpus, seconds, report.output_tokens);
  if (report.completed > 0) report.power->j_per_request = all.joules / AsReal(report.completed);
}

}  // namespace servecast
