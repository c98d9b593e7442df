// See summarize.h. A request beyond the end of the run (a horizon) has not arrived, nor has a turn
// of a session whose arrival is still -1. Doubles begin here: everything that comes in is an
// integer.
#include "metrics/summarize.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "metrics/latencies.h"
#include "metrics/saturation.h"
#include "metrics/targets.h"
#include "metrics/time_split.h"
#include "metrics/work.h"
#include "servecast/workload_spec.h"

namespace servecast {
namespace {

constexpr std::size_t kAll = RunView::kNoClass;

class Summary {
 public:
  Summary(const RunView& run, ReportDetail detail) : run_(run) {
    report_.columns.resize(Columns().size());
    Count();
    if (detail == ReportDetail::kTotals) {
      Totals();
      return;
    }
    FindClasses();
    CollectLatencies();
    GapsBetweenTokens();
    DelaysOfSteps();
    SplitTimes(run, report_);
    if (!run.requests.images_until.empty()) ReportImages(run, report_);
    if (run.HasPools()) ReportPools(run, report_);
    Rates();
    Series();
    JudgeSaturation();
    JudgeFairness(run, report_);
    ReportBinding(run, report_);
    Slos();
    Describe();
    if (detail == ReportDetail::kRequests) FillRequestColumns(run, report_);
    report_.fingerprint = FingerprintOf(run, report_);
    report_.sanity = SanityOf(report_);
    Judge(run.scenario, report_);
  }

  Report Take() { return std::move(report_); }

 private:
  bool Arrived(std::size_t r) const { return run_.Arrived(r); }
  bool Measured(std::size_t r) const { return run_.Measured(r); }
  std::size_t ClassOf(std::size_t r) const { return run_.ClassOf(r); }
  std::size_t Size() const { return run_.requests.arrival.size(); }
  std::vector<double>& ColumnAt(std::string_view name) {
    std::size_t i = 0;
    while (Columns()[i].name != name) ++i;
    return report_.columns[i];
  }

  void Totals() {
    if (run_.HasPools()) ReportPools(run_, report_);
    Series();
    ReportBinding(run_, report_);
    report_.prefix_cache = run_.prefix_cache;
  }

  void Count() {
    Report& r = report_;
    r.scaling = run_.scaling;
    for (std::size_t i = 0; i < Size(); ++i) {
      if (!Arrived(i)) continue;
      ++r.arrived;
      ++r.finish_reasons.requests[run_.FinishReasonOf(i)];
      r.completed += run_.results.state[i] == RequestState::kCompleted ? 1 : 0;
      r.dropped += run_.results.state[i] == RequestState::kDropped ? 1 : 0;
      r.timed_out += run_.results.state[i] == RequestState::kTimedOut ? 1 : 0;
      r.rejected += run_.results.state[i] == RequestState::kRejected ? 1 : 0;
      r.scaling.failures.lost += run_.results.state[i] == RequestState::kLost ? 1 : 0;
      if (run_.results.state[i] == RequestState::kCompleted) {
        r.prompt_tokens += run_.requests.prompt_tokens[i];
      }
    }
    r.running = run_.running;
    r.queued = r.arrived - r.completed - r.Lost() - r.running;
    SERVECAST_CHECK(r.queued >= 0, "I1: arrived = completed + queued + running + lost");
    r.length_capped = run_.length_capped;
    r.preemptions = run_.recorder.preemptions();
    r.output_tokens = run_.recorder.output_tokens();
    r.steps = run_.recorder.steps();
    r.simulated_s = Seconds(run_.end);
    r.retries = run_.retries;
    r.finished = run_.finished;
  }

