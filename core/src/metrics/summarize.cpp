// See summarize.h. A request beyond the end of the run (a horizon) has not arrived, nor has a turn
// of a session whose arrival is still -1. Doubles begin here: everything that comes in is an
// integer.
#include "metrics/summarize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/hash.h"
#include "metrics/saturation.h"

namespace servecast {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kMs = 1e6;  // ns
constexpr int kCdfPoints = 401;

double Seconds(TimeNs ns) { return static_cast<double>(ns) / 1e9; }

// Latencies of one kind over the requests, ns; sorted after Distribute.
struct Latencies {
  std::vector<double> ns;
  std::int64_t censored = 0;

  void Add(TimeNs time, TimeNs since) {
    if (time < 0) {
      ++censored;
    } else {
      ns.push_back(static_cast<double>(time - since));
    }
  }

  Distribution Distribute() {
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
    return d;
  }
};

std::vector<double> CdfPercents() {
  std::vector<double> percents;
  for (int i = 0; i < kCdfPoints; ++i) percents.push_back(100.0 * i / (kCdfPoints - 1));
  return percents;
}

std::vector<double> CdfOf(const std::vector<double>& sorted_ns) {
  std::vector<double> values;
  if (sorted_ns.empty()) return values;
  for (const double percent : CdfPercents()) values.push_back(Percentile(sorted_ns, percent) / kMs);
  return values;
}

class Summary {
 public:
  Summary(const RunView& run, ReportDetail detail) : run_(run) {
    report_.columns.resize(Columns().size());
    Count();
    CollectLatencies();
    GapsBetweenTokens();
    Rates();
    Series();
    JudgeSaturation();
    Binding();
    Slos();
    Describe();
    if (detail == ReportDetail::kRequests) RequestColumns();
    Fingerprint();
    Judge(run.scenario, report_);
  }

  Report Take() { return std::move(report_); }

 private:
  bool Arrived(std::size_t r) const {
    return run_.requests.arrival[r] >= 0 && run_.requests.arrival[r] <= run_.end;
  }
  bool Measured(std::size_t r) const {
    return static_cast<double>(run_.requests.arrival[r]) >= run_.scenario.measure.warmup_s * 1e9;
  }
  std::size_t Size() const { return run_.requests.arrival.size(); }
  std::vector<double>& ColumnAt(std::string_view name) {
    std::size_t i = 0;
    while (Columns()[i].name != name) ++i;
    return report_.columns[i];
  }

  void Count() {
    Report& r = report_;
    for (std::size_t i = 0; i < Size(); ++i) {
      if (!Arrived(i)) continue;
      ++r.arrived;
      r.completed += run_.results.state[i] == RequestState::kCompleted ? 1 : 0;
      r.dropped += run_.results.state[i] == RequestState::kDropped ? 1 : 0;
      r.timed_out += run_.results.state[i] == RequestState::kTimedOut ? 1 : 0;
      if (run_.results.state[i] == RequestState::kCompleted) {
        r.prompt_tokens += run_.requests.prompt_tokens[i];
      }
    }
    r.running = run_.running;
    r.queued = r.arrived - r.completed - r.dropped - r.timed_out - r.running;
    SERVECAST_CHECK(r.queued >= 0, "I1: arrived = completed + queued + running + lost");
    r.length_capped = run_.length_capped;
    r.preemptions = run_.recorder.preemptions();
    r.output_tokens = run_.recorder.output_tokens();
    r.steps = run_.recorder.steps();
    r.simulated_s = Seconds(run_.end);
    r.finished = run_.finished;
  }

