// See trace_fit.h.
#include "workload/trace_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/base.h"
#include "base/math.h"
#include "base/text.h"
#include "servecast/workload_spec.h"
#include "workload/arrivals.h"
#include "workload/trace_moments.h"
#include "workload/workload.h"

namespace servecast {
namespace {

// Parts of the duration with a rate of their own, cut between so many steps; more parts would make
// a link long. A cut must make the arrivals this much likelier (log-likelihood of a Poisson
// process).
constexpr std::size_t kMostParts = 48, kSteps = 2000;
constexpr double kLeastGain = 6;
// Of a table of quantiles, alone and of one class of several.
constexpr std::size_t kPoints = 32, kPointsOfClass = 12;
// Of the longest prompts, whose class has the tail.
constexpr std::size_t kPointsOfTail = 20;
constexpr std::size_t kMostClasses = 8, kLeastOfClass = 50;
constexpr std::size_t kGrid = 4001;  // order statistics that a table is chosen from
constexpr double kLongestS = 1e8, kSlowestPerS = 1e-6, kFastestPerS = 1e6;  // as in fields
constexpr double kLeastShare = 0.005;  // of prompt tokens that are shared

// To so many significant decimal digits; upwards with `up`.
double Rounded(double value, int digits, bool up = false) {
  if (value == 0) return 0;
  double unit = 1;
  const double limit = std::fabs(value);
  while (limit < unit) unit /= 10;
  while (limit >= unit * 10) unit *= 10;
  for (int i = 1; i < digits; ++i) unit /= 10;
  const double units = up ? std::ceil(value / unit) : std::nearbyint(value / unit);
  // Divided where that is exact: 3 * 0.1 is not 0.3.
  return unit >= 1 ? units * unit : units / std::nearbyint(1 / unit);
}

// --- Arrivals ------------------------------------------------------------------------------------

double CvDistance(const ArrivalSpec& spec, const Gaps& gaps) {
  constexpr int kDraws = 4000;
  ArrivalSpec plain;
  plain.process = spec.process;
  plain.cv = spec.cv;
  ArrivalStream stream(plain, 1, 1);
  std::vector<double> times;
  for (int i = 0; i < kDraws; ++i) {
    const auto time = stream.Next();
    if (!time) return 1e9;
    times.push_back(static_cast<double>(*time));
  }
  const Gaps drawn = GapsOf(times);
  double distance = 0;
  for (int p = 1; p < 20 && !drawn.sorted.empty(); ++p) {
    const auto at = [p](const std::vector<double>& sorted) {
      return sorted[sorted.size() * static_cast<std::size_t>(p) / 20];
    };
    distance += std::fabs(at(drawn.sorted) - at(gaps.sorted));
  }
  return distance;
}

// Gaps on the process's own clock, where the rate is even.
Gaps EvenGaps(const std::vector<TimeNs>& times, const NumberTable& factors) {
  std::vector<double> even;
  even.reserve(times.size());
  std::size_t part = 0;
  double before = 0;
  for (const TimeNs time : times) {
    const double s = static_cast<double>(time) * 1e-9;
    while (part + 1 < factors.size() && factors[part + 1][0] <= s) {
      before += (factors[part + 1][0] - factors[part][0]) * factors[part][1];
      ++part;
    }
    even.push_back(before + (s - factors[part][0]) * factors[part][1]);
  }
  return GapsOf(even);
}

// Where the rate changes: the duration is cut where that explains the arrivals best, and each part
// again, while it does.
class RateParts {
 public:
  explicit RateParts(const std::vector<TimeNs>& times) {
    const double last = static_cast<double>(times.back()) * 1e-9;
    step_s_ = Rounded(last / double{kSteps}, 3, true);
    for (const TimeNs time : times) {
      const auto step = static_cast<std::size_t>(static_cast<double>(time) * 1e-9 / step_s_);
      while (before_.size() <= step + 1) before_.push_back(before_.back());
      before_.back() += 1;
    }
    parts_ = {PartOf(0, before_.size() - 1)};
    while (parts_.size() < kMostParts) {
      const auto best =
          std::max_element(parts_.begin(), parts_.end(),
                           [](const Part& x, const Part& y) { return x.gain < y.gain; });
      if (best->gain < kLeastGain) break;
      const Part right = PartOf(best->cut, best->to);
      *best = PartOf(best->from, best->cut);
      parts_.insert(best + 1, right);
    }
  }