  // The class that each target is of.
  void FindClasses() {
    const std::vector<ClassSpec>& classes = run_.scenario.workload->classes;
    const bool known = !run_.requests.of_class.empty();
    for (std::size_t c = 0; known && c < classes.size(); ++c) {
      report_.classes.emplace_back();
      report_.classes.back().name = classes[c].name;
    }
    for (const SloSpec& slo : run_.scenario.slo) {
      std::size_t c = 0;
      while (c < classes.size() && classes[c].name != slo.of_class) ++c;
      slo_class_.push_back(slo.of_class.empty() ? kAll : c);
      report_.slo.emplace_back();
      report_.slo.back().slo = slo;
      limits_.push_back(LimitsOf(slo));
    }
  }
  // All of them, then class by class.
  void CollectLatencies() {
    {
      LatencySet all;
      for (std::size_t i = 0; i < Size(); ++i) Collect(i, all);
      report_.ttft_ms = all.ttft.Distribute();
      report_.tpot_ms = all.tpot.Distribute();
      report_.e2e_ms = all.e2e.Distribute();
      report_.scheduling_delay_ms = all.delay.Distribute();
      ColumnAt("cdf_ttft_ms") = CdfOf(all.ttft.ns, kMs);
      ColumnAt("cdf_tpot_ms") = CdfOf(all.tpot.ns, kMs);
      ColumnAt("cdf_e2e_ms") = CdfOf(all.e2e.ns, kMs);
      for (const double percent : CdfPercents()) ColumnAt("cdf_fraction").push_back(percent / 100);
      MeasureTargets(all, kAll);
    }
    MeasureAttainment(run_, slo_class_, report_);
    if (report_.classes.empty()) return;
    std::vector<LatencySet> sets(report_.classes.size());
    for (std::size_t i = 0; i < Size(); ++i) Collect(i, sets[ClassOf(i)]);
    for (std::size_t c = 0; c < sets.size(); ++c) {
      ClassReport& of_class = report_.classes[c];
      of_class.ttft_ms = sets[c].ttft.Distribute();
      of_class.tpot_ms = sets[c].tpot.Distribute();
      of_class.e2e_ms = sets[c].e2e.Distribute();
      MeasureTargets(sets[c], c);
    }
  }

  // Client times minus arrivals; TPOT has no meaning for a single token.
  void Collect(std::size_t i, LatencySet& set) const {
    const RequestResults& results = run_.results;
    if (!Arrived(i) || !Measured(i)) return;
    ++set.measured;
    if (IsLost(results.state[i])) {
      ++set.without_e2e;
      if (results.first_token[i] < 0) {
        ++set.without_ttft;
        return;
      }
    }
    const TimeNs arrival = run_.requests.arrival[i];
    set.delay.Add(results.first_scheduled[i], arrival);
    set.ttft.Add(results.first_token[i], arrival);
    if (results.state[i] == RequestState::kTimedOut) return;  // it has no end to wait for
    set.e2e.Add(results.completion[i], arrival);
    if (results.completion[i] < 0) {
      ++set.tpot.censored;
      if (!IsLost(results.state[i])) {  // who was lost is in without_e2e
        set.unfinished.push_back(WaitsUntil(run_.scenario, run_.finished, run_.end) - arrival);
      }
    } else if (results.generated[i] > 1) {
      set.tpot.ns.push_back(run_.TpotNs(i));
    }
  }

  // What the targets for these requests come to; `set` is sorted.
  void MeasureTargets(const LatencySet& set, std::size_t of_class) {
    for (std::size_t k = 0; k < report_.slo.size(); ++k) {
      if (slo_class_[k] != of_class) continue;
      SloResult& result = report_.slo[k];
      const SloMetric metric = result.slo.metric;
      const Latencies& of = metric == SloMetric::kTtft   ? set.ttft
                            : metric == SloMetric::kTpot ? set.tpot
                                                         : set.e2e;
      if (metric == SloMetric::kAttainment) continue;
      if (metric != SloMetric::kItl && !of.ns.empty()) {
        result.value_ms = Percentile(of.ns, result.slo.percentile) / kMs;
      }
      result.unserved_share = UnservedShare(result.slo, set);
    }
  }

