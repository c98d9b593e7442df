// What a run had on average of replicas and KV, and which part of its time went where.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "metrics/summarize.h"

namespace servecast {
namespace {

// Of those that come and go the mean over a part of the run; `serving`: without those that start.
double MeanOfScaled(const ScalingReport& scaling, TimeNs from, TimeNs to, bool serving) {
  const auto& steps = scaling.steps;
  const auto count = [&](std::size_t i) {
    return static_cast<double>(steps[i].up + steps[i].draining + (serving ? 0 : steps[i].starting));
  };
  if (steps.size() == 1 || to <= from) return count(0);
  double sum = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double next = i + 1 < steps.size() ? steps[i + 1].at_s : Seconds(to);
    const double begin = std::max(steps[i].at_s, Seconds(from));
    sum += count(i) * std::max(0.0, std::min(next, Seconds(to)) - begin);
  }
  return sum / Seconds(to - from);
}

// Those that serve, draining or not, and those that start; whole numbers where these stay.
std::pair<double, double> ServingAndStarting(const ScalingReport& scaling, TimeNs from, TimeNs to) {
  const auto& steps = scaling.steps;
  double serving = 0, starting = 0, time = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double next = i + 1 < steps.size() ? steps[i + 1].at_s : Seconds(to);
    const double begin = std::max(steps[i].at_s, Seconds(from));
    const double part = std::max(0.0, std::min(next, Seconds(to)) - begin);
    serving += part * static_cast<double>(steps[i].up + steps[i].draining);
    starting += part * static_cast<double>(steps[i].starting);
    time += part;
  }
  if (time == 0) return {0, 0};
  return {serving / time, starting / time};
}

const ScalingReport& ScalingOf(const RunView& run, std::size_t pool) {
  return run.HasPools() ? run.scaling.pools[pool] : run.scaling;
}

double ServingOf(const RunView& run, std::size_t pool, TimeNs from, TimeNs to) {
  if (run.scaling.on) return MeanOfScaled(ScalingOf(run, pool), from, to, true);
  return static_cast<double>(run.pools[pool].spec().replicas);
}

}  // namespace

std::vector<std::pair<std::string, std::vector<double>>> ReplicasOverTime(const RunView& run,
                                                                          TimeNs width,
                                                                          std::size_t intervals) {
  std::vector<std::pair<std::string, std::vector<double>>> columns;
  if (run.scaling.steps.size() < 2) return columns;
  const auto put = [&](const std::string& prefix, const std::vector<const ScalingReport*>& of) {
    std::vector<double> up(intervals), starting(intervals);
    for (std::size_t i = 0; i < intervals; ++i) {
      const TimeNs from = static_cast<TimeNs>(i) * width;
      const TimeNs to = i + 1 < intervals ? from + width : run.end;
      for (const ScalingReport* scaling : of) {
        const auto [serving, begins] = ServingAndStarting(*scaling, from, to);
        up[i] += serving;
        starting[i] += begins;
      }
    }
    columns.emplace_back(prefix + "up", std::move(up));
    columns.emplace_back(prefix + "starting", std::move(starting));
  };
  put("series_replicas_", {&run.scaling});
  for (const auto& [role, prefix] : {std::pair(PoolRole::kPrefill, "series_prefill_replicas_"),
                                     {PoolRole::kDecode, "series_decode_replicas_"}}) {
    std::vector<const ScalingReport*> own;
    for (std::size_t p = 0; p < run.scaling.pools.size(); ++p) {
      if (run.pools[p].spec().role == role) own.push_back(&run.scaling.pools[p]);
    }
    if (!own.empty()) put(prefix, own);
  }
  return columns;
}

double MeanReplicas(const RunView& run, TimeNs from, TimeNs to) {
  if (run.scaling.on) return MeanOfScaled(run.scaling, from, to, false);
  return static_cast<double>(run.scenario.cluster.Replicas());
}

double MeanReplicas(const RunView& run, std::size_t pool, TimeNs from, TimeNs to) {
  if (run.scaling.on) return MeanOfScaled(ScalingOf(run, pool), from, to, false);
  return static_cast<double>(run.pools[pool].spec().replicas);
}

