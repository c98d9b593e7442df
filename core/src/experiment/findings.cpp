// See findings.h.
#include "experiment/findings.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "experiment/lives.h"
#include "metrics/samples.h"

namespace servecast {
namespace {

constexpr double kUsual = 0.95;
constexpr double kSure = 0.98;  // of a target that needs no more runs
constexpr double kClearly = 0.99;
constexpr double kLongWarmUp = 0.2;    // of a run
constexpr double kFallsBehind = 0.97;  // of what comes is served
constexpr double kGrows = 0.998;       // two-sided: 99.9 % that some of what comes stays,
constexpr double kStays = 0.005;       // and this share of it at least
constexpr double kLongMemory = 10;     // independent looks that a run is worth, at least
constexpr std::size_t kFewest = 8;     // groups with an interval

class Finder {
 public:
  Finder(const Scenario& scenario, const Reading& reading, const std::vector<Observations>& runs)
      : s_(scenario), reading_(reading), runs_(runs) {}

  Findings Find() {
    Cut();
    out_.long_memory = reading_.steady && LooksOfARun() < kLongMemory;
    Count();
    out_.from = Starts(0);
    out_.until = Ends(0);
    for (std::size_t k = 0; k < s_.slo.size(); ++k) {
      out_.targets.push_back(out_.too_short ? TargetFinding() : Target(k));
    }
    Served();
    Rates();
    return std::move(out_);
  }

 private:
  // Of an overload that lasts no longer than its requests all are the drain: then all count.
  void Count() {
    bool none = true;
    for (std::size_t r = 0; r < runs_.size(); ++r) none = none && last_[r] <= first_[r];
    for (std::size_t r = 0; r < runs_.size(); ++r) {
      CountedRequests& counted = out_.counted.emplace_back();
      counted = {.first = first_[r], .last = last_[r], .from = Starts(r)};
      if (none) counted.first = 0, counted.last = runs_[r].arrival.size();
      if (counted.last <= counted.first) continue;
      counted.begin = runs_[r].arrival[counted.first];
      counted.end = runs_[r].arrival[counted.last - 1];
    }
  }

  // How long what thinking brings lasts at the beginning of a run; at most half of it.
  TimeNs Beginning() {
    if (!reading_.steady) return 0;
    double e2e_s = 0, offered_s = 0;
    for (const Observations& run : runs_) {
      e2e_s += run.mean_e2e_s / static_cast<double>(runs_.size());
      offered_s += static_cast<double>(run.last_offered) / 1e9 / static_cast<double>(runs_.size());
    }
    const Lives lives = LivesOf(s_, e2e_s);
    if (lives.seconds <= 0) return 0;
    out_.lives = offered_s / lives.seconds;
    out_.too_short = *out_.lives < kFewestLives;
    return static_cast<TimeNs>(std::min(lives.settled_s, offered_s / 2) * 1e9);
  }

  // Requests [first_[r], last_[r]) of run r count.
  void Cut() {
    const TimeNs warmup = std::max(static_cast<TimeNs>(s_.measure.warmup_s * 1e9), Beginning());
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
    const std::size_t known = out_.lives ? *std::max_element(first_.begin(), first_.end()) : 0;
    if (known >= shortest) {
      out_.too_short = out_.lives.has_value();
      return;
    }
    const std::size_t warm = WarmUp(known, shortest);
    out_.long_warmup =
        static_cast<double>(warm) > kLongWarmUp * static_cast<double>(shortest - known);
    for (std::size_t& first : first_) first = std::max(first, known + warm);
    for (std::size_t r = 0; r < runs_.size(); ++r) last_[r] = std::max(last_[r], first_[r]);
  }

  // Of the arrivals [from, until) of each run, how many find a system that is not yet what it will
  // be. One that was fuller at the beginning counts as such where runs agree that it was.
  std::size_t WarmUp(std::size_t from, std::size_t until) const {
    std::vector<double> mean(until - from, 0.0);
    for (const Observations& run : runs_) {
      for (std::size_t i = from; i < until; ++i) mean[i - from] += run.in_system[i];
    }
    const std::size_t warm = WarmUpOf(mean, Beginnings::kAny);
    return warm > 0 && !FillsOrEmpties(from, from + warm, until) ? WarmUpOf(mean) : warm;
  }

