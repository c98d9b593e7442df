// See findings.h.
#include "experiment/findings.h"

#include <algorithm>
#include <cmath>

namespace servecast {
namespace {

constexpr double kUsual = 0.95;
constexpr double kSure = 0.99;
constexpr double kLongWarmUp = 0.2;    // of a run
constexpr double kFallsBehind = 0.97;  // of what comes is served
constexpr std::size_t kFewest = 8;     // groups with an interval

class Finder {
 public:
  Finder(const Scenario& scenario, const Reading& reading, const std::vector<Observations>& runs)
      : s_(scenario), reading_(reading), runs_(runs) {}

  Findings Find() {
    Cut();
    out_.from = Starts(0);
    out_.until = Ends(0);
    for (std::size_t k = 0; k < s_.slo.size(); ++k) out_.targets.push_back(Target(k));
    Served();
    Rates();
    return std::move(out_);
  }

 private:
  // Requests [first_[r], last_[r]) of run r count.
  void Cut() {
    const auto warmup = static_cast<TimeNs>(s_.measure.warmup_s * 1e9);
    std::size_t shortest = SIZE_MAX;
    for (const Observations& run : runs_) {
      const auto begin = run.arrival.begin();
      first_.push_back(
          static_cast<std::size_t>(std::lower_bound(begin, run.arrival.end(), warmup) - begin));
      const TimeNs drain = reading_.steady ? run.last_offered - run.usual_e2e : kNever;
      last_.push_back(
          static_cast<std::size_t>(std::upper_bound(begin, run.arrival.end(), drain) - begin));
      last_.back() = std::max(last_.back(), first_.back());
      shortest = std::min(shortest, last_.back());
    }
    if (!reading_.steady) return;
    std::vector<double> mean(shortest, 0.0);
    for (const Observations& run : runs_) {
      for (std::size_t i = 0; i < shortest; ++i) mean[i] += run.in_system[i];
    }
    const std::size_t warm = WarmUpOf(mean);
    out_.long_warmup = static_cast<double>(warm) > kLongWarmUp * static_cast<double>(shortest);
    for (std::size_t& first : first_) first = std::max(first, warm);
    for (std::size_t r = 0; r < runs_.size(); ++r) last_[r] = std::max(last_[r], first_[r]);
  }

  TimeNs Starts(std::size_t r) const {
    return first_[r] > 0 && first_[r] < runs_[r].arrival.size() ? runs_[r].arrival[first_[r]] : 0;
  }
  TimeNs Ends(std::size_t r) const {
    return last_[r] > 0 ? runs_[r].arrival[last_[r] - 1] : runs_[r].last_offered;
  }

  // Calls `visit(group, run, request)` for each that counts.
  template <class Visit>
  void ForEach(Visit visit) const {
    for (std::size_t r = 0; r < runs_.size(); ++r) {
      const std::size_t n = last_[r] - first_[r];
      for (std::size_t i = 0; i < n; ++i) {
        visit(reading_.batches > 0 ? i * reading_.batches / n : r, runs_[r], first_[r] + i);
      }
    }
  }
  std::size_t GroupCount() const { return reading_.batches > 0 ? reading_.batches : runs_.size(); }

  TargetFinding Target(std::size_t k) const {
    const SloSpec& slo = s_.slo[k];
    TargetFinding found;
    Groups groups(GroupCount());
    std::vector<Part> unserved(GroupCount());
    ForEach([&](std::size_t group, const Observations& run, std::size_t i) {
      if (run.unserved[k][i] == Observations::kForeign) return;
      unserved[group].whole += 1;
      unserved[group].part += run.unserved[k][i];
      if (run.latency_ms[k][i] >= 0) groups[group].push_back(run.latency_ms[k][i]);
    });
    std::vector<Interval> ms;
    if (slo.metric == SloMetric::kItl) {
      ms = GapIntervals(k);
    } else if (Enough(groups)) {
      ms = PercentileIntervals(groups, slo.percentile, {kUsual, kSure});
    }
    if (ms.empty()) return found;
    found.ms = ms[0];
    const double allowed = 1 - slo.percentile / 100;
    Side sides[2];
    for (std::size_t c = 0; c < 2; ++c) {
      const Interval lost = ShareInterval(unserved, c == 0 ? kUsual : kSure);
      if (c == 0) found.unserved = lost;
      sides[c] = SideOf(ms[c], lost, slo.limit_ms, allowed);
    }
    found.side = sides[0];
    found.settled = sides[1] != Side::kAcross;
    return found;
  }

  static Side SideOf(const Interval& ms, const Interval& lost, double limit, double allowed) {
    if (ms.low > limit || lost.low > allowed) return Side::kBeyond;
    return ms.high <= limit && lost.high <= allowed ? Side::kWithin : Side::kAcross;
  }

