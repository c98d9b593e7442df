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

// Those set aside come first; by a key whichever head is more urgent.
WaitQueue& SequenceScheduler::NextQueue() {
  if (aside_.size() == 0) return waiting_;
  if (waiting_.size() == 0 || !waiting_.by_key()) return aside_;
  const RequestId a = aside_.Head(), b = waiting_.Head();
  const double key_a = replica_.policy().KeyOf(a), key_b = replica_.policy().KeyOf(b);
  if (key_a != key_b) return key_a < key_b ? aside_ : waiting_;
  const TimeNs of_a = in_.requests.arrival[static_cast<std::size_t>(a)];
  const TimeNs of_b = in_.requests.arrival[static_cast<std::size_t>(b)];
  if (of_a != of_b) return of_a < of_b ? aside_ : waiting_;
  return a < b ? aside_ : waiting_;
}

// Of the step that is being formed. They are few: where they have seats, no more than these.
void SequenceScheduler::AddAdapter(std::int32_t lora) {
  if (lora == 0) return;
  const bool there = std::find(adapters_.begin(), adapters_.end(), lora) != adapters_.end();
  if (!there) adapters_.push_back(lora);
}

// S27, S29: a victim whose step is under way, or one whose adapter has no seat.
bool SequenceScheduler::PassedOver(const Sequence& s) const {
  if (s.in_flight > 0) return true;
  const std::int64_t seats = in_.engine.max_loras;
  return seats > 0 && s.lora != 0 && static_cast<std::int64_t>(adapters_.size()) >= seats &&
         std::find(adapters_.begin(), adapters_.end(), s.lora) == adapters_.end();
}

void SequenceScheduler::SetAside(Sequence& s, bool aside) {
  if (s.aside == aside) return;
  s.aside = aside;
  const auto lora = static_cast<std::size_t>(s.lora);
  if (aside_of_.size() <= lora) aside_of_.resize(lora + 1);
  aside_of_[lora] += aside ? 1 : -1;
}

// In front, in their order.
void SequenceScheduler::PutBackPassed() {
  for (; !passed_.empty(); passed_.pop_back()) {
    const RequestId request = passed_.back();
    SetAside(At(IdOf(request)), true);
    aside_.PushPreempted(replica_.policy().KeyOf(request),
                         in_.requests.arrival[static_cast<std::size_t>(request)], request);
  }
}

// Whether a look at those set aside would change nothing: all seats are taken, and none of them has
// an adapter that has one, or none at all. So a long queue is not walked in every step.
bool SequenceScheduler::AllAsideWait() const {
  const std::int64_t seats = in_.engine.max_loras;
  if (seats == 0 || static_cast<std::int64_t>(adapters_.size()) < seats) return false;
  const auto waits = [this](std::int32_t lora) {
    const auto at = static_cast<std::size_t>(lora);
    return at < aside_of_.size() && aside_of_[at] > 0;
  };
  return !waits(0) && std::none_of(adapters_.begin(), adapters_.end(), waits);
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
  passed_.clear();
  BlockedBy blocked = BlockedBy::kNothing;
  bool leaves_aside = AllAsideWait();
  while ((leaves_aside ? waiting_.size() : waiting()) > 0) {
    if (running() >= in_.engine.max_num_seqs) {
      blocked = BlockedBy::kSeats;
    } else if (budget <= 0) {
      blocked = BlockedBy::kTokenBudget;
    }
    if (blocked != BlockedBy::kNothing) break;
    WaitQueue& queue = leaves_aside ? waiting_ : NextQueue();
    const RequestId request = queue.Head();
    const Id id = IdOf(request);
    if (PassedOver(At(id))) {
      queue.Pop();
      if (leaves_aside) {  // behind those
        SetAside(At(id), true);
        aside_.Push(replica_.policy().KeyOf(request),
                    in_.requests.arrival[static_cast<std::size_t>(request)], request);
      } else {
        SetAside(At(id), false);
        passed_.push_back(request);
      }
      continue;
    }
    Admission admission;
    blocked = Refusal(At(id), budget, only_decodes, admission);
    if (blocked == BlockedBy::kKvBlocks) in_.recorder.BlocksRefused(1);
    if (blocked != BlockedBy::kNothing) break;
    queue.Pop();
    SetAside(At(id), false);
    Begin(id, admission);
    AddAdapter(At(id).lora);
    budget -= admission.tokens;
    if (!leaves_aside && AllAsideWait()) {
      leaves_aside = true;
      PutBackPassed();
    }
  }
  PutBackPassed();
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
