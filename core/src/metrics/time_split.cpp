#include "metrics/time_split.h"

#include "metrics/summarize.h"

namespace servecast {

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
  times.ttft.handover -= after.handover;
  times.ttft.decode = times.ttft.interference = 0;
  return times;
}

// Mean times by where they went, of the completed.
void SplitTimes(const RunView& run, Report& whole) {
  TimeSplitReport& report = whole.time_split;
  report.on = !IsBlis(run.scenario.engine.compat);
  std::array<double, TimeSplitReport::kParts> sums{}, later{};
  const bool slow =
      !run.results.setbacks.empty() || !run.results.hand_overs.empty() || run.token_delay > 0;
  for (std::size_t i = 0; report.on && i < run.requests.arrival.size(); ++i) {
    if (run.results.state[i] != RequestState::kCompleted || !run.Measured(i)) continue;
    ++report.n;
    TimeAfterFirst after;
    const TimeSplit t = SplitOf(run.requests, run.results, run.token_delay, i, after);
    for (std::size_t p = 0; p < sums.size(); ++p) sums[p] += static_cast<double>(t.*kTimeParts[p]);
    if (!slow) continue;
    const TimeNs of_later[] = {
        after.host, 0, after.recompute, 0, 0, after.preempted, after.transfer, after.handover};
    for (std::size_t p = 0; p < later.size(); ++p) later[p] += static_cast<double>(of_later[p]);
  }
  if (report.n == 0) return;
  // Failed attempts were in the system, too.
  if (report.n == whole.arrived && !run.retries.on && whole.finished && whole.simulated_s > 0) {
    double in_system = 0;  // all but the host's
    for (std::size_t p = 1; p < sums.size(); ++p) in_system += sums[p];
    whole.rate_times_time = in_system / (whole.simulated_s * 1e9);
  }
  for (const std::size_t p : {std::size_t{3}, std::size_t{4}}) later[p] = sums[p];
  const double n_ms = static_cast<double>(report.n) * kMs;
  for (std::size_t p = 0; p < sums.size(); ++p) {
    report.e2e_ms[p] = sums[p] / n_ms;
    report.ttft_ms[p] = (sums[p] - later[p]) / n_ms;
  }
}

}  // namespace servecast