  // A dropped request has no first token and no end, one that timed out no end and perhaps no first
  // token, one still queued at a horizon no first token in time: they count among the worst.
  // Of unfinished answers, of which there always are some at a horizon, those do that are older
  // than a limit on E2E, and all that will never end. A request without an answer has no TPOT
  // either.
  double UnservedShare(const SloSpec& slo, const LatencySet& set) const {
    std::int64_t unserved = set.without_e2e;
    if (slo.metric == SloMetric::kTtft) {
      unserved = set.without_ttft + (report_.finished ? set.ttft.censored : 0);
    } else if (slo.metric == SloMetric::kE2e && report_.finished) {
      unserved += std::count_if(set.unfinished.begin(), set.unfinished.end(), [&slo](TimeNs age) {
        return static_cast<double>(age) > slo.limit_ms * kMs;
      });
    } else if (report_.finished && !run_.scenario.measure.horizon_s) {
      unserved += static_cast<std::int64_t>(set.unfinished.size());
    }
    return set.measured > 0 ? static_cast<double>(unserved) / static_cast<double>(set.measured) : 0;
  }

  // Requires: samples ascending, `d.n` their sum of weights, above 0.
  static void Distribute(const std::vector<WeightedSample>& sorted, Distribution& d) {
    WideInt sum = 0;
    for (const WeightedSample& s : sorted) sum += WideInt{s.value} * s.weight;
    const auto named = WeightedPercentiles(sorted, d.n, {50, 90, 95, 99});
    d.mean = static_cast<double>(sum) / static_cast<double>(d.n) / kMs;
    d.min = static_cast<double>(sorted.front().value) / kMs;
    d.max = static_cast<double>(sorted.back().value) / kMs;
    d.p50 = named[0] / kMs;
    d.p90 = named[1] / kMs;
    d.p95 = named[2] / kMs;
    d.p99 = named[3] / kMs;
  }

  void DelaysOfSteps() {
    const Recorder& r = run_.recorder;
    Distribution& d = report_.step_delay_ms;
    std::vector<WeightedSample> sorted = r.step_delays().Sorted(&d.exact);
    if (r.in_turn() > 0) sorted.insert(sorted.begin(), {0, r.in_turn()});
    d.n = r.in_turn() + r.step_delays().total_weight();
    if (d.n > 0) Distribute(sorted, d);
  }

  void GapsBetweenTokens() {
    const WeightedSamples& itl = run_.recorder.itl();
    Distribution& d = report_.itl_ms;
    d.n = itl.total_weight();
    if (d.n == 0) return;
    const std::vector<WeightedSample> sorted = itl.Sorted(&d.exact);
    Distribute(sorted, d);
    std::vector<double>& cdf = ColumnAt("cdf_itl_ms");
    cdf = WeightedPercentiles(sorted, d.n, CdfPercents());
    for (double& v : cdf) v /= kMs;
    for (SloResult& result : report_.slo) {
      if (result.slo.metric != SloMetric::kItl) continue;
      result.value_ms = WeightedPercentiles(sorted, d.n, {result.slo.percentile})[0] / kMs;
    }
  }

  bool MeetsEveryLimit(std::size_t i) const {
    if (run_.results.completion[i] < 0) return false;
    for (std::size_t k = 0; k < slo_class_.size(); ++k) {
      if (slo_class_[k] != kAll && slo_class_[k] != ClassOf(i)) continue;
      if (*StrainOf(limits_[k], run_.requests, run_.results, i, -1) > 1) return false;
    }
    return true;
  }

  struct Tally {
    std::int64_t completed = 0, good = 0, measured = 0, good_measured = 0, tokens = 0;
  };

