// See pooled.h; Counted (servecast/report.h) says how its figures hang together.
#include "experiment/pooled.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "metrics/latencies.h"
#include "metrics/samples.h"
#include "metrics/summarize.h"
#include "metrics/targets.h"
#include "servecast/workload_spec.h"

namespace servecast {
namespace {

constexpr std::array<std::string_view, 3> kCdfColumns = {"cdf_ttft_ms", "cdf_tpot_ms",
                                                         "cdf_e2e_ms"};

constexpr std::array<SloMetric, 3> kMetrics = {SloMetric::kTtft, SloMetric::kTpot, SloMetric::kE2e};

// The time of a run that rates are of, and the completions in it.
struct Span {
  std::size_t begin = 0, end = 0;
  TimeNs from = 0, until = 0;
};

Span SpanOf(const Observations& run, TimeNs from, TimeNs until) {
  const auto after = [&run](TimeNs time) {
    const auto begin = run.completions.begin();
    return static_cast<std::size_t>(
        std::upper_bound(begin, run.completions.end(), time,
                         [](TimeNs t, const auto& completion) { return t < completion.time; }) -
        begin);
  };
  const std::size_t first = after(from);
  return {first, std::max(first, after(until)), from, until};
}

class Pooler {
 public:
  Pooler(const Scenario& scenario, const Findings& findings, const std::vector<Observations>& runs)
      : s_(scenario),
        runs_(runs),
        counted_(findings.counted),
        lasting_(findings.lives.has_value()) {
    const bool classes = std::any_of(runs.begin(), runs.end(),
                                     [](const Observations& run) { return !run.of_class.empty(); });
    if (classes) out_.classes.resize(s_.workload->classes.size());
    out_.targets.resize(s_.slo.size());
  }

  Pooled Pool(bool batches, bool overloaded) {
    CountRequests();
    for (std::size_t pooled = 0; pooled < Observations::kPooled; ++pooled) PoolLatencies(pooled);
    for (std::size_t k = 0; k < s_.slo.size(); ++k) CountUnserved(k);
    for (const Span& span : Spans(batches, overloaded)) CountRates(span);
    ForEachPart([this](Pooled::Part& part) {
      part.counted.runs = static_cast<std::int64_t>(runs_.size());
      part.counted.seconds = seconds_;
      for (Distribution& d : part.ms) d.runs = part.counted.runs;
    });
    return std::move(out_);
  }

 private:
  template <class Visit>
  void ForEachPart(Visit visit) {
    visit(out_.all);
    for (Pooled::Part& part : out_.classes) visit(part);
  }
  // Calls `visit(part)` for all, and for the class of a request or completion.
  template <class Visit>
  void ForPartsOf(std::size_t of_class, Visit visit) {
    visit(out_.all);
    if (!out_.classes.empty()) visit(out_.classes[of_class]);
  }
  std::size_t ClassOf(const Observations& run, std::size_t i) const {
    return run.of_class.empty() ? 0 : run.of_class[i];
  }

  // Calls `visit(run, request)` for each that counts.
  template <class Visit>
  void ForEachRequest(Visit visit) const {
    for (std::size_t r = 0; r < runs_.size(); ++r) {
      for (std::size_t i = counted_[r].first; i < counted_[r].last; ++i) {
        visit(runs_[r], i);
      }
    }
  }

  void CountRequests() {
    ForEachRequest([this](const Observations& run, std::size_t i) {
      ForPartsOf(ClassOf(run, i), [&](Pooled::Part& part) {
        ++part.counted.requests;
        part.good += run.good[i];
      });
    });
  }