  // [from_s, factor of `rate`].
  NumberTable Factors(double rate) const {
    NumberTable factors;
    for (const Part& part : parts_) {
      const double from = static_cast<double>(part.from) * step_s_;
      const double seconds = static_cast<double>(part.to - part.from) * step_s_;
      factors.push_back(
          {Rounded(from, 9), Rounded(Count(part.from, part.to) / (seconds * rate), 4)});
    }
    return factors;
  }

 private:
  struct Part {
    std::size_t from, to, cut;
    double gain;
  };

  double Count(std::size_t from, std::size_t to) const { return before_[to] - before_[from]; }
  double Likelihood(std::size_t from, std::size_t to) const {
    const double count = Count(from, to);
    return count > 0 ? count * Log(count / static_cast<double>(to - from)) : 0;
  }
  Part PartOf(std::size_t from, std::size_t to) const {
    Part part{from, to, from, 0};
    const double whole = Likelihood(from, to);
    for (std::size_t cut = from + 1; cut < to; ++cut) {
      const double gain = Likelihood(from, cut) + Likelihood(cut, to) - whole;
      if (gain <= part.gain) continue;
      part.gain = gain;
      part.cut = cut;
    }
    return part;
  }

  double step_s_ = 0;
  std::vector<double> before_ = {0};  // arrivals before each step
  std::vector<Part> parts_;
};

std::optional<Issue> FitArrivals(const std::vector<TimeNs>& times, ArrivalSpec& a) {
  const double last = static_cast<double>(times.back()) * 1e-9;
  const double rate = last > 0 ? static_cast<double>(times.size()) / last : 0;
  if (last > kLongestS || (rate > 0 && rate < kSlowestPerS)) {
    return Issue{
        "", Format("found {} requests in {} s, allowed {} s and a rate from {}/s up", times.size(),
                   NumberText(last), NumberText(kLongestS), NumberText(kSlowestPerS))};
  }
  if (rate == 0 || rate > kFastestPerS) {
    a.process = ArrivalProcess::kStatic;
    return std::nullopt;
  }
  a.rate_per_s = Rounded(rate, 5);
  NumberTable factors = RateParts(times).Factors(a.rate_per_s);
  const Gaps gaps = EvenGaps(times, factors);
  if (factors.size() > 1) {
    // Beyond the trace, should more requests be asked for: its mean.
    const double end = Rounded(last, 9);
    if (end > factors.back()[0]) factors.push_back({end, 1});
    a.profile = RateProfile::kPiecewise;
    a.rate_factors = std::move(factors);
  }
  if (gaps.sorted.size() >= 30 && gaps.cv < 0.02) {
    a.process = ArrivalProcess::kConstant;
    return std::nullopt;
  }
  a.cv = std::clamp(Rounded(gaps.cv, 3), 0.01, 100.0);
  if (gaps.sorted.size() < 30 || std::fabs(gaps.cv - 1) < 0.03) {
    a.process = ArrivalProcess::kPoisson;
    return std::nullopt;
  }
  a.process = ArrivalProcess::kWeibull;
  const double weibull = CvDistance(a, gaps);
  a.process = ArrivalProcess::kGamma;
  if (weibull < CvDistance(a, gaps)) a.process = ArrivalProcess::kWeibull;
  return std::nullopt;
}

// --- Lengths -------------------------------------------------------------------------------------

// A quantile function on a grid of even probabilities, and the straight lines that stand for it.
class QuantileTable {
 public:
  explicit QuantileTable(const std::vector<std::int32_t>& ascending)
      : ascending_(ascending), mean_(MeanOf(ascending)) {
    const std::size_t points = std::min(kGrid, ascending.size());
    for (std::size_t i = 0; i < points; ++i) {
      grid_.push_back(QuantileOf(ascending, Probability(i, points)));
    }
    chosen_ = {0, points - 1};
    lines_ = {LineOf(0, points - 1)};
  }

