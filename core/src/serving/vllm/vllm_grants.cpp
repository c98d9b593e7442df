// One schedule call, by vLLM's rules in vLLM's order (the numbered rules of its golden traces): the
// running list first, then the queue. Its common case, where the blocks suffice (GrantAll), touches
// only those in no group: each knows how many decodes stand before it in the running list. Only
// when blocks run short does GrantByPreempting walk the list.
//
// Decodes of one token are never left out of a step for lack of budget: none but the last of the
// running list, whose chunk the budget had cut, asks for more tokens than it had in the step
// before. They are left out where preemption by priority hits the request that asked: then they
// catch up. With drafts a step's budget may end before the last of the list.
#include <algorithm>
#include <cmath>

#include "serving/vllm/vllm_scheduler.h"

namespace servecast {

// ---- What a request asks for ---------------------------------------------------------------

// S14: with drafts lookahead slots come on top, but none beyond the longest sequence.
std::int64_t VllmScheduler::SlotsWith(std::int64_t tokens) const {
  return std::min(tokens + rules_.lookahead, in_.max_model_len);
}

// What one apart computes next, if nothing but its own length cuts it; 0: it sits the step out.
std::int64_t VllmScheduler::Asked(const Slot& slot) const {
  const std::int64_t tokens = slot.known - slot.computed;
  if (!drafts_) return tokens;
  const Drafted& d = slot.of_drafts;
  // S24: even if all drafts in flight are rejected it ends by the steps that are under way.
  if (d.placeholders > 0 && slot.computed - d.placeholders + 2 >= d.most) return 0;
  return std::max<std::int64_t>(
      0, std::min(tokens + d.drafts + d.placeholders, in_.max_model_len - slot.computed - 1));
}

// Blocks of known tokens have content from now on; drafts are not known.
void VllmScheduler::Register(Slot& slot, std::int64_t tokens) {
  if (drafts_) {
    tokens = std::min(tokens, slot.known);
    if (tokens <= slot.of_drafts.registered) return;
    slot.of_drafts.registered = tokens;
  }
  kv_.Register(slot.holding, slot.request, tokens);
}

// The blocks that it needs for its chunk were taken.
inline void VllmScheduler::TakeChunk(Slot& slot) {
  slot.blocks = slot.needed;
  Register(slot, slot.computed + slot.chunk);
}

// ---- The running list ----------------------------------------------------------------------

void VllmScheduler::Schedule(Call& call) {
  if (staged() && !apart_.empty()) PlacePrefills();
  if (images_) images_->BeginStep();
  if (!GrantAll(call)) GrantByPreempting(call);
  StepPlan& plan = call.plan;
  if (!plan.preempted.empty()) {
    plan.blocked = BlockedBy::kKvBlocks;
    ++tokenless_calls_;
  } else {
    Admit(call);
    if (!passed_.empty()) PutBackPassed();
  }
  machine_.SmoothPreemptions(plan.preempted.size(), running_);
}

// E2 to E4: before the first image that cannot be encoded now.
void VllmScheduler::CutToImages(Slot& slot) {
  if (slot.chunk == 0 || !images_->Has(slot.request)) return;
  slot.chunk = images_->Cut(slot.request, slot.computed, slot.chunk);
  if (slot.chunk > 0) images_->Take(slot.request);
}

// Nothing is granted after all.
bool VllmScheduler::GiveBack(bool images) {
  if (images) images_->Undo();
  return false;
}

// Each running request gets what it asks for, one apart within what is left of the budget. False,
// and nothing taken, when the blocks do not suffice; or the budget does not: with pipeline stages
// for two groups of decodes that a preemption brought together, with images for those behind one
// that had waited for the encoder.
bool VllmScheduler::GrantAll(Call& call) {
  const bool images = images_ && !apart_.empty();
  if (images) images_->Mark();
  std::int64_t budget = call.budget;
  std::int64_t blocks = group_->due() + group_->windows_due();
  for (const SlotId id : apart_) {
    Slot& slot = SlotAt(id);
    const std::int64_t left = budget - slot.decodes_before;
    if (left < 0 && (staged() || images)) return GiveBack(images);
    SERVECAST_CHECK(left >= 0, "no decode is left out for lack of budget");
    slot.chunk = ChunkOf(Asked(slot), left);
    if (images) CutToImages(slot);
    budget -= slot.chunk;
    slot.needed = BlocksWith(slot, slot.chunk);
    blocks += Taken(slot.blocks, slot.needed);
  }
  budget -= group_->size();
  if (budget < 0 && (staged() || images)) return GiveBack(images);
  SERVECAST_CHECK(budget >= 0, "no decode is left out for lack of budget");
  if (blocks > Free()) return GiveBack(images);
  kv_.Take(blocks, machine_.now());
  for (const SlotId id : apart_) {
    Slot& slot = SlotAt(id);
    if (slot.chunk > 0) TakeChunk(slot);
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
      const bool apart = slot.phase == Phase::kApart;
      std::int64_t tokens = apart ? ChunkOf(Asked(slot), call.budget) : 1;
      const bool images = apart && tokens > 0 && HasImages(slot.request);
      if (images) tokens = images_->Cut(slot.request, slot.computed, tokens);
      if (tokens == 0) {
        id = slot.next;
        continue;
      }
      const std::int64_t computed = ComputedNow(slot);
      slot.needed = apart ? BlocksWith(slot, tokens) : kv_.BlocksFor(computed + 1);
      const std::int64_t blocks = Taken(apart ? slot.blocks : kv_.BlocksFor(computed), slot.needed);
      while (blocks > Free() && !ended) {
        in_.recorder->BlocksRefused(1);
        if (CollectGarbage()) continue;
        const SlotId victim = Victim();
        if (SlotAt(victim).granted_call == calls_) call.budget += SlotAt(victim).chunk;
        ended = victim == id;
        Preempt(victim, call);
      }
      if (ended) break;
      kv_.Take(blocks, machine_.now());
      if (images) images_->Take(slot.request);
      slot.chunk = tokens;
      if (apart) TakeChunk(slot);
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
      slot.phase = Phase::kApart;
      slot.decodes = true;
      slot.known = slot.computed + 1;
      slot.blocks = kv_.BlocksFor(slot.computed);
      in_.results.generated[r] =
          static_cast<std::int32_t>(slot.known - in_.requests.prompt_tokens[r]);
      slot.busy_until = last_token_[r] = LastTokenTime(*group_);
      paused = true;
    }
    slot.chunk = 0;
  }
  if (!paused) return;
  apart_.clear();
  std::int64_t decodes = 0;
  for (SlotId id = first_; id != kNoSlot; id = SlotAt(id).next) {
    Slot& slot = SlotAt(id);
    slot.decodes_before = decodes;
    decodes += slot.phase == Phase::kDecode ? 1 : 0;
    if (slot.phase == Phase::kApart) apart_.push_back(id);
  }
}

