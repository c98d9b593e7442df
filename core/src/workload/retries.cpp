#include "workload/retries.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/random.h"
#include "base/text.h"
#include "servecast/workload_spec.h"

namespace servecast {
namespace {

TimeNs BackoffOf(const RetrySpec& spec, std::int64_t seed, std::size_t request,
                 std::int64_t retry) {
  double seconds = spec.backoff_s;
  for (std::int64_t k = 0; k < retry && seconds < spec.max_backoff_s; ++k) {
    seconds *= spec.multiplier;
  }
  seconds = std::min(seconds, spec.max_backoff_s);
  const double u = Uniform(seed, Stream::kBackoff, static_cast<std::int64_t>(request), retry);
  return std::max<TimeNs>(
      1, static_cast<TimeNs>(std::nearbyint(seconds * (1 - spec.jitter * u) * 1e9)));
}

// For each retry what its request has; `column` is optional.
template <class T>
void Repeat(std::vector<T>& column, std::size_t requests, std::size_t each) {
  if (column.empty()) return;
  column.reserve(requests * (1 + each));
  for (std::size_t i = 0; i < requests; ++i) {
    const T value = column[i];
    column.insert(column.end(), each, value);
  }
}

// Every optional column by row has one value a request again, that of `last`.
template <class T>
void Pick(std::vector<T>& column, const std::vector<std::size_t>& last) {
  if (column.empty()) return;
  for (std::size_t i = 0; i < last.size(); ++i) column[i] = column[last[i]];
  column.resize(last.size());
}

void PickAll(RequestResults& r, const std::vector<std::size_t>& last) {
  for (auto* column : {&r.enqueue, &r.first_scheduled, &r.first_token, &r.completion,
                       &r.interference, &r.late, &r.encode, &r.lost_at}) {
    Pick(*column, last);
  }
  for (auto* column : {&r.generated, &r.preemptions, &r.cached_tokens, &r.replica}) {
    Pick(*column, last);
  }
  Pick(r.state, last);
  Pick(r.setbacks, last);
  Pick(r.hand_overs, last);
}

// What became of a request's attempts by `end`.
struct Attempts {
  std::size_t last = 0;  // row of the last one that has arrived; without any its first
  std::int32_t arrived = 0;
  bool failed = false;       // the last one did, and
  bool waits = false;        // another one is to come, or
  bool over_budget = false;  // is not sent for want of a budget
  bool hedge_won = false;    // the last one is a hedge that had the first token
};

// Of a client that hedges the attempt that it keeps.
Attempts HedgedOf(const RequestTable& table, const RequestResults& results, TimeNs end,
                  std::size_t request) {
  const auto second = static_cast<std::size_t>(table.OtherAttempt(static_cast<RequestId>(request)));
  const auto arrived = [&](std::size_t row) {
    return table.arrival[row] >= 0 && table.arrival[row] <= end;
  };
  Attempts a{request, arrived(request) ? 1 : 0};
  a.over_budget = arrived(second) && results.state[second] == RequestState::kRejected;
  if (arrived(second) && !a.over_budget) {
    ++a.arrived;
    const TimeNs token = results.first_token[request], other = results.first_token[second];
    a.hedge_won = other >= 0 && (token < 0 || other < token);
    if (a.hedge_won || (token < 0 && IsLost(results.state[request]))) a.last = second;
  }
  a.failed = IsLost(results.state[a.last]) && results.state[a.last] != RequestState::kDropped;
  return a;
}

Attempts AttemptsOf(const RequestTable& table, const RequestResults& results, TimeNs end,
                    std::size_t request) {
  if (table.Hedges()) return HedgedOf(table, results, end, request);
  const auto arrived = [&](std::size_t row) {
    return table.arrival[row] >= 0 && table.arrival[row] <= end;
  };
  const auto not_sent = [&](std::size_t row) {
    return results.state[row] == RequestState::kRejected && results.enqueue[row] < 0;
  };
  Attempts a{request, arrived(request) ? 1 : 0};
  RequestId next = table.NextAttempt(static_cast<RequestId>(request));
  while (next != kNoRequest && arrived(static_cast<std::size_t>(next)) &&
         !not_sent(static_cast<std::size_t>(next))) {
    a.last = static_cast<std::size_t>(next);
    ++a.arrived;
    next = table.NextAttempt(next);
  }
  const RequestState state = results.state[a.last];
  a.failed = state == RequestState::kTimedOut || state == RequestState::kRejected ||
             state == RequestState::kLost;
  a.over_budget = a.failed && next != kNoRequest && not_sent(static_cast<std::size_t>(next));
  a.waits = a.failed && next != kNoRequest && !a.over_budget;
  return a;
}

void Count(const Attempts& a, RetryReport& report) {
  report.requests += a.arrived > 0 ? 1 : 0;
  report.attempts += a.arrived;
  report.retried += a.arrived > 1 ? 1 : 0;
  report.given_up += a.failed && !a.waits ? 1 : 0;
  report.over_budget += a.over_budget ? 1 : 0;
  report.hedges_won += a.hedge_won ? 1 : 0;
}

// The requests alone, with what reports look at.
RequestTable FirstAttempts(const RequestTable& table) {
  RequestTable t = table;
  const std::size_t n = table.requests();
  t.backoff.clear();
  t.hedge_after = kNever;
  t.content.clear();
  t.segments.clear();
  t.accepted_drafts.clear();
  t.proposed_drafts.clear();
  const auto cut = [n](auto& column) {
    if (!column.empty()) column.resize(n);
  };
  for (auto* column : {&t.arrival, &t.ttft_deadline, &t.timeout}) cut(*column);
  for (auto* column :
       {&t.prompt_tokens, &t.output_tokens, &t.priority, &t.max_new_tokens, &t.lora}) {
    cut(*column);
  }
  cut(t.of_class);
  cut(t.acceptance_length);
  return t;
}

// The retry of each request is a hedge. Its client gives both attempts up at one time. Both may be
// served by one replica, so they have only the prompt in common.
void MakeHedges(const RetrySpec& spec, std::size_t n, RequestTable& table) {
  table.hedge_after = static_cast<TimeNs>(std::nearbyint(*spec.hedge_after_s * 1e9));
  table.retry_budget = spec.hedge_budget.value_or(-1);
  table.timeout.resize(2 * n, kNever);
  for (std::size_t i = n; i < 2 * n; ++i) {
    table.segments.push_back({table.content[i - n], table.prompt_tokens[i]});
    table.content[i] = static_cast<std::int32_t>(table.segments.size()) - 1;
    TimeNs& timeout = table.timeout[i];
    if (timeout < kNever) timeout = std::max<TimeNs>(0, timeout - table.hedge_after);
  }
}

// Between two attempts: as one that has just come.
void Waits(RequestResults& r, std::size_t i) {
  r.enqueue[i] = r.first_scheduled[i] = r.first_token[i] = r.completion[i] = -1;
  r.generated[i] = 0;
  r.state[i] = RequestState::kQueued;
  if (!r.hand_overs.empty()) r.hand_overs[i] = {};
}

}  // namespace

void CheckRetries(const WorkloadSpec& w, Issues& issues) {
  const RetrySpec& retries = w.retries;
  if (retries.On() && retries.Hedges()) {
    issues.push_back({"/workload/retries/hedge_after_s",
                      Format("found {}, allowed none with max {}: which of two attempts is tried "
                             "again is not modelled",
                             NumberText(*retries.hedge_after_s), retries.max)});
  }
  if (retries.budget && retries.Hedges()) {
    issues.push_back({"/workload/retries/budget",
                      Format("found {}, allowed none with hedge_after_s, whose own is hedge_budget",
                             NumberText(*retries.budget))});
  }
  if (!retries.On()) return;
  if (retries.max_backoff_s < retries.backoff_s) {
    issues.push_back({"/workload/retries/max_backoff_s",
                      Format("found {}, allowed from backoff_s {} up",
                             NumberText(retries.max_backoff_s), NumberText(retries.backoff_s))});
  }
  const bool loop = w.arrivals.process == ArrivalProcess::kClosedLoop;
  if (retries.budget && (loop || CapsClients(w.arrivals))) {
    issues.push_back(
        {"/workload/retries/budget",
         Format("found {}, allowed none {}: a client that gives up would start its "
                "next {} at once",
                NumberText(*retries.budget), loop ? "in a closed loop" : "with max_concurrency",
                loop ? "session" : "request")});
  }
}

Result<RequestTable> WithRetries(const Scenario& scenario, RequestTable table) {
  const RetrySpec& spec = scenario.workload->retries;
  const std::size_t n = table.arrival.size();
  if (!(spec.On() || spec.Hedges()) || !table.backoff.empty() || n == 0) return table;
  const auto each = static_cast<std::size_t>(spec.Hedges() ? 1 : spec.max);
  if (n * (1 + each) > static_cast<std::size_t>(kMaxRequests)) {
    if (spec.Hedges()) {
      return Issue{"/workload/retries/hedge_after_s",
                   Format("found {}, allowed none with {} requests: a run holds {} attempts",
                          NumberText(*spec.hedge_after_s), n, kMaxRequests)};
    }
    return Issue{
        "/workload/retries/max",
        Format("found {}, allowed up to {} with {} requests: a run holds {} attempts", spec.max,
               kMaxRequests / static_cast<std::int64_t>(n) - 1, n, kMaxRequests)};
  }
  table.backoff.reserve(n * each);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < each; ++k) {
      table.backoff.push_back(BackoffOf(spec, scenario.seed, i, static_cast<std::int64_t>(k)));
    }
  }
  if (table.content.empty()) {
    for (std::size_t i = 0; i < n; ++i) table.content.push_back(static_cast<std::int32_t>(i));
    table.segments.resize(n);
  }
  for (auto* column : {&table.prompt_tokens, &table.output_tokens, &table.priority,
                       &table.max_new_tokens, &table.lora, &table.content}) {
    Repeat(*column, n, each);
  }
  Repeat(table.ttft_deadline, n, each);
  Repeat(table.timeout, n, each);
  Repeat(table.of_class, n, each);
  Repeat(table.accepted_drafts, n, each);
  Repeat(table.proposed_drafts, n, each);
  Repeat(table.acceptance_length, n, each);
  table.arrival.resize(n * (1 + each), -1);
  table.retry_budget = spec.budget.value_or(-1);
  if (spec.Hedges()) MakeHedges(spec, n, table);
  return table;
}