  void Rates() {
    Report& r = report_;
    std::int64_t gpus = 0;
    TimeNs stage_time = 0;
    for (const PoolRun& pool : run_.pools) {
      const std::int64_t stages = pool.spec().pipeline_parallel;
      gpus += pool.spec().tensor_parallel * pool.spec().replicas * stages;
      r.stages = std::max(r.stages, stages);
      if (stages > 1) stage_time += pool.recorder.busy_ns() * stages;
    }
    r.gpus = gpus;
    if (r.scaling.on && !run_.HasPools()) PutGpus(run_.pools.front(), run_.end, r.scaling);
    if (r.stages > 1 && stage_time > 0) {
      r.bubble_share =
          1 - static_cast<double>(run_.counts.stage_busy_ns) / static_cast<double>(stage_time);
    }
    const double warmup_ns = run_.scenario.measure.warmup_s * 1e9;
    TimeNs last = run_.end;  // a client may see its last token after the engine stopped
    Tally all;
    std::vector<Tally> classes(r.classes.size());
    for (std::size_t i = 0; i < Size(); ++i) {
      if (!Arrived(i)) continue;
      const bool meets = MeetsEveryLimit(i);
      last = std::max(last, run_.results.completion[i]);
      const bool in_window = static_cast<double>(run_.results.completion[i]) > warmup_ns;
      const auto count = [&](Tally& tally) {
        tally.completed += in_window ? 1 : 0;
        tally.good += in_window && meets ? 1 : 0;
        tally.measured += Measured(i) ? 1 : 0;
        tally.good_measured += Measured(i) && meets ? 1 : 0;
        tally.tokens += in_window ? run_.results.generated[i] : 0;
      };
      count(all);
      if (!classes.empty()) {
        count(classes[ClassOf(i)]);
        CountOfClass(i, r.classes[ClassOf(i)]);
      }
    }
    const double seconds = (static_cast<double>(last) - warmup_ns) / 1e9;
    Attain(all, kAll, seconds, r);
    for (std::size_t c = 0; c < classes.size(); ++c) {
      Attain(classes[c], c, seconds, r.classes[c]);
      if (seconds > 0) {
        r.classes[c].output_tokens_per_s = static_cast<double>(classes[c].tokens) / seconds;
      }
    }
    if (seconds <= 0) return;
    r.output_tokens_per_s = static_cast<double>(run_.recorder.measured_tokens()) / seconds;
    r.output_tokens_per_s_per_gpu = r.output_tokens_per_s / MeanGpus(r);
    PutCost(run_.scenario, r);
  }

  void CountOfClass(std::size_t i, ClassReport& r) const {
    const RequestState state = run_.results.state[i];
    ++r.arrived;
    r.completed += state == RequestState::kCompleted ? 1 : 0;
    r.dropped += state == RequestState::kDropped ? 1 : 0;
    r.timed_out += state == RequestState::kTimedOut ? 1 : 0;
    r.rejected += state == RequestState::kRejected ? 1 : 0;
    if (const std::optional<bool> missed = run_.DeadlineMissed(i)) {
      r.deadline_misses = r.deadline_misses.value_or(0) + (*missed ? 1 : 0);
    }
  }

  // Into a report, or that of a class.
  template <class R>
  void Attain(const Tally& tally, std::size_t of_class, double seconds, R& r) const {
    const bool judged = std::any_of(slo_class_.begin(), slo_class_.end(), [&](std::size_t c) {
      return of_class == kAll || c == kAll || c == of_class;
    });
    if (judged && tally.measured > 0) {
      r.attainment = static_cast<double>(tally.good_measured) / static_cast<double>(tally.measured);
    }
    if (seconds <= 0) return;
    r.requests_per_s = static_cast<double>(tally.completed) / seconds;
    r.goodput_per_s = static_cast<double>(tally.good) / seconds;
  }

