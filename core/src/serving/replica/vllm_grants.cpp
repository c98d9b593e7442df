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

#include "serving/replica/vllm_scheduler.h"

namespace servecast {

void VllmScheduler::Schedule(Call& call) {
  if (staged() && !prefills_.empty()) PlacePrefills();
  if (!GrantAll(call)) GrantByPreempting(call);
  StepPlan& plan = call.plan;
  if (!plan.preempted.empty()) {
    plan.blocked = BlockedBy::kKvBlocks;
    ++tokenless_calls_;
  } else {
    Admit(call);
    if (!passed_.empty()) PutBackPassed();
  }
  replica_.SmoothPreemptions(plan.preempted.size(), running_);
}

// Each running request gets what it asks for, a prefill within what is left of the budget. False,
// and nothing taken, when the blocks do not suffice; or, with pipeline stages, the budget does not
// for two groups of decodes that a preemption brought together.
bool VllmScheduler::GrantAll(Call& call) {
  std::int64_t budget = call.budget;
  std::int64_t blocks = group_->due() + group_->windows_due();
  for (const SlotId id : prefills_) {
    Slot& slot = SlotAt(id);
    const std::int64_t left = budget - slot.decodes_before;
    if (left < 0 && staged()) return false;
    SERVECAST_CHECK(left >= 0, "no decode is left out for lack of budget");
    slot.chunk = ChunkOf(slot.known - slot.computed, left);
    budget -= slot.chunk;
    blocks += BlocksBetween(slot.computed, slot.computed + slot.chunk);
  }
  budget -= group_->size();
  if (budget < 0 && staged()) return false;
  SERVECAST_CHECK(budget >= 0, "no decode is left out for lack of budget");
  if (blocks > Free()) return false;
  kv_.Take(blocks, replica_.now());
  for (const SlotId id : prefills_) {
    Slot& slot = SlotAt(id);
    kv_.Register(slot.holding, slot.request, slot.computed + slot.chunk);
  }
  call.budget = budget;
  return true;
}

// The running list in its order. One that cannot have its blocks has garbage collected, and when
// there is none left preempts until it can, or until it was itself the victim: then none behind
// it gets anything. What a victim was given in this call returns to the budget.
void VllmScheduler::GrantByPreempting(Call& call) {
  ++calls_;
  bool ended = false;
  for (SlotId id = first_; id != kNoSlot && call.budget > 0 && !ended;) {
    Slot& slot = SlotAt(id);
    if (MayRun(slot)) {
      const std::int64_t computed = ComputedNow(slot);
      const std::int64_t tokens =
          slot.phase == Phase::kDecode ? 1 : ChunkOf(slot.known - slot.computed, call.budget);
      const std::int64_t blocks = BlocksBetween(computed, computed + tokens);
      while (blocks > Free() && !ended) {
        in_.recorder.BlocksRefused(1);
        if (CollectGarbage()) continue;
        const SlotId victim = Victim();
        if (SlotAt(victim).granted_call == calls_) call.budget += SlotAt(victim).chunk;
        ended = victim == id;
        Preempt(victim, call);
      }
      if (ended) break;
      kv_.Take(blocks, replica_.now());
      if (slot.phase == Phase::kPrefill) {
        kv_.Register(slot.holding, slot.request, computed + tokens);
      }
      slot.chunk = tokens;
      slot.granted_call = calls_;
      call.budget -= tokens;
    }
    id = slot.next;
  }
  PauseUngranted();
}

// The request that gives way: the last of the running list, or the least urgent, of several the
// latest, of several the first of the running list. By this last rule, vLLM's, two requests of one
// arrival can take the blocks from each other for ever; here, once that is seen, the first
// prevails.
VllmScheduler::SlotId VllmScheduler::Victim() const {
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
void VllmScheduler::PauseUngranted() {
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

// Of an admission, which found hit_.
[[gnu::always_inline]] void VllmScheduler::CountHit(const Slot& slot,
                                                    const KvTiers::Loaded& loaded) {
  if (slot.kind == MemberKind::kResumed) {
    cached_.report.resumed_hit_tokens += hit_.blocks * kv_.block_size();
    return;
  }
  for (std::size_t i = 0; i < kKvTiers && hit_.stored > 0; ++i) cached_.tiers[i] += loaded[i];
  in_.results.cached_tokens[static_cast<std::size_t>(slot.request)] =
      static_cast<std::int32_t>(slot.computed);
  cached_.report.query_tokens += slot.known;
  cached_.report.hit_tokens += hit_.blocks * kv_.block_size();
  cached_.report.query_blocks += kv_.FullBlocks(slot.known);
  cached_.report.hit_blocks += hit_.blocks;
}

// From the head of the queue, until the first that cannot be admitted: none overtakes it.
void VllmScheduler::Admit(Call& call) {
  if (!arrived_.empty()) AdmitArrived(call);
  while (queue_.size() > 0) {
    if (!held_.empty() && HeldOf(queue_.Head()) != nullptr) {
      passed_.push_back(queue_.Head());
      queue_.Pop();
      continue;
    }
    call.plan.blocked = HeadBlockedBy(Free(), call.budget);
    if (call.plan.blocked == BlockedBy::kKvBlocks) in_.recorder.BlocksRefused(1);
    if (call.plan.blocked == BlockedBy::kKvBlocks && CollectGarbage()) continue;
    if (call.plan.blocked != BlockedBy::kNothing) return;
    const RequestId request = queue_.Head();
    queue_.Pop();
    if (ComesByTransfer(request)) {
      Reserve(request);
      continue;
    }
    const SlotId id = AddToRunning(request);
    Slot& slot = SlotAt(id);
    slot.known = Known(request);
    slot.computed = (hit_.blocks + hit_.stored) * kv_.block_size();
    slot.chunk = ChunkOf(slot.known - slot.computed, call.budget);
    slot.decodes_before = group_->size();
    kv_.HoldHit(slot.holding);
    KvTiers::Loaded loaded{};
    if (hit_.stored > 0) {
      loaded = kv_.LoadHit(replica_.now());
      call.plan.shape.transfer_blocks += hit_.stored;
      call.plan.transfer += kv_.TransferTime(loaded);
    }
    kv_.Take(kv_.WithWindows(kv_.BlocksFor(slot.computed + slot.chunk)) - hit_.blocks,
             replica_.now());
    kv_.Register(slot.holding, request, slot.computed + slot.chunk);
    call.budget -= slot.chunk;
    prefills_.push_back(id);
    if (kv_.prefix_caching()) CountHit(slot, loaded);
  }
}

// Why the head of the queue cannot be admitted; if it can, hit_ is what it finds in the cache.
BlockedBy VllmScheduler::HeadBlockedBy(std::int64_t free_blocks, std::int64_t budget) {
  const EngineSpec& engine = in_.engine;
  const KvCache& kv = kv_;
  if (running_ >= engine.max_num_seqs) return BlockedBy::kSeats;
  if (budget <= 0) return BlockedBy::kTokenBudget;
  const RequestId head = queue_.Head();
  const std::int64_t known = Known(head);
  hit_ = kv_.LookUp(head, known);
  const std::int64_t cached = (hit_.blocks + hit_.stored) * kv.block_size();
  const bool remote = ComesByTransfer(head);  // it has nothing to compute before it is there
  // The threshold cuts before the test of unchunked prefill, as in vLLM.
  const std::int64_t wanted = ChunkOf(known - cached, known);
  if (!engine.enable_chunked_prefill && wanted > budget && !remote) {
    return BlockedBy::kTokenBudget;
  }
  const std::int64_t must_fit =
      remote || engine.scheduler_reserve_full_isl ? known : cached + std::min(wanted, budget);
  const std::int64_t watermark = running_ > 0 ? watermark_blocks_ : 0;
  std::int64_t needed = kv.BlocksFor(must_fit);
  needed += kv.windows().Asked(needed, hit_.blocks);
  if (engine.admission_reserve > 0 && running_ > 0) {
    const double reserve =
        engine.admission_reserve * static_cast<double>(kv.WithWindows(kv.BlocksFor(known)));
    needed = std::max(needed, static_cast<std::int64_t>(std::ceil(reserve)));
  }
  const std::int64_t blocks = needed - hit_.blocks + hit_.idle;
  return blocks + watermark > free_blocks ? BlockedBy::kKvBlocks : BlockedBy::kNothing;
}

// One pass, at the cost of time in the step that is being formed; false: there is no garbage.
bool VllmScheduler::CollectGarbage() {
  if (garbage_.blocks == 0) return false;
  const double freed = std::ceil(in_.engine.gc_fraction * static_cast<double>(garbage_.blocks));
  garbage_.blocks -= static_cast<std::int64_t>(freed);
  garbage_.due += garbage_.pass;
  replica_.GarbageCollected();
  return true;
}

std::int64_t VllmScheduler::ChunkOf(std::int64_t tokens, std::int64_t budget) const {
  const std::int64_t threshold = in_.engine.long_prefill_token_threshold;
  if (threshold > 0) tokens = std::min(tokens, threshold);
  return std::min(tokens, budget);
}

// Recompute preemption: all blocks go at once, what was generated is kept, a token in flight still
// comes, and the request goes back to the queue.
void VllmScheduler::Preempt(SlotId id, Call& call) {
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
    if (replica_.HandsOver(slot.request)) {
      if (staged()) {
        replica_.LoseTokenAt(slot.busy_until, false);
      } else {
        Replica::LoseToken(replica_.Newest(), false);
      }
    }
  }
  ReleaseBlocks(slot, slot.granted_call == calls_ ? slot.chunk : 0, true);
  replica_.Preempted(slot.request);
  call.plan.preempted.push_back(slot.request);
  queue_.PushPreempted(replica_.policy().KeyOf(slot.request), in_.requests.arrival[r],
                       slot.request);
  RemoveFromRunning(id);
}

// Of a request that stops before its end. Content counts as there from the moment its tokens are
// scheduled, but for a token that is not known yet: with async scheduling the one in flight.
// `granted`: tokens that it was given in this very call.
void VllmScheduler::ReleaseBlocks(Slot& slot, std::int64_t granted, bool findable) {
  const bool decoded = slot.phase != Phase::kPrefill;
  const std::int64_t held = slot.computed + granted;
  const std::int64_t unknown = decoded && replica_.in_flight() > 0 && !staged() ? 1 : 0;
  const std::int64_t registered = decoded ? std::max(slot.joined_with, held - unknown) : held;
  kv_.Release(slot.holding, slot.request, kv_.BlocksFor(held), registered, findable);
}

}  // namespace servecast