void PutGpus(const PoolRun& pool, TimeNs end, ScalingReport& scaling) {
  const auto gpus = static_cast<double>(pool.spec().GpusOfReplica());
  scaling.mean_gpus = scaling.mean_replicas * gpus;
  scaling.gpu_hours = scaling.replica_s * gpus / 3600;
  if (scaling.has_warm && end > 0) {
    scaling.mean_gpus += scaling.warm_s / Seconds(end) * gpus;
    scaling.gpu_hours += scaling.warm_s * gpus / 3600;
  }
  if (const auto& price = pool.scenario.hardware.price_per_gpu_hour) {
    scaling.cost = scaling.gpu_hours * *price;
  }
}

double MeanKvBlocks(const RunView& run, TimeNs from, TimeNs to) {
  double blocks = 0;
  for (std::size_t p = 0; p < run.pools.size(); ++p) {
    blocks += static_cast<double>(run.pools[p].cost.usable_blocks) * ServingOf(run, p, from, to);
  }
  return blocks;
}

double MeanKvTokens(const RunView& run, TimeNs from, TimeNs to) {
  double tokens = 0;
  for (std::size_t p = 0; p < run.pools.size(); ++p) {
    const PoolRun& pool = run.pools[p];
    tokens += static_cast<double>(pool.cost.usable_blocks * pool.scenario.engine.block_size) *
              ServingOf(run, p, from, to);
  }
  return tokens;
}

double ShareOfTime(const RunView& run, TimeNs ns) {
  const double all = static_cast<double>(run.end) * MeanReplicas(run, 0, run.end);
  return all > 0 ? static_cast<double>(ns) / all : 0;
}

double BlockedShare(const RunView& run) {
  const Recorder& r = run.recorder;
  return ShareOfTime(run, r.blocked_ns(BlockedBy::kKvBlocks) + r.blocked_ns(BlockedBy::kSeats) +
                              r.blocked_ns(BlockedBy::kTokenBudget));
}

// What keeps requests waiting at admission, if it does so for 10 % of the time and the GPU has
// arithmetic to spare: more room would then be used. Else what bounds the steps themselves.
void ReportBinding(const RunView& run, Report& report) {
  const Recorder& r = run.recorder;
  const TimeNs ns[] = {r.blocked_ns(BlockedBy::kKvBlocks),    r.blocked_ns(BlockedBy::kSeats),
                       r.blocked_ns(BlockedBy::kTokenBudget), r.bound_ns(StepBound::kCompute),
                       r.bound_ns(StepBound::kBandwidth),     r.bound_ns(StepBound::kOverhead)};
  BindingConstraint& b = report.binding;
  for (std::size_t i = 0; i < b.shares.size(); ++i) b.shares[i] = ShareOfTime(run, ns[i]);
  b.busy_share = ShareOfTime(run, r.busy_ns());
  const auto largest = [&b](std::size_t first, std::size_t last) {
    const double* begin = b.shares.data();
    return static_cast<std::size_t>(std::max_element(begin + first, begin + last) - begin);
  };
  const std::size_t blocked = largest(0, 3), bound = largest(3, 6);
  const bool spare = ns[3] * 2 < r.busy_ns();
  const std::size_t best = b.shares[blocked] >= 0.1 && spare ? blocked : bound;
  if (b.shares[best] > 0) {
    b.name = BindingConstraint::kNames[best];
    b.share = b.shares[best];
  }
}

// Measured decodes say nothing of a run whose steps are mostly the arithmetic of prompts.
void DoubtPrompts(const RunView& run, Report& report) {
  const Recorder& recorder = run.recorder;
  Evidence& e = report.latency_model.evidence;
  const bool arithmetic = recorder.bound_ns(StepBound::kCompute) * 2 > recorder.busy_ns();
  const bool of_decodes = std::all_of(e.errors.begin(), e.errors.end(),
                                      [](const auto& error) { return error.figure == "tpot"; });
  if (e.errors.empty() || !of_decodes || !arithmetic) return;
  if (run.counts.prefill_tokens < recorder.output_tokens()) return;
  if (e.of == EvidenceClass::kKnownBad) return;
  e.of = EvidenceClass::kUntested;
  e.errors.clear();
  e.rows = 0;
  e.left_out = false;
  constexpr const char* kDoubt =
      " Prompts take most of this run's steps, and times of prompts were not measured, so the "
      "error is not known.";
  e.sentence += kDoubt;
  report.latency_model.known_error += kDoubt;
}

}  // namespace servecast
