#include "metrics/time_split.h"

#include <iterator>

#include "metrics/summarize.h"

namespace servecast {
namespace {

constexpr double kMs = 1e6;  // ns

}  // namespace

RequestTimes TimesOf(const RequestTable& requests, const RequestResults& results,
                     TimeNs token_delay, std::size_t i) {
  TimeAfterFirst after;
  RequestTimes times;
  times.e2e = SplitOf(requests, results, token_delay, i, after);
  times.ttft = times.e2e;
  times.ttft.host -= after.host;
  times.ttft.prefill -= after.recompute;
  times.ttft.preempted -= after.preempted;
  times.ttft.transfer -= after.transfer;
  times.ttft.decode = times.ttft.interference = 0;
  return times;
}

// Mean times by where they went, of the completed.
void SplitTimes(const RunView& run, Report& whole) {
  TimeSplitReport& report = whole.time_split;
  report.on = !IsBlis(run.scenario.engine.compat);
  double host = 0, queue = 0, prefill = 0, decode = 0, interference = 0, preempted = 0,
         transfer = 0;
  double later_host = 0, again = 0, later_preempted = 0, later_transfer = 0;
  const auto add = [](double& sum, TimeNs more) { sum += static_cast<double>(more); };
  const bool slow = !run.results.setbacks.empty() || run.token_delay > 0;
  for (std::size_t i = 0; report.on && i < run.requests.arrival.size(); ++i) {
    if (run.results.state[i] != RequestState::kCompleted || !run.Measured(i)) continue;
    ++report.n;
    TimeAfterFirst after;
    const TimeSplit t = SplitOf(run.requests, run.results, run.token_delay, i, after);
    add(host, t.host);
    add(queue, t.queue);
    add(prefill, t.prefill);
    add(decode, t.decode);
    add(interference, t.interference);
    if (!slow) continue;
    add(preempted, t.preempted);
    add(transfer, t.transfer);
    add(later_host, after.host);
    add(again, after.recompute);
    add(later_preempted, after.preempted);
    add(later_transfer, after.transfer);
  }
  if (report.n == 0) return;
  const double sums[] = {host, queue, prefill, decode, interference, preempted, transfer};
  const double later[] = {later_host,    0, again, decode, interference, later_preempted,
                          later_transfer};
  const double n_ms = static_cast<double>(report.n) * kMs;
  for (std::size_t p = 0; p < std::size(sums); ++p) {
    report.e2e_ms[p] = sums[p] / n_ms;
    report.ttft_ms[p] = (sums[p] - later[p]) / n_ms;
  }
}

}  // namespace servecast