  // The line that is worst is broken where it is farthest off, until there are so many points.
  NumberTable Take(std::size_t points) {
    while (chosen_.size() < points) {
      const auto worst = std::max_element(
          lines_.begin(), lines_.end(), [](const Line& a, const Line& b) { return a.off < b.off; });
      const auto at = static_cast<std::size_t>(worst - lines_.begin());
      if (worst->off <= 1e-4 || worst->farthest == chosen_[at]) break;
      const std::size_t split = worst->farthest;
      const Line right = LineOf(split, chosen_[at + 1]);
      lines_[at] = LineOf(chosen_[at], split);
      lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(at) + 1, right);
      chosen_.insert(chosen_.begin() + static_cast<std::ptrdiff_t>(at) + 1, split);
    }
    NumberTable table;
    for (const std::size_t i : chosen_) {
      const double p = std::nearbyint(Probability(i, grid_.size()) * 1e4) / 1e4;
      if (!table.empty() && p <= table.back()[0]) continue;
      table.push_back({p, QuantileOf(ascending_, p)});
    }
    if (table.back()[0] < 1) table.push_back({1, static_cast<double>(ascending_.back())});
    return table;
  }

 private:
  struct Line {
    double off = 0;  // area between it and the function, by the mean and by the function
    std::size_t farthest = 0;
  };

  static double Probability(std::size_t i, std::size_t points) {
    return static_cast<double>(i) / static_cast<double>(points - 1);
  }

  Line LineOf(std::size_t from, std::size_t to) const {
    Line line;
    line.farthest = from;
    double most = 0;
    const double slope = (grid_[to] - grid_[from]) / static_cast<double>(to - from);
    for (std::size_t i = from + 1; i < to; ++i) {
      const double here = std::fabs(grid_[i] - grid_[from] - slope * static_cast<double>(i - from));
      const double off = here / mean_ + here / std::max(grid_[i], 8.0);
      line.off += off / static_cast<double>(grid_.size());
      if (off <= most) continue;
      most = off;
      line.farthest = i;
    }
    return line;
  }

  const std::vector<std::int32_t>& ascending_;
  double mean_;
  std::vector<double> grid_;
  std::vector<std::size_t> chosen_;
  std::vector<Line> lines_;
};

LengthSpec FitLengths(std::vector<std::int32_t> values, std::size_t points) {
  std::sort(values.begin(), values.end());
  LengthSpec spec;
  if (values.front() == values.back()) {
    spec.value = values.front();
    return spec;
  }
  spec.distribution = LengthDistribution::kEmpirical;
  spec.quantiles = QuantileTable(values).Take(points);
  return spec;
}

struct FittedLengths {
  LengthSpec prompt, output;
};

// `prefix`: of each prompt, what is not drawn.
FittedLengths FitBoth(const std::vector<TraceRow>& rows, std::int64_t prefix,
                      std::size_t prompt_points, std::size_t output_points) {
  std::vector<std::int32_t> prompts = LengthColumn(rows, &TraceRow::prompt_tokens);
  for (std::int32_t& tokens : prompts) tokens -= static_cast<std::int32_t>(prefix);
  FittedLengths lengths = {FitLengths(std::move(prompts), prompt_points),
                           FitLengths(LengthColumn(rows, &TraceRow::output_tokens), output_points)};
  const double correlation = std::nearbyint(RankCorrelation(rows) * 1000) / 1000;
  const bool drawn = HasOneDraw(lengths.prompt.distribution);
  if (drawn && HasOneDraw(lengths.output.distribution) && std::fabs(correlation) >= 0.01) {
    lengths.output.correlation = correlation;
  }
  return lengths;
}

// --- What prompts share --------------------------------------------------------------------------

// How many of `groups` have come up after so many even draws.
double Seen(double groups, double draws) {
  return groups * (1 - Exp(-std::min(draws / groups, 700.0)));
}

double GroupsSeen(double seen, double draws) {
  double low = 1, high = 1e6;
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high);
    (Seen(middle, draws) < seen ? low : high) = middle;
  }
  return std::max(std::nearbyint(low), 1.0);
}

