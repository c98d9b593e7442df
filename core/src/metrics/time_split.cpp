#include "metrics/time_split.h"

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
  times.ttft.decode = times.ttft.interference = 0;
  return times;
}

}  // namespace servecast