  void PoolLatencies(std::size_t pooled) {
    std::vector<double> all;
    std::vector<std::vector<double>> classes(out_.classes.size());
    const auto add = [&](const Observations& run, std::size_t i, double ms) {
      if (ms >= 0) {
        all.push_back(ms);
        if (!classes.empty()) classes[ClassOf(run, i)].push_back(ms);
      } else if (run.lost[i] == 0) {
        ForPartsOf(ClassOf(run, i), [&](Pooled::Part& part) { ++part.ms[pooled].censored; });
      }
    };
    for (std::size_t r = 0; r < runs_.size(); ++r) {
      const std::vector<double>& ms = LatenciesOf(s_, runs_[r], pooled);
      for (std::size_t i = counted_[r].first; i < counted_[r].last; ++i) {
        add(runs_[r], i, ms[i]);
      }
    }
    const auto distribute = [pooled](std::vector<double>& values, Pooled::Part& part) {
      const std::int64_t censored = part.ms[pooled].censored;
      part.ms[pooled] = DistributionOf(values, 1);
      part.ms[pooled].censored = censored;
    };
    distribute(all, out_.all);
    for (std::size_t c = 0; c < classes.size(); ++c) distribute(classes[c], out_.classes[c]);
    if (pooled >= kCdfColumns.size()) return;
    out_.cdfs[pooled] = CdfOf(all, 1);
    for (std::size_t k = 0; k < s_.slo.size(); ++k) {
      const SloSpec& slo = s_.slo[k];
      if (slo.metric != kMetrics[pooled]) continue;
      for (std::size_t c = 0; c <= classes.size(); ++c) {
        const std::vector<double>& sorted = c < classes.size() ? classes[c] : all;
        const std::string_view name =
            c < classes.size() ? std::string_view(s_.workload->classes[c].name) : "";
        if (slo.of_class != name || sorted.empty()) continue;
        out_.targets[k].ms = Percentile(sorted, slo.percentile);
      }
    }
  }

  void CountUnserved(std::size_t k) {
    double part = 0, whole = 0;
    ForEachRequest([&](const Observations& run, std::size_t i) {
      if (run.unserved[k][i] == Observations::kForeign) return;
      whole += 1;
      part += run.unserved[k][i];
    });
    if (whole > 0) out_.targets[k].unserved = part / whole;
  }

  // By run.
  std::vector<Span> Spans(bool batches, bool overloaded) const {
    std::vector<Span> spans;
    std::size_t within = 0, all = 0;
    for (std::size_t r = 0; r < runs_.size(); ++r) {
      const Observations& run = runs_[r];
      if (overloaded) {
        const Pace pace = PaceOf(run);
        spans.push_back(batches ? SpanOf(run, run.last_offered / 2, run.last_offered)
                                : Span{pace.begin, pace.end, pace.from, pace.until});
        continue;
      }
      spans.push_back(SpanOf(run, std::min(counted_[r].from, run.last_offered), run.last_offered));
      within += spans.back().end - spans.back().begin;
      all += run.completions.size();
    }
    // Conversations end long after they began, which is no drain of theirs.
    if (overloaded || (within > 0 && (lasting_ || 2 * within >= all))) return spans;
    for (std::size_t r = 0; r < runs_.size(); ++r) {  // most answers come later
      const Observations& run = runs_[r];
      const TimeNs last = run.completions.empty() ? run.end : run.completions.back().time;
      spans[r] = SpanOf(run, spans[r].from, std::max(run.end, last));
    }
    return spans;
  }

  // Requires: for each run in turn.
  void CountRates(const Span& span) {
    const Observations& run = runs_[run_++];
    seconds_ += static_cast<double>(span.until - span.from) / 1e9;
    for (std::size_t i = span.begin; i < span.end; ++i) {
      const Observations::Completion& completion = run.completions[i];
      ForPartsOf(completion.of_class, [&](Pooled::Part& part) {
        ++part.counted.completed;
        part.counted.output_tokens += completion.tokens;
      });
    }
    const auto begin = run.arrival.begin();
    const auto first = std::lower_bound(begin, run.arrival.end(), span.from) - begin;
    const auto last = std::upper_bound(begin, run.arrival.end(), span.until) - begin;
    for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i) {
      if (run.lost[i] == 0) continue;
      ForPartsOf(ClassOf(run, i), [](Pooled::Part& part) { ++part.counted.lost; });
    }
  }

