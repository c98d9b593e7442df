// A replica that fails. In a file of its own, which the page's first module leaves out.
#include <algorithm>

#include "serving/replica/replica.h"

namespace servecast {

// Whether the next step of the run ends after that time, by which the replica dies or others may
// end a request in it: then it is formed like any other, so that what these meet is in one place.
bool Replica::EndsAfter(TimeNs time, const DecodeRun& run) const {
  BatchShape shape = run.decodes->shape();
  if (!run.prices_blocks) shape.decode_kv_blocks = 0;
  shape.preemption_ema = (1 - preemption_weight_) * load_.preemption_ema;
  if (shape.preemption_ema < kNegligible) shape.preemption_ema = 0;
  shape.lora = run.lora;
  return StartTime() + PriceAt(StartTime(), shape).duration > time;
}

// How far the run has come beyond `now` depends on how it is sliced: no farther than that step's
// end.
TimeNs Replica::EndBy(TimeNs now, TimeNs time) {
  const TimeNs step = now_ > now ? now_ : in_flight_ > 0 ? Oldest().end : now;
  const TimeNs ends = std::max(time, step);
  if (ends >= in_.horizon) return kNever;
  in_.dies_at = std::min(in_.dies_at, ends);
  last_start_ = std::min(last_start_, ends);
  return ends;
}

void Replica::LoseTransfer(RequestId request, TimeNs time) {
  if (in_flight_ == 0) PassTo(time);
  DeliverUpTo(time);
  scheduler_->LoseTransfer(request);
  in_.recorder->Waiting(time, queued() + left_queue_);
}

std::vector<RequestId> Replica::WithheldFor() const {
  std::vector<RequestId> requests;
  for (const Withheld& one : withheld_) requests.push_back(one.request);
  std::sort(requests.begin(), requests.end());
  return requests;
}

void Replica::Die(TimeNs time) {
  now_ = std::max(now_, time);
  DeliverUpTo(time);
  WriteProgress(in_.results.generated);
  in_.recorder->Waiting(time, 0);
}

}  // namespace servecast