  void Series() {
    bins_ = BinsOf(run_.recorder);
    std::vector<std::vector<SeriesBin>> of_pools;
    for (const PoolRun& pool : run_.pools) {
      if (run_.HasPools()) of_pools.push_back(BinsOf(pool.recorder));
    }
    WideInt kv_total = 0, running = 0, waiting = 0;
    const bool knows_work = !IsBlis(run_.scenario.engine.compat);
    Work work;
    std::int64_t output_tokens = 0;
    std::vector<double>&of_time_s = ColumnAt("series_time_s"),
    &of_running = ColumnAt("series_running"), &of_waiting = ColumnAt("series_waiting"),
    &of_batch_tokens = ColumnAt("series_batch_tokens"), &of_kv_usage = ColumnAt("series_kv_usage"),
    &of_output_tokens_per_s = ColumnAt("series_output_tokens_per_s"),
    &of_preemptions = ColumnAt("series_preemptions"), &of_mfu = ColumnAt("series_mfu"),
    &of_bandwidth_use = ColumnAt("series_bandwidth_use");
    for (std::size_t b = 0; b < bins_.size(); ++b) {
      const SeriesBin& bin = bins_[b];
      const TimeNs start = static_cast<TimeNs>(b) * bin_width_;
      const auto width = static_cast<double>(b + 1 < bins_.size() ? bin_width_ : run_.end - start);
      kv_total += bin.kv_blocks;
      running += bin.running;
      waiting += bin.waiting;
      of_time_s.push_back(Seconds(start));
      of_running.push_back(static_cast<double>(bin.running) / width);
      of_waiting.push_back(static_cast<double>(bin.waiting) / width);
      of_batch_tokens.push_back(static_cast<double>(bin.batch_tokens) / width);
      const TimeNs end = start + static_cast<TimeNs>(width);
      const double kv_blocks = MeanKvBlocks(run_, start, end);
      of_kv_usage.push_back(kv_blocks > 0 ? static_cast<double>(bin.kv_blocks) / width / kv_blocks
                                          : 0);
      of_output_tokens_per_s.push_back(static_cast<double>(bin.output_tokens) / width * 1e9);
      of_preemptions.push_back(static_cast<double>(bin.preemptions));
      work.Add(bin.work);
      output_tokens += bin.output_tokens;
      if (!knows_work) continue;
      PeakUse use =
          PeakUseOf(bin.work, bin.output_tokens, width / 1e9, MeanReplicas(run_, start, end));
      if (!of_pools.empty()) {
        use = PoolsUse(start, end, [&](std::size_t p) {
          const SeriesBin& own = of_pools[p][b];
          return UseOf(own.work, own.output_tokens, width / 1e9, run_.pools[p].cost,
                       run_.pools[p].scenario.hardware);
        });
      }
      of_mfu.push_back(use.mfu);
      of_bandwidth_use.push_back(use.bandwidth);
    }
    if (knows_work && run_.end > 0) {
      PeakUse use =
          PeakUseOf(work, output_tokens, Seconds(run_.end), MeanReplicas(run_, 0, run_.end));
      if (!of_pools.empty()) {
        use = PoolsUse(0, run_.end, [&](std::size_t p) {
          const PoolReport& pool = report_.pools[p];
          const double groups = pool.mean_replicas * static_cast<double>(pool.stages);
          return PeakUse{pool.mfu * groups, pool.bandwidth_use * groups};
        });
      }
      report_.mfu = use.mfu;
      report_.bandwidth_use = use.bandwidth;
    }
    if (run_.end > 0) {
      report_.kv_mean_usage = static_cast<double>(kv_total) / static_cast<double>(run_.end) /
                              MeanKvBlocks(run_, 0, run_.end);
      // BLIS's rules have levels only.
      const WideInt present = knows_work ? run_.recorder.InSystem(run_.end) : running + waiting;
      report_.mean_in_system = static_cast<double>(present) / static_cast<double>(run_.end);
      report_.kv_mean_fragmentation = static_cast<double>(run_.recorder.kv_unused()) /
                                      static_cast<double>(run_.end) /
                                      MeanKvTokens(run_, 0, run_.end);
    }
    report_.allocation_failures = run_.recorder.blocks_refused();
    if (knows_work) SeriesOfPower(ReportPower(run_, report_));
    for (auto& [name, values] : ReplicasOverTime(run_, bin_width_, bins_.size())) {
      ColumnAt(name) = std::move(values);
    }
    if (run_.recorder.busy_ns() > 0) {
      report_.mean_batch_size =
          static_cast<double>(running) / static_cast<double>(run_.recorder.busy_ns());
    }
    report_.kv_peak_usage = static_cast<double>(run_.recorder.peak_kv_blocks()) /
                            static_cast<double>(run_.cost.usable_blocks);
    report_.kv_peak_fragmentation =
        static_cast<double>(run_.recorder.peak_kv_unused()) /
        static_cast<double>(run_.cost.usable_blocks * run_.scenario.engine.block_size);
    for (std::size_t p = 0; p < report_.pools.size(); ++p) {
      const PoolReport& own = report_.pools[p];
      double &usage = report_.kv_peak_usage, &unused = report_.kv_peak_fragmentation;
      usage = p == 0 ? own.kv_peak_usage : std::max(usage, own.kv_peak_usage);
      unused = p == 0 ? own.kv_peak_fragmentation : std::max(unused, own.kv_peak_fragmentation);
    }
  }