  // Client times minus arrivals; TPOT has no meaning for a single token.
  void CollectLatencies() {
    const RequestResults& results = run_.results;
    Latencies ttft, tpot, e2e, delay;
    for (std::size_t i = 0; i < Size(); ++i) {
      if (!Arrived(i) || !Measured(i)) continue;
      ++measured_;
      if (results.state[i] == RequestState::kDropped ||
          results.state[i] == RequestState::kTimedOut) {
        ++without_e2e_;
        if (results.first_token[i] < 0) {
          ++without_ttft_;
          continue;
        }
      }
      const TimeNs arrival = run_.requests.arrival[i];
      delay.Add(results.first_scheduled[i], arrival);
      ttft.Add(results.first_token[i], arrival);
      if (results.state[i] == RequestState::kTimedOut) continue;  // it has no end to wait for
      e2e.Add(results.completion[i], arrival);
      if (results.completion[i] < 0) {
        ++tpot.censored;
      } else if (results.generated[i] > 1) {
        tpot.ns.push_back(TpotNs(i));
      }
    }
    report_.ttft_ms = ttft.Distribute();
    report_.tpot_ms = tpot.Distribute();
    report_.e2e_ms = e2e.Distribute();
    report_.scheduling_delay_ms = delay.Distribute();
    ColumnAt("cdf_ttft_ms") = CdfOf(ttft.ns);
    ColumnAt("cdf_tpot_ms") = CdfOf(tpot.ns);
    ColumnAt("cdf_e2e_ms") = CdfOf(e2e.ns);
    for (const double percent : CdfPercents()) ColumnAt("cdf_fraction").push_back(percent / 100);
    for (const SloSpec& slo : run_.scenario.slo) {
      const Latencies& of = slo.metric == SloMetric::kTtft   ? ttft
                            : slo.metric == SloMetric::kTpot ? tpot
                                                             : e2e;
      SloResult result;
      result.slo = slo;
      if (slo.metric != SloMetric::kItl && !of.ns.empty()) {
        result.value_ms = Percentile(of.ns, slo.percentile) / kMs;
      }
      report_.slo.push_back(result);
    }
  }

  double TpotNs(std::size_t i) const {
    return static_cast<double>(run_.results.completion[i] - run_.results.first_token[i]) /
           static_cast<double>(run_.results.generated[i] - 1);
  }

  void GapsBetweenTokens() {
    const WeightedSamples& itl = run_.recorder.itl();
    Distribution& d = report_.itl_ms;
    d.n = itl.total_weight();
    if (d.n == 0) return;
    const std::vector<WeightedSample> sorted = itl.Sorted(&d.exact);
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
    std::vector<double>& cdf = ColumnAt("cdf_itl_ms");
    cdf = WeightedPercentiles(sorted, d.n, CdfPercents());
    for (double& v : cdf) v /= kMs;
    for (SloResult& result : report_.slo) {
      if (result.slo.metric != SloMetric::kItl) continue;
      result.value_ms = WeightedPercentiles(sorted, d.n, {result.slo.percentile})[0] / kMs;
    }
  }

  bool MeetsEveryLimit(std::size_t i) const {
    const RequestResults& results = run_.results;
    if (results.completion[i] < 0) return false;
    const auto arrival = static_cast<double>(run_.requests.arrival[i]);
    for (const SloSpec& slo : run_.scenario.slo) {
      double ns = 0;
      switch (slo.metric) {
        case SloMetric::kTtft:
          ns = static_cast<double>(results.first_token[i]) - arrival;
          break;
        case SloMetric::kE2e:
          ns = static_cast<double>(results.completion[i]) - arrival;
          break;
        case SloMetric::kTpot:
        case SloMetric::kItl:  // of one request: its mean gap
          ns = results.generated[i] > 1 ? TpotNs(i) : 0;
          break;
      }
      if (ns > slo.limit_ms * kMs) return false;
    }
    return true;
  }

  void Rates() {
    Report& r = report_;
    r.gpus =
        run_.scenario.cluster.pools[0].tensor_parallel * run_.scenario.cluster.pools[0].replicas;
    const double warmup_ns = run_.scenario.measure.warmup_s * 1e9;
    TimeNs last = run_.end;  // a client may see its last token after the engine stopped
    std::int64_t completed = 0, good = 0, measured = 0, good_measured = 0;
    for (std::size_t i = 0; i < Size(); ++i) {
      if (!Arrived(i)) continue;
      const bool meets = MeetsEveryLimit(i);
      last = std::max(last, run_.results.completion[i]);
      const bool in_window = static_cast<double>(run_.results.completion[i]) > warmup_ns;
      completed += in_window ? 1 : 0;
      good += in_window && meets ? 1 : 0;
      measured += Measured(i) ? 1 : 0;
      good_measured += Measured(i) && meets ? 1 : 0;
    }
    if (!run_.scenario.slo.empty() && measured > 0) {
      r.attainment = static_cast<double>(good_measured) / static_cast<double>(measured);
    }
    const double seconds = (static_cast<double>(last) - warmup_ns) / 1e9;
    if (seconds <= 0) return;
    r.requests_per_s = static_cast<double>(completed) / seconds;
    r.goodput_per_s = static_cast<double>(good) / seconds;
    r.output_tokens_per_s = static_cast<double>(run_.recorder.measured_tokens()) / seconds;
    r.output_tokens_per_s_per_gpu = r.output_tokens_per_s / static_cast<double>(r.gpus);
    const auto& price = run_.scenario.hardware.price_per_gpu_hour;
    if (price && r.output_tokens_per_s_per_gpu > 0) {
      r.cost_per_million_output_tokens = *price / (r.output_tokens_per_s_per_gpu * 3600) * 1e6;
    }
  }

