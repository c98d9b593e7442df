// From what a run left behind to where the time of a request went (TimeSplit has the parts).
#pragma once

#include <array>

#include "base/base.h"
#include "servecast/report.h"
#include "workload/request_table.h"

namespace servecast {

// In the order of TimeSplitReport::kNames.
constexpr std::array<TimeNs TimeSplit::*, TimeSplitReport::kParts> kTimeParts = {
    &TimeSplit::host,         &TimeSplit::queue,     &TimeSplit::prefill,  &TimeSplit::decode,
    &TimeSplit::interference, &TimeSplit::preempted, &TimeSplit::transfer, &TimeSplit::handover};

// Parts that come after the first token, but for decode and interference: all of these do.
struct TimeAfterFirst {
  TimeNs host = 0, recompute = 0, preempted = 0, transfer = 0, handover = 0;
};

// Of all its time. Requires: the request is complete, and was served by vLLM's rules (Replica).
// O(1).
inline TimeSplit SplitOf(const RequestTable& requests, const RequestResults& results,
                         TimeNs token_delay, std::size_t i, TimeAfterFirst& after) {
  TimeSplit t;
  const TimeNs late = results.Late(i) + token_delay;
  const TimeNs first = results.first_token[i] - late;  // the end of its step
  t.host = results.enqueue[i] - requests.arrival[i] + late;
  t.queue = results.first_scheduled[i] - results.enqueue[i];
  t.prefill = first - results.first_scheduled[i];
  t.interference = results.interference[i];
  t.decode = results.completion[i] - first - t.interference;
  if (!results.setbacks.empty()) {
    const Setbacks& s = results.setbacks[i];
    after.recompute = s.recompute;
    after.preempted = s.preempted - s.preempted_to_first;
    after.transfer = s.transfer - s.transfer_to_first;
    t.preempted = s.preempted;
    t.transfer = s.transfer;
    t.prefill += s.recompute - s.preempted_to_first - s.transfer_to_first;
    t.decode -= s.recompute + after.preempted + after.transfer;
  }
  if (results.HandedOver(i)) {
    const HandOver& h = results.hand_overs[i];
    t.transfer = h.arrived - h.reserved;
    t.handover = h.resumed - h.prefilled - t.transfer;
    // The first token comes before, or from the decode side after it.
    if (h.resumed > first) {
      t.decode -= t.transfer + t.handover;
      after.transfer = t.transfer;
      after.handover = t.handover;
    } else {
      t.prefill -= t.transfer + t.handover;
    }
  }
  if (results.EncodedApart(i)) {
    const Encoding& e = results.encodings[i];
    t.queue -= e.arrived - e.started;
    t.prefill += e.encoded - e.started;
    t.transfer += e.arrived - e.encoded;
  }
  if (late > 0) {
    // Delays that would outlast the clock are cut.
    const WideInt delays = WideInt{results.generated[i]} * token_delay + results.Late(i);
    const TimeNs cut = delays < t.decode ? static_cast<TimeNs>(delays) : t.decode;
    t.decode -= cut;
    after.host = cut - late;
    t.host += after.host;
  }
  return t;
}

// The same, and that of its time before the first token.
RequestTimes TimesOf(const RequestTable& requests, const RequestResults& results,
                     TimeNs token_delay, std::size_t request);

}  // namespace servecast
