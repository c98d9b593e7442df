// One schedule call with drafts: the running list in its order, then, if nothing was preempted, the
// queue.
#include <algorithm>

#include "serving/replica/sequence_scheduler.h"

namespace servecast {

std::int64_t SequenceScheduler::CutToThreshold(std::int64_t tokens) const {
  const std::int64_t threshold = in_.engine.long_prefill_token_threshold;
  return threshold > 0 ? std::min(tokens, threshold) : tokens;
}

// S14: lookahead slots come on top, but none beyond the longest sequence.
std::int64_t SequenceScheduler::SlotsWith(std::int64_t tokens) const {
  return std::min(tokens + rules_.lookahead, in_.max_model_len);
}

// Blocks of known tokens have content from now on; drafts are not known.
void SequenceScheduler::Register(Sequence& s, std::int64_t tokens) {
  tokens = std::min(tokens, s.Known());
  if (tokens <= s.registered) return;
  s.registered = tokens;
  kv_.Register(s.holding, s.request, tokens);
}

// ---- The running list ----------------------------------------------------------------------

// What it computes next if nothing but its own length and the threshold cut it; 0: it sits it out.
std::int64_t SequenceScheduler::Asked(const Sequence& s) const {
  // S24: even if all drafts in flight are rejected it ends by the steps that are under way.
  if (s.placeholders > 0 && s.computed - s.placeholders + 2 >= s.prompt + s.asked) return 0;
  const std::int64_t tokens = CutToThreshold(s.Known() + s.drafts + s.placeholders - s.computed);
  return std::max<std::int64_t>(0, std::min(tokens, in_.max_model_len - s.computed - 1));
}

// Of those apart: with a group no one has to give way, and without they are all.
void SequenceScheduler::GrantRunning(StepPlan& plan, std::int64_t& budget) {
  for (std::size_t at = 0; at < apart_.size() && budget > 0;) {
    const Id id = apart_[at];
    Sequence& s = At(id);
    const std::int64_t tokens = std::min(Asked(s), budget);
    if (tokens == 0) {
      ++at;
      continue;
    }
    if (SlotsWith(s.computed + tokens) <= s.blocks * kv_.block_size()) {
      Register(s, s.computed + tokens);
    } else if (!MakeRoom(id, tokens, at, plan, budget)) {
      return;
    }
    // S5: the token that is due comes first, a cut takes the last drafts.
    const std::int64_t drafts =
        std::max<std::int64_t>(0, s.computed + tokens - s.Known() - s.placeholders);
    members_.push_back({.id = id,
                        .request = s.request,
                        .tokens = tokens,
                        .drafts = s.drafts > 0 ? drafts : 0,
                        .before = s.computed,
                        .decodes = !s.prefilling});
    s.drafts = 0;
    budget -= tokens;
    ++at;
  }
}

// Blocks for the running sequence at place `at`; false: it had to give way itself.
bool SequenceScheduler::MakeRoom(Id id, std::int64_t tokens, std::size_t& at, StepPlan& plan,
                                 std::int64_t& budget) {
  for (;;) {
    Sequence& s = At(id);
    const std::int64_t needed =
        std::max<std::int64_t>(0, BlocksWith(s.computed + tokens) - s.blocks);
    const std::int64_t taken = kv_.WithWindows(s.blocks + needed) - kv_.WithWindows(s.blocks);
    if (taken <= kv_.free()) {
      kv_.Take(taken, replica_.now());
      s.blocks += needed;
      Register(s, s.computed + tokens);
      return true;
    }
    in_.recorder.BlocksRefused(1);
    const std::size_t victim_at = VictimAt();
    const Id victim = running_[victim_at];
    if (victim_at < at) --at;
    Preempt(victim, plan, budget);
    if (victim == id) return false;
  }
}

// See VllmScheduler::Victim.
std::size_t SequenceScheduler::VictimAt() const {
  if (!victim_by_priority_) return running_.size() - 1;
  const auto arrival = [this](const Sequence& s) {
    return in_.requests.arrival[static_cast<std::size_t>(s.request)];
  };
  std::size_t worst = 0;
  for (std::size_t i = 1; i < running_.size(); ++i) {
    const Sequence &a = At(running_[i]), &b = At(running_[worst]);
    if (a.priority != b.priority) {
      if (a.priority > b.priority) worst = i;
    } else if (arrival(a) > arrival(b) ||
               (arrival(a) == arrival(b) && tokenless_calls_ >= kMostTokenlessCalls)) {
      worst = i;
    }
  }
  return worst;
}

// S21: blocks and drafts are gone, what was generated stays, and what steps in flight make still
// comes. What it was given in this call returns to the budget.
void SequenceScheduler::Preempt(Id id, StepPlan& plan, std::int64_t& budget) {
  SERVECAST_CHECK(group_.empty(), "I2: with a group all that run get what they ask for");
  Sequence& s = At(id);
  const auto r = static_cast<std::size_t>(s.request);
  LeaveRunning(id);
  const auto member =
      std::find_if(members_.begin(), members_.end(), [id](const Member& m) { return m.id == id; });
  if (member != members_.end()) {
    budget += member->tokens;
    members_.erase(member);
  }
  const TimeNs start = replica_.StartTime();
  Setbacks& setbacks = in_.results.SetbacksOf(r);
  setbacks.preempted_at = start;
  setbacks.last_step = s.last_step;
  if (s.prefilling && s.to_recompute > 0) setbacks.recompute += start - s.began;
  Release(s, true);
  s.computed = s.placeholders = s.drafts = 0;
  s.prefilling = s.preempted = true;
  replica_.Preempted(s.request);
  plan.preempted.push_back(s.request);
  waiting_.PushPreempted(replica_.policy().KeyOf(s.request), in_.requests.arrival[r], s.request);
}

// ---- The queue -----------------------------------------------------------------------------

// Of the step that is being formed. They are few: where they have seats, no more than these.
void SequenceScheduler::AddAdapter(std::int32_t lora) {
  if (lora == 0) return;
  const bool there = std::find(adapters_.begin(), adapters_.end(), lora) != adapters_.end();
  if (!there) adapters_.push_back(lora);
}

// S27, S29: a victim whose step is under way, or one whose adapter has no seat.
bool SequenceScheduler::PassedOver(const Sequence& s) const {
  if (s.in_flight > 0) return true;
  return AllSeatsTaken() && s.lora != 0 &&
         std::find(adapters_.begin(), adapters_.end(), s.lora) == adapters_.end();
}

// The first behind that place who would not be passed over for want of a seat; nullptr: none. So
// a long queue is not walked in every step.
const SequenceScheduler::Aside* SequenceScheduler::NextAside(const Aside& after) const {
  const auto behind = [&after](const std::set<Aside>& all) {
    const auto at = all.upper_bound(after);
    return at == all.end() ? nullptr : &*at;
  };
  if (!AllSeatsTaken()) return behind(aside_);
  const Aside* first = nullptr;
  const auto look = [&](std::int32_t lora) {
    const auto at = static_cast<std::size_t>(lora);
    const Aside* one = at < aside_of_.size() ? behind(aside_of_[at]) : nullptr;
    if (one != nullptr && (first == nullptr || *one < *first)) first = one;
  };
  look(0);
  for (const std::int32_t lora : adapters_) look(lora);
  return first;
}

// Before the head of the queue: those set aside do, or by a key who is more urgent.
bool SequenceScheduler::ComesFirst(const Aside& one) {
  if (waiting_.size() == 0 || !waiting_.by_key()) return true;
  const RequestId head = waiting_.Head();
  return one < Aside{replica_.policy().KeyOf(head),
                     in_.requests.arrival[static_cast<std::size_t>(head)], head, head};
}

// Behind those that are, or by a key at its place.
void SequenceScheduler::SetAside(Sequence& s) {
  const auto r = static_cast<std::size_t>(s.request);
  s.aside = waiting_.by_key() ? Aside{replica_.policy().KeyOf(s.request), in_.requests.arrival[r],
                                      s.request, s.request}
                              : Aside{0, 0, ++set_aside_, s.request};
  const auto lora = static_cast<std::size_t>(s.lora);
  if (aside_of_.size() <= lora) aside_of_.resize(lora + 1);
  aside_of_[lora].insert(*s.aside);
  aside_.insert(*s.aside);
}

// One that waits, and is not taken as the queue's head.
void SequenceScheduler::LeaveQueue(Sequence& s) {
  if (!s.aside) return waiting_.DropOne();
  aside_of_[static_cast<std::size_t>(s.lora)].erase(*s.aside);
  aside_.erase(*s.aside);
  s.aside.reset();
}

void SequenceScheduler::Admit(StepPlan& plan, std::int64_t& budget) {
  plan.blocked = BlockedBy::kNothing;
  if (waiting() == 0) return;
  adapters_.clear();
  for (const OfAdapter& each : group_adapters_) adapters_.push_back(each.lora);
  bool only_decodes = !members_.empty() || !group_.empty();
  for (const Member& member : members_) {
    AddAdapter(At(member.id).lora);
    only_decodes = only_decodes && member.decodes;
  }
  BlockedBy blocked = BlockedBy::kNothing;
  Aside seen;  // up to it they are passed over in this call
  // Nobody there has an adapter with a seat, or none at all, while all seats are taken.
  bool leaves_aside = AllSeatsTaken() && NextAside(seen) == nullptr;
  while (waiting_.size() > 0 || (!leaves_aside && aside_.upper_bound(seen) != aside_.end())) {
    if (running() >= in_.engine.max_num_seqs) {
      blocked = BlockedBy::kSeats;
    } else if (budget <= 0) {
      blocked = BlockedBy::kTokenBudget;
    }
    if (blocked != BlockedBy::kNothing) break;
    const Aside* next = leaves_aside ? nullptr : NextAside(seen);
    const bool from_aside = next != nullptr && ComesFirst(*next);
    if (!from_aside && waiting_.size() == 0) break;
    const RequestId request = from_aside ? next->request : waiting_.Head();
    const Id id = IdOf(request);
    if (from_aside) seen = *next;
    if (PassedOver(At(id))) {
      if (from_aside) continue;
      waiting_.Pop();
      SetAside(At(id));
      seen = *At(id).aside;
      continue;
    }
    Admission admission;
    blocked = Refusal(At(id), budget, only_decodes, admission);
    if (blocked == BlockedBy::kKvBlocks) in_.recorder.BlocksRefused(1);
    if (blocked != BlockedBy::kNothing) break;
    from_aside ? LeaveQueue(At(id)) : waiting_.Pop();
    Begin(id, admission);
    AddAdapter(At(id).lora);
    budget -= admission.tokens;
    leaves_aside = leaves_aside || (AllSeatsTaken() && NextAside(seen) == nullptr);
  }
  if (blocked == BlockedBy::kNothing && waiting() > 0) blocked = BlockedBy::kSeats;
  plan.blocked = blocked;
}

// Why it cannot be admitted; if it can, what it takes.
BlockedBy SequenceScheduler::Refusal(const Sequence& s, std::int64_t budget, bool only_decodes,
                                     Admission& admission) {
  const std::int64_t known = s.Known();
  const KvCache::Hit hit = kv_.LookUp(s.request, known, rules_.drops_last_hit);
  const std::int64_t cached = hit.blocks * kv_.block_size();
  std::int64_t tokens = known - cached;
  // S9: among decodes it looks like one that has drafts, or waits.
  admission.padded = rules_.pads_one_token && tokens == 1 && only_decodes;
  if (admission.padded) {
    tokens = 1 + rules_.most;
    if (tokens > budget || cached + tokens > in_.max_model_len) return BlockedBy::kTokenBudget;
  }
  tokens = CutToThreshold(tokens);  // padding, too, where vLLM's counts no longer fit each other
  if (!in_.engine.enable_chunked_prefill && tokens > budget) return BlockedBy::kTokenBudget;
  tokens = std::min(tokens, budget);
  admission.hit = hit;
  admission.tokens = tokens;
  admission.blocks = std::max<std::int64_t>(0, BlocksWith(cached + tokens) - hit.blocks);
  // S15: the test of all that is known has no lookahead.
  std::int64_t must_fit = hit.blocks + admission.blocks;
  if (in_.engine.scheduler_reserve_full_isl) {
    must_fit = std::max(must_fit, kv_.BlocksFor(known));
  }
  must_fit += kv_.windows().Asked(must_fit, hit.blocks) - hit.blocks;
  const std::int64_t watermark = running_.empty() ? 0 : watermark_blocks_;
  return must_fit + hit.idle + watermark > kv_.free() ? BlockedBy::kKvBlocks : BlockedBy::kNothing;
}

// An admission that Refusal has just looked at.
void SequenceScheduler::Begin(Id id, const Admission& admission) {
  Sequence& s = At(id);
  const std::int64_t hit = admission.hit.blocks;
  s.computed = s.registered = hit * kv_.block_size();
  if (kv_.prefix_caching()) {
    if (s.admitted) {
      cached_.resumed_hit_tokens += s.computed;
    } else {
      in_.results.cached_tokens[static_cast<std::size_t>(s.request)] =
          static_cast<std::int32_t>(s.computed);
      cached_.query_tokens += s.Known();
      cached_.hit_tokens += s.computed;
      cached_.query_blocks += kv_.FullBlocks(s.Known());
      cached_.hit_blocks += hit;
    }
  }
  kv_.HoldHit(s.holding);
  s.blocks = hit + admission.blocks;
  kv_.Take(kv_.WithWindows(s.blocks) - hit, replica_.now());
  Register(s, s.computed + admission.tokens);
  members_.push_back({.id = id,
                      .request = s.request,
                      .tokens = admission.tokens,
                      .drafts = admission.padded ? admission.tokens - 1 : 0,
                      .before = s.computed,
                      .kind = s.preempted ? MemberKind::kResumed : MemberKind::kNew,
                      .padded = admission.padded});
  running_.push_back(id);
  apart_.push_back(id);
  s.order = ++admissions_;
  s.running = s.admitted = true;
  s.preempted = false;
  s.to_recompute = s.generated;
  in_.results.state[static_cast<std::size_t>(s.request)] = RequestState::kRunning;
}

}  // namespace servecast
