// See trace_moments.h.
#include "workload/trace_moments.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace servecast {
namespace {

constexpr std::size_t kPeakParts = 60;

LengthMoments LengthsOf(std::vector<std::int32_t> values) {
  std::sort(values.begin(), values.end());
  return {MeanOf(values), QuantileOf(values, 0.5), QuantileOf(values, 0.9),
          QuantileOf(values, 0.99)};
}

// Twice the mean of the ranks from 0 that each value's equals have: a whole number.
std::vector<std::int64_t> TwiceRanks(const std::vector<std::int32_t>& values) {
  std::vector<std::int32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  const auto value = [&values](std::int32_t i) { return values[static_cast<std::size_t>(i)]; };
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return value(a) != value(b) ? value(a) < value(b) : a < b;
  });
  std::vector<std::int64_t> ranks(values.size());
  for (std::size_t from = 0, to = 0; from < order.size(); from = to) {
    while (to < order.size() && value(order[to]) == value(order[from])) ++to;
    for (std::size_t i = from; i < to; ++i) {
      ranks[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(from + to - 1);
    }
  }
  return ranks;
}

}  // namespace

std::vector<std::int32_t> LengthColumn(const std::vector<TraceRow>& rows,
                                       std::int32_t TraceRow::*member) {
  std::vector<std::int32_t> values;
  values.reserve(rows.size());
  for (const TraceRow& row : rows) values.push_back(row.*member);
  return values;
}

double QuantileOf(const std::vector<std::int32_t>& ascending, double p) {
  const double last = static_cast<double>(ascending.size() - 1);
  return ascending[static_cast<std::size_t>(std::nearbyint(p * last))];
}

double MeanOf(const std::vector<std::int32_t>& values) {
  const std::int64_t sum = std::accumulate(values.begin(), values.end(), std::int64_t{0});
  return static_cast<double>(sum) / static_cast<double>(values.size());
}

double RankCorrelation(const std::vector<TraceRow>& rows) {
  const auto a = TwiceRanks(LengthColumn(rows, &TraceRow::prompt_tokens)),
             b = TwiceRanks(LengthColumn(rows, &TraceRow::output_tokens));
  const auto middle = static_cast<std::int64_t>(rows.size()) - 1;  // twice the mean rank
  WideInt ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const WideInt x = a[i] - middle, y = b[i] - middle;
    ab += x * y, aa += x * x, bb += y * y;
  }
  if (aa == 0 || bb == 0) return 0;
  return static_cast<double>(ab) /
         (std::sqrt(static_cast<double>(aa)) * std::sqrt(static_cast<double>(bb)));
}

std::vector<TimeNs> ArrivalsOf(const Trace& trace) {
  std::vector<TimeNs> times;
  times.reserve(trace.rows.size());
  for (const TraceRow& row : trace.rows) times.push_back(row.arrival_ns);
  std::sort(times.begin(), times.end());
  return times;
}

Gaps GapsOf(const std::vector<double>& times) {
  Gaps gaps;
  if (times.size() < 3 || times.back() <= times.front()) return gaps;
  const auto n = static_cast<double>(times.size() - 1);
  const double mean = (times.back() - times.front()) / n;
  double squares = 0;
  for (std::size_t i = 1; i < times.size(); ++i) {
    const double gap = (times[i] - times[i - 1]) / mean;
    gaps.sorted.push_back(gap);
    squares += (gap - 1) * (gap - 1);
  }
  std::sort(gaps.sorted.begin(), gaps.sorted.end());
  gaps.cv = std::sqrt(squares / n);
  return gaps;
}

double SharedTokens(const Trace& trace) {
  std::int64_t shared = 0;
  for (const TracePrefix& prefix : trace.prefixes) shared += prefix.row < 0 ? 0 : prefix.tokens;
  return static_cast<double>(shared);
}

TraceMoments MomentsOf(const Trace& trace) {
  TraceMoments m;
  const std::vector<TimeNs> times = ArrivalsOf(trace);
  const auto n = static_cast<double>(times.size());
  m.requests = n;
  m.duration_s = static_cast<double>(times.back() - times.front()) * 1e-9;
  if (m.duration_s > 0) {
    m.rate_per_s = n / m.duration_s;
    std::vector<double> counts(kPeakParts), seconds;
    for (const TimeNs time : times) {
      const double s = static_cast<double>(time - times.front()) * 1e-9;
      seconds.push_back(s);
      const auto part = static_cast<std::size_t>(s / m.duration_s * double{kPeakParts});
      counts[std::min(part, kPeakParts - 1)] += 1;
    }
    m.peak_per_s =
        *std::max_element(counts.begin(), counts.end()) * double{kPeakParts} / m.duration_s;
    m.gap_cv = GapsOf(seconds).cv;
  }
  m.prompt = LengthsOf(LengthColumn(trace.rows, &TraceRow::prompt_tokens));
  m.output = LengthsOf(LengthColumn(trace.rows, &TraceRow::output_tokens));
  m.rank_correlation = RankCorrelation(trace.rows);
  m.prefix_share = SharedTokens(trace) / (m.prompt.mean * n);
  return m;
}

}  // namespace servecast
