// The vLLM V1 scheduler and its step loop, at a cost proportional to changes of the batch.
//
// Between two changes of the batch every decoding request advances by one token per step. So the
// replica keeps no progress per decode but, for all of them together: their number n, the sum K of
// their contexts, a counter D of decode steps, a heap of finishes keyed by the decode step of the
// last token (known on joining), and phase[block_size], where phase[D mod block_size] of them need
// a new KV block at step D. A step of an unchanged batch is then
//
//     take phase[D mod block_size] blocks;  dt = Price(n, K);  now += dt;  K += n;  ++D
//
// and touches no request and allocates nothing. The latency model is asked at every step, so this
// is exact for any model. DecodeRun does such steps while nothing can change the batch: nobody is
// in prefill; blocks suffice; the head of the queue, if there is one, cannot be admitted (blocks
// only shrink in a run and seats and budget stay, so once blocked it stays blocked); and nobody
// arrives who could be. Under fcfs an arrival behind a blocked head changes nothing.
//
// Any other step is formed by Schedule, by vLLM's rules in vLLM's order. Its common case, where the
// blocks suffice (GrantAll), still touches only those in prefill: each knows how many decodes stand
// before it in the running list. Only when blocks run short does GrantByPreempting walk the list.
//
// Decodes are never left out of a step for lack of budget: nobody but the last of the running list,
// whose chunk the budget had cut, asks for more tokens than he had in the step before.
//
// tests/testing/reference_sim says the same the naive way; the differential test says they agree.
#include "serving/replica.h"

#include <algorithm>

