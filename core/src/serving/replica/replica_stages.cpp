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

#include "serving/replica/replica.h"

namespace servecast {

void Replica::StartStages() {
  pipeline_.emplace(*in_.stages);
  batches_.resize(in_.stages->size());
  for (std::size_t i = 1; i < groups_.size(); ++i) free_groups_.push_back(&groups_[i]);
}

// ---- Groups of decodes ---------------------------------------------------------------------

// The one that was chosen is in flight.
void Replica::ChooseFreeGroup() {
  group_ = free_groups_.back();
  free_groups_.pop_back();
}

// Its batch was applied. None is chosen behind a horizon, where nothing is scheduled again.
void Replica::ChooseAppliedGroup(DecodeGroup* group) {
  if (group_->size() > 0) return;
  free_groups_.push_back(group_);
  group_ = group;
}

// Counts anew how many decodes of the group stand before each prefill; from the end of the
// running list, where prefills mostly are.
void Replica::PlacePrefills() {
  std::int64_t before = group_->size();
  std::size_t left = prefills_.size();
  for (SlotId id = last_; left > 0; id = SlotAt(id).previous) {
    Slot& slot = SlotAt(id);
    if (slot.phase == Phase::kPrefill) {
      slot.decodes_before = before;
      --left;
    } else if (MayRun(slot)) {
      --before;
    }
  }
}

// ---- Victims in flight ---------------------------------------------------------------------

void Replica::Hold(const Slot& slot) {
  const auto over = [this](const Held& held) { return held.until <= now_; };
  held_.erase(std::remove_if(held_.begin(), held_.end(), over), held_.end());
  if (BusyUntil(slot) <= now_) return;
  const std::int64_t computed = ComputedNow(slot);
  const bool token = slot.phase != Phase::kPrefill && !HandsOver(slot.request);
  const std::int64_t delivered =
      computed - in_.requests.prompt_tokens[static_cast<std::size_t>(slot.request)];
  held_.push_back({slot.request, BusyUntil(slot), token ? delivered : -1,
                   token && computed > slot.joined_with});
}

const Replica::Held* Replica::HeldOf(RequestId request) const {
  for (const Held& held : held_) {
    if (held.request == request && held.until > now_) return &held;
  }
  return nullptr;
}

// Back to where they were in the queue.
void Replica::PutBackPassed() {
  for (; !passed_.empty(); passed_.pop_back()) {
    const RequestId request = passed_.back();
    const TimeNs arrival = in_.requests.arrival[static_cast<std::size_t>(request)];
    queue_.PushPreempted(policy_.KeyOf(request), arrival, request);
  }
}

// Its client gave up while it waited, and will not read its token.
void Replica::AbortHeld(RequestId request) {
  const Held* held = HeldOf(request);
  if (held == nullptr || held->delivered < 0) return;
  in_.results.generated[static_cast<std::size_t>(request)] =
      static_cast<std::int32_t>(held->delivered);
  TakeFromBatch(held->until, held->decoded);
}

// A token of the batch that ends then is made, but no client reads it.
void Replica::TakeFromBatch(TimeNs end, bool decoded) {
  for (Batch& batch : batches_) {
    if (batch.end != end) continue;
    --batch.sampled;
    if (decoded) --batch.decodes;
    return;
  }
}

// ---- Figures -------------------------------------------------------------------------------

// Levels and work count from a batch's start until that of the next one, so that the time that
// batches share counts once; tokens when they are made.
void Replica::RecordStaged(const Batch& batch) {
  TimeNs until = batch.end;
  if (in_flight_ > 1) {
    until = std::min(until, batches_[(first_batch_ + 1) % batches_.size()].start);
  }
  in_.recorder.Step(batch.start, until, batch.levels, 0, batch.bound, batch.blocked, batch.prefill);
  in_.recorder.Tokens(batch.end, hides_tokens() ? 0 : batch.sampled);
}

}  // namespace servecast