  bool FillsOrEmpties(std::size_t from, std::size_t at, std::size_t until) const {
    std::vector<double> more;
    double sum = 0;
    for (const Observations& run : runs_) {
      const auto mean = [&run](std::size_t begin, std::size_t end) {
        double total = 0;
        for (std::size_t i = begin; i < end; ++i) total += run.in_system[i];
        return total / static_cast<double>(end - begin);
      };
      more.push_back(mean(from, at) - mean(at, until));
      sum += more.back();
    }
    return sum <= 0 || (runs_.size() >= kFewest && MeanInterval(more, kGrows).low > 0);
  }

  // How many independent looks at the number in the system scatter as much as a run's mean of it:
  // the variance of the number over that of the mean, which is the run's length over its time of
  // relaxation.
  double LooksOfARun() const {
    std::vector<double> means;
    double count = 0, sum = 0, squares = 0;
    for (std::size_t r = 0; r < runs_.size(); ++r) {
      double own = 0;
      for (std::size_t i = first_[r]; i < last_[r]; ++i) {
        const double n = runs_[r].in_system[i];
        own += n;
        squares += n * n;
      }
      const auto length = static_cast<double>(last_[r] - first_[r]);
      if (length > 0) means.push_back(own / length);
      count += length;
      sum += own;
    }
    if (means.size() < 2) return kLongMemory;
    const double mean = sum / count;
    double between = 0;
    for (const double m : means) between += (m - mean) * (m - mean);
    between /= static_cast<double>(means.size() - 1);
    return between > 0 ? (squares / count - mean * mean) / between : kLongMemory;
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
      const std::size_t n = last_[r] - first_[r], pieces = PiecesOfARun();
      for (std::size_t i = 0; i < n; ++i) {
        visit(r * pieces + i * pieces / n, runs_[r], first_[r] + i);
      }
    }
  }
  std::size_t PiecesOfARun() const { return std::max<std::size_t>(reading_.batches, 1); }
  std::size_t GroupCount() const { return PiecesOfARun() * runs_.size(); }

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
      ms = PercentileIntervals(groups, slo.percentile, {reading_.confidence, kSure});
    }
    if (ms.empty()) {
      found.never = std::all_of(groups.begin(), groups.end(),
                                [](const auto& group) { return group.empty(); }) &&
                    (slo.metric != SloMetric::kItl || NoGaps(k));
      return found;
    }
    if (reading_.by_group) found.by_group = Owns(k, groups, unserved);
    found.ms = ms[0];
    Side sides[2];
    for (std::size_t c = 0; c < 2; ++c) {
      const double confidence = c == 0 ? reading_.confidence : kSure;
      Interval lost = ShareInterval(unserved, confidence);
      if (slo.metric == SloMetric::kAttainment && lost.value == 0) {
        lost.high = NoneOf(unserved, confidence);
      }
      if (c == 0) found.unserved = lost;
      sides[c] = SideOf(slo, ms[c], lost);
    }
    found.side = sides[0];
    found.settled = sides[1] != Side::kAcross;
    return found;
  }

  // Of attainment the share beyond says all; that of its percentile is the same.
  static Side SideOf(const SloSpec& slo, const Interval& ms, const Interval& lost) {
    const double allowed = 1 - slo.percentile / 100;
    if (slo.metric == SloMetric::kAttainment) {
      return lost.low > allowed     ? Side::kBeyond
             : lost.high <= allowed ? Side::kWithin
                                    : Side::kAcross;
    }
    const double limit = slo.limit_ms;
    if (ms.low > limit || lost.low > allowed) return Side::kBeyond;
    return ms.high <= limit && lost.high <= allowed ? Side::kWithin : Side::kAcross;
  }

  // The most that a share of which none was found may be: of 3 in n at 95 % (the rule of three).
  static double NoneOf(const std::vector<Part>& groups, double confidence) {
    double whole = 0;
    for (const Part& group : groups) whole += group.whole;
    return std::min(1.0, -Log(1 - confidence) / whole);
  }

  // Half of the groups have samples, and eight do.
  static bool Enough(const Groups& groups) {
    const auto some = static_cast<std::size_t>(std::count_if(
        groups.begin(), groups.end(), [](const auto& group) { return !group.empty(); }));
    return some >= kFewest && 2 * some >= groups.size();
  }

  std::vector<TargetFinding::Own> Owns(std::size_t k, Groups& groups,
                                       const std::vector<Part>& unserved) const {
    std::vector<TargetFinding::Own> owns(groups.size());
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (s_.slo[k].metric == SloMetric::kItl) {
        owns[g].ms = reading_.batches <= 1 ? runs_[g].gap_percentile_ms[k] : Observations::kNone;
      } else if (!groups[g].empty()) {
        SortValues(groups[g]);
        owns[g].ms = Percentile(groups[g], s_.slo[k].percentile);
      }
      if (unserved[g].whole > 0) owns[g].unserved = unserved[g].part / unserved[g].whole;
    }
    return owns;
  }

  // The percentile of each run's gaps, all of them after measure.warmup_s.
  std::vector<Interval> GapIntervals(std::size_t k) const {
    std::vector<double> values;
    for (const Observations& run : runs_) {
      if (run.gap_percentile_ms[k] >= 0) values.push_back(run.gap_percentile_ms[k]);
    }
    if (values.size() < kFewest) return {};
    return {MeanInterval(values, reading_.confidence), MeanInterval(values, kSure)};
  }

  bool NoGaps(std::size_t k) const {
    return std::all_of(runs_.begin(), runs_.end(),
                       [k](const Observations& run) { return run.gap_percentile_ms[k] < 0; });
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

  // Pieces of time: the window of each run, or equal parts of the only one's. From the warm-up on,
  // or from a part of the time in which load is offered.
  std::vector<std::pair<std::size_t, Window>> Pieces(TimeNs part = 0) const {
    std::vector<std::pair<std::size_t, Window>> pieces;
    for (std::size_t r = 0; r < runs_.size(); ++r) {
      const TimeNs until = runs_[r].last_offered;
      const TimeNs from = part > 0 ? until / part : std::min(Starts(r), until);
      const auto parts = static_cast<TimeNs>(PiecesOfARun());
      for (TimeNs p = 0; p < parts; ++p) {
        pieces.push_back({r,
                          {from + (until - from) / parts * p,
                           p + 1 < parts ? from + (until - from) / parts * (p + 1) : until}});
      }
    }
    return pieces;
  }

  // Whether some of what comes stays, for as long as is seen: from a quarter of the time on less is
  // completed than comes. That would be so as well while the system still fills: after a quarter as
  // many must be complete as had come after an eighth, so that requests take no longer than that.
  bool Grows() const {
    std::int64_t arrived = 0, completed = 0;
    for (const Observations& run : runs_) {
      arrived += Arrived(run, {0, run.last_offered / 8});
      completed += std::count_if(
          run.completions.begin(), run.completions.end(),
          [&run](const auto& completion) { return completion.time <= run.last_offered / 4; });
    }
    if (completed < arrived) return false;
    std::vector<Part> parts;
    for (const auto& [r, window] : Pieces(4)) {
      parts.push_back(
          {Completed(runs_[r], window).requests, static_cast<double>(Arrived(runs_[r], window))});
    }
    const Part sum = SumOf(parts);
    return sum.part < (1 - kStays) * sum.whole && RatioInterval(parts, kGrows).high < 1;
  }

  void Served() {
    std::vector<Part> parts;
    double offered = 0, seconds = 0;
    std::vector<Part> rate;
    for (const auto& [r, window] : Pieces(2)) {
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
    if (!out_.gives_up) {
      out_.falls_behind = RatioInterval(parts, kClearly).high < kFallsBehind;
      out_.grows = out_.falls_behind || Grows();
    }
    if (reading_.batches == 0) {
      rate.clear();
      for (const Observations& run : runs_) {
        const Pace pace = PaceOf(run);
        rate.push_back({pace.completed, pace.seconds});
      }
    }
    // All may come, and end, at moments without a time between them.
    if (SumOf(rate).whole > 0) out_.served_per_s = RatioInterval(rate, kUsual);
    out_.served_share = RatioInterval(parts, kUsual);
    out_.offered_per_s = offered / seconds;
  }

  void Rates() {
    Totals sum;
    double seconds = 0, all = 0;
    for (const auto& [r, window] : Pieces()) {
      const Totals totals = Completed(runs_[r], window);
      sum.requests += totals.requests;
      sum.good += totals.good;
      sum.tokens += totals.tokens;
      seconds += window.Seconds();
    }
    for (const Observations& run : runs_) all += static_cast<double>(run.completions.size());
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

double TimesToTell(const SloSpec& slo, const TargetFinding& target) {
  const Interval& own = *target.ms;
  const double limit = slo.metric == SloMetric::kAttainment ? 1 : slo.limit_ms;
  const double distance = std::fabs(own.value - limit);
  const double half = own.value > limit ? own.value - own.low : own.high - own.value;
  constexpr double kMost = 1000;
  return distance * distance * kMost > half * half ? (half / distance) * (half / distance) : kMost;
}

Findings FindingsOf(const Scenario& scenario, const Reading& reading,
                    const std::vector<Observations>& runs) {
  return Finder(scenario, reading, runs).Find();
}

}  // namespace servecast