namespace servecast {

std::int64_t EffectiveMaxModelLen(const EngineSpec& engine, std::int64_t model_max_len,
                                  std::int64_t usable_blocks) {
  std::int64_t length = std::min(model_max_len, usable_blocks * engine.block_size);
  if (engine.max_model_len) length = std::min(length, *engine.max_model_len);
  if (!engine.enable_chunked_prefill) length = std::min(length, engine.max_num_batched_tokens + 1);
  return length;
}

Replica::Replica(const ReplicaInput& input)
    : in_(input),
      seats_(input.engine.max_num_seqs),
      watermark_blocks_(static_cast<std::int64_t>(input.engine.watermark *
                                                  static_cast<double>(input.pool_blocks))),
      token_delay_(input.latency.OutputTokenDelay()),
      kv_(input.pool_blocks - 1, input.engine.block_size),
      phase_(static_cast<std::size_t>(input.engine.block_size), 0),
      finishes_(static_cast<std::int32_t>(std::min(seats_, input.requests.size()))),
      last_token_(static_cast<std::size_t>(input.requests.size()), 0) {
  in_.horizon = std::min(in_.horizon, kClockEnd);
  const auto slots = static_cast<std::size_t>(std::min(seats_, input.requests.size()));
  slots_.resize(slots);
  for (std::size_t i = slots; i > 0; --i) free_slots_.push_back(static_cast<SlotId>(i - 1));
  preempted_.reserve(slots);
  prefills_.reserve(slots);
  chunks_.reserve(slots);
}

bool Replica::Advance(std::int64_t max_steps) {
  std::int64_t steps = 0;
  while (steps < max_steps) {
    if (running_ == 0 && QueueLength() == 0) {
      const TimeNs next = NextEnqueue();
      if (next >= in_.horizon) return Close();  // kNever included
      now_ = std::max(now_, next);
    }
    if (now_ >= in_.horizon) return Close();
    Deliver();
    if (prefills_.empty() && decodes_ > 0) {
      const std::int64_t ran = DecodeRun(max_steps - steps);
      steps += ran;
      if (ran > 0) continue;
    }
    Plan plan;
    SERVECAST_CHECK(Schedule(plan), "I8: a schedule call with work gives a step");
    Execute(plan);
    ++steps;
  }
  return running_ == 0 && QueueLength() == 0 && NextEnqueue() >= in_.horizon && Close();
}

// The run is over. Who is enqueued before the clock stops waits until then, though for nothing.
bool Replica::Close() {
  if (in_.horizon != kClockEnd) {
    now_ = std::max(now_, in_.horizon);
    Deliver();
  }
  return true;
}

void Replica::Deliver() {
  for (TimeNs time = NextEnqueue(); time <= now_; time = NextEnqueue()) {
    in_.results.state[static_cast<std::size_t>(in_.order[static_cast<std::size_t>(arrived_)])] =
        RequestState::kQueued;
    ++arrived_;
    in_.recorder.Waiting(time, QueueLength());
  }
}

// ---- One step by the rules -----------------------------------------------------------------

bool Replica::Schedule(Plan& plan) {
  record_.preempted.clear();
  plan.budget = in_.engine.max_num_batched_tokens;
  if (!GrantAll(plan)) GrantByPreempting(plan);
  if (plan.preempted) {
    plan.blocked = BlockedBy::kKvBlocks;
  } else {
    Admit(plan);
  }
  in_.recorder.Waiting(now_, QueueLength());
  return plan.budget < in_.engine.max_num_batched_tokens;
}

// Everybody running gets what he asks for, a prefill within what is left of the budget. False, and
// nothing taken, when the blocks do not suffice.
bool Replica::GrantAll(Plan& plan) {
  std::int64_t budget = plan.budget;
  std::int64_t blocks = phase_[phase_index_];
  for (Prefill& prefill : prefills_) {
    const std::int64_t computed = SlotAt(prefill.slot).computed;
    const std::int64_t left = budget - prefill.decodes_before;
    SERVECAST_CHECK(left >= 0, "no decode is left out for lack of budget");
    prefill.chunk = ChunkOf(prefill.known - computed, left);
    budget -= prefill.chunk;
    blocks += kv_.BlocksFor(computed + prefill.chunk) - kv_.BlocksFor(computed);
  }
  budget -= decodes_;
  SERVECAST_CHECK(budget >= 0, "no decode is left out for lack of budget");
  if (blocks > kv_.free()) return false;
  kv_.Take(blocks);
  plan.budget = budget;
  return true;
}

// The running list in its order. Whoever cannot have its blocks preempts from the tail until it
// can, or until it was the tail itself. Chunks are those of GrantAll: preempting the tail takes
// tokens from nobody before it.
void Replica::GrantByPreempting(Plan& plan) {
  std::size_t prefill_index = 0;
  for (SlotId id = first_; id != kNoSlot; id = SlotAt(id).next) {
    const Slot& slot = SlotAt(id);
    const std::int64_t computed = ComputedNow(slot);
    const std::int64_t tokens = slot.decoding ? 1 : prefills_[prefill_index++].chunk;
    const std::int64_t blocks = kv_.BlocksFor(computed + tokens) - kv_.BlocksFor(computed);
    while (blocks > kv_.free()) {
      const SlotId victim = last_;
      Preempt(victim);
      plan.preempted = true;
      if (victim == id) return;
    }
    kv_.Take(blocks);
    plan.budget -= tokens;
  }
}

// From the head of the queue, until the first that cannot be admitted: nobody overtakes it.
void Replica::Admit(Plan& plan) {
  while (QueueLength() > 0) {
    plan.blocked = HeadBlockedBy(kv_.free(), plan.budget);
    if (plan.blocked != BlockedBy::kNothing) return;
    const RequestId request = Head();
    const auto r = static_cast<std::size_t>(request);
    const std::int64_t known = Known(request);
    const std::int64_t chunk = ChunkOf(known, plan.budget);
    PopHead();
    kv_.Take(kv_.BlocksFor(chunk));
    plan.budget -= chunk;
    prefills_.push_back({AddToRunning(request), known, decodes_, chunk});
    if (in_.results.first_scheduled[r] < 0) in_.results.first_scheduled[r] = now_;
  }
}

BlockedBy Replica::HeadBlockedBy(std::int64_t free_blocks, std::int64_t budget) const {
  if (running_ >= seats_) return BlockedBy::kSeats;
  if (budget <= 0) return BlockedBy::kTokenBudget;
  const std::int64_t known = Known(Head());
  // The threshold cuts before the test of unchunked prefill, as in vLLM.
  const std::int64_t wanted = ChunkOf(known, known);
  if (!in_.engine.enable_chunked_prefill && wanted > budget) return BlockedBy::kTokenBudget;
  const std::int64_t must_fit =
      in_.engine.scheduler_reserve_full_isl ? known : std::min(wanted, budget);
  const std::int64_t watermark = running_ > 0 ? watermark_blocks_ : 0;
  return kv_.BlocksFor(must_fit) + watermark > free_blocks ? BlockedBy::kKvBlocks
                                                           : BlockedBy::kNothing;
}

std::int64_t Replica::ChunkOf(std::int64_t tokens, std::int64_t budget) const {
  const std::int64_t threshold = in_.engine.long_prefill_token_threshold;
  if (threshold > 0) tokens = std::min(tokens, threshold);
  return std::min(tokens, budget);
}

void Replica::Execute(const Plan& plan) {
  chunks_.clear();
  std::int64_t sampled = decodes_;
  for (const Prefill& prefill : prefills_) {
    if (prefill.chunk == 0) continue;
    const Slot& slot = SlotAt(prefill.slot);
    const bool samples = slot.computed + prefill.chunk == prefill.known;
    const auto prompt = in_.requests.prompt_tokens[static_cast<std::size_t>(slot.request)];
    chunks_.push_back({prefill.chunk, slot.computed, prompt, samples});
    sampled += samples ? 1 : 0;
  }
  if (in_.observer != nullptr) ObserveSchedule();
  const TimeNs start = now_;
  const StepPrice price = in_.latency.Price({decodes_, decode_context_, chunks_});
  const TimeNs end = start + price.duration;
  const std::int64_t tokens = in_.engine.max_num_batched_tokens - plan.budget;
  in_.recorder.Step(start, end, {running_, kv_.used(), tokens}, sampled, price.bound, plan.blocked);
  if (decodes_ > 0) {
    in_.recorder.InterTokenGap(end, price.duration + token_delay_, decodes_);
  }
  AdvanceDecodes();
  now_ = end;
  CompleteDecodes(end);
  CompletePrefills(end);
  if (in_.observer != nullptr) ObserveStep(start, end);
}

// Every decode made a token: the gap to the one before is the step itself.
void Replica::AdvanceDecodes() {
  decode_context_ += decodes_;
  ++decode_step_;
  if (++phase_index_ == phase_.size()) phase_index_ = 0;
}

void Replica::CompleteDecodes(TimeNs end) {
  while (!finishes_.empty() && finishes_.TopKey() < decode_step_) Finish(finishes_.TopId(), end);
}

void Replica::CompletePrefills(TimeNs end) {
  std::size_t kept = 0;
  std::int64_t joined = 0;
  for (std::size_t i = 0; i < prefills_.size(); ++i) {
    Prefill prefill = prefills_[i];
    prefill.decodes_before += joined;
    Slot& slot = SlotAt(prefill.slot);
    slot.computed += prefill.chunk;
    if (prefill.chunk > 0) slot.kind = MemberKind::kContinued;
    if (slot.computed < prefill.known) {
      prefills_[kept++] = prefill;
      continue;
    }
    // The token after all known ones.
    const auto r = static_cast<std::size_t>(slot.request);
    const std::int32_t generated = ++in_.results.generated[r];
    if (generated == 1) {
      in_.results.first_token[r] = end + token_delay_;
    } else {
      in_.recorder.InterTokenGap(end, end - last_token_[r] + token_delay_, 1);
    }
    if (generated == OutputLimit(slot.request)) {
      Finish(prefill.slot, end);
    } else {
      JoinDecodes(prefill.slot);
      ++joined;
    }
  }
  prefills_.resize(kept);
}

// ---- Many steps at once --------------------------------------------------------------------

// Steps of the present batch of decodes, up to the first that finishes one; 0 when a schedule call
// could change the batch now. Requires: decodes only.
std::int64_t Replica::DecodeRun(std::int64_t max_steps) {
  BlockedBy blocked = BlockedBy::kNothing;
  if (QueueLength() > 0) {
    blocked = HeadBlockedBy(kv_.free() - phase_[phase_index_],
                            in_.engine.max_num_batched_tokens - decodes_);
    if (blocked == BlockedBy::kNothing) return 0;
  }
  const bool closed = blocked != BlockedBy::kNothing || running_ >= seats_;
  const std::int64_t last_step = finishes_.TopKey();
  TimeNs next_enqueue = NextEnqueue();
  std::int64_t ran = 0;
  while (ran < max_steps && now_ < in_.horizon) {
    if (next_enqueue <= now_) {
      if (!closed) break;
      Deliver();
      next_enqueue = NextEnqueue();
      if (blocked == BlockedBy::kNothing) blocked = BlockedBy::kSeats;
    }
    const std::int64_t blocks = phase_[phase_index_];
    if (blocks > kv_.free()) break;
    kv_.Take(blocks);
    if (in_.observer != nullptr) {
      record_.preempted.clear();
      ObserveSchedule();
    }
    const TimeNs start = now_;
    const StepPrice price = in_.latency.Price({decodes_, decode_context_, {}});
    now_ += price.duration;
    in_.recorder.Step(start, now_, {running_, kv_.used(), decodes_}, decodes_, price.bound,
                      blocked);
    in_.recorder.InterTokenGap(now_, price.duration + token_delay_, decodes_);
    AdvanceDecodes();
    ++ran;
    const bool finishing = decode_step_ > last_step;
    if (finishing) CompleteDecodes(now_);
    if (in_.observer != nullptr) ObserveStep(start, now_);
    if (finishing) break;
  }
  return ran;
}

// ---- Moves of one request ------------------------------------------------------------------

void Replica::JoinDecodes(SlotId id) {
  Slot& slot = SlotAt(id);
  const std::int64_t generated = in_.results.generated[static_cast<std::size_t>(slot.request)];
  slot.decoding = true;
  slot.join_step = decode_step_;
  ++decodes_;
  decode_context_ += slot.computed;
  ++PhaseOf(slot);
  finishes_.Push(id, decode_step_ + OutputLimit(slot.request) - generated - 1, slot.admission);
}

void Replica::LeaveDecodes(SlotId id) {
  Slot& slot = SlotAt(id);
  --decodes_;
  decode_context_ -= ComputedNow(slot);
  --PhaseOf(slot);
  finishes_.Remove(id);
  CountDecodesBefore(slot.admission, -1);
  slot.computed = ComputedNow(slot);
  slot.decoding = false;
}

// Recompute preemption: all blocks go at once, what was generated is kept, and the request goes to
// the front of the queue.
void Replica::Preempt(SlotId id) {
  Slot& slot = SlotAt(id);
  const auto r = static_cast<std::size_t>(slot.request);
  if (slot.decoding) {
    LeaveDecodes(id);
    in_.results.generated[r] =
        static_cast<std::int32_t>(slot.computed + 1 - in_.requests.prompt_tokens[r]);
    last_token_[r] = now_;
  } else {
    SERVECAST_CHECK(prefills_.back().slot == id, "the running list's tail is preempted first");
    prefills_.pop_back();
  }
  kv_.Release(kv_.BlocksFor(slot.computed));
  ++in_.results.preemptions[r];
  in_.results.state[r] = RequestState::kQueued;
  in_.recorder.Preempted(now_);
  record_.preempted.push_back(slot.request);
  preempted_.push_back(slot.request);
  RemoveFromRunning(id);
}

// The last token's KV is never written: blocks are those of all tokens but it.
void Replica::Finish(SlotId id, TimeNs end) {
  Slot& slot = SlotAt(id);
  if (slot.decoding) LeaveDecodes(id);
  const auto r = static_cast<std::size_t>(slot.request);
  const std::int64_t generated = OutputLimit(slot.request);
  kv_.Release(kv_.BlocksFor(slot.computed));
  in_.results.generated[r] = static_cast<std::int32_t>(generated);
  // Absurd delays end with the clock.
  in_.results.completion[r] = static_cast<TimeNs>(
      std::min(WideInt{end} + WideInt{generated} * token_delay_, WideInt{kNever}));
  in_.results.state[r] = RequestState::kCompleted;
  ++completed_;
  length_capped_ += generated < in_.requests.output_tokens[r] ? 1 : 0;
  if (in_.observer != nullptr) record_.finished.push_back(slot.request);
  RemoveFromRunning(id);
}

// ---- Running list and queue ----------------------------------------------------------------

Replica::SlotId Replica::AddToRunning(RequestId request) {
  const SlotId id = free_slots_.back();
  free_slots_.pop_back();
  const auto r = static_cast<std::size_t>(request);
  Slot& slot = SlotAt(id);
  slot = Slot{};
  slot.request = request;
  slot.previous = last_;
  slot.admission = admissions_++;
  slot.kind = in_.results.preemptions[r] > 0 ? MemberKind::kResumed : MemberKind::kNew;
  (last_ == kNoSlot ? first_ : SlotAt(last_).next) = id;
  last_ = id;
  ++running_;
  SERVECAST_CHECK(running_ <= seats_, "I7: at most max_num_seqs requests run");
  in_.results.state[r] = RequestState::kRunning;
  return id;
}

void Replica::RemoveFromRunning(SlotId id) {
  const Slot& slot = SlotAt(id);
  (slot.previous == kNoSlot ? first_ : SlotAt(slot.previous).next) = slot.next;
  (slot.next == kNoSlot ? last_ : SlotAt(slot.next).previous) = slot.previous;
  free_slots_.push_back(id);
  --running_;
}

void Replica::CountDecodesBefore(std::int64_t admission, std::int64_t change) {
  for (Prefill& prefill : prefills_) {
    if (SlotAt(prefill.slot).admission > admission) prefill.decodes_before += change;
  }
}

RequestId Replica::Head() const {
  return preempted_.empty() ? in_.order[static_cast<std::size_t>(admitted_)] : preempted_.back();
}

void Replica::PopHead() {
  if (preempted_.empty()) {
    ++admitted_;
  } else {
    preempted_.pop_back();
  }
}

std::int64_t Replica::Known(RequestId request) const {
  const auto r = static_cast<std::size_t>(request);
  return in_.requests.prompt_tokens[r] + in_.results.generated[r];
}

std::int64_t Replica::OutputLimit(RequestId request) const {
  const auto r = static_cast<std::size_t>(request);
  return std::min<std::int64_t>(in_.requests.output_tokens[r],
                                in_.max_model_len - in_.requests.prompt_tokens[r]);
}

std::int64_t& Replica::PhaseOf(const Slot& slot) {
  const auto size = static_cast<std::int64_t>(phase_.size());
  const std::int64_t phase = (slot.join_step - slot.computed) % size;
  return phase_[static_cast<std::size_t>(phase < 0 ? phase + size : phase)];
}

void Replica::WriteProgress(std::vector<std::int32_t>& generated) const {
  for (SlotId id = first_; id != kNoSlot; id = SlotAt(id).next) {
    const Slot& slot = SlotAt(id);
    if (!slot.decoding) continue;
    const auto r = static_cast<std::size_t>(slot.request);
    generated[r] = static_cast<std::int32_t>(ComputedNow(slot) + 1 - in_.requests.prompt_tokens[r]);
  }
}

// ---- For an observer -----------------------------------------------------------------------

void Replica::ObserveSchedule() {
  record_.members.clear();
  record_.finished.clear();
  std::size_t prefill_index = 0;
  for (SlotId id = first_; id != kNoSlot; id = SlotAt(id).next) {
    const Slot& slot = SlotAt(id);
    if (slot.decoding) {
      record_.members.push_back({slot.request, 1, ComputedNow(slot), MemberKind::kContinued, true});
      continue;
    }
    const Prefill& prefill = prefills_[prefill_index++];
    if (prefill.chunk == 0) continue;
    record_.members.push_back({slot.request, prefill.chunk, slot.computed, slot.kind,
                               slot.computed + prefill.chunk == prefill.known});
  }
  record_.free_after_schedule = kv_.free();
  record_.running_after_schedule = running_;
  record_.waiting_after_schedule = QueueLength();
}

void Replica::ObserveStep(TimeNs start, TimeNs end) {
  record_.index = in_.recorder.steps() - 1;
  record_.scheduled = record_.start = start;
  record_.end = end;
  // Finishes were taken from the heap and the prefills; report them as they stood in the step.
  std::sort(record_.finished.begin(), record_.finished.end(),
            [this](RequestId a, RequestId b) { return MemberPosition(a) < MemberPosition(b); });
  record_.free_after_step = kv_.free();
  record_.running_after_step = running_;
  record_.waiting_after_step = QueueLength();
  in_.observer->OnStep(record_);
}

std::size_t Replica::MemberPosition(RequestId request) const {
  std::size_t i = 0;
  while (record_.members[i].id != request) ++i;
  return i;
}

}  // namespace servecast
