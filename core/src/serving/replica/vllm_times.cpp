// Where the time of a request goes. It is never followed step by step: the replica keeps running
// sums over its steps (time that steps took longer for prefills beside decodes, and for loads from
// KV tiers), a request notes what they were when its prefill or its decode began, and the
// difference at its end is its own. metrics/time_split.h says what the parts mean and adds them up.
// And what else of a step is only counted: which waited between two, and room in its KV blocks.
#include "serving/replica/vllm_scheduler.h"

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
  const TimeNs transfer = replica_.transfer_total() - slot.transfer_before;
  s.transfer += transfer;
  if (slot.known == in_.requests.prompt_tokens[r]) {
    s.transfer_to_first = s.transfer;
  } else {
    s.recompute += end - slot.admitted - transfer;
  }
}

void VllmScheduler::CountTransfer(const Slot& slot) {
  in_.results.SetbacksOf(static_cast<std::size_t>(slot.request)).transfer +=
      replica_.transfer_total() - slot.transfer_before;
}

// It is not in the step that is being formed; with pipeline stages it may be in one that ends after
// this one starts. One whose last token is in flight was counted already, and so was there one
// that catches up.
void VllmScheduler::CountPreemption(const Slot& slot) {
  const TimeNs end =
      staged() ? std::max(replica_.StartTime(), BusyUntil(slot)) : replica_.StartTime();
  if (slot.phase == Phase::kPrefill && !slot.catches_up) {
    CountSlowPrefill(slot, end);
  } else if (slot.phase == Phase::kDecode || (slot.catches_up && !staged())) {
    CountDecode(slot, slot.catches_up ? *group_ : *slot.group);
  }
  Setbacks& s = in_.results.SetbacksOf(static_cast<std::size_t>(slot.request));
  s.preempted_at = end;
  s.last_step = LastStepOf(slot);
}

// ---- Between steps -------------------------------------------------------------------------

// The end of the latest step that it is in, which may be in flight.
TimeNs VllmScheduler::LastStepOf(const Slot& slot) const {
  if (slot.phase != Phase::kPrefill) return staged() ? BusyUntil(slot) : LastTokenTime(*group_);
  return slot.catches_up ? last_token_[static_cast<std::size_t>(slot.request)] : slot.busy_until;
}

// Of a step that is launched: by how much it comes later for its members than their step before, or
// than their KV from a prefill replica. Returns how many it does not make wait at all.
std::int64_t VllmScheduler::CountStepDelays(TimeNs start) {
  std::int64_t in_turn = 0;
  const auto count = [&](TimeNs ready, std::int64_t requests) {
    if (ready >= start) {
      in_turn += requests;
    } else {
      in_.recorder.StepDelay(start, start - ready, requests);
    }
  };
  count(staged() && group_->size() > 0 ? group_->end : start, group_->size());
  for (const SlotId id : prefills_) {
    const Slot& slot = SlotAt(id);
    if (slot.chunk == 0) continue;
    const auto r = static_cast<std::size_t>(slot.request);
    if (slot.kind == MemberKind::kContinued) {
      count(LastStepOf(slot), 1);
    } else if (slot.kind == MemberKind::kResumed) {
      count(in_.results.SetbacksOf(r).last_step, 1);
    } else if (slot.catches_up) {
      count(in_.results.hand_overs[r].arrived, 1);
    }
  }
  return in_turn;
}

// ---- KV blocks -----------------------------------------------------------------------------

// As the step that is being formed has them. What is on its way into blocks counts as there.
std::int64_t VllmScheduler::UnusedBeside() const {
  std::int64_t unused = 0;
  for (const SlotId id : prefills_) {
    const Slot& slot = SlotAt(id);
    unused += UnusedBy(slot.computed + slot.chunk);
  }
  for (const DecodeGroup& group : groups_) {
    if (&group != group_) unused += group.next().blocks * kv_.block_size() - group.context();
  }
  for (std::size_t i = 0; i < replica_.in_flight() && endings_ > 0; ++i) {
    for (const Output& last : outputs_[replica_.InFlight(i).place].last) {
      const Slot& slot = SlotAt(last.slot);
      const bool ending = slot.admission == last.admission && slot.phase == Phase::kEnding;
      const auto r = static_cast<std::size_t>(last.request);
      if (!ending || in_.results.state[r] != RequestState::kRunning) continue;
      unused += UnusedBy(slot.computed);
    }
  }
  for (const Replica::Withheld& held : replica_.withheld()) {
    unused += UnusedBy(held.tokens);
  }
  for (const Incoming& incoming : incoming_) {
    const std::int64_t known = Known(incoming.request);
    unused += kv_.BlocksFor(known) * kv_.block_size() - (known - 1);
  }
  return unused;
}

}  // namespace servecast
