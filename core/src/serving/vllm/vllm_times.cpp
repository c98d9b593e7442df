// Where the time of a request goes. It is never followed step by step: the replica keeps running
// sums over its steps (time that steps took longer for prefills beside decodes, and for loads from
// KV tiers), a request notes what they were when its prefill or its decode began, and the
// difference at its end is its own. metrics/time_split.h says what the parts mean and adds them up.
// And what else of a step is only counted: which waited between two, and room in its KV blocks.
#include "serving/vllm/vllm_scheduler.h"

namespace servecast {

// It runs again after a preemption.
void VllmScheduler::CountWait(const Slot& slot) {
  const auto r = static_cast<std::size_t>(slot.request);
  Setbacks& s = in_.results.SetbacksOf(r);
  s.preempted += slot.admitted - s.preempted_at;
  if (slot.known == in_.requests.prompt_tokens[r]) s.preempted_to_first = s.preempted;
}

// A prefill ends, with a token or by a preemption: one that loaded, or that recomputes.
void VllmScheduler::CountSlowPrefill(const Slot& slot, TimeNs end) {
  const auto r = static_cast<std::size_t>(slot.request);
  Setbacks& s = in_.results.SetbacksOf(r);
  const TimeNs transfer = machine_.transfer_total() - slot.transfer_before;
  s.transfer += transfer;
  if (slot.known == in_.requests.prompt_tokens[r]) {
    s.transfer_to_first = s.transfer;
  } else {
    s.recompute += end - slot.admitted - transfer;
  }
}

void VllmScheduler::CountTransfer(const Slot& slot) {
  in_.results.SetbacksOf(static_cast<std::size_t>(slot.request)).transfer +=
      machine_.transfer_total() - slot.transfer_before;
}

// It is not in the step that is being formed; with pipeline stages it may be in one that ends after
// this one starts. One whose last token is in flight was counted already, and so was there one
// that catches up.
void VllmScheduler::CountPreemption(const Slot& slot) {
  const TimeNs end =
      staged() ? std::max(machine_.StartTime(), BusyUntil(slot)) : machine_.StartTime();
  if (slot.phase == Phase::kApart && !slot.decodes) {
    CountSlowPrefill(slot, end);
  } else if (slot.phase == Phase::kDecode ||
             (slot.decodes && !staged() && !(drafts_ && Made(slot)))) {
    CountDecode(slot, slot.decodes ? *group_ : *slot.group);
  }
  Setbacks& s = in_.results.SetbacksOf(static_cast<std::size_t>(slot.request));
  s.preempted_at = end;
  s.last_step = LastStepOf(slot);
}

// ---- Between steps -------------------------------------------------------------------------

// The end of the latest step that it is in, which may be in flight.
TimeNs VllmScheduler::LastStepOf(const Slot& slot) const {
  if (slot.phase != Phase::kApart) return staged() ? BusyUntil(slot) : LastTokenTime(*group_);
  return slot.busy_until;
}

// Of one that comes into a step again, or with its KV from a prefill replica.
TimeNs VllmScheduler::WaitsSince(const Slot& slot) const {
  const auto r = static_cast<std::size_t>(slot.request);
  return slot.kind == MemberKind::kResumed ? in_.results.SetbacksOf(r).last_step
                                           : in_.results.hand_overs[r].arrived;
}

// ---- KV blocks -----------------------------------------------------------------------------

// What is on its way into blocks counts as there.
std::int64_t VllmScheduler::UnusedBeside() const {
  std::int64_t unused = machine_.withheld_room();
  for (const DecodeGroup& group : groups_) {
    if (&group != group_) unused += group.next().blocks * kv_.block_size() - group.context();
  }
  for (std::size_t i = 0; i < machine_.in_flight() && endings_ > 0; ++i) {
    for (const Output& last : outputs_[machine_.InFlight(i).place].last) {
      const Slot& slot = SlotAt(last.slot);
      if (slot.admission == last.admission) unused += kv_.RoomBehind(slot.computed);
    }
  }
  for (const Incoming& incoming : incoming_) {
    unused += kv_.RoomBehind(Known(incoming.request)) + 1;
  }
  return unused;
}

}  // namespace servecast