  void Series() {
    bins_ = run_.recorder.BinsUpTo(run_.end, &bin_width_);
    WideInt kv_total = 0, running = 0;
    for (std::size_t b = 0; b < bins_.size(); ++b) {
      const SeriesBin& bin = bins_[b];
      const TimeNs start = static_cast<TimeNs>(b) * bin_width_;
      const auto width = static_cast<double>(std::min(bin_width_, run_.end - start));
      kv_total += bin.kv_blocks;
      running += bin.running;
      ColumnAt("series_time_s").push_back(Seconds(start));
      ColumnAt("series_running").push_back(static_cast<double>(bin.running) / width);
      ColumnAt("series_waiting").push_back(static_cast<double>(bin.waiting) / width);
      ColumnAt("series_batch_tokens").push_back(static_cast<double>(bin.batch_tokens) / width);
      ColumnAt("series_kv_usage")
          .push_back(static_cast<double>(bin.kv_blocks) / width / KvBlocks());
      ColumnAt("series_output_tokens_per_s")
          .push_back(static_cast<double>(bin.output_tokens) / width * 1e9);
      ColumnAt("series_preemptions").push_back(static_cast<double>(bin.preemptions));
    }
    if (run_.end > 0) {
      report_.kv_mean_usage =
          static_cast<double>(kv_total) / static_cast<double>(run_.end) / KvBlocks();
    }
    if (run_.recorder.busy_ns() > 0) {
      report_.mean_batch_size =
          static_cast<double>(running) / static_cast<double>(run_.recorder.busy_ns());
    }
    report_.kv_peak_usage = static_cast<double>(run_.recorder.peak_kv_blocks()) /
                            static_cast<double>(run_.cost.usable_blocks);
  }

  double Replicas() const { return static_cast<double>(run_.scenario.cluster.pools[0].replicas); }
  double KvBlocks() const { return static_cast<double>(run_.cost.usable_blocks) * Replicas(); }

  void JudgeSaturation() {
    QueueHistory history;
    TimeNs last_arrival = 0;
    const std::vector<TimeNs>& think = run_.requests.think;
    for (std::size_t i = 0; i < Size(); ++i) {
      // Later turns come as fast as they are answered: they say nothing of what is offered.
      const bool by_itself = think.empty() || think[i] < 0;
      if (by_itself && Arrived(i)) last_arrival = std::max(last_arrival, run_.requests.arrival[i]);
    }
    history.last_bin = std::min(static_cast<std::size_t>(last_arrival / bin_width_), bins_.size());
    history.first_bin = history.last_bin / 2;
    history.bin_s = Seconds(bin_width_);
    const TimeNs half = static_cast<TimeNs>(history.first_bin) * bin_width_;
    for (std::size_t i = 0; i < Size(); ++i) {
      if (run_.results.state[i] == RequestState::kDropped) continue;
      const TimeNs arrival = run_.requests.arrival[i];
      const TimeNs start = run_.results.first_scheduled[i];
      history.arrived += arrival > half && arrival <= last_arrival ? 1 : 0;
      history.started += start > half && start <= last_arrival ? 1 : 0;
      history.gave_up += arrival > half && arrival <= last_arrival && start < 0 &&
                                 run_.results.state[i] == RequestState::kTimedOut
                             ? 1
                             : 0;
      const TimeNs completion = run_.results.completion[i];
      history.completed += completion > half && completion <= last_arrival ? 1 : 0;
    }
    history.blocked_share = BlockedShare();
    history.replicas = Replicas();
    history.compute_share = ShareOf(run_.recorder.bound_ns(StepBound::kCompute));
    report_.saturation = AssessSaturation(run_.scenario.engine, report_, history);
  }

  double ShareOf(TimeNs ns) const {
    const double all = static_cast<double>(run_.end) * Replicas();
    return all > 0 ? static_cast<double>(ns) / all : 0;
  }

  double BlockedShare() const {
    const Recorder& r = run_.recorder;
    return ShareOf(r.blocked_ns(BlockedBy::kKvBlocks) + r.blocked_ns(BlockedBy::kSeats) +
                   r.blocked_ns(BlockedBy::kTokenBudget));
  }

