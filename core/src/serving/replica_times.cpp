// Where the time of a request goes. It is never followed step by step: the replica keeps running
// sums over its steps (time that steps took longer for prefills beside decodes, and for loads from
// KV tiers), a request notes what they were when its prefill or its decode began, and the
// difference at its end is its own. metrics/time_split.h says what the parts mean and adds them up.
#include "serving/replica.h"

namespace servecast {

// A step has prefills: their work, and by how much they make the decodes beside them wait.
void Replica::CountPrefillWork(Batch& batch, const StepPrice& price, const BatchShape& shape) {
  PrefillWork work;
  std::int64_t tokens = 0;
  for (const PrefillChunk& chunk : chunks_) {
    work.pairs += chunk.tokens * chunk.context + chunk.tokens * (chunk.tokens + 1) / 2;
    work.keys += chunk.context + chunk.tokens;
    tokens += chunk.tokens;
  }
  work.without_head = batch.sampled > 0 ? 0 : kStepUnit;
  batch.prefill = work;
  batch.record.prefill_tokens = tokens;
  batch.record.interference = 0;
  if (shape.decode_seqs == 0) return;
  BatchShape without = shape;
  without.prefill = {};
  const TimeNs alone = PriceOf(without).duration;
  if (alone >= price.duration) return;
  interference_total_ += price.duration - alone;
  batch.record.interference = price.duration - alone;
}

// It runs again after a preemption.
void Replica::CountWait(const Slot& slot) {
  const auto r = static_cast<std::size_t>(slot.request);
  Setbacks& s = in_.results.SetbacksOf(r);
  s.preempted += slot.admitted - s.preempted_at;
  if (slot.known == in_.requests.prompt_tokens[r]) s.preempted_to_first = s.preempted;
}

// A prefill ends, with a token or by a preemption: one that loaded, or that recomputes.
void Replica::CountSlowPrefill(const Slot& slot, TimeNs end) {
  const auto r = static_cast<std::size_t>(slot.request);
  Setbacks& s = in_.results.SetbacksOf(r);
  const TimeNs transfer = transfer_total_ - slot.transfer_before;
  s.transfer += transfer;
  if (slot.known == in_.requests.prompt_tokens[r]) {
    s.transfer_to_first = s.transfer;
  } else {
    s.recompute += end - slot.admitted - transfer;
  }
}

void Replica::CountTransfer(const Slot& slot) {
  in_.results.SetbacksOf(static_cast<std::size_t>(slot.request)).transfer +=
      transfer_total_ - slot.transfer_before;
}

// It is not in the step that is being formed; with pipeline stages it may be in one that ends after
// this one starts. Whose last token is in flight was counted already, and so was there who catches
// up.
void Replica::CountPreemption(const Slot& slot) {
  const TimeNs end = staged() ? std::max(StartTime(), BusyUntil(slot)) : StartTime();
  if (slot.phase == Phase::kPrefill && !slot.catches_up) {
    CountSlowPrefill(slot, end);
  } else if (slot.phase == Phase::kDecode || (slot.catches_up && !staged())) {
    CountDecode(slot);
  }
  in_.results.SetbacksOf(static_cast<std::size_t>(slot.request)).preempted_at = end;
}

}  // namespace servecast
