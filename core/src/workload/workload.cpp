// See workload.h.
#include "workload/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/math.h"
#include "base/random.h"
#include "workload/content.h"

namespace servecast {
namespace {

TimeNs Nearest(double ns) { return static_cast<TimeNs>(std::nearbyint(ns)); }

// -Log(u) of the mean: at most 37 times it.
double Exponential(std::int64_t seed, Stream stream, std::size_t entity, double mean) {
  return -Log(Uniform(seed, stream, static_cast<std::int64_t>(entity))) * mean;
}

void FillLengths(const LengthSpec& spec, std::int64_t seed, Stream stream,
                 std::vector<std::int32_t>& lengths) {
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const double u = spec.distribution == LengthDistribution::kFixed
                         ? 0.5
                         : Uniform(seed, stream, static_cast<std::int64_t>(i));
    lengths[i] = static_cast<std::int32_t>(DrawLength(spec, u));
  }
}

// Arrivals of sessions; their later turns get -1.
void FillArrivals(const ArrivalSpec& spec, std::int64_t seed, std::size_t turns,
                  std::vector<TimeNs>& arrivals) {
  const double mean_ns = 1e9 / spec.rate_per_s;
  TimeNs time = 0;
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    if (i % turns != 0) {
      arrivals[i] = -1;
      continue;
    }
    const std::size_t session = i / turns;
    if (spec.process == ArrivalProcess::kConstant) {
      time = Nearest(mean_ns * static_cast<double>(session));
    } else {
      time += Nearest(Exponential(seed, Stream::kArrival, session, mean_ns));
    }
    arrivals[i] = time;
  }
}

void FillThinking(const SessionSpec& spec, std::int64_t seed, std::size_t rows,
                  std::vector<TimeNs>& think) {
  const double mean_ns = spec.think_time_s * 1e9;
  const auto turns = static_cast<std::size_t>(spec.turns);
  think.resize(rows);
  for (std::size_t i = 0; i < rows; ++i) {
    think[i] = i % turns == 0 ? -1 : Nearest(Exponential(seed, Stream::kThinkTime, i, mean_ns));
  }
}

// From what each turn adds to what it sends: the shared beginning and all that was said before.
void AddHistory(const WorkloadSpec& w, RequestTable& table) {
  const auto turns = static_cast<std::size_t>(w.sessions.turns);
  for (std::size_t i = 0; i < table.prompt_tokens.size(); ++i) {
    const std::int64_t before =
        i % turns == 0 ? w.prefix.tokens
                       : std::int64_t{table.prompt_tokens[i - 1]} + table.output_tokens[i - 1];
    table.prompt_tokens[i] =
        static_cast<std::int32_t>(std::min(before + table.prompt_tokens[i], kMostTokens));
  }
}

// The columns that some class sets, each session of one class.
void FillClasses(const WorkloadSpec& w, std::int64_t seed, RequestTable& table) {
  std::vector<double> until;  // running sums of the shares
  bool priorities = false, deadlines = false, timeouts = false;
  for (const ClassSpec& c : w.classes) {
    until.push_back((until.empty() ? 0 : until.back()) + c.share);
    priorities |= c.priority != 0;
    deadlines |= c.ttft_deadline_ms.has_value();
    timeouts |= c.timeout_s.has_value();
  }
  if (!priorities && !deadlines && !timeouts) return;
  const auto column = [&table](bool wanted, auto& values) {
    if (wanted) values.resize(table.arrival.size());
  };
  column(priorities, table.priority);
  column(deadlines, table.ttft_deadline);
  column(timeouts, table.timeout);
  const auto turns = static_cast<std::size_t>(w.sessions.turns);
  const auto in_ns = [](const std::optional<double>& value, double unit_ns) {
    return value ? Nearest(*value * unit_ns) : kNever;
  };
  for (std::size_t i = 0; i < table.arrival.size(); ++i) {
    const double u = Uniform(seed, Stream::kClass, static_cast<std::int64_t>(i / turns));
    const auto at = std::upper_bound(until.begin(), until.end(), u * until.back());
    const auto last = static_cast<std::ptrdiff_t>(w.classes.size()) - 1;
    const ClassSpec& c = w.classes[static_cast<std::size_t>(std::min(at - until.begin(), last))];
    if (priorities) table.priority[i] = static_cast<std::int32_t>(c.priority);
    if (deadlines) table.ttft_deadline[i] = in_ns(c.ttft_deadline_ms, 1e6);
    if (timeouts) table.timeout[i] = in_ns(c.timeout_s, 1e9);
  }
}