  // Of intervals of which a short last one is part of the one before (BinsOf).
  void SeriesOfPower(std::vector<double> watts) {
    if (watts.empty()) return;
    const auto rest = static_cast<double>(run_.end % bin_width_);
    if (watts.size() > bins_.size()) {
      const auto width = static_cast<double>(bin_width_);
      const double last = watts.back();
      watts.pop_back();
      watts.back() = (watts.back() * width + last * rest) / (width + rest);
    }
    watts.resize(bins_.size());
    ColumnAt("series_power_w") = std::move(watts);
  }

  std::vector<SeriesBin> BinsOf(const Recorder& recorder) {
    std::vector<SeriesBin> bins = recorder.BinsUpTo(run_.end, &bin_width_);
    // A short rest would show the rates of a moment: it is part of the bin before.
    const auto last = static_cast<TimeNs>(bins.size()) - 1;
    if (last > 0 && 2 * (run_.end - last * bin_width_) < bin_width_) {
      bins[bins.size() - 2].Add(bins.back());
      bins.pop_back();
    }
    return bins;
  }

  // Of several pools, each as if it were one replica's: of what all their GPUs could.
  template <class UseOfPool>
  PeakUse PoolsUse(TimeNs from, TimeNs to, UseOfPool use_of) const {
    PeakUse sum;
    double flops = 0, bandwidth = 0;
    for (std::size_t p = 0; p < run_.pools.size(); ++p) {
      const HardwareSpec& hardware = run_.pools[p].scenario.hardware;
      const auto group = static_cast<double>(run_.pools[p].cost.tensor_parallel);
      const double peak = group * PeakTflops(hardware, run_.pools[p].cost.dense_type);
      const PeakUse use = use_of(p);
      sum.mfu += use.mfu * peak;
      sum.bandwidth += use.bandwidth * group * hardware.memory_bandwidth_gb_s;
      const double groups =
          MeanReplicas(run_, p, from, to) * static_cast<double>(report_.pools[p].stages);
      flops += peak * groups;
      bandwidth += group * hardware.memory_bandwidth_gb_s * groups;
    }
    if (flops == 0) return {};
    return {sum.mfu / flops, sum.bandwidth / bandwidth};
  }

  // Of all replicas' GPUs, of one pool.
  PeakUse PeakUseOf(const Work& work, std::int64_t output_tokens, double seconds,
                    double replicas) const {
    if (replicas == 0) return {};
    const auto stages = static_cast<double>(run_.pools.front().spec().pipeline_parallel);
    return UseOf(work, output_tokens, seconds * replicas * stages, run_.cost,
                 run_.scenario.hardware);
  }