  const Scenario& s_;
  const std::vector<Observations>& runs_;
  const std::vector<CountedRequests>& counted_;  // by run
  const bool lasting_;                           // clients think, see lives.h
  std::size_t run_ = 0;
  double seconds_ = 0;
  Pooled out_;
};

// Into a report, or that of a class.
template <class R>
void Put(const Pooled::Part& part, R& r) {
  const Counted& c = r.counted.emplace(part.counted);
  r.ttft_ms = part.ms[0];
  r.tpot_ms = part.ms[1];
  r.e2e_ms = part.ms[2];
  const double good = c.requests > 0 ? part.good / static_cast<double>(c.requests) : 0;
  if (r.attainment && c.requests > 0) r.attainment = good;
  if (c.seconds <= 0) return;
  r.requests_per_s = static_cast<double>(c.completed) / c.seconds;
  r.output_tokens_per_s = static_cast<double>(c.output_tokens) / c.seconds;
  r.goodput_per_s = r.attainment ? good * static_cast<double>(c.completed + c.lost) / c.seconds
                                 : r.requests_per_s;
}

// The interval of a target is that of its percentile.
void PutInterval(const SloResult& result, Report& r) {
  if (result.slo.percentile != 99 || !result.low_ms) return;
  const auto put = [&result](auto& of) {
    Distribution* d = result.slo.metric == SloMetric::kTtft   ? &of.ttft_ms
                      : result.slo.metric == SloMetric::kTpot ? &of.tpot_ms
                      : result.slo.metric == SloMetric::kE2e  ? &of.e2e_ms
                                                              : nullptr;
    if (d == nullptr) return;
    d->p99_low = result.low_ms;
    d->p99_high = result.high_ms;
  };
  if (result.slo.of_class.empty()) put(r);
  for (ClassReport& of_class : r.classes) {
    if (of_class.name == result.slo.of_class) put(of_class);
  }
}

}  // namespace

Pooled PooledOf(const Scenario& scenario, const Reading& reading, const Findings& findings,
                const std::vector<Observations>& runs, bool overloaded) {
  return Pooler(scenario, findings, runs).Pool(reading.batches > 0, overloaded);
}

void PutPooled(const Scenario& scenario, const Pooled& pooled, Report& r) {
  Put(pooled.all, r);
  r.scheduling_delay_ms = pooled.all.ms[3];
  for (std::size_t i = 0; i < Columns().size() && i < r.columns.size(); ++i) {
    for (std::size_t k = 0; k < kCdfColumns.size(); ++k) {
      if (Columns()[i].name == kCdfColumns[k]) r.columns[i] = pooled.cdfs[k];
    }
  }
  // Requests of all classes add up to all of them.
  const Counted& all = *r.counted;
  for (std::size_t c = 0; c < r.classes.size() && c < pooled.classes.size(); ++c) {
    Put(pooled.classes[c], r.classes[c]);
  }
  if (!r.classes.empty() && r.attainment && all.seconds > 0 && all.completed + all.lost > 0) {
    r.goodput_per_s = 0;
    for (const ClassReport& of_class : r.classes) r.goodput_per_s += of_class.goodput_per_s;
    r.attainment = r.goodput_per_s * all.seconds / static_cast<double>(all.completed + all.lost);
  }
  for (std::size_t k = 0; k < r.slo.size(); ++k) {
    SloResult& result = r.slo[k];
    const Pooled::Target& target = pooled.targets[k];
    if (result.slo.metric == SloMetric::kItl) continue;
    if (result.slo.metric == SloMetric::kAttainment) {
      if (result.share) result.share = 1 - target.unserved;
    } else {
      result.value_ms = target.ms;
      result.unserved_share = target.unserved;
    }
    PutMargin(result);
  }
  r.output_tokens_per_s_per_gpu = r.output_tokens_per_s / MeanGpus(r);
  PutCost(scenario, r);
}

void PutIntervals(Report& report) {
  for (const SloResult& result : report.slo) PutInterval(result, report);
}

}  // namespace servecast