// What does not fit the time of a run; nullopt when all does.
std::optional<Issue> TimesBeyondARun(const WorkloadSpec& w, const Trace& trace) {
  constexpr double kLongestS = 1e8;  // about three years; gaps of a million runs stay in int64 ns
  if (w.arrivals.process != ArrivalProcess::kTrace) {
    const double sessions = static_cast<double>(CeilDiv(w.requests, w.sessions.turns));
    if (sessions / w.arrivals.rate_per_s <= kLongestS) return std::nullopt;
    return Issue{"/workload/arrivals/rate_per_s",
                 fmt::format("{} {} at this rate take more than {} s, the longest that a run can "
                             "hold",
                             sessions, w.sessions.turns > 1 ? "sessions" : "requests", kLongestS)};
  }
  TimeNs last = 0;
  for (const TraceRow& row : trace.rows) last = std::max(last, row.arrival_ns);
  if (w.arrivals.rate_scale >= 1 || static_cast<double>(last) / w.arrivals.rate_scale <= 0x1p62) {
    return std::nullopt;
  }
  return Issue{"/workload/arrivals/rate_scale",
               fmt::format("the trace's {} s at {} times its rate take more than 4,611,686,018 s, "
                           "the longest that a run can hold",
                           static_cast<double>(last) * 1e-9, w.arrivals.rate_scale)};
}

}  // namespace

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
  const bool content_from_trace = prompts_from_trace && !trace.prefixes.empty();
  if (content_from_trace && w.prefix.groups > 0) {
    return Issue{"/workload/prefix/groups",
                 fmt::format("found {}, allowed 0 with this trace: its hash ids say what its "
                             "prompts share",
                             w.prefix.groups)};
  }
  if (auto issue = TimesBeyondARun(w, trace)) return *std::move(issue);

  const auto rows = trace.rows.size();
  const auto n = arrivals_from_trace ? rows : static_cast<std::size_t>(w.requests);
  RequestTable table;
  table.arrival.resize(n);
  table.prompt_tokens.resize(n);
  table.output_tokens.resize(n);
  const auto turns = static_cast<std::size_t>(w.sessions.turns);
  if (!arrivals_from_trace) FillArrivals(w.arrivals, s.seed, turns, table.arrival);
  if (!prompts_from_trace)
    FillLengths(w.prompt_tokens, s.seed, Stream::kPromptTokens, table.prompt_tokens);
  if (!outputs_from_trace)
    FillLengths(w.output_tokens, s.seed, Stream::kOutputTokens, table.output_tokens);
  const double scale = w.arrivals.rate_scale;
  for (std::size_t i = 0; any_trace && i < n; ++i) {
    const TraceRow& row = trace.rows[i % rows];
    if (arrivals_from_trace) {
      const bool as_is = scale == 1;  // more than 53 bits stay
      table.arrival[i] =
          as_is ? row.arrival_ns : Nearest(static_cast<double>(row.arrival_ns) / scale);
    }
    if (prompts_from_trace) table.prompt_tokens[i] = row.prompt_tokens;
    if (outputs_from_trace) table.output_tokens[i] = row.output_tokens;
  }

  if (turns > 1) FillThinking(w.sessions, s.seed, n, table.think);
  if (turns > 1 || w.prefix.groups > 0) {
    AddHistory(w, table);
    FillContent(w, s.seed, table);
  }
  if (content_from_trace) FillContent(trace, table);
  if (!w.classes.empty()) FillClasses(w, s.seed, table);
  return table;
}

}  // namespace servecast
