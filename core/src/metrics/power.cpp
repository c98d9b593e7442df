// See power.h.
#include "metrics/power.h"

#include <algorithm>
#include <vector>

#include "metrics/summarize.h"

namespace servecast {
namespace {

constexpr double kJoulesOfKwh = 3.6e6;

double AsReal(std::int64_t n) { return static_cast<double>(n); }

double CapOf(const HardwareSpec& hardware) {
  return hardware.power_limit_w > 0 ? std::min(hardware.power_limit_w, hardware.power_cap_w)
                                    : hardware.power_cap_w;
}

// What a site draws in all, in J, what that costs and emits.
struct Site {
  double joules = 0, price = 0, co2_g = 0;
  bool draws_more = false, has_price = true, has_co2 = true;  // the last two: of all pools
};

// Of all GPUs of a pool, or of several.
struct Energy {
  double joules = 0, serving_joules = 0, serving_s = 0;  // the last two: a GPU's, summed
  // J, by the laws' errors, as if all were off together; no card is beyond its cap or below idle.
  double least = 0, most = 0, token_off_by = 0;
  bool errors = true;  // known of all
  Site site;
  std::vector<double> watts;  // by interval of the series
};

// Of machines that took so many J.
Site SiteOf(const HardwareSpec& hardware, double joules) {
  Site site;
  site.joules = joules * hardware.pue;
  site.price = site.joules / kJoulesOfKwh * hardware.price_per_kwh;
  site.co2_g = site.joules / kJoulesOfKwh * hardware.co2_g_per_kwh;
  site.draws_more = hardware.host_w > 0 || hardware.pue > 1;
  site.has_price = hardware.price_per_kwh > 0;
  site.has_co2 = hardware.co2_g_per_kwh > 0;
  return site;
}

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
  const double gpu_s = gpus * AsReal(end) / 1e9;
  // A limit below the idle power, which nothing keeps, is no bound.
  energy.least = std::min(
      energy.joules, std::max(energy.joules * (1 - hardware.power_error), hardware.idle_w * gpu_s));
  energy.most = std::max(
      energy.joules, std::min(energy.joules * (1 + hardware.power_error), CapOf(hardware) * gpu_s));
  energy.token_off_by = energy.joules * hardware.energy_error;
  energy.errors = hardware.power_error > 0 && hardware.energy_error > 0;
  energy.site = SiteOf(hardware, energy.joules + hardware.host_w * gpu_s);
  return energy;
}

void AddEnergy(const Energy& more, Energy& sum) {
  sum.joules += more.joules;
  sum.serving_joules += more.serving_joules;
  sum.serving_s += more.serving_s;
  sum.least += more.least;
  sum.most += more.most;
  sum.token_off_by += more.token_off_by;
  sum.errors = sum.errors && more.errors;
  sum.site.joules += more.site.joules;
  sum.site.price += more.site.price;
  sum.site.co2_g += more.site.co2_g;
  sum.site.draws_more = sum.site.draws_more || more.site.draws_more;
  sum.site.has_price = sum.site.has_price && more.site.has_price;
  sum.site.has_co2 = sum.site.has_co2 && more.site.has_co2;
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
  if (energy.errors && energy.joules > 0) {
    const double token_off = energy.token_off_by / energy.joules;
    r.mean_w_low = energy.least / (gpus * seconds);
    r.mean_w_high = energy.most / (gpus * seconds);
    if (r.j_per_output_token) {
      r.j_per_output_token_low = *r.j_per_output_token * (1 - token_off);
      r.j_per_output_token_high = *r.j_per_output_token * (1 + token_off);
    }
  }
  const Site& site = energy.site;
  const double hours = seconds / 3600;
  if (site.draws_more) r.site_kwh_per_hour = site.joules / kJoulesOfKwh / hours;
  if (site.has_price) r.electricity_per_hour = site.price / hours;
  if (site.has_co2) r.co2_kg_per_hour = site.co2_g / 1000 / hours;
  return r;
}

}  // namespace

double MeanWatts(const HardwareSpec& hardware, double busy, const PeakUse& use) {
  const double added =
      busy * hardware.busy_w + use.mfu * hardware.compute_w + use.bandwidth * hardware.memory_w;
  const double most = CapOf(hardware);
  const double room = std::max(0.0, most - hardware.idle_w);
  return hardware.idle_w + std::min(added, busy * room);
}

std::vector<double> ReportPower(const RunView& run, Report& report) {
  // Power of replicas that come and go is not known: starting ones draw what nobody measured.
  if (run.end <= 0 || run.scaling.starts + run.scaling.stops > 0) return {};
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
  if (!known) return {};
  report.power = PowerReportOf(all, gpus, seconds, report.output_tokens);
  if (report.completed > 0) report.power->j_per_request = all.joules / AsReal(report.completed);
  for (double& watts : all.watts) watts /= gpus;
  return std::move(all.watts);
}

}  // namespace servecast