// Requests of similar prompts: their beginning is as long as what those of them share that share,
// or as the shortest prompt allows, and there are as many as give their share of shared tokens.
ClassSpec ClassOf(const std::vector<TraceRow>& rows, const std::vector<std::int32_t>& shared,
                  std::size_t all, bool tail) {
  ClassSpec c;
  c.name = Format("{} tokens up", rows.front().prompt_tokens);
  const auto n = static_cast<double>(rows.size());
  c.share = Rounded(n / static_cast<double>(all), 4);
  double sum = 0, sharing = 0;
  for (const std::int32_t tokens : shared) {
    sum += tokens;
    sharing += tokens > 0 ? 1 : 0;
  }
  std::int64_t prefix = 0;
  if (sharing > 1 && rows.front().prompt_tokens > 1) {
    const double mean = Rounded(sum / sharing, 3);
    prefix =
        std::min(static_cast<std::int64_t>(mean), std::int64_t{rows.front().prompt_tokens} - 1);
    const double begun = std::max(n - sum / static_cast<double>(prefix), 1.0);
    c.prefix_groups = static_cast<std::int64_t>(GroupsSeen(begun, n));
    c.prefix_tokens = prefix;
  }
  FittedLengths lengths =
      FitBoth(rows, prefix, tail ? kPointsOfTail : kPointsOfClass / 2, kPointsOfClass);
  c.prompt_tokens = std::move(lengths.prompt);
  c.output_tokens = std::move(lengths.output);
  return c;
}

// Classes by length of prompt, for a beginning is no longer than the prompts that have it.
void FitClasses(const Trace& trace, WorkloadSpec& w) {
  const std::size_t n = trace.rows.size();
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&trace](std::size_t a, std::size_t b) {
    const auto x = trace.rows[a].prompt_tokens, y = trace.rows[b].prompt_tokens;
    return x != y ? x < y : a < b;
  });
  const std::size_t classes = std::clamp<std::size_t>(n / kLeastOfClass, 1, kMostClasses);
  for (std::size_t c = 0, at = 0; c < classes; ++c) {
    std::size_t end = n * (c + 1) / classes;
    const auto prompt = [&](std::size_t i) { return trace.rows[order[i]].prompt_tokens; };
    while (end < n && end > 0 && prompt(end) == prompt(end - 1)) ++end;
    if (at == end) continue;
    std::vector<TraceRow> rows;
    std::vector<std::int32_t> shared;
    for (; at < end; ++at) {
      rows.push_back(trace.rows[order[at]]);
      const TracePrefix& prefix = trace.prefixes[order[at]];
      shared.push_back(prefix.row < 0 ? 0 : prefix.tokens);
    }
    w.classes.push_back(ClassOf(rows, shared, n, end == n));
  }
}

void FitContent(const Trace& trace, WorkloadSpec& w) {
  const double prompts = MeanOf(LengthColumn(trace.rows, &TraceRow::prompt_tokens));
  const double all = prompts * static_cast<double>(trace.rows.size());
  if (SharedTokens(trace) >= kLeastShare * all) {
    FitClasses(trace, w);
    return;
  }
  FittedLengths lengths = FitBoth(trace.rows, 0, kPoints, kPoints);
  w.prompt_tokens = std::move(lengths.prompt);
  w.output_tokens = std::move(lengths.output);
}

// The requests as a trace would tell them.
Trace TraceOf(const RequestTable& table) {
  Trace trace;
  std::vector<std::int32_t> first(table.segments.size(), -1);  // of a group
  for (std::size_t r = 0; r < table.arrival.size(); ++r) {
    trace.rows.push_back({table.arrival[r], table.prompt_tokens[r], table.output_tokens[r]});
    if (table.content.empty()) continue;
    const ContentSegment& segment = table.segments[static_cast<std::size_t>(table.content[r])];
    TracePrefix prefix;
    if (segment.parent >= 0) {
      std::int32_t& earlier = first[static_cast<std::size_t>(segment.parent)];
      if (earlier >= 0) prefix = {earlier, segment.shared_tokens};
      if (earlier < 0) earlier = static_cast<std::int32_t>(r);
    }
    trace.prefixes.push_back(prefix);
  }
  return trace;
}

}  // namespace

Result<FittedTrace> FitTrace(const Trace& trace) {
  Scenario scenario;
  WorkloadSpec& w = *scenario.workload;
  w.name = "Fitted to a trace of " + fmt::to_string(trace.rows.size()) + " requests";
  w.requests = static_cast<std::int64_t>(trace.rows.size());
  if (trace.has_arrivals) {
    if (auto issue = FitArrivals(ArrivalsOf(trace), w.arrivals)) return *std::move(issue);
  }
  FitContent(trace, w);
  const Result<RequestTable> table = MakeRequests(scenario, Trace{});
  if (!table.ok()) return Issues(table.issues());
  Trace drawn = TraceOf(table.value());
  drawn.has_arrivals = trace.has_arrivals;
  return FittedTrace{std::move(w), std::move(drawn)};
}

}  // namespace servecast