  // Half of the groups have samples, and eight do.
  static bool Enough(const Groups& groups) {
    const auto some = static_cast<std::size_t>(std::count_if(
        groups.begin(), groups.end(), [](const auto& group) { return !group.empty(); }));
    return some >= kFewest && 2 * some >= groups.size();
  }

  // The percentile of each run's gaps, all of them after measure.warmup_s.
  std::vector<Interval> GapIntervals(std::size_t k) const {
    std::vector<double> values;
    for (const Observations& run : runs_) {
      if (run.gap_percentile_ms[k] >= 0) values.push_back(run.gap_percentile_ms[k]);
    }
    if (values.size() < kFewest) return {};
    return {MeanInterval(values, kUsual), MeanInterval(values, kSure)};
  }

  struct Window {
    TimeNs from = 0, until = 0;
    double Seconds() const { return static_cast<double>(until - from) / 1e9; }
    bool Has(TimeNs time) const { return time > from && time <= until; }
  };

  static std::int64_t Arrived(const Observations& run, const Window& window) {
    const auto count = [&window](const std::vector<TimeNs>& times) {
      return std::count_if(times.begin(), times.end(), [&](TimeNs t) { return window.Has(t); });
    };
    return count(run.arrival) - count(run.dropped);
  }

  struct Totals {
    double requests = 0, good = 0, tokens = 0;
  };
  static Totals Completed(const Observations& run, const Window& window) {
    Totals totals;
    for (const Observations::Completion& c : run.completions) {
      if (!window.Has(c.time)) continue;
      totals.requests += 1;
      totals.good += c.good ? 1 : 0;
      totals.tokens += static_cast<double>(c.tokens);
    }
    return totals;
  }

  // Pieces of time: the window of each run, or equal parts of the only one's.
  std::vector<std::pair<std::size_t, Window>> Pieces(bool second_half) const {
    std::vector<std::pair<std::size_t, Window>> pieces;
    for (std::size_t r = 0; r < runs_.size(); ++r) {
      const TimeNs until = runs_[r].last_offered;
      const TimeNs from = second_half ? until / 2 : std::min(Starts(r), until);
      const auto parts = static_cast<TimeNs>(std::max<std::size_t>(reading_.batches, 1));
      for (TimeNs p = 0; p < parts; ++p) {
        pieces.push_back({r,
                          {from + (until - from) / parts * p,
                           p + 1 < parts ? from + (until - from) / parts * (p + 1) : until}});
      }
    }
    return pieces;
  }

  void Served() {
    std::vector<Part> parts;
    double offered = 0, seconds = 0;
    std::vector<Part> rate;
    for (const auto& [r, window] : Pieces(true)) {
      const auto arrived = static_cast<double>(Arrived(runs_[r], window));
      const double completed = Completed(runs_[r], window).requests;
      parts.push_back({completed, arrived});
      rate.push_back({completed, window.Seconds()});
      offered += arrived;
      seconds += window.Seconds();
    }
    if (parts.size() < kFewest || offered <= 0 || seconds <= 0) return;
    out_.gives_up = std::any_of(runs_.begin(), runs_.end(),
                                [](const Observations& run) { return run.gives_up; });
    out_.falls_behind = !out_.gives_up && RatioInterval(parts, kSure).high < kFallsBehind;
    if (reading_.batches == 0) {
      rate.clear();
      for (const Observations& run : runs_) {
        const Pace pace = PaceOf(run);
        rate.push_back({pace.completed, pace.seconds});
      }
    }
    out_.served_per_s = RatioInterval(rate, kUsual);
    out_.offered_per_s = offered / seconds;
  }

  void Rates() {
    Totals sum;
    double seconds = 0, all = 0, good = 0, counted = 0;
    for (const auto& [r, window] : Pieces(false)) {
      const Totals totals = Completed(runs_[r], window);
      sum.requests += totals.requests;
      sum.good += totals.good;
      sum.tokens += totals.tokens;
      seconds += window.Seconds();
    }
    for (const Observations& run : runs_) all += static_cast<double>(run.completions.size());
    ForEach([&](std::size_t, const Observations& run, std::size_t i) {
      counted += 1;
      good += run.good[i];
    });
    if (counted > 0) out_.attainment = good / counted;
    if (seconds <= 0 || 2 * sum.requests < all) return;
    out_.rates = Findings::Rates{sum.requests / seconds, sum.good / seconds, sum.tokens / seconds};
  }

  const Scenario& s_;
  const Reading& reading_;
  const std::vector<Observations>& runs_;
  std::vector<std::size_t> first_, last_;
  Findings out_;
};

}  // namespace

Findings FindingsOf(const Scenario& scenario, const Reading& reading,
                    const std::vector<Observations>& runs) {
  return Finder(scenario, reading, runs).Find();
}

}  // namespace servecast
