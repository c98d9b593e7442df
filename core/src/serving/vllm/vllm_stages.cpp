// What only a replica of several pipeline stages needs. As many batches as stages are in flight, by
// the rule of vLLM's batch queue: the next one is formed at once while there are fewer and a
// request may run, else the oldest is waited for. None may run whose token is in flight, so the
// requests that decode fall into groups that take turns; a prefill goes on in the next batch at
// once.
//
// The group that may be scheduled is the one whose batch has just been applied, and after a launch
// an empty one. A schedule call takes all of its members or makes them catch up, so two groups
// never meet. A request may leave any group: a victim, or one that timed out.
#include <algorithm>

#include "serving/vllm/vllm_scheduler.h"

namespace servecast {

// ---- Groups of decodes ---------------------------------------------------------------------

// The one that was chosen is in flight.
void VllmScheduler::ChooseFreeGroup() {
  group_ = free_groups_.back();
  free_groups_.pop_back();
}

// Its batch was applied. None is chosen behind a horizon, where nothing is scheduled again.
void VllmScheduler::ChooseAppliedGroup(DecodeGroup* group) {
  if (group_->size() > 0) return;
  free_groups_.push_back(group_);
  group_ = group;
}

// Counts anew how many decodes of the group stand before each prefill; from the end of the
// running list, where prefills mostly are.
void VllmScheduler::PlacePrefills() {
  std::int64_t before = group_->size();
  std::size_t left = apart_.size();
  for (SlotId id = last_; left > 0; id = SlotAt(id).previous) {
    Slot& slot = SlotAt(id);
    if (slot.phase == Phase::kApart) {
      slot.decodes_before = before;
      --left;
    } else if (MayRun(slot)) {
      --before;
    }
  }
}

// ---- Victims in flight ---------------------------------------------------------------------

void VllmScheduler::Hold(const Slot& slot) {
  const auto over = [this](const Held& held) { return held.until <= machine_.now(); };
  held_.erase(std::remove_if(held_.begin(), held_.end(), over), held_.end());
  if (BusyUntil(slot) <= machine_.now()) return;
  const std::int64_t computed = ComputedNow(slot);
  const bool token = slot.phase != Phase::kApart && !machine_.HandsOver(slot.request);
  const std::int64_t delivered =
      computed - in_.requests.prompt_tokens[static_cast<std::size_t>(slot.request)];
  held_.push_back({slot.request, BusyUntil(slot), token ? delivered : -1,
                   token && computed > slot.joined_with});
}

const VllmScheduler::Held* VllmScheduler::HeldOf(RequestId request) const {
  for (const Held& held : held_) {
    if (held.request == request && held.until > machine_.now()) return &held;
  }
  return nullptr;
}

// Back to where they were in the queue.
void VllmScheduler::PutBackPassed() {
  for (; !passed_.empty(); passed_.pop_back()) {
    const RequestId request = passed_.back();
    const TimeNs arrival = in_.requests.arrival[static_cast<std::size_t>(request)];
    queue_.PushPreempted(machine_.policy().KeyOf(request), arrival, request);
  }
}

// Its client gave up while it waited, and will not read its token.
void VllmScheduler::GiveUpHeld(RequestId request) {
  const Held* held = HeldOf(request);
  if (held == nullptr || held->delivered < 0) return;
  in_.results.generated[static_cast<std::size_t>(request)] =
      static_cast<std::int32_t>(held->delivered);
  machine_.LoseTokenAt(held->until, held->decoded);
}

}  // namespace servecast