// ---- The queue -----------------------------------------------------------------------------

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

// Of the step so far, of which all granted are in the group or apart.
void VllmScheduler::SeatMembers() {
  seats_.BeginStep();
  for (const SlotId id : apart_) {
    if (SlotAt(id).chunk > 0) seats_.Add(SlotAt(id).request);
  }
}

// Whether it has some decodes, and nothing else.
bool VllmScheduler::OnlyDecodes() const {
  bool some = !drafts_->group.empty();
  for (const SlotId id : apart_) {
    if (SlotAt(id).chunk == 0) continue;
    if (!SlotAt(id).decodes) return false;
    some = true;
  }
  return some;
}

// Who is first in the queue but for those who need an adapter's seat that there is not: these are
// overtaken. kNoRequest: all are.
RequestId VllmScheduler::NextToAdmit() {
  for (;;) {
    const AdapterSeats::Place* aside = seats_.Next();
    if (queue_.size() == 0) return aside == nullptr ? kNoRequest : aside->request;
    const RequestId head = queue_.Head();
    AdapterSeats::Place place{.request = head};
    if (queue_.by_key()) {
      const TimeNs arrival = in_.requests.arrival[static_cast<std::size_t>(head)];
      place = {machine_.policy().KeyOf(head), arrival, head, head};
    }
    if (aside != nullptr && (!queue_.by_key() || *aside < place)) return aside->request;
    if (seats_.MaySeat(head)) return head;
    queue_.Pop();
    seats_.SetAside(place);
  }
}

// From the head of the queue, until the first that cannot be admitted: none overtakes it.
void VllmScheduler::Admit(Call& call) {
  if (!arrived_.empty()) AdmitArrived(call);
  if (waiting() == 0) return;
  if (seats_.any()) SeatMembers();
  if (rules_.pads_one_token) only_decodes_ = OnlyDecodes();
  BlockedBy& blocked = call.plan.blocked;
  while (queue_.size() > 0 || (seats_.waiting() > 0 && seats_.Next() != nullptr)) {
    if (!held_.empty() && queue_.size() > 0 && HeldOf(queue_.Head()) != nullptr) {
      passed_.push_back(queue_.Head());
      queue_.Pop();
      continue;
    }
    blocked = NoRoom(call.budget);
    if (blocked != BlockedBy::kNothing) return;
    const RequestId request = seats_.any() ? NextToAdmit() : queue_.Head();
    if (request == kNoRequest) break;
    blocked = HeadBlockedBy(request, Free(), call.budget);
    if (blocked == BlockedBy::kKvBlocks) in_.recorder->BlocksRefused(1);
    if (blocked == BlockedBy::kKvBlocks && images_) images_->Drop(request);  // E3
    if (blocked == BlockedBy::kKvBlocks && CollectGarbage()) continue;
    if (blocked != BlockedBy::kNothing) return;
    if (seats_.waiting() == 0 || !seats_.Take(request)) queue_.Pop();
    if (ComesByTransfer(request)) {
      Reserve(request);
      continue;
    }
    const SlotId id = AddToRunning(request);
    Slot& slot = SlotAt(id);
    slot.known = Known(request);
    slot.computed = (hit_.blocks + hit_.stored) * kv_.block_size();
    slot.chunk = std::min(wanted_, call.budget);
    if (HasImages(request)) images_->Take(request);
    slot.blocks = BlocksWith(slot.computed + slot.chunk);
    slot.decodes_before = group_->size();
    if (drafts_) {
      slot.of_drafts.registered = slot.computed;
      slot.of_drafts.most = in_.requests.prompt_tokens[static_cast<std::size_t>(request)] +
                            machine_.OutputLimit(request);
      slot.of_drafts.padded = padded_;
    }
    kv_.HoldHit(slot.holding);
    KvTiers::Loaded loaded{};
    if (hit_.stored > 0) {
      loaded = kv_.LoadHit(machine_.now());
      call.plan.shape.transfer_blocks += hit_.stored;
      call.plan.transfer += kv_.TransferTime(loaded);
    }
    kv_.Take(kv_.WithWindows(slot.blocks) - hit_.blocks, machine_.now());
    Register(slot, slot.computed + slot.chunk);
    call.budget -= slot.chunk;
    apart_.push_back(id);
    if (seats_.any()) seats_.Add(request);
    if (kv_.prefix_caching()) CountHit(slot, loaded);
  }
  if (seats_.waiting() > 0) blocked = BlockedBy::kSeats;
}

