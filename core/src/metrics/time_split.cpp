#include "metrics/time_split.h"

#include <algorithm>

namespace servecast {

RequestTimes TimesOf(const RequestTable& requests, const RequestResults& results,
                     TimeNs token_delay, std::size_t i) {
  const Setbacks none;
  const Setbacks& s = results.setbacks.empty() ? none : results.setbacks[i];
  RequestTimes times;
  const TimeNs first = results.first_token[i] - token_delay;  // the end of its step
  TimeSplit& t = times.ttft;
  t.host = results.enqueue[i] - requests.arrival[i] + token_delay;
  t.queue = results.first_scheduled[i] - results.enqueue[i];
  t.preempted = s.preempted_to_first;
  t.transfer = s.transfer_to_first;
  t.prefill = first - results.first_scheduled[i] - t.preempted - t.transfer;

  TimeSplit& e = times.e2e;
  e = t;
  e.preempted = s.preempted;
  e.transfer = s.transfer;
  e.prefill += s.recompute;
  e.interference = results.interference[i];
  const TimeNs after =
      (e.preempted - t.preempted) + (e.transfer - t.transfer) + s.recompute + e.interference;
  // Delays of tokens that would outlast the clock are cut.
  const TimeNs rest = results.completion[i] - first - after;
  const TimeNs delays =
      static_cast<TimeNs>(std::min(WideInt{results.generated[i]} * token_delay, WideInt{rest}));
  e.host += delays - token_delay;
  e.decode = rest - delays;
  return times;
}

}  // namespace servecast
