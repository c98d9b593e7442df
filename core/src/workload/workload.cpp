// See workload.h.
#include "workload/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "base/random.h"

namespace servecast {
namespace {

constexpr double kNormalP99 = 2.3263478740408408;  // standard normal quantile at 0.99
constexpr double kMaxTokens = 1e9;

// [probability, tokens] pairs, ascending, first at 0 and last at 1 (the parser checks).
double EmpiricalQuantile(const std::vector<std::vector<double>>& table, double u) {
  std::size_t i = 1;
  while (i + 1 < table.size() && table[i][0] < u) ++i;
  const auto& low = table[i - 1];
  const auto& high = table[i];
  const double width = high[0] - low[0];
  return width > 0 ? low[1] + (high[1] - low[1]) * ((u - low[0]) / width) : high[1];
}

std::int64_t Clip(double tokens, double low, double high) {
  return static_cast<std::int64_t>(std::clamp(std::nearbyint(tokens), low, high));
}

// Lengths of requests [0, n) into `lengths`.
void FillLengths(const LengthSpec& spec, std::int64_t seed, Stream stream,
                 std::vector<std::int32_t>& lengths) {
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const double u = spec.distribution == LengthDistribution::kFixed
                         ? 0.5
                         : Uniform(seed, stream, static_cast<std::int64_t>(i));
    lengths[i] = static_cast<std::int32_t>(DrawLength(spec, u));
  }
}

void FillArrivals(const ArrivalSpec& spec, std::int64_t seed, std::vector<TimeNs>& arrivals) {
  const double mean_ns = 1e9 / spec.rate_per_s;
  TimeNs time = 0;
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    if (spec.process == ArrivalProcess::kConstant) {
      time = static_cast<TimeNs>(std::nearbyint(mean_ns * static_cast<double>(i)));
    } else {
      const double gap =
          -Log(Uniform(seed, Stream::kArrival, static_cast<std::int64_t>(i))) * mean_ns;
      time += static_cast<TimeNs>(std::nearbyint(gap));
    }
    arrivals[i] = time;
  }
}

}  // namespace

std::int64_t DrawLength(const LengthSpec& spec, double u) {
  const auto low = static_cast<double>(spec.min);
  const double high = spec.max ? static_cast<double>(*spec.max) : kMaxTokens;
  switch (spec.distribution) {
    case LengthDistribution::kFixed:
      return spec.value;
    case LengthDistribution::kUniform:  // every integer of [min, max] equally likely
      return std::min(static_cast<std::int64_t>(low + std::floor(u * (high - low + 1))), *spec.max);
    case LengthDistribution::kLognormal: {
      const double sigma = Log(spec.p99 / spec.median) / kNormalP99;
      // Beyond this exponent the clip decides.
      const double exponent = std::min(sigma * NormalQuantile(u), 50.0);
      return Clip(spec.median * Exp(std::max(exponent, -50.0)), low, high);
    }
    case LengthDistribution::kEmpirical:
      return Clip(EmpiricalQuantile(spec.quantiles, u), 1, kMaxTokens);
    case LengthDistribution::kTrace:
      break;
  }
  SERVECAST_CHECK(false, "lengths of a trace are not drawn");
}

Result<RequestTable> MakeRequests(const Scenario& s, const Trace& trace) {
  const WorkloadSpec& w = s.workload;
  const bool arrivals_from_trace = w.arrivals.process == ArrivalProcess::kTrace;
  const bool prompts_from_trace = w.prompt_tokens.distribution == LengthDistribution::kTrace;
  const bool outputs_from_trace = w.output_tokens.distribution == LengthDistribution::kTrace;
  const bool any_trace = arrivals_from_trace || prompts_from_trace || outputs_from_trace;
  if (any_trace && trace.rows.empty()) {
    return Issue{"/workload", "the scenario replays a trace, and no trace was given",
                 "trace_missing"};
  }
  const auto rows = trace.rows.size();
  const std::int64_t n = arrivals_from_trace ? static_cast<std::int64_t>(rows) : w.requests;
  if (!arrivals_from_trace) {
    constexpr double kLongestS = 1e8;  // about three years; gaps of a million runs stay in int64 ns
    if (static_cast<double>(n) / w.arrivals.rate_per_s > kLongestS) {
      return Issue{"/workload/arrivals/rate_per_s",
                   fmt::format("{} requests at this rate take more than {} s, the longest that a "
                               "run can hold",
                               n, kLongestS)};
    }
  }
  RequestTable table;
  table.arrival.resize(static_cast<std::size_t>(n));
  table.prompt_tokens.resize(static_cast<std::size_t>(n));
  table.output_tokens.resize(static_cast<std::size_t>(n));
  if (!arrivals_from_trace) FillArrivals(w.arrivals, s.seed, table.arrival);
  if (!prompts_from_trace)
    FillLengths(w.prompt_tokens, s.seed, Stream::kPromptTokens, table.prompt_tokens);
  if (!outputs_from_trace)
    FillLengths(w.output_tokens, s.seed, Stream::kOutputTokens, table.output_tokens);
  for (std::size_t i = 0; any_trace && i < table.arrival.size(); ++i) {
    const TraceRow& row = trace.rows[i % rows];
    if (arrivals_from_trace) table.arrival[i] = row.arrival_ns;
    if (prompts_from_trace) table.prompt_tokens[i] = row.prompt_tokens;
    if (outputs_from_trace) table.output_tokens[i] = row.output_tokens;
  }
  return table;
}

}  // namespace servecast