BlockedBy VllmScheduler::NoRoom(std::int64_t budget) const {
  if (running_ >= in_.engine.max_num_seqs) return BlockedBy::kSeats;
  return budget <= 0 ? BlockedBy::kTokenBudget : BlockedBy::kNothing;
}

// Why the head of the queue cannot be admitted, though there is room for one; if it can, hit_ is
// what it finds in the cache.
BlockedBy VllmScheduler::HeadBlockedBy(RequestId head, std::int64_t free_blocks,
                                       std::int64_t budget) {
  const EngineSpec& engine = in_.engine;
  const KvCache& kv = kv_;
  const std::int64_t known = Known(head);
  hit_ = kv_.LookUp(head, known, rules_.drops_last_hit);
  const std::int64_t cached = (hit_.blocks + hit_.stored) * kv.block_size();
  const bool remote = ComesByTransfer(head);  // it has nothing to compute before it is there
  std::int64_t wanted = known - cached;
  padded_ = only_decodes_ && wanted == 1;
  if (padded_) {  // among decodes it looks like one that has drafts, or waits
    wanted = 1 + rules_.most;
    if (wanted > budget || cached + wanted > in_.max_model_len) return BlockedBy::kTokenBudget;
  }
  // The threshold cuts before the test of unchunked prefill, as in vLLM; padding, too, where
  // vLLM's counts no longer fit each other.
  wanted_ = wanted = CutToThreshold(wanted);
  if (!engine.enable_chunked_prefill && wanted > budget && !remote) {
    return BlockedBy::kTokenBudget;
  }
  if (HasImages(head)) {
    wanted_ = wanted = images_->Cut(head, cached, std::min(wanted, budget));
    if (wanted == 0) return BlockedBy::kTokenBudget;
  }
  std::int64_t must_fit = SlotsWith(cached + std::min(wanted, budget));
  if (remote || engine.scheduler_reserve_full_isl) must_fit = std::max(must_fit, known);
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
  machine_.GarbageCollected();
  return true;
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
  } else if (slot.phase == Phase::kApart) {
    LeaveApart(id);
  } else {
    --endings_;
    if (machine_.HandsOver(slot.request)) {
      if (staged()) {
        machine_.LoseTokenAt(slot.busy_until, false);
      } else {
        Machine::LoseToken(machine_.Newest(), false);
      }
    }
  }
  ReleaseBlocks(slot, slot.granted_call == calls_ ? slot.chunk : 0, true);
  if (images_) {
    images_->TakeOut(slot.request);
    images_->Drop(slot.request);
  }
  machine_.Preempted(slot.request);
  call.plan.preempted.push_back(slot.request);
  queue_.PushPreempted(machine_.policy().KeyOf(slot.request), in_.requests.arrival[r],
                       slot.request);
  RemoveFromRunning(id);
}

// Of a request that stops before its end. Content counts as there from the moment its tokens are
// scheduled, but for a token that is not known yet: with async scheduling the one in flight.
// `granted`: tokens that it was given in this very call.
void VllmScheduler::ReleaseBlocks(Slot& slot, std::int64_t granted, bool findable) {
  const bool decoded = slot.phase != Phase::kApart;
  const std::int64_t held = slot.computed + granted;
  const std::int64_t unknown = decoded && machine_.in_flight() > 0 && !staged() ? 1 : 0;
  std::int64_t registered = decoded ? std::max(slot.joined_with, held - unknown) : held;
  if (drafts_) registered = slot.of_drafts.registered;
  kv_.Release(slot.holding, slot.request, decoded ? kv_.BlocksFor(held) : slot.blocks, registered,
              findable);
}

}  // namespace servecast
