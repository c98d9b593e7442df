// How BlisReplica runs a step: forms the batch, executes, completes. What looks wrong here is
// meant, unless a comment says "ours".
//
// Decodes are sums (blis_decodes.h), prefills and what was admitted in this step are single. A step
// in which the budget suffices for all decodes, and blocks do, too, or it is the batch's tail that
// makes way, is formed by GrantToSums: every decode that stays makes a token. Of these only such
// are touched whose blocks' names others see, and only when their block is full or gets full. Any
// other step dissolves the sums and is formed request by request (GrantToBatch).
#include <algorithm>
#include <span>

#include "serving/blis/blis_replica.h"
#include "serving/policy.h"

namespace servecast {
void BlisReplica::RunStep() {
  kv_.StartStep(now_);
  Step step;
  step.budget = in_.engine.max_num_batched_tokens;
  if (SumsStay()) {
    GrantToSums(step);
  } else {
    LeaveSums();
    GrantToBatch(step);
  }
  Admit(step);
  const Us took = Price(step);
  const bool observed = in_.observer != nullptr && !batch_.empty();
  if (observed) ObserveSchedule();
  MoveOn(took);
  if (kv_.mirrors()) {
    for (const BlisMember& member : batch_) kv_.Mirror(At(member.seat).holding);
  }
  Complete(took);
  if (observed) ObserveStep(took);
  if (guard_.IsStuck(step.granted, step.preempted, queue_.size() > 0)) GiveUpOnHead();
  if (gaps_.IsLong()) TrimGaps();
  step_pending_ = !batch_.empty() || queue_.size() > 0;
  if (step_pending_) events_.Push(Sum(now_, took), Kind::kStep, kNoRequest);
}

// Whether the order in which the batch is served takes no token from any decode that is in the sums
// or joins them: budget suffices up to the last of these, and blocks do, or whose blocks the others
// get is at its end.
bool BlisReplica::SumsStay() const {
  const auto in_sums = [this](const BlisMember& member) {
    return At(member.seat).summed || Joins(At(member.seat));
  };
  const auto last = std::find_if(batch_.rbegin(), batch_.rend(), in_sums);
  std::int64_t budget = in_.engine.max_num_batched_tokens - decodes_.size();
  for (const BlisMember& member : singles_) budget -= Joins(At(member.seat)) ? 1 : 0;
  if (budget < 0) return false;
  auto blocks = static_cast<std::int64_t>(decodes_.counted_due().size() + decodes_.due().size());
  for (const BlisMember& member : singles_) {
    const Seat& seat = At(member.seat);
    const bool joins = Joins(seat);
    const std::int64_t wanted = Wanted(seat), tokens = joins ? 1 : std::min(wanted, budget);
    if (tokens < wanted && last != batch_.rend() && BlisMember::Before(member, *last)) return false;
    budget -= joins ? 0 : tokens;
    blocks += kv_.NewBlocksFor(seat.holding, tokens);
  }
  return blocks <= kv_.free() || (tail_makes_way_ && !era_.visits_evicted);
}

// A decode that was in the latest step, as all in the sums were. Today's host looks at all requests
// in each step.
bool BlisReplica::Joins(const Seat& seat) const {
  return seat.progress >= PromptOf(seat.request) && seat.last_step == decodes_end_ &&
         !kv_.mirrors();
}

void BlisReplica::GrantToSums(Step& step) {
  JoinSums();
  if (era_.only_granted_advance) {
    for (const BlisMember& member : singles_) At(member.seat).granted = 0;
  }
  step.budget -= decodes_.size();  // who makes way gives its token back
  const Members* lists[] = {&decodes_.due(), &decodes_.filling(), &singles_};
  std::size_t served[] = {0, 0, 0}, counted = 0;
  std::int64_t touched = 0;
  for (;;) {
    std::size_t next = std::size(lists);
    BlisMember member{INT64_MAX, kNoSeat};
    for (std::size_t i = 0; i < std::size(lists); ++i) {
      const bool more = served[i] < lists[i]->size();
      if (!more || !BlisMember::Before((*lists[i])[served[i]], member)) continue;
      next = i;
      member = (*lists[i])[served[i]];
    }
    TakeForCounted(counted, member, step);
    if (next == std::size(lists)) break;
    if (served[next] == lists[next]->size()) continue;  // it made way
    ++served[next];
    Seat& seat = At(member.seat);
    if (!seat.summed) {
      if (step.budget > 0) GrantTo(member.seat, step);
      continue;
    }
    TellHolding(seat);
    if (!MakeRoom(member.seat, 1, step)) continue;
    ++seat.progress;
    ++touched;
  }
  kv_.Fill(decodes_.size() - touched);
  step.granted = step.granted || decodes_.size() > 0;
}

// A block for each of the counted that is due, from the first that has none, and comes before
// `member`.
void BlisReplica::TakeForCounted(std::size_t& served, const BlisMember& member, Step& step) {
  const Members& due = decodes_.counted_due();
  for (;;) {
    const auto first = due.begin() + static_cast<std::ptrdiff_t>(std::min(served, due.size()));
    const std::int64_t left =
        std::lower_bound(first, due.end(), member, BlisMember::Before) - first;
    if (left == 0) return;
    const std::int64_t blocks = std::min(left, kv_.free());
    kv_.TakeForDecodes(blocks);
    served += static_cast<std::size_t>(blocks);
    if (blocks < left) MakeWay(step);
  }
}

void BlisReplica::JoinSums() {
  std::size_t kept = 0;
  for (const BlisMember& member : singles_) {
    Seat& seat = At(member.seat);
    if (!Joins(seat)) {
      singles_[kept++] = member;
      continue;
    }
    seat.track = decodes_.Join(member, seat.progress, kv_.RoomIn(seat.holding),
                               LastOf(seat.request) - seat.progress,
                               kv_.IsUnobserved(seat.holding, seat.request, seat.progress));
    seat.summed = true;
    seat.granted = 1;
    gaps_.ContinueFromNext(seat.gaps);
  }
  singles_.resize(kept);
}

void BlisReplica::LeaveSums() {
  singles_ = batch_;
  if (decodes_.size() == 0) return;
  for (const BlisMember& member : batch_) {
    if (At(member.seat).summed) CatchUp(At(member.seat));
  }
  decodes_.Clear();
}

void BlisReplica::TakeOutOfSums(Seat& seat) {
  const BlisTrack track = seat.track;
  CatchUp(seat);
  decodes_.Leave({seat.order, kNoSeat}, track);
}

// A member of the sums is told what they say of it.
void BlisReplica::CatchUp(Seat& seat) {
  seat.summed = false;
  seat.last_step = decodes_end_;
  seat.gaps.to = gaps_.steps();
  TellHolding(seat);
}

void BlisReplica::TellHolding(Seat& seat) {
  const std::int64_t computed = decodes_.Computed(seat.track);
  kv_.CatchUp(seat.holding, seat.request, seat.progress, computed);
  seat.progress = computed;
}

void BlisReplica::TakeOutOfBatch(SeatId id) {
  Seat& seat = At(id);
  const BlisMember member{seat.order, id};
  const auto remove = [&member](Members& from) {
    from.erase(std::lower_bound(from.begin(), from.end(), member, BlisMember::Before));
  };
  if (seat.summed) {
    TakeOutOfSums(seat);
  } else {
    remove(singles_);
  }
  remove(batch_);
}

// Requires: no sums.
void BlisReplica::GrantToBatch(Step& step) {
  if (era_.only_granted_advance) {
    for (const BlisMember& member : batch_) At(member.seat).granted = 0;
  }
  if (era_.visits_evicted) {
    scratch_ = batch_;
    for (const BlisMember& member : scratch_) {
      if (step.budget <= 0 || !GrantTo(member.seat, step)) break;
    }
  } else {
    for (std::size_t i = 0; i < batch_.size() && step.budget > 0; ++i) {
      const BlisMember member = batch_[i];
      if (!GrantTo(member.seat, step)) break;
      while (i >= batch_.size() || batch_[i].seat != member.seat)
        --i;  // victims before it are gone
    }
  }
}

// What a request would compute in a step with budget for all.
std::int64_t BlisReplica::Wanted(const Seat& seat) const {
  const std::int64_t left = PromptOf(seat.request) - seat.progress;
  const std::int64_t room =
      limits_.model_len > 0 ? limits_.model_len - 1 - seat.progress : INT64_MAX;
  if (left <= 0) return room > 0 ? 1 : 0;
  const std::int64_t threshold = in_.engine.long_prefill_token_threshold;
  return std::max<std::int64_t>(std::min({left, threshold > 0 ? threshold : left, room}), 0);
}

// Tokens of a request that runs, or (February) did when the step began. False: no room for it.
bool BlisReplica::GrantTo(SeatId id, Step& step) {
  std::int64_t tokens = Wanted(At(id));
  if (tokens > 1) tokens = std::min(tokens, step.budget);
  if (tokens <= 0) return true;
  if (!MakeRoom(id, tokens, step)) return false;
  step.budget -= tokens;
  step.granted = true;
  At(id).granted = tokens;
  At(id).computed += tokens;
  return true;
}

bool BlisReplica::MakeRoom(SeatId id, std::int64_t tokens, Step& step) {
  for (;;) {
    Seat& seat = At(id);
    const bool prefill = seat.progress < PromptOf(seat.request);
    if (kv_.Allocate(seat.holding, seat.request, seat.progress, seat.progress + tokens, prefill)) {
      return true;
    }
    const SeatId victim = MakeWay(step);
    if (victim == id || victim == kNoSeat) return false;
  }
}

// An allocation was refused: who is preempted for it. kNoSeat: there is nobody.
SeatId BlisReplica::MakeWay(Step& step) {
  in_.recorder.BlocksRefused(1);
  if (batch_.empty()) return kNoSeat;
  const SeatId victim = batch_[VictimOf()].seat;
  Preempt(victim, step);
  return victim;
}

std::size_t BlisReplica::VictimOf() const {
  std::size_t victim = batch_.size() - 1;
  if (tail_makes_way_) return victim;
  victim = 0;
  for (std::size_t i = 1; i < batch_.size(); ++i) {
    const Seat &a = At(batch_[i].seat), &b = At(batch_[victim].seat);
    const bool later = ArrivalOf(a.request) > ArrivalOf(b.request);
    if (a.priority > b.priority || (a.priority == b.priority && later)) victim = i;
  }
  return victim;
}

void BlisReplica::Preempt(SeatId id, Step& step) {
  Seat& seat = At(id);
  const RequestId request = seat.request;
  TakeOutOfBatch(id);
  step.preempted = true;
  if (era_.returns_budget) step.budget += seat.granted;
  const bool alone = batch_.empty();
  kv_.Release(seat.holding);
  seat.progress = seat.computed = 0;
  if (era_.forgets_on_preemption) {
    seat.granted = 0;
    gaps_.Forget(seat.gaps);
    seat.has_first = false;
    in_.results.first_token[Index(request)] = -1;
  } else {
    gaps_.Close(seat.gaps);
  }
  in_.results.generated[Index(request)] = 0;
  ++in_.results.preemptions[Index(request)];
  in_.recorder.Preempted(now());
  if (in_.observer != nullptr) record_.preempted.push_back(request);
  if (!era_.orders_events) events_.Push(now_, Kind::kPreempted, request);
  if (alone && guard_.EvictedAlone()) return Drop(request);
  in_.results.state[Index(request)] = RequestState::kQueued;
  places_[Index(request)] = Place::kWaiting;
  queue_.PushPreempted(policy_.KeyOf(request), in_.requests.arrival[Index(request)], request);
  RecordQueue();
}

void BlisReplica::Admit(Step& step) {
  const std::int64_t threshold = in_.engine.long_prefill_token_threshold;
  while (queue_.size() > 0) {
    step.blocked = running() >= in_.engine.max_num_seqs ? BlockedBy::kSeats
                   : step.budget <= 0                   ? BlockedBy::kTokenBudget
                                                        : BlockedBy::kKvBlocks;
    if (step.blocked != BlockedBy::kKvBlocks || step.preempted) return;
    const RequestId request = queue_.Head();
    const std::int64_t prompt = PromptOf(request);
    const std::int64_t hits = kv_.LookUp(request, prompt);
    const std::int64_t cached = hits * kv_.block_size();
    std::int64_t tokens = prompt - cached;  // none when all is cached
    if (threshold > 0) tokens = std::min(tokens, threshold);
    tokens = std::min(tokens, step.budget);
    if (limits_.model_len > 0) tokens = std::min(tokens, limits_.model_len - 1 - cached);
    const SeatId id = SeatFor(request);
    const bool first = in_.results.first_scheduled[Index(request)] < 0;
    if (!kv_.Admit(At(id).holding, request, cached + tokens)) {
      in_.recorder.BlocksRefused(1);
      return;
    }
    queue_.Pop();
    RecordQueue();
    Start(id, cached, tokens, step);
    host_hits_ += first ? std::max<std::int64_t>(kv_.found() - hits, 0) : 0;
  }
  step.blocked = BlockedBy::kNothing;
}

// A request takes its place in the batch, with its first tokens behind the cached ones.
void BlisReplica::Start(SeatId id, std::int64_t cached, std::int64_t tokens, Step& step) {
  Seat& seat = At(id);
  const RequestId request = seat.request;
  places_[Index(request)] = Place::kInBatch;
  in_.results.state[Index(request)] = RequestState::kRunning;
  seat.order = admissions_++;
  batch_.push_back({seat.order, id});
  singles_.push_back({seat.order, id});
  step.budget -= tokens;
  step.granted = true;
  seat.granted = tokens;
  seat.computed = cached + tokens;
  seat.fresh = true;
  if (in_.results.first_scheduled[Index(request)] < 0) {
    in_.results.cached_tokens[Index(request)] = static_cast<std::int32_t>(cached);
    prefix_cache_.query_tokens += PromptOf(request);
    prefix_cache_.hit_tokens += cached;
  } else {
    prefix_cache_.resumed_hit_tokens += cached;
  }
  in_.results.first_scheduled[Index(request)] = now();  // the last time counts
  events_.Push(now_, Kind::kScheduled, request);
}

SeatId BlisReplica::SeatFor(RequestId request) {
  if (seats_.Of(request) != kNoSeat) return seats_.Of(request);
  const SeatId id = seats_.Take(request);
  At(id).priority = policy_.PriorityOf(request);
  return id;
}

BlisReplica::Us BlisReplica::Price(const Step& step) {
  BatchShape shape;
  shape.decode_seqs = decodes_.size();
  shape.decode_context_tokens = decodes_.context();
  chunks_.clear();
  std::int64_t tokens = decodes_.size();
  for (const BlisMember& member : singles_) {
    const Seat& seat = At(member.seat);
    tokens += seat.granted;
    if (seat.granted == 0) continue;
    const std::int64_t prompt = PromptOf(seat.request);
    if (seat.progress < prompt) {
      chunks_.push_back({seat.granted, seat.progress, prompt, seat.computed == prompt});
    } else {
      shape.decode_seqs += seat.granted;  // one, but for February's leftovers
      shape.decode_context_tokens += seat.progress;
    }
  }
  shape.prefill = chunks_;
  const StepPrice price = in_.latency.Price(shape);
  const Us transfer = kv_.TakeTransfer();
  record_.transfer = transfer * 1000;
  const Us took = price.duration / 1000 + transfer;
  RecordPending(limits_.horizon);
  pending_ = {now_,           Sum(now_, took), {running(), kv_.used(), tokens, 0, kv_.unused()},
              price.bound,    step.blocked,    0,
              !batch_.empty()};
  return took;
}

void BlisReplica::MoveOn(Us took) {
  gaps_.Add(Sum(took, limits_.token_delay));
  for (const BlisMember& member : singles_) MoveOn(At(member.seat), took);
  if (decodes_.size() > 0) {
    const Us wait = std::max<Us>(0, now_ - decodes_end_);
    in_.recorder.StepDelay(now(), wait * 1000, decodes_.size());
    if (!era_.counts_first_token) pending_.tokens += decodes_.size();
  }
  decodes_.Step();
  decodes_end_ = Sum(now_, took);
}

void BlisReplica::MoveOn(Seat& seat, Us took) {
  const std::int64_t prompt = PromptOf(seat.request);
  seat.fresh = false;
  const std::int64_t before = seat.progress;
  if (seat.progress < prompt) {
    seat.progress = seat.computed;
  } else if (seat.granted > 0 || !era_.only_granted_advance) {
    ++seat.progress;
    gaps_.MadeOne(seat.gaps);
    if (!era_.counts_first_token) ++pending_.tokens;
  }
  if (seat.progress != before) {
    const Us wait = std::max<Us>(0, now_ - seat.last_step);
    if (seat.last_step >= 0) in_.recorder.StepDelay(now(), wait * 1000, 1);
    seat.last_step = Sum(now_, took);
  }
  if (seat.progress == prompt && !seat.has_first) {
    seat.has_first = true;
    seat.first_token = Sum(now_ + took, limits_.token_delay) - ArrivalOf(seat.request);
    in_.results.first_token[Index(seat.request)] =
        (ArrivalOf(seat.request) + seat.first_token) * 1000;
  }
}

// The progress at which a request ends, if the limit does not end it before.
std::int64_t BlisReplica::LastOf(RequestId request) const {
  const std::int64_t last = PromptOf(request) + OutputOf(request) - 1;
  return limits_.model_len > 0 ? std::min(last, limits_.model_len - 1) : last;
}

void BlisReplica::Complete(Us took) {
  scratch_.clear();
  for (BlisMember member; decodes_.PopFinished(member);) {
    const Seat& seat = At(member.seat);
    if (seat.summed && seat.order == member.order) scratch_.push_back(member);
  }
  for (const BlisMember& member : singles_) {
    const Seat& seat = At(member.seat);
    if (seat.progress >= LastOf(seat.request)) scratch_.push_back(member);
  }
  if (scratch_.empty()) return;
  std::sort(scratch_.begin(), scratch_.end(), BlisMember::Before);
  for (const BlisMember& member : scratch_) {
    TakeOutOfBatch(member.seat);
    Finish(member.seat, took);
  }
}

void BlisReplica::Finish(SeatId id, Us took) {
  Seat& seat = At(id);
  const RequestId request = seat.request;
  const std::int64_t end = PromptOf(request) + OutputOf(request);
  if (seat.progress < end - 1) ++ends_.length_capped;
  if (era_.phantom_gap) seat.gaps.earlier.push_back({Sum(took, limits_.token_delay), 1});
  if (seat.progress < end) {
    // Room for the last token, if there is any; it may evict a cached block.
    const std::int64_t at = seat.progress;
    if (!kv_.Allocate(seat.holding, request, at, at + 1, false)) in_.recorder.BlocksRefused(1);
  }
  events_.Push(Sum(now_, took), Kind::kLeft, request);
  if (in_.observer != nullptr) record_.finished.push_back(request);
  const Us latency = gaps_.SumOf(seat.gaps, Sum(seat.first_token, limits_.end_delay));
  gaps_.Count(seat.gaps, now() + took * 1000, in_.recorder);
  CountTokens(id);
  if (era_.counts_first_token) pending_.tokens += in_.results.generated[Index(request)];
  in_.results.completion[Index(request)] = Sum(ArrivalOf(request), latency) * 1000;
  in_.results.state[Index(request)] = RequestState::kCompleted;
  places_[Index(request)] = Place::kGone;
  ++ends_.completed;
  guard_.Left();
  Leave(id);
  ArriveNext(request, Sum(now_, took));
}

void BlisReplica::CountTokens(SeatId id) {
  const RequestId request = At(id).request;
  const std::int64_t decoded = At(id).progress - PromptOf(request);
  in_.results.generated[Index(request)] =
      decoded < 0 ? 0 : static_cast<std::int32_t>(std::min(decoded + 1, OutputOf(request)));
}

// Gaps are kept from the first step that a request of the batch has in a row.
void BlisReplica::TrimGaps() {
  std::int64_t oldest = gaps_.steps();
  for (const BlisMember& member : batch_) {
    const Seat& seat = At(member.seat);
    if (seat.summed || seat.gaps.from < seat.gaps.to) oldest = std::min(oldest, seat.gaps.from);
  }
  gaps_.DropBefore(oldest, in_.recorder);
}

}  // namespace servecast