  void JudgeSaturation() {
    QueueHistory history;
    history.closed_loop = run_.requests.InLoop();
    history.capped = history.closed_loop && !run_.requests.due.empty();
    const TimeNs last_arrival = run_.LastOffered();
    history.last_bin = std::min(static_cast<std::size_t>(last_arrival / bin_width_), bins_.size());
    history.first_bin = history.last_bin / 2;
    history.bin_s = Seconds(bin_width_);
    const TimeNs half = static_cast<TimeNs>(history.first_bin) * bin_width_;
    for (std::size_t i = 0; i < Size(); ++i) {
      const RequestState state = run_.results.state[i];
      const bool expired = state == RequestState::kRejected && run_.results.WaitedInVain(i);
      if (state == RequestState::kDropped || (state == RequestState::kRejected && !expired)) {
        continue;
      }
      const TimeNs arrival = run_.requests.arrival[i];
      const bool apart = run_.results.HandedOver(i);  // with a queue for each side
      const TimeNs start =
          apart ? run_.results.hand_overs[i].resumed : run_.results.first_scheduled[i];
      history.arrived += arrival > half && arrival <= last_arrival ? 1 : 0;
      history.started += start > half && start <= last_arrival ? 1 : 0;
      history.gave_up += arrival > half && arrival <= last_arrival && start < 0 &&
                                 (state == RequestState::kTimedOut || expired)
                             ? 1
                             : 0;
      const TimeNs completion = run_.results.completion[i];
      history.completed += completion > half && completion <= last_arrival ? 1 : 0;
    }
    history.blocked_share = BlockedShare(run_);
    history.replicas = MeanReplicas(run_, 0, run_.end);
    history.compute_share = ShareOfTime(run_, run_.recorder.bound_ns(StepBound::kCompute));
    if (run_.HasPools()) {
      history.scarcest_use = PoolsScarcestUse(run_, history.first_bin, history.last_bin);
    }
    for (const PoolReport& pool : report_.pools) {
      history.blocked_share = std::max(history.blocked_share, pool.blocked_share);
      history.compute_share = std::max(history.compute_share, pool.compute_share);
    }
    report_.saturation = AssessSaturation(run_.scenario.engine, report_, history);
    report_.saturation.requests = report_.arrived;
  }

  void Slos() {
    for (SloResult& result : report_.slo) PutMargin(result);
  }

  void Describe() {
    Report& r = report_;
    const ModelCost& c = run_.cost;
    r.name = run_.scenario.name;
    r.scenario_id = run_.scenario.id;
    r.memory = {c.total_gib, c.usable_gib, c.weights_gib, c.overhead_gib, c.kv_gib, 0};
    r.memory.mean_usage =
        (c.weights_gib + c.overhead_gib + r.kv_mean_usage * c.kv_gib) / c.total_gib;
    r.kv_blocks = c.usable_blocks;
    r.kv_block_size = run_.scenario.engine.block_size;
    r.kv_tokens = c.kv_tokens;
    r.prefix_cache = run_.prefix_cache;
    r.counts = run_.counts;
    r.gc_ms = static_cast<double>(r.counts.gc_passes) * run_.scenario.engine.gc_pass_us / 1e3;
    r.kv_offload = run_.kv_offload;
    r.replicas = run_.replicas;
    r.latency_model = run_.label;
    DoubtPrompts(run_, r);
    const bool traced = run_.scenario.workload->arrivals.process == ArrivalProcess::kTrace;
    r.workload_source = traced ? "trace" : "synthetic";
    r.workload_name = traced ? run_.trace_name : run_.scenario.workload->name;
    r.workload_requests = run_.requests.size();
    r.resolved_scenario = run_.scenario.resolved_text;
  }

  const RunView& run_;
  Report report_;
  std::vector<std::size_t> slo_class_;  // that a target is of
  std::vector<std::vector<SloLimit>> limits_;
  std::vector<SeriesBin> bins_;
  TimeNs bin_width_ = 1;
};

}  // namespace

double MeanGpus(const Report& r) {
  return r.scaling.mean_gpus > 0 ? r.scaling.mean_gpus : static_cast<double>(r.gpus);
}

void PutCost(const Scenario& scenario, Report& r) {
  std::optional<double> price = scenario.hardware.price_per_gpu_hour;
  for (std::size_t i = 0; i < r.pools.size(); ++i) {  // the mean GPU's
    const std::optional<double>& cost = r.pools[i].cost_per_hour;
    price = cost && (i == 0 || price) ? std::optional((i == 0 ? 0 : *price) + *cost / MeanGpus(r))
                                      : std::nullopt;
  }
  r.cost_per_million_output_tokens.reset();
  if (price && r.output_tokens_per_s_per_gpu > 0) {
    r.cost_per_million_output_tokens = *price / (r.output_tokens_per_s_per_gpu * 3600) * 1e6;
  }
}

Report Summarize(const RunView& run, ReportDetail detail) { return Summary(run, detail).Take(); }

}  // namespace servecast
