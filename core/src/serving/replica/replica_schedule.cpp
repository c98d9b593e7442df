// One schedule call, by vLLM's rules in vLLM's order (the numbered rules of its golden traces): the
// running list first, then the queue. Its common case, where the blocks suffice (GrantAll), touches
// only those in prefill: each knows how many decodes stand before it in the running list. Only when
// blocks run short does GrantByPreempting walk the list.
//
// Decodes are never left out of a step for lack of budget: none but the last of the running list,
// whose chunk the budget had cut, asks for more tokens than it had in the step before. They are
// left out where preemption by priority hits the request that asked: then they catch up.
#include <algorithm>
#include <cmath>

#include "serving/replica/replica.h"

namespace servecast {

bool Replica::Schedule(Plan& plan) {
  preempted_.clear();
  transfer_ = transfer_blocks_ = 0;
  plan.budget = in_.engine.max_num_batched_tokens;
  if (staged() && !prefills_.empty()) PlacePrefills();
  if (!GrantAll(plan)) GrantByPreempting(plan);
  if (plan.preempted) {
    plan.blocked = BlockedBy::kKvBlocks;
    ++tokenless_calls_;
  } else {
    Admit(plan);
    if (!passed_.empty()) PutBackPassed();
  }
  SmoothPreemptions(preempted_.size());
  in_.recorder.Waiting(now_, Waiting());
  return plan.budget < in_.engine.max_num_batched_tokens;
}

// Each running request gets what it asks for, a prefill within what is left of the budget. False,
// and nothing taken, when the blocks do not suffice; or, with pipeline stages, the budget does not
// for two groups of decodes that a preemption brought together.
bool Replica::GrantAll(Plan& plan) {
  std::int64_t budget = plan.budget;
  std::int64_t blocks = group_->due();
  for (const SlotId id : prefills_) {
    Slot& slot = SlotAt(id);
    const std::int64_t left = budget - slot.decodes_before;
    if (left < 0 && staged()) return false;
    SERVECAST_CHECK(left >= 0, "no decode is left out for lack of budget");
    slot.chunk = ChunkOf(slot.known - slot.computed, left);
    budget -= slot.chunk;
    blocks += kv_.BlocksFor(slot.computed + slot.chunk) - kv_.BlocksFor(slot.computed);
  }
  budget -= group_->size();
  if (budget < 0 && staged()) return false;
  SERVECAST_CHECK(budget >= 0, "no decode is left out for lack of budget");
  if (blocks > Free()) return false;
  kv_.Take(blocks, now_);
  for (const SlotId id : prefills_) {
    Slot& slot = SlotAt(id);
    kv_.Register(slot.holding, slot.request, slot.computed + slot.chunk);
  }
  plan.budget = budget;
  return true;
}

// The running list in its order. One that cannot have its blocks has garbage collected, and when
// there is none left preempts until it can, or until it was itself the victim: then none behind
// it gets anything. What a victim was given in this call returns to the budget.
void Replica::GrantByPreempting(Plan& plan) {
  ++calls_;
  bool ended = false;
  for (SlotId id = first_; id != kNoSlot && plan.budget > 0 && !ended;) {
    Slot& slot = SlotAt(id);
    if (MayRun(slot)) {
      const std::int64_t computed = ComputedNow(slot);
      const std::int64_t tokens =
          slot.phase == Phase::kDecode ? 1 : ChunkOf(slot.known - slot.computed, plan.budget);
      const std::int64_t blocks = kv_.BlocksFor(computed + tokens) - kv_.BlocksFor(computed);
      while (blocks > Free() && !ended) {
        in_.recorder.BlocksRefused(1);
        if (CollectGarbage()) continue;
        const SlotId victim = Victim();
        if (SlotAt(victim).granted_call == calls_) plan.budget += SlotAt(victim).chunk;
        ended = victim == id;
        Preempt(victim);
        plan.preempted = true;
      }
      if (ended) break;
      kv_.Take(blocks, now_);
      if (slot.phase == Phase::kPrefill) {
        kv_.Register(slot.holding, slot.request, computed + tokens);
      }
      slot.chunk = tokens;
      slot.granted_call = calls_;
      plan.budget -= tokens;
    }
    id = slot.next;
  }
  PauseUngranted();
}

// The request that gives way: the last of the running list, or the least urgent, of several the
// latest, of several the first of the running list. By this last rule, vLLM's, two requests of one
// arrival can take the blocks from each other for ever; here, once that is seen, the first
// prevails.
Replica::SlotId Replica::Victim() const {
  if (!victim_by_priority_) return last_;
  const auto arrival = [this](SlotId id) {
    return in_.requests.arrival[static_cast<std::size_t>(SlotAt(id).request)];
  };
  SlotId worst = first_;
  for (SlotId id = SlotAt(first_).next; id != kNoSlot; id = SlotAt(id).next) {
    const double a = SlotAt(id).priority, b = SlotAt(worst).priority;
    if (a != b ? a > b : arrival(id) > arrival(worst)) worst = id;
    if (a == b && arrival(id) == arrival(worst) && tokenless_calls_ >= kMostTokenlessCalls)
      worst = id;
  }
  return worst;
}

// A request that got no tokens in a call that preempted sits this step out.
void Replica::PauseUngranted() {
  bool paused = false;
  for (SlotId id = first_; id != kNoSlot; id = SlotAt(id).next) {
    Slot& slot = SlotAt(id);
    if (slot.granted_call == calls_ || !MayRun(slot)) continue;
    if (slot.phase == Phase::kDecode) {
      const auto r = static_cast<std::size_t>(slot.request);
      if (staged()) CountDecode(slot, *group_);  // its next group has sums of its own
      LeaveDecodes(id);
      slot.phase = Phase::kPrefill;
      slot.catches_up = true;
      slot.known = slot.computed + 1;
      in_.results.generated[r] =
          static_cast<std::int32_t>(slot.known - in_.requests.prompt_tokens[r]);
      last_token_[r] = LastTokenTime(*group_);
      paused = true;
    }
    slot.chunk = 0;
  }
  if (!paused) return;
  prefills_.clear();
  std::int64_t decodes = 0;
  for (SlotId id = first_; id != kNoSlot; id = SlotAt(id).next) {
    Slot& slot = SlotAt(id);
    slot.decodes_before = decodes;
    decodes += slot.phase == Phase::kDecode ? 1 : 0;
    if (slot.phase == Phase::kPrefill) prefills_.push_back(id);
  }
}

// From the head of the queue, until the first that cannot be admitted: none overtakes it.
void Replica::Admit(Plan& plan) {
  if (!arrived_.empty()) AdmitArrived(plan);
  while (queue_.size() > 0) {
    if (!held_.empty() && HeldOf(queue_.Head()) != nullptr) {
      passed_.push_back(queue_.Head());
      queue_.Pop();
      continue;
    }
    plan.blocked = HeadBlockedBy(Free(), plan.budget);
    if (plan.blocked == BlockedBy::kKvBlocks) in_.recorder.BlocksRefused(1);
    if (plan.blocked == BlockedBy::kKvBlocks && CollectGarbage()) continue;
    if (plan.blocked != BlockedBy::kNothing) return;
    const RequestId request = queue_.Head();
    const auto r = static_cast<std::size_t>(request);
    queue_.Pop();
    if (ComesByTransfer(request)) {
      Reserve(request);
      continue;
    }
    const SlotId id = AddToRunning(request);
    Slot& slot = SlotAt(id);
    slot.known = Known(request);
    slot.computed = (hit_.blocks + hit_.stored) * kv_.block_size();
    slot.chunk = ChunkOf(slot.known - slot.computed, plan.budget);
    slot.decodes_before = group_->size();
    kv_.HoldHit(slot.holding);
    KvTiers::Loaded loaded{};
    if (hit_.stored > 0) {
      loaded = kv_.LoadHit(now_);
      transfer_blocks_ += hit_.stored;
      transfer_ += kv_.TransferTime(loaded);
    }
    kv_.Take(kv_.BlocksFor(slot.computed + slot.chunk) - hit_.blocks, now_);
    kv_.Register(slot.holding, request, slot.computed + slot.chunk);
    plan.budget -= slot.chunk;
    prefills_.push_back(id);
    if (!kv_.prefix_caching()) continue;
    if (slot.kind == MemberKind::kResumed) {
      prefix_cache_.resumed_hit_tokens += hit_.blocks * kv_.block_size();
      continue;
    }
    for (std::size_t i = 0; i < kKvTiers && hit_.stored > 0; ++i) tier_hits_[i] += loaded[i];
    in_.results.cached_tokens[r] = static_cast<std::int32_t>(slot.computed);
    prefix_cache_.query_tokens += slot.known;
    prefix_cache_.hit_tokens += hit_.blocks * kv_.block_size();
    prefix_cache_.query_blocks += kv_.FullBlocks(slot.known);
    prefix_cache_.hit_blocks += hit_.blocks;
  }
}

// Why the head of the queue cannot be admitted; if it can, hit_ is what it finds in the cache.
BlockedBy Replica::HeadBlockedBy(std::int64_t free_blocks, std::int64_t budget) {
  if (running_ >= seats_) return BlockedBy::kSeats;
  if (budget <= 0) return BlockedBy::kTokenBudget;
  const RequestId head = queue_.Head();
  const std::int64_t known = Known(head);
  hit_ = kv_.LookUp(head, known);
  const std::int64_t cached = (hit_.blocks + hit_.stored) * kv_.block_size();
  const bool remote = ComesByTransfer(head);  // it has nothing to compute before it is there
  // The threshold cuts before the test of unchunked prefill, as in vLLM.
  const std::int64_t wanted = ChunkOf(known - cached, known);
  if (!in_.engine.enable_chunked_prefill && wanted > budget && !remote) {
    return BlockedBy::kTokenBudget;
  }
  const std::int64_t must_fit =
      remote || in_.engine.scheduler_reserve_full_isl ? known : cached + std::min(wanted, budget);
  const std::int64_t watermark = running_ > 0 ? watermark_blocks_ : 0;
  std::int64_t needed = kv_.BlocksFor(must_fit);
  if (in_.engine.admission_reserve > 0 && running_ > 0) {
    const double reserve = in_.engine.admission_reserve * static_cast<double>(kv_.BlocksFor(known));
    needed = std::max(needed, static_cast<std::int64_t>(std::ceil(reserve)));
  }
  const std::int64_t blocks = needed - hit_.blocks + hit_.idle;
  return blocks + watermark > free_blocks ? BlockedBy::kKvBlocks : BlockedBy::kNothing;
}

// One pass, at the cost of time in the step that is being formed; false: there is no garbage.
bool Replica::CollectGarbage() {
  if (garbage_ == 0) return false;
  const double freed = std::ceil(in_.engine.gc_fraction * static_cast<double>(garbage_));
  garbage_ -= static_cast<std::int64_t>(freed);
  gc_due_ += gc_pass_;
  ++counts_.gc_passes;
  return true;
}

std::int64_t Replica::ChunkOf(std::int64_t tokens, std::int64_t budget) const {
  const std::int64_t threshold = in_.engine.long_prefill_token_threshold;
  if (threshold > 0) tokens = std::min(tokens, threshold);
  return std::min(tokens, budget);
}

// Recompute preemption: all blocks go at once, what was generated is kept, a token in flight still
// comes, and the request goes back to the queue.
void Replica::Preempt(SlotId id) {
  Slot& slot = SlotAt(id);
  const auto r = static_cast<std::size_t>(slot.request);
  if (staged()) Hold(slot);
  CountPreemption(slot);
  if (slot.phase == Phase::kDecode) {
    last_token_[r] = LastTokenTime(*slot.group);
    const std::int64_t computed = ComputedNow(slot);
    in_.results.generated[r] =
        static_cast<std::int32_t>(computed + 1 - in_.requests.prompt_tokens[r]);
    LeaveDecodes(id);
  } else if (slot.phase == Phase::kPrefill) {
    LeavePrefills(id);
  } else {
    --endings_;
    if (HandsOver(slot.request)) TakeLostToken(slot);
  }
  ReleaseBlocks(slot, slot.granted_call == calls_ ? slot.chunk : 0, true);
  ++in_.results.preemptions[r];
  in_.results.state[r] = RequestState::kQueued;
  in_.recorder.Preempted(now_);
  preempted_.push_back(slot.request);
  queue_.PushPreempted(policy_.KeyOf(slot.request), in_.requests.arrival[r], slot.request);
  RemoveFromRunning(id);
}

// Of a request that stops before its end. Content counts as there from the moment its tokens are
// scheduled, but for a token that is not known yet: with async scheduling the one in flight.
// `granted`: tokens that it was given in this very call.
void Replica::ReleaseBlocks(Slot& slot, std::int64_t granted, bool findable) {
  const bool decoded = slot.phase != Phase::kPrefill;
  const std::int64_t held = slot.computed + granted;
  const std::int64_t unknown = decoded && in_flight_ > 0 && !staged() ? 1 : 0;
  const std::int64_t registered = decoded ? std::max(slot.joined_with, held - unknown) : held;
  kv_.Release(slot.holding, slot.request, kv_.BlocksFor(held), registered, findable);
}

// ---- Queue ---------------------------------------------------------------------------------

std::int64_t Replica::Known(RequestId request) const {
  const auto r = static_cast<std::size_t>(request);
  return in_.requests.prompt_tokens[r] + in_.results.generated[r];
}

}  // namespace servecast
