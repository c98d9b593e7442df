// The vLLM V1 scheduler and its step loop, at a cost proportional to changes of the batch.
//
// Requests that decode are a group, of which no step touches a member (decode_group.h). DecodeRun
// does such steps while nothing can change the batch: no request is in prefill; blocks suffice; the
// head of the queue, if there is one, cannot be admitted (blocks only shrink in a run and seats and
// budget stay, so once blocked it stays blocked); and none arrives that could be. Under fcfs an
// arrival behind a blocked head changes nothing.
//
// Any other step is formed by a schedule call: replica_schedule.cpp.
//
// Scheduling a step (Launch) and applying its outputs (Apply) are apart. Synchronously they follow
// each other; with async scheduling two batches are in flight, so the next step is formed before
// this one's tokens are there. All that scheduling needs of them is that they will come: so it
// counts a token from the moment it is scheduled, and Apply is left with what a client or the block
// pool sees: times, and seats and blocks of finished requests, one call later.
//
// With pipeline stages there are several groups, which take turns: replica_stages.cpp.
//
// tests/testing/reference_sim says the same the naive way; the differential test says they agree.
#include "serving/replica/replica.h"

#include <algorithm>
#include <cmath>

#include "serving/replica/scheduled_replica.h"

namespace servecast {

std::unique_ptr<Engine> MakeReplica(const ReplicaInput& input) {
  if (input.setup != nullptr) return std::make_unique<ScheduledReplica>(input);
  return std::make_unique<Replica>(input);
}

std::int64_t EffectiveMaxModelLen(const EngineSpec& engine, std::int64_t model_max_len,
                                  std::int64_t usable_blocks) {
  std::int64_t length = std::min(model_max_len, usable_blocks * engine.block_size);
  if (engine.max_model_len) length = std::min(length, *engine.max_model_len);
  if (!engine.enable_chunked_prefill) length = std::min(length, engine.max_num_batched_tokens + 1);
  return length;
}

Replica::Replica(const ReplicaInput& input)
    : in_(input),
      policy_(input.scheduler, input.requests),
      seats_(input.engine.max_num_seqs),
      watermark_blocks_(static_cast<std::int64_t>(input.engine.watermark *
                                                  static_cast<double>(input.pool_blocks))),
      gc_pass_(static_cast<TimeNs>(std::nearbyint(input.engine.gc_pass_us * 1e3))),
      token_delay_(input.latency.OutputTokenDelay()),
      delivery_delay_(input.latency.DeliveryDelay()),
      preemption_weight_(input.latency.PreemptionWeight()),
      prices_transfers_(input.latency.PricesTransfers()),
      delay_by_cache_(input.latency.DelayByCache()),
      victim_by_priority_(input.scheduler.preemption == "priority" ||
                          (input.scheduler.preemption == "auto" && policy_.preempts_by_priority())),
      kv_({input.pool_blocks - 1, input.engine.block_size, input.engine.enable_prefix_caching,
           input.engine.free_contentless_first, input.engine.kv_offload.threshold,
           input.one_of_many},
          input.requests, input.kv_tiers),
      queue_(input.results.state, policy_.by_key()),
      last_token_(input.scratch.last_token),
      slot_of_(input.scratch.slot),
      batches_(input.engine.async_scheduling ? 2 : 1) {
  const auto slots = static_cast<std::size_t>(std::min(seats_, input.requests.size()));
  const std::size_t groups = in_.stages == nullptr ? 1 : in_.stages->size() + 1;
  groups_.reserve(groups);  // addresses hold
  while (groups_.size() < groups) groups_.emplace_back(in_.engine.block_size, slots);
  group_ = groups_.data();
  if (in_.stages != nullptr) StartStages();
  in_.horizon = std::min(in_.horizon, kClockEnd);
  slots_.resize(slots);
  for (std::size_t i = slots; i > 0; --i) free_slots_.push_back(static_cast<SlotId>(i - 1));
  prefills_.reserve(slots);
  chunks_.reserve(slots);
  padded_.reserve(slots);
}

bool Replica::Advance(std::int64_t max_steps) {
  std::int64_t steps = 0;
  while (steps < max_steps) {
    const TimeNs until = in_.inbox.until();
    if (Done() || sleeps_) {
      TimeNs next = in_.inbox.NextEnqueue();
      if (sleeps_) next = std::min({next, in_.inbox.NextTimeout(), woken_});
      if (next >= until && until != kNever) return true;
      if (next >= in_.horizon) return Close();  // kNever included
      if (next > now_) load_.running = load_.kv_blocks_used = 0;
      now_ = std::max(now_, next);
      sleeps_ = false;
      woken_ = kNever;
    }
    if (now_ >= until) return false;
    Deliver();
    if (GiveUp()) {
      if (now_ >= in_.inbox.until()) return false;
      Deliver();
    }
    const bool work = running_ > 0 || queue_.size() > 0 || !arrived_.empty();
    if (!work && in_flight_ == 0) {
      sleeps_ = !incoming_.empty();
      woken_ = kNever;
      continue;
    }
    if (work && CanSchedule()) {
      if (prefills_.empty() && endings_ == 0 && group_->size() > 0 && !staged()) {
        const std::int64_t ran = DecodeRun(max_steps - steps);
        steps += ran;
        if (ran > 0) continue;
      }
      Plan plan;
      if (Schedule(plan)) {
        Launch(plan);
        ++steps;
        if (in_flight_ < batches_.size()) continue;
      } else if (in_flight_ == 0) {
        // Preemption may leave nothing to compute; the blocks are there at the next call. Or they
        // are held for transfers.
        sleeps_ = !plan.preempted;
        woken_ = kNever;
        SERVECAST_CHECK(plan.preempted || !incoming_.empty() || !handed_over_.empty(),
                        "I8: a schedule call with work gives a step");
        continue;
      }
    } else if (in_flight_ == 0) {
      return Close();  // work, but no time left
    }
    Apply();
  }
  return Done() && in_.inbox.until() == kNever && in_.inbox.NextEnqueue() >= in_.horizon && Close();
}

bool Replica::Done() const {
  return running_ == 0 && queue_.size() == 0 && in_flight_ == 0 && incoming_.empty();
}

// The run is over. What is enqueued before the clock stops waits until then, though for nothing.
bool Replica::Close() {
  if (in_.horizon != kClockEnd) {
    now_ = std::max(now_, in_.horizon);
    Deliver();
  }
  return true;
}

void Replica::Deliver() {
  for (TimeNs time = in_.inbox.NextEnqueue(); time <= now_; time = in_.inbox.NextEnqueue()) {
    const RequestId request = in_.inbox.TakeNext();
    load_.waiting = Waiting() + left_queue_;
    if (delay_by_cache_) {
      const auto prompt = in_.requests.prompt_tokens[static_cast<std::size_t>(request)];
      load_.cached_tokens = kv_.LookUp(request, prompt).blocks * kv_.block_size();
    }
    if (!in_.inbox.DelaysByLoad(request, load_)) Enqueue(request, time);
  }
  if (left_queue_ == 0) return;
  left_queue_ = 0;
  in_.recorder.Waiting(now_, Waiting());
}

void Replica::Enqueue(RequestId request, TimeNs time) {
  const auto r = static_cast<std::size_t>(request);
  in_.results.state[r] = RequestState::kQueued;
  in_.inbox.Enqueued(request);
  queue_.Push(policy_.KeyOf(request), in_.requests.arrival[r], request);
  in_.recorder.Waiting(time, Waiting() + left_queue_);
}

// ---- One step by the rules -----------------------------------------------------------------

Replica::Batch& Replica::NewBatch() {
  ++in_flight_;
  Batch& batch = Newest();
  batch.start = batch.before = StartTime();
  load_.running = running_;
  load_.kv_blocks_used = kv_.used();
  batch.prefill.keys = 0;
  batch.first.clear();
  batch.last.clear();
  return batch;
}

// Sends the step to the device: prices it, and counts its tokens as computed.
void Replica::Launch(const Plan& plan) {
  chunks_.clear();
  BatchShape shape = group_->shape();
  shape.transfer_blocks = transfer_blocks_;
  shape.preemption_ema = load_.preemption_ema;
  std::int64_t sampled = shape.decode_seqs;
  const TimeNs start = StartTime();
  for (const SlotId id : prefills_) {
    Slot& slot = SlotAt(id);
    if (slot.chunk == 0) continue;
    const auto r = static_cast<std::size_t>(slot.request);
    const bool samples = slot.computed + slot.chunk == slot.known;
    sampled += samples ? 1 : 0;
    if (in_.results.first_scheduled[r] < 0) in_.results.first_scheduled[r] = start;
    if (slot.kind != MemberKind::kContinued) {
      slot.admitted = start;
      slot.transfer_before = transfer_total_;
      slot.interference_before = group_->interference;
      if (slot.kind == MemberKind::kResumed) CountWait(slot);
    }
    if (slot.catches_up) {
      if (staged()) slot.interference_before = group_->interference;
      ++shape.decode_seqs;
      shape.decode_context_tokens += slot.computed;
      shape.decode_kv_blocks += kv_.BlocksFor(slot.computed + 1);
    } else {
      chunks_.push_back({slot.chunk, slot.computed, in_.requests.prompt_tokens[r], samples});
    }
  }
  shape.prefill = chunks_;
  if (chunks_.size() > 1) {
    CountPadding();
  } else if (!chunks_.empty()) {
    counts_.prefill_tokens += chunks_[0].tokens;
  }
  const StepPrice price =
      staged() ? pipeline_->Enter(shape, start, gc_due_) : in_.latency.Price(shape);
  transfer_ = prices_transfers_ || staged() ? 0 : std::min(transfer_, kMaxStepNs - price.duration);
  Batch& batch = NewBatch();
  if (in_.observer != nullptr) ObserveSchedule(batch.record);
  batch.end = device_free_ = start + price.duration + gc_due_;
  gc_due_ = 0;
  if (staged()) batch.end = pipeline_->end(), device_free_ = pipeline_->free();
  batch.bound = price.bound;
  if (transfer_ > 0) {  // what is loaded has to be there before the step computes
    batch.end = device_free_ += transfer_;
    transfer_total_ += transfer_;
    if (transfer_ > price.duration) batch.bound = StepBound::kOverhead;
  }
  batch.blocked = plan.blocked;
  batch.levels = {running_,
                  kv_.used(),
                  in_.engine.max_num_batched_tokens - plan.budget,
                  shape.decode_context_tokens + shape.decode_seqs,
                  UnusedBeside() + group_->unused(),
                  CountStepDelays(start)};
  batch.decodes = group_->size();
  batch.sampled = batch.made = sampled;
  if (!chunks_.empty()) CountPrefillWork(batch, price, shape);
  if (sampled > 0) NoteToken();
  EndDecodes(batch);
  AdvancePrefills(batch);
  if (!staged()) return;
  if (in_.observer != nullptr) batch.record.stages = pipeline_->spans();
  ChooseFreeGroup();
}

// What the step's prefills would compute in vain if each were padded to the longest of its bucket.
void Replica::CountPadding() {
  padded_.clear();
  for (const PrefillChunk& chunk : chunks_) {
    padded_.emplace_back(policy_.BucketOf(chunk.prompt), chunk.tokens);
  }
  std::make_heap(padded_.begin(), padded_.end());
  std::pair<double, std::int64_t> longest = padded_.front();
  for (; !padded_.empty(); padded_.pop_back()) {  // of each bucket the longest first
    std::pop_heap(padded_.begin(), padded_.end());
    const auto [bucket, tokens] = padded_.back();
    if (bucket != longest.first) longest = padded_.back();
    counts_.prefill_tokens += tokens;
    counts_.padding_tokens += longest.second - tokens;
  }
}

// Every decode makes a token; those whose last it is leave the decodes.
void Replica::EndDecodes(Batch& batch) {
  DecodeGroup& group = *group_;
  batch.group = &group;
  if (staged()) batch.before = group.end;
  group.end = batch.end;
  group.Step();
  while (group.HasEnded()) {
    const SlotId id = group.Ended();
    Slot& slot = SlotAt(id);
    CountDecode(slot, group);
    LeaveDecodes(id);
    slot.phase = Phase::kEnding;
    ++endings_;
    batch.last.push_back({slot.request, id, slot.admission, 0, 0});
  }
}

void Replica::AdvancePrefills(Batch& batch) {
  std::size_t kept = 0;
  std::int64_t joined = 0;
  const std::size_t decodes_ended = batch.last.size();
  for (const SlotId id : prefills_) {
    Slot& slot = SlotAt(id);
    slot.decodes_before += joined;
    slot.computed += slot.chunk;
    if (slot.chunk > 0) {
      slot.kind = MemberKind::kContinued;
      slot.busy_until = batch.end;
    }
    if (slot.computed < slot.known) {
      prefills_[kept++] = id;
      continue;
    }
    // The token after all known ones.
    const auto r = static_cast<std::size_t>(slot.request);
    const Output output{slot.request, id, slot.admission,
                        static_cast<std::int32_t>(slot.known - in_.requests.prompt_tokens[r] + 1),
                        last_token_[r]};
    batch.first.push_back(output);
    if (!slot.catches_up || output.generated == 1) CountPrefill(slot, batch.end);
    slot.joined_with = slot.computed;
    slot.catches_up = false;
    if (output.generated == OutputLimit(slot.request)) {
      CountDecode(slot, *group_);  // if it caught up
      slot.phase = Phase::kEnding;
      ++endings_;
      batch.last.push_back(output);
    } else {
      JoinDecodes(id);
      ++joined;
    }
  }
  prefills_.resize(kept);
  if (decodes_ended == 0 || batch.last.size() == decodes_ended) return;
  // Both parts are in running order.
  const auto middle = batch.last.begin() + static_cast<std::ptrdiff_t>(decodes_ended);
  merged_.resize(batch.last.size());
  std::merge(batch.last.begin(), middle, middle, batch.last.end(), merged_.begin(),
             [](const Output& a, const Output& b) { return a.admission < b.admission; });
  batch.last.swap(merged_);
}

// The oldest batch is done: its tokens reach their clients, the finished leave.
void Replica::Apply() {
  Batch& batch = Oldest();
  now_ = std::max(now_, batch.end);
  const bool hidden = hides_tokens();
  if (staged()) {
    RecordStaged(batch);
  } else {
    in_.recorder.Step(batch.start, batch.end, batch.levels, hidden ? 0 : batch.sampled, batch.bound,
                      batch.blocked, batch.prefill);
  }
  if (batch.decodes > 0) {
    in_.recorder.InterTokenGap(batch.end, batch.end - batch.before + token_delay_, batch.decodes);
  }
  for (const Output& output : batch.first) {
    const auto r = static_cast<std::size_t>(output.request);
    if (in_.results.state[r] == RequestState::kTimedOut || hidden) continue;
    if (LosesToken(output.request)) continue;
    in_.results.generated[r] = output.generated;
    if (output.generated == 1) {
      if (delivery_delay_ > 0) in_.results.SetLate(r, batch.made * delivery_delay_);
      const TimeNs seen = batch.end + token_delay_ + in_.results.Late(r);
      if (!in_.inbox.GaveUpBefore(output.request, seen)) in_.results.first_token[r] = seen;
    } else {
      in_.recorder.InterTokenGap(batch.end, batch.end - output.previous + token_delay_, 1);
    }
  }
  for (const Output& output : batch.last) Finish(output, batch.end);
  if (in_.observer != nullptr) ObserveStep(batch);
  first_batch_ = (first_batch_ + 1) % batches_.size();
  --in_flight_;
  if (batch.group != group_) ChooseAppliedGroup(batch.group);
}

// ---- Many steps at once --------------------------------------------------------------------

// Steps of the present batch of decodes, up to the first that finishes one; 0 when a schedule call
// could change the batch now. Requires: decodes only, and CanSchedule().
std::int64_t Replica::DecodeRun(std::int64_t max_steps) {
  DecodeGroup& group = *group_;
  BlockedBy blocked = BlockedBy::kNothing;
  if (!arrived_.empty()) {
    if (running_ < seats_) return 0;
    blocked = BlockedBy::kSeats;
  }
  if (queue_.size() > 0) {
    blocked = HeadBlockedBy(Free() - group.due(), in_.engine.max_num_batched_tokens - group.size());
    if (blocked == BlockedBy::kNothing) return 0;
    if (blocked == BlockedBy::kKvBlocks && garbage_ > 0) return 0;
    // A cached block that no request holds costs a first chunk more than a lost one, and a whole
    // prompt more than its copy that one holds: the decodes may take it and so let the head in.
    // What it finds in the tiers may be lost or become more by what the decodes overwrite.
    const bool may_gain = !in_.engine.scheduler_reserve_full_isl || hit_.copied;
    const bool may_lose = hit_.idle > 0 || hit_.stored > 0;
    if (blocked == BlockedBy::kKvBlocks && may_lose && may_gain) return 0;
    // So a prompt that a step takes whole or not at all may begin to fit it, or no longer.
    const bool whole = kv_.tiered() && !in_.engine.enable_chunked_prefill;
    if (whole && blocked != BlockedBy::kSeats) return 0;
  }
  const bool closed = running_ >= seats_ || (blocked != BlockedBy::kNothing && !queue_.by_key());
  const std::int64_t last_step = group.last_step(), garbage = garbage_;
  TimeNs next_enqueue = in_.inbox.NextEnqueue();
  TimeNs stop = std::min(in_.inbox.NextTimeout(), in_.inbox.until());
  std::int64_t ran = 0;
  bool finishing = false;
  const std::int64_t unused_beside = UnusedBeside();
  while (ran < max_steps && !finishing && now_ < stop && StartTime() < in_.horizon) {
    if (next_enqueue <= now_) {
      if (!closed) break;
      Deliver();
      next_enqueue = in_.inbox.NextEnqueue();
      stop = std::min(in_.inbox.NextTimeout(), in_.inbox.until());
      if (stop <= now_) break;
      if (blocked == BlockedBy::kNothing && queue_.size() > 0) blocked = BlockedBy::kSeats;
    }
    const std::int64_t blocks = group.due();
    if (blocks + garbage > kv_.free()) break;
    kv_.Take(blocks, now_);
    SmoothPreemptions(0);
    BatchShape shape = group.shape();
    shape.preemption_ema = load_.preemption_ema;
    const StepPrice price = in_.latency.Price(shape);
    Batch& batch = NewBatch();
    if (in_.observer != nullptr) {
      preempted_.clear();
      transfer_ = 0;
      ObserveSchedule(batch.record);
    }
    batch.end = device_free_ = batch.start + price.duration;
    batch.bound = price.bound;
    batch.blocked = blocked;
    batch.levels = {running_,
                    kv_.used(),
                    group.size(),
                    group.context() + group.size(),
                    unused_beside + group.unused(),
                    group.size()};
    if (blocked == BlockedBy::kKvBlocks) in_.recorder.BlocksRefused(1);
    batch.decodes = batch.sampled = group.size();
    finishing = group.step() == last_step;
    EndDecodes(batch);
    NoteToken();
    ++ran;
    if (in_flight_ == batches_.size()) Apply();
  }
  return ran;
}

// ---- Moves of one request ------------------------------------------------------------------

void Replica::JoinDecodes(SlotId id) {
  Slot& slot = SlotAt(id);
  const auto r = static_cast<std::size_t>(slot.request);
  const std::int64_t generated = slot.computed + 1 - in_.requests.prompt_tokens[r];
  slot.phase = Phase::kDecode;
  slot.group = group_;
  slot.ahead =
      group_->Join(id, slot.computed, OutputLimit(slot.request) - generated, slot.admission);
}

// The caller says what it is now.
void Replica::LeaveDecodes(SlotId id) {
  Slot& slot = SlotAt(id);
  slot.computed = ComputedNow(slot);
  slot.busy_until = slot.group->end;
  slot.group->Leave(id, slot.ahead);
  CountDecodesBefore(slot.admission, -1);
}

void Replica::LeavePrefills(SlotId id) {
  prefills_.erase(std::find(prefills_.begin(), prefills_.end(), id));
}

// The last token's KV is never written: blocks are those of all tokens but it.
void Replica::Finish(const Output& output, TimeNs end) {
  const auto r = static_cast<std::size_t>(output.request);
  RequestState& state = in_.results.state[r];
  if (state == RequestState::kTimedOut) return;
  if (HandsOver(output.request)) return HandOn(output, end);
  if (state == RequestState::kQueued) {  // preempted with its last token in flight
    queue_.DropOne();
    ++left_queue_;
  } else {
    Slot& slot = SlotAt(output.slot);
    --endings_;
    const std::int64_t free = kv_.free();
    kv_.Release(slot.holding, slot.request, kv_.BlocksFor(slot.computed), slot.computed,
                in_.inbox.HasNextTurn(output.request));
    LeaveGarbage(free);
    RemoveFromRunning(output.slot);
  }
  const std::int64_t generated = OutputLimit(output.request);
  in_.results.generated[r] = static_cast<std::int32_t>(generated);
  if (in_.observer != nullptr) Oldest().record.finished.push_back(output.request);
  // Absurd delays end with the clock.
  const auto seen = static_cast<TimeNs>(std::min(
      WideInt{end} + WideInt{generated} * token_delay_ + in_.results.Late(r), WideInt{kNever}));
  if (in_.inbox.GaveUpBefore(output.request, seen)) {
    state = RequestState::kTimedOut;
    ++timed_out_;
    in_.inbox.GaveUp(output.request, end);
    return;
  }
  in_.results.completion[r] = seen;
  state = RequestState::kCompleted;
  ++completed_;
  length_capped_ += generated < in_.requests.output_tokens[r] ? 1 : 0;
  in_.inbox.Answered(output.request, end);
}

// ---- Time-outs -----------------------------------------------------------------------------

// Clients that gave up by now; between two steps, as an engine hears of it. True when one may have
// sent another request at once.
bool Replica::GiveUp() {
  const std::int64_t before = timed_out_;
  while (in_.inbox.NextTimeout() <= now_) Abort(in_.inbox.TakeTimeout());
  return timed_out_ > before && in_.inbox.InLoop();
}

void Replica::Abort(RequestId request) {
  const auto r = static_cast<std::size_t>(request);
  if (in_.results.state[r] == RequestState::kQueued) {
    if (!GiveUpTransfer(request)) queue_.DropOne();
    in_.recorder.Waiting(now_, Waiting());
    if (!held_.empty()) AbortHeld(request);
  } else if (in_.results.state[r] == RequestState::kRunning) {
    const SlotId id = slot_of_[r];
    Slot& slot = SlotAt(id);
    const bool in_flight = slot.phase != Phase::kPrefill && InFlight(slot);
    const std::int64_t computed = ComputedNow(slot);
    if (slot.phase != Phase::kPrefill) {
      in_.results.generated[r] = static_cast<std::int32_t>(
          computed + 1 - in_.requests.prompt_tokens[r] - (in_flight ? 1 : 0));
    }
    if (in_flight) {  // its token is made, but no client reads it
      const bool decoded = computed > slot.joined_with;
      if (staged()) {
        TakeFromBatch(BusyUntil(slot), decoded);
      } else {
        --Newest().sampled;
        if (decoded) --Newest().decodes;
      }
    }
    if (slot.phase == Phase::kDecode) {
      LeaveDecodes(id);
    } else if (slot.phase == Phase::kPrefill) {
      LeavePrefills(id);
    } else {
      --endings_;
    }
    const std::int64_t free = kv_.free();
    ReleaseBlocks(slot, 0, false);
    LeaveGarbage(free);
    RemoveFromRunning(id);
  }
  in_.results.state[r] = RequestState::kTimedOut;
  ++timed_out_;
  in_.inbox.GaveUp(request, now_);
}

// ---- Running list --------------------------------------------------------------------------

Replica::SlotId Replica::AddToRunning(RequestId request) {
  const SlotId id = free_slots_.back();
  free_slots_.pop_back();
  const auto r = static_cast<std::size_t>(request);
  Slot& slot = SlotAt(id);
  slot.request = request;
  slot.previous = last_;
  slot.next = kNoSlot;
  slot.admission = admissions_++;
  slot.granted_call = -1;
  slot.busy_until = 0;
  slot.priority = policy_.PriorityOf(request);
  slot.phase = Phase::kPrefill;
  slot.catches_up = false;
  slot.kind = in_.results.preemptions[r] > 0 ? MemberKind::kResumed : MemberKind::kNew;
  (last_ == kNoSlot ? first_ : SlotAt(last_).next) = id;
  last_ = id;
  ++running_;
  SERVECAST_CHECK(running_ <= seats_, "I7: at most max_num_seqs requests run");
  in_.results.state[r] = RequestState::kRunning;
  if (!slot_of_.empty()) slot_of_[r] = id;
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
  for (const SlotId id : prefills_) {
    if (SlotAt(id).admission > admission) SlotAt(id).decodes_before += change;
  }
}

std::int64_t Replica::AnswerLimit(RequestId request) const {
  const auto r = static_cast<std::size_t>(request);
  return std::min<std::int64_t>(in_.requests.output_tokens[r],
                                in_.max_model_len - in_.requests.prompt_tokens[r]);
}

SchedulerCounts Replica::counts() const {
  SchedulerCounts counts = counts_;
  if (staged()) counts.stage_busy_ns = pipeline_->busy_ns();
  return counts;
}

const PrefixCacheReport& Replica::prefix_cache() {
  prefix_cache_.evicted_blocks = kv_.Evicted();
  return prefix_cache_;
}

KvOffloadReport Replica::kv_offload() const {
  KvOffloadReport report = kv_.OffloadReport();
  for (std::size_t i = 0; i < kKvTiers; ++i) {
    report.tiers[i].hit_blocks = tier_hits_[i];
    report.tiers[i].hit_tokens = tier_hits_[i] * kv_.block_size();
  }
  report.transfer_ns = transfer_total_;
  return report;
}

void Replica::WriteProgress(std::vector<std::int32_t>& generated) const {
  for (SlotId id = first_; id != kNoSlot; id = SlotAt(id).next) {
    const Slot& slot = SlotAt(id);
    if (slot.phase == Phase::kPrefill) continue;
    const auto r = static_cast<std::size_t>(slot.request);
    generated[r] = static_cast<std::int32_t>(ComputedNow(slot) + 1 - in_.requests.prompt_tokens[r] -
                                             (InFlight(slot) ? 1 : 0));
  }
}

// ---- For an observer -----------------------------------------------------------------------

void Replica::ObserveSchedule(StepRecord& record) {
  record.replica = in_.number;
  record.scheduled = now_;
  record.members.clear();
  record.finished.clear();
  record.preempted = preempted_;
  record.transfer = transfer_;
  record.interference = record.prefill_tokens = 0;
  for (SlotId id = first_; id != kNoSlot; id = SlotAt(id).next) {
    const Slot& slot = SlotAt(id);
    if (slot.phase == Phase::kDecode && slot.group == group_) {
      record.members.push_back({slot.request, 1, ComputedNow(slot), MemberKind::kContinued, true});
    } else if (slot.phase == Phase::kPrefill && slot.chunk > 0) {
      record.members.push_back({slot.request, slot.chunk, slot.computed, slot.kind,
                                slot.computed + slot.chunk == slot.known});
    }
  }
  record.free_after_schedule = kv_.free();
  record.used_after_schedule = kv_.used();
  record.running_after_schedule = running_;
  record.waiting_after_schedule = Waiting();
}

void Replica::ObserveStep(Batch& batch) {
  StepRecord& record = batch.record;
  record.index = in_.recorder.steps() - 1;
  record.start = batch.start;
  record.bound = batch.bound;
  record.end = batch.end;
  record.free_after_step = kv_.free();
  record.running_after_step = running_;
  record.waiting_after_step = Waiting();
  in_.observer->OnStep(record);
}

}  // namespace servecast