  // What keeps requests waiting at admission, if it does so for 10 % of the time and the GPU has
  // arithmetic to spare: more room would then be used. Else what bounds the steps themselves.
  void Binding() {
    const Recorder& r = run_.recorder;
    const TimeNs ns[] = {r.blocked_ns(BlockedBy::kKvBlocks),    r.blocked_ns(BlockedBy::kSeats),
                         r.blocked_ns(BlockedBy::kTokenBudget), r.bound_ns(StepBound::kCompute),
                         r.bound_ns(StepBound::kBandwidth),     r.bound_ns(StepBound::kOverhead)};
    BindingConstraint& b = report_.binding;
    for (std::size_t i = 0; i < b.shares.size(); ++i) b.shares[i] = ShareOf(ns[i]);
    b.busy_share = ShareOf(r.busy_ns());
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

  // A dropped request has no first token and no end, one that timed out no end and perhaps no first
  // token, one still queued at a horizon no first token in time: they count among the worst.
  // (Unfinished answers do not: there always are some.) Who never gets his answer has no TPOT
  // either.
  double UnservedShare(SloMetric metric) const {
    const Report& r = report_;
    const std::int64_t waiting = r.finished ? r.ttft_ms.censored : 0;
    const std::int64_t unserved =
        metric == SloMetric::kTtft ? without_ttft_ + waiting : without_e2e_;
    return measured_ > 0 ? static_cast<double>(unserved) / static_cast<double>(measured_) : 0;
  }

  void Slos() {
    for (SloResult& result : report_.slo) {
      if (!result.value_ms) continue;
      result.margin = 1 - *result.value_ms / result.slo.limit_ms;
      result.unserved_share = UnservedShare(result.slo.metric);
      result.met = *result.value_ms <= result.slo.limit_ms &&
                   result.unserved_share <= 1 - result.slo.percentile / 100;
    }
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
    r.kv_tokens = c.usable_blocks * r.kv_block_size;
    r.prefix_cache = run_.prefix_cache;
    r.counts = run_.counts;
    r.gc_ms = static_cast<double>(r.counts.gc_passes) * run_.scenario.engine.gc_pass_us / 1e3;
    r.kv_offload = run_.kv_offload;
    r.latency_model = run_.label;
    const bool traced = run_.scenario.workload.arrivals.process == ArrivalProcess::kTrace;
    r.workload_source = traced ? "trace" : "synthetic";
    r.workload_name = traced ? run_.trace_name : run_.scenario.workload.name;
    r.workload_requests = run_.requests.size();
    r.resolved_scenario = run_.scenario.resolved_text;
  }

  void RequestColumns() {
    const RequestResults& results = run_.results;
    const auto ms_since_arrival = [&](std::size_t i, TimeNs time) {
      return time >= 0 ? static_cast<double>(time - run_.requests.arrival[i]) / kMs : kNan;
    };
    const auto fill = [&](std::string_view name, auto value) {
      std::vector<double>& column = ColumnAt(name);
      column.reserve(Size());
      for (std::size_t i = 0; i < Size(); ++i) column.push_back(value(i));
    };
    fill("arrival_s", [&](std::size_t i) {
      return run_.requests.arrival[i] >= 0 ? Seconds(run_.requests.arrival[i]) : kNan;
    });
    fill("prompt_tokens", [&](std::size_t i) { return run_.requests.prompt_tokens[i]; });
    fill("cached_tokens", [&](std::size_t i) { return results.cached_tokens[i]; });
    fill("output_tokens", [&](std::size_t i) { return results.generated[i]; });
    fill("scheduling_delay_ms",
         [&](std::size_t i) { return ms_since_arrival(i, results.first_scheduled[i]); });
    fill("ttft_ms", [&](std::size_t i) { return ms_since_arrival(i, results.first_token[i]); });
    fill("tpot_ms", [&](std::size_t i) {
      return results.completion[i] >= 0 && results.generated[i] > 1 ? TpotNs(i) / kMs : kNan;
    });
    fill("e2e_ms", [&](std::size_t i) { return ms_since_arrival(i, results.completion[i]); });
    fill("preemptions", [&](std::size_t i) { return results.preemptions[i]; });
    fill("state", [&](std::size_t i) { return static_cast<double>(results.state[i]); });
  }

  // Everything that the run decided, as integers: model.md's list, in id order.
  void Fingerprint() {
    Hasher h;
    h.Add(run_.scenario.content_hash);
    h.Add(run_.trace_hash);
    const RequestResults& results = run_.results;
    for (std::size_t i = 0; i < Size(); ++i) {
      h.Add(run_.requests.arrival[i]);
      h.Add(results.enqueue[i]);
      h.Add(results.first_scheduled[i]);
      h.Add(results.first_token[i]);
      h.Add(results.completion[i]);
      h.Add(static_cast<std::int64_t>(run_.requests.prompt_tokens[i]) << 32 | results.generated[i]);
      h.Add(static_cast<std::int64_t>(results.preemptions[i]) << 32 | results.cached_tokens[i]);
      h.Add(std::int64_t{0});  // the replica
      h.Add(static_cast<std::int64_t>(results.state[i]));
    }
    const Report& r = report_;
    const PrefixCacheReport& c = r.prefix_cache;
    for (const std::int64_t counter :
         {r.arrived, r.completed, r.queued, r.running, r.dropped, r.timed_out, r.rejected,
          r.length_capped, r.preemptions, r.output_tokens, r.steps, c.query_tokens, c.hit_tokens,
          c.query_blocks, c.hit_blocks, c.resumed_hit_tokens, c.evicted_blocks, run_.end}) {
      h.Add(counter);
    }
    const KvOffloadReport& o = r.kv_offload;
    if (o.on) {
      for (const std::int64_t counter :
           {o.tiers[0].hit_blocks, o.tiers[0].loaded_blocks, o.tiers[1].hit_blocks,
            o.tiers[1].loaded_blocks, o.offloaded_blocks, o.thrashed_blocks, o.transfer_ns}) {
        h.Add(counter);
      }
    }
    report_.fingerprint = h.Finish();
  }

  const RunView& run_;
  Report report_;
  std::int64_t measured_ = 0;  // arrived after the warm-up; of them, dropped or timed out without:
  std::int64_t without_ttft_ = 0, without_e2e_ = 0;
  std::vector<SeriesBin> bins_;
  TimeNs bin_width_ = 1;
};

}  // namespace

const std::vector<Column>& Columns() {
  static const std::vector<Column> kColumns = {
      {"arrival_s", "s", "request", "when the request arrived"},
      {"prompt_tokens", "tokens", "request", "length of its prompt"},
      {"cached_tokens", "tokens", "request",
       "tokens of it found in the prefix cache at its first admission"},
      {"output_tokens", "tokens", "request", "tokens generated so far"},
      {"scheduling_delay_ms", "ms", "request", "from arrival to its first step"},
      {"ttft_ms", "ms", "request", "time to first token, from arrival"},
      {"tpot_ms", "ms", "request", "(E2E - TTFT) / (output tokens - 1); none for a single token"},
      {"e2e_ms", "ms", "request", "from arrival to its last token"},
      {"preemptions", "", "request", "times it lost its KV blocks and was computed again"},
      {"state", "", "request",
       "0 not arrived, 1 queued, 2 running, 3 completed, 4 dropped, 5 timed out"},
      {"series_time_s", "s", "series", "start of the interval"},
      {"series_running", "requests", "series", "mean of requests in the running batch"},
      {"series_waiting", "requests", "series", "mean of requests in the queue"},
      {"series_batch_tokens", "tokens", "series", "mean of tokens in the running step"},
      {"series_kv_usage", "1", "series", "mean share of KV blocks in use"},
      {"series_output_tokens_per_s", "tokens/s", "series", "output tokens made"},
      {"series_preemptions", "", "series", "preemptions in the interval"},
      {"cdf_fraction", "1", "cdf", "share of samples at or below"},
      {"cdf_ttft_ms", "ms", "cdf", "time to first token, over requests"},
      {"cdf_itl_ms", "ms", "cdf", "inter-token latency, over tokens"},
      {"cdf_tpot_ms", "ms", "cdf", "time per output token, over requests"},
      {"cdf_e2e_ms", "ms", "cdf", "end-to-end latency, over requests"},
  };
  return kColumns;
}

const std::vector<double>& Report::ColumnOf(std::string_view column) const {
  static const std::vector<double> kEmpty;
  for (std::size_t i = 0; i < Columns().size() && i < columns.size(); ++i) {
    if (Columns()[i].name == column) return columns[i];
  }
  return kEmpty;
}

Report Summarize(const RunView& run, ReportDetail detail) { return Summary(run, detail).Take(); }

}  // namespace servecast