RequestsOfAttempts FoldAttempts(const RequestTable& table, const RequestResults& results,
                                TimeNs end, std::int64_t output_tokens) {
  RequestsOfAttempts out{FirstAttempts(table), results, {}, {}, 0};
  RetryReport& report = out.report;
  report.on = true;
  report.hedges = table.Hedges();
  std::vector<std::size_t> last, waiting;
  std::int64_t answered = 0;
  for (std::size_t i = 0; i < table.requests(); ++i) {
    const Attempts a = AttemptsOf(table, results, end, i);
    Count(a, report);
    last.push_back(a.last);
    if (a.last != i && table.Hedges() && !out.requests.timeout.empty()) {
      const TimeNs left = table.timeout[a.last];  // of the hedge, after its own arrival
      out.requests.timeout[i] = left < kNever ? left + table.hedge_after : kNever;
    }
    out.attempts.push_back(a.arrived);
    if (a.waits) waiting.push_back(i);
    out.running += results.state[a.last] == RequestState::kRunning ? 1 : 0;
    if (!a.failed) answered += results.generated[a.last];
  }
  if (report.requests > 0) report.amplification = Real(report.attempts) / Real(report.requests);
  report.tokens_lost = output_tokens - answered;
  PickAll(out.results, last);
  for (const std::size_t i : waiting) Waits(out.results, i);
  return out;
}

}  // namespace servecast
