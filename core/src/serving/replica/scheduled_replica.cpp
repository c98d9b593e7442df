// Batches are formed one at a time by the scheduler, at a cost proportional to their members, but
// for runs of decodes: while all that are admitted decode, none ends, and the scheduler foresees
// that none can be admitted, batches are steps of one group (decode_group.h). So a run looks at
// its members as it begins and as it ends (DecodeRun). An observer is shown every batch, so with
// one there are no runs; the result is the same.
//
// tests/testing/scheduled_reference says the same the naive way; the differential test says they
// agree.
#include "serving/replica/scheduled_replica.h"

#include <algorithm>

namespace servecast {

ScheduledReplica::ScheduledReplica(const ReplicaInput& input)
    : in_(input),
      setup_(*input.setup),
      scheduler_(setup_.entry->make()),
      state_(setup_.limits),
      job_of_(input.scratch.slot),
      steps_(static_cast<std::size_t>(setup_.limits.stages)),
      token_delay_(input.latency.OutputTokenDelay()),
      delivery_delay_(input.latency.DeliveryDelay()),
      run_(setup_.limits.block_size) {
  in_.horizon = std::min(in_.horizon, kClockEnd);
  if (in_.stages != nullptr) pipeline_.emplace(*in_.stages);
}

bool ScheduledReplica::Advance(std::int64_t max_steps) {
  for (std::int64_t steps = 0; steps < max_steps;) {
    const TimeNs until = in_.inbox.until();
    if (Idle()) {
      const TimeNs next = in_.inbox.NextEnqueue();
      if (next >= until && until != kNever) return true;
      if (next >= in_.horizon) return Close();  // kNever included
      now_ = std::max(now_, next);
    }
    if (!settled_) {
      if (now_ >= until) return false;
      woken_ = kNever;
      Deliver();
      if (GiveUp()) {
        if (now_ >= in_.inbox.until()) return false;
        Deliver();
      }
      if (Idle()) continue;
      if (CanForm()) {
        const std::int64_t ran = DecodeRun(max_steps - steps);
        steps += ran;
        if (ran > 0) continue;
        if (Form()) {
          ++steps;
          continue;
        }
        const bool stuck = in_flight_ == 0 && !setup_.limits.as_vidur;
        SERVECAST_CHECK(!stuck || expected_ > 0 || !withheld_.empty(),
                        "I8: with work and nothing in flight there is a batch");
      }
      settled_ = true;
    }
    const TimeNs next = NextEvent(), limit = in_.inbox.until();
    if (in_flight_ == 0 && next >= limit && limit != kNever) return true;
    if (in_flight_ == 0 && (next >= in_.horizon || now_ >= in_.horizon)) return Close();
    if (next > limit && CanForm()) return false;  // one may be sent that comes before
    now_ = std::max(now_, next);
    settled_ = false;
    while (in_flight_ > 0 && Oldest().end <= now_) Apply();
  }
  return false;
}

bool ScheduledReplica::Idle() const {
  return in_flight_ == 0 && state_.parked.empty() && queued() == 0;
}

// The run is over. What is enqueued before the clock stops waits until then, though for nothing.
bool ScheduledReplica::Close() {
  if (in_.horizon != kClockEnd) {
    now_ = std::max(now_, in_.horizon);
    Deliver();
  }
  return true;
}

// When a batch ends or, while another may be formed, a request or its KV comes, or blocks are given
// back; without a batch also when a client gives up.
TimeNs ScheduledReplica::NextEvent() const {
  if (in_flight_ == 0) {
    return std::min({in_.inbox.NextEnqueue(), woken_, in_.inbox.NextTimeout()});
  }
  const TimeNs end = Oldest().end;
  return CanForm() ? std::min({end, in_.inbox.NextEnqueue(), woken_}) : end;
}

void ScheduledReplica::Deliver() {
  for (TimeNs time = in_.inbox.NextEnqueue(); time <= now_; time = in_.inbox.NextEnqueue()) {
    Enqueue(in_.inbox.TakeNext(), time);
  }
}

void ScheduledReplica::Enqueue(RequestId request, TimeNs time) {
  const auto r = static_cast<std::size_t>(request);
  const std::int64_t prompt = in_.requests.prompt_tokens[r];
  const std::int64_t room = in_.max_model_len - prompt;
  const std::int64_t output = std::min<std::int64_t>(in_.requests.output_tokens[r], room);
  Job job;
  job.arrival = in_.requests.arrival[r];
  job.prompt = prompt;
  job.declared =
      prompt + (setup_.limits.as_vidur ? output : std::min(setup_.declared_output, room));
  Seat seat{request, prompt + output};
  if (in_.role == PoolRole::kPrefill) seat.total = job.declared = prompt + 1;
  if (in_.role == PoolRole::kDecode) AddRemote(request, job, seat);
  const JobIndex index = state_.Add(job);
  seats_.resize(std::max(seats_.size(), static_cast<std::size_t>(index) + 1));
  SeatOf(index) = seat;
  if (!job_of_.empty()) job_of_[r] = index;
  in_.results.state[r] = RequestState::kQueued;
  in_.inbox.Enqueued(request);
  in_.recorder.Waiting(time, queued());
}

// ---- A batch -------------------------------------------------------------------------------

bool ScheduledReplica::Form() {
  Step& step = Free();
  step.members.clear();
  state_.restarted.clear();
  state_.blocked = BlockedBy::kNothing;
  const std::size_t under_way = state_.under_way.size();
  scheduler_->Form(state_, step.members);
  if (state_.blocked == BlockedBy::kKvBlocks) in_.recorder.BlocksRefused(1);
  in_.recorder.BlocksRefused(static_cast<std::int64_t>(state_.restarted.size()));
  CountRestarts();
  if (in_.role == PoolRole::kDecode) {
    SendForKv(under_way);
    ResumeFresh(step.members);
  }
  in_.recorder.Waiting(now_, queued());
  if (step.members.empty()) return false;
  Launch(step);
  ++in_flight_;
  return true;
}

void ScheduledReplica::CountRestarts() {
  for (const SchedulerState::Restarted& restarted : state_.restarted) {
    Seat& seat = SeatOf(restarted.job);
    if (seat.fresh) LoseFresh(seat);
    const auto r = static_cast<std::size_t>(seat.request);
    ++in_.results.preemptions[r];
    in_.results.state[r] = RequestState::kQueued;
    in_.results.generated[r] = Generated(restarted.job);
    in_.recorder.Preempted(now_);
    Setbacks& s = in_.results.SetbacksOf(r);
    if (!restarted.prefilled && seat.last_token >= 0) s.recompute += now_ - seat.admitted;
    s.preempted_at = now_;
  }
  if (!state_.restarted.empty()) state_.blocked = BlockedBy::kKvBlocks;
}

// Sends a batch through the stages.
void ScheduledReplica::Launch(Step& step) {
  BatchShape shape;
  chunks_.clear();
  step.start = StartTime();
  for (const BatchMember& member : step.members) {
    const Job& job = state_.job(member.job);
    Seat& seat = SeatOf(member.job);
    seat.in_flight = true;
    state_.Store(member.job, member.tokens);
    if (seat.last_step >= 0) in_.recorder.StepDelay(step.start, step.start - seat.last_step, 1);
    if (job.prefilled()) {
      ++shape.decode_seqs;
      shape.decode_context_tokens += job.processed - 1;
      continue;
    }
    const auto r = static_cast<std::size_t>(seat.request);
    if (job.processed == 0) {
      seat.admitted = step.start;
      in_.results.state[r] = RequestState::kRunning;
      if (in_.results.first_scheduled[r] < 0) in_.results.first_scheduled[r] = step.start;
      if (in_.results.preemptions[r] > 0) {
        Setbacks& s = in_.results.SetbacksOf(r);
        s.preempted += step.start - s.preempted_at;
        if (seat.last_token < 0) s.preempted_to_first = s.preempted;
      }
    }
    chunks_.push_back({member.tokens, job.processed, in_.requests.prompt_tokens[r],
                       job.processed + member.tokens == job.prompt});
  }
  shape.prefill = chunks_;
  step.sampled = shape.decode_seqs;
  step.blocked = state_.blocked;
  if (in_.observer != nullptr) Observe(step);
  TimeNs alone = 0;  // the decodes' times in all stages
  if (!chunks_.empty() && shape.decode_seqs > 0) {
    BatchShape decodes = shape;
    decodes.prefill = {};
    alone = PriceOf(decodes).duration;
  }
  const StepPrice price =
      pipeline_ ? pipeline_->Enter(shape, step.start, 0) : in_.latency.Price(shape);
  step.end = pipeline_ ? pipeline_->end() : step.start + price.duration;
  step.bound = price.bound;
  if (pipeline_ && in_.observer != nullptr) step.record.stages = pipeline_->spans();
  step.levels = {running(), kv_blocks_used(), shape.decode_seqs,
                 shape.decode_context_tokens + shape.decode_seqs,
                 Unused(state_.used(), state_.stored())};
  load_ = {running(), kv_blocks_used()};
  step.prefill = {};
  if (!chunks_.empty()) CountPrefills(step, shape, std::max<TimeNs>(0, price.duration - alone));
}

// A batch with prefills: their work, and by how much they made decodes wait: those beside them, and
// those that a batch of prompts alone keeps parked. What delays the first token is not counted.
void ScheduledReplica::CountPrefills(Step& step, const BatchShape& shape, TimeNs interference) {
  std::int64_t tokens = 0, longest = 0;
  for (const PrefillChunk& chunk : chunks_) {
    step.prefill.pairs += chunk.tokens * chunk.context + chunk.tokens * (chunk.tokens + 1) / 2;
    step.prefill.keys += chunk.context + chunk.tokens;
    step.sampled += chunk.samples ? 1 : 0;
    tokens += chunk.tokens;
    longest = std::max(longest, chunk.tokens);
  }
  counts_.prefill_tokens += tokens;
  counts_.padding_tokens += longest * static_cast<std::int64_t>(chunks_.size()) - tokens;
  step.levels.batch_tokens += tokens;
  step.prefill.without_head = step.sampled > 0 ? 0 : kStepUnit;
  step.record.prefill_tokens = tokens;
  const auto waits = [&](JobIndex index) {
    if (!state_.job(index).prefilled() || SeatOf(index).last_token < 0) return;
    in_.results.interference[static_cast<std::size_t>(SeatOf(index).request)] += interference;
  };
  if (shape.decode_seqs > 0) {
    step.record.interference = interference;
    for (const BatchMember& member : step.members) waits(member.job);
  } else if (!pipeline_) {
    for (const JobIndex index : state_.parked) {
      if (!SeatOf(index).fresh) waits(index);
    }
  }
}

// The oldest batch is done: its tokens reach their clients, the finished leave.
void ScheduledReplica::Apply() {
  Step& step = Oldest();
  const bool hidden = HidesTokens();
  if (hidden) step.sampled = 0;
  // With stages batches overlap: each is recorded from the end of the one before.
  in_.recorder.Step(std::max(step.start, recorded_until_), step.end, step.levels, step.sampled,
                    step.bound, step.blocked, step.prefill);
  recorded_until_ = step.end;
  for (const BatchMember& member : step.members) {
    Job& job = state_.job(member.job);
    Seat& seat = SeatOf(member.job);
    const auto r = static_cast<std::size_t>(seat.request);
    seat.in_flight = seat.fresh = false;
    seat.last_step = step.end;
    const bool decodes = job.prefilled();
    job.processed += member.tokens;
    if (decodes || job.processed == job.prompt) {  // makes a token
      job.processed += decodes ? 0 : 1;
      if (seat.last_token < 0) {
        if (!hidden) {
          if (delivery_delay_ > 0) in_.results.SetLate(r, step.sampled * delivery_delay_);
          const TimeNs seen = step.end + token_delay_ + in_.results.Late(r);
          if (!in_.inbox.GaveUpBefore(seat.request, seen)) in_.results.first_token[r] = seen;
        }
      } else {
        CountGap(step.end, step.end - seat.last_token + token_delay_, 1);
        if (!decodes) in_.results.SetbacksOf(r).recompute += step.end - seat.admitted;
      }
      seat.last_token = step.end;
    }
    const bool over = job.processed == seat.total;
    if (over && !HandsOver(seat.request)) {
      Finish(member.job, step.end);
    } else if (over && !seat.gave_up) {
      HandOn(member.job, step.end);
    } else {
      state_.parked.push_back(member.job);
      if (seat.gave_up) Abort(seat.request, member.job);
    }
  }
  CountGap(0, 0, 0);
  if (in_.observer != nullptr) {
    StepRecord& record = step.record;
    record.index = in_.recorder.steps() - 1;
    record.start = step.start;
    record.end = step.end;
    record.bound = step.bound;
    record.free_after_step = setup_.limits.blocks - state_.used();
    record.running_after_step = running();
    record.waiting_after_step = queued();
    in_.observer->OnStep(record);
  }
  first_step_ = (first_step_ + 1) % steps_.size();
  --in_flight_;
}

void ScheduledReplica::Finish(JobIndex index, TimeNs end) {
  const Seat seat = SeatOf(index);
  const auto r = static_cast<std::size_t>(seat.request);
  const std::int64_t generated = seat.total - in_.requests.prompt_tokens[r];
  in_.results.generated[r] = static_cast<std::int32_t>(generated);
  state_.End(index);
  SeatOf(index).request = kNoRequest;
  if (in_.observer != nullptr) Oldest().record.finished.push_back(seat.request);
  // Absurd delays end with the clock.
  const auto seen = static_cast<TimeNs>(std::min(
      WideInt{end} + WideInt{generated} * token_delay_ + in_.results.Late(r), WideInt{kNever}));
  if (in_.inbox.GaveUpBefore(seat.request, seen)) {
    in_.results.state[r] = RequestState::kTimedOut;
    ++timed_out_;
    in_.inbox.GaveUp(seat.request, end);
    return;
  }
  in_.results.completion[r] = seen;
  in_.results.state[r] = RequestState::kCompleted;
  ++completed_;
  length_capped_ += generated < in_.requests.output_tokens[r] ? 1 : 0;
  in_.inbox.Answered(seat.request, end);
}

// ---- Many batches at once ------------------------------------------------------------------

// Batches of all parked decodes, up to the last before one ends.
std::int64_t ScheduledReplica::DecodeRun(std::int64_t max_steps) {
  if (pipeline_ || in_.observer != nullptr || state_.parked.empty()) return 0;
  if (!state_.arrived.empty()) return 0;
  DecodeForecast forecast;
  if (!PrepareRun(forecast)) return 0;
  const auto decodes = static_cast<std::int64_t>(state_.parked.size());
  const std::int64_t most = std::min(forecast.most, max_steps);
  const std::int64_t spare = setup_.limits.as_vidur ? 1 : 0;
  TimeNs next_enqueue = in_.inbox.NextEnqueue();
  TimeNs stop = std::min(in_.inbox.NextTimeout(), in_.inbox.until());
  std::int64_t ran = 0, taken = 0;
  BlockedBy blocked = forecast.blocked;
  while (ran < most && now_ < stop && now_ < in_.horizon) {
    if (next_enqueue <= now_) {
      if (!forecast.closed) break;
      Deliver();
      next_enqueue = in_.inbox.NextEnqueue();
      stop = std::min(in_.inbox.NextTimeout(), in_.inbox.until());
      if (stop <= now_) break;
      if (state_.waiting() > 0 && blocked == BlockedBy::kNothing) blocked = forecast.comers_blocked;
    }
    const std::int64_t grow = forecast.grows ? run_.due() : 0;
    if (!state_.Fits(taken + grow + (forecast.grows ? spare : 0))) break;
    taken += grow;
    BatchShape shape = run_.shape();
    shape.decode_kv_blocks = 0;  // as in Launch
    const StepPrice price = in_.latency.Price(shape);
    const TimeNs end = now_ + price.duration;
    run_.Step();
    const std::int64_t used = state_.used() + taken;
    in_.recorder.Step(now_, end,
                      {running(), CeilDiv(used, setup_.report_block), decodes, run_.context(),
                       Unused(used, state_.stored() + (ran + 1) * decodes), ran == 0 ? 0 : decodes},
                      decodes, price.bound, blocked);
    if (blocked == BlockedBy::kKvBlocks) in_.recorder.BlocksRefused(1);
    if (ran == 0) {
      for (const JobIndex index : state_.parked) {
        in_.recorder.StepDelay(now_, now_ - SeatOf(index).last_step, 1);
        CountGap(end, end - SeatOf(index).last_token + token_delay_, 1);
      }
      CountGap(0, 0, 0);
    } else {
      in_.recorder.InterTokenGap(end, price.duration + token_delay_, decodes);
    }
    now_ = end;
    ++ran;
  }
  if (ran == 0) return 0;
  for (const JobIndex index : state_.parked) {
    Job& job = state_.job(index);
    job.processed += ran;
    SeatOf(index).last_token = SeatOf(index).last_step = now_;
    state_.Store(index, ran);
    if (!forecast.grows) continue;
    state_.Take(index, CeilDiv(job.processed - 1, setup_.limits.block_size) - job.blocks);
  }
  scheduler_->Decoded(ran);
  recorded_until_ = now_;
  load_ = {running(), kv_blocks_used()};
  return ran;
}

// False: the next batch is to be formed as any other. Sets what a run goes by.
bool ScheduledReplica::PrepareRun(DecodeForecast& forecast) {
  std::int64_t least_left = INT64_MAX;
  for (const JobIndex index : state_.parked) {
    const Job& job = state_.job(index);
    const Seat& seat = SeatOf(index);
    if (!job.prefilled() || seat.fresh || seat.total - job.processed <= 1) return false;
    least_left = std::min(least_left, seat.total - job.processed);
  }
  forecast = scheduler_->Forecast(state_);
  forecast.most = std::min(forecast.most, least_left - 1);
  if (forecast.most <= 0) return false;
  run_.Clear();
  for (const JobIndex index : state_.parked) run_.Join(state_.job(index).processed - 1);
  return true;
}

// Gaps of one length become one sample. Without tokens: there are no more of this batch.
void ScheduledReplica::CountGap(TimeNs end, TimeNs gap, std::int64_t tokens) {
  if (gap_.tokens > 0 && (tokens == 0 || gap != gap_.gap)) {
    in_.recorder.InterTokenGap(gap_.end, gap_.gap, gap_.tokens);
    gap_.tokens = 0;
  }
  gap_ = {end, gap, gap_.tokens + tokens};
}

// ---- Time-outs -----------------------------------------------------------------------------

// Clients that gave up by now; an engine hears of it between two batches of theirs. True when one
// may have sent another request at once.
bool ScheduledReplica::GiveUp() {
  const std::int64_t before = timed_out_;
  while (in_.inbox.NextTimeout() <= now_) {
    const RequestId request = in_.inbox.TakeTimeout();
    const JobIndex index = job_of_[static_cast<std::size_t>(request)];
    if (SeatOf(index).in_flight) {
      SeatOf(index).gave_up = true;
    } else {
      Abort(request, index);
    }
  }
  return timed_out_ > before && in_.inbox.InLoop();
}

// Of a request that waits or is parked.
void ScheduledReplica::Abort(RequestId request, JobIndex index) {
  const auto r = static_cast<std::size_t>(request);
  in_.results.generated[r] = Generated(index);
  if (state_.job(index).blocks > 0) {
    AbortAdmitted(request, index);
  } else {
    state_.LeaveQueue(index);
    in_.recorder.Waiting(now_, queued());
    if (state_.job(index).remote) {
      in_.inbox.Report({Inbox::HandOverEvent::Kind::kAbandoned, request, now_});
    }
  }
  SeatOf(index).request = kNoRequest;
  in_.results.state[r] = RequestState::kTimedOut;
  ++timed_out_;
  in_.inbox.GaveUp(request, now_);
}

SchedulerCounts ScheduledReplica::counts() const {
  SchedulerCounts counts = counts_;
  if (pipeline_) counts.stage_busy_ns = pipeline_->busy_ns();
  return counts;
}

// ---- For others ----------------------------------------------------------------------------

std::int32_t ScheduledReplica::Generated(JobIndex index) const {
  if (HidesTokens()) return 0;
  const Job& job = state_.job(index);
  const RequestId request = seats_[static_cast<std::size_t>(index)].request;
  const std::int64_t known = job.prefilled() ? job.processed : job.prompt;
  const std::int64_t prompt = in_.requests.prompt_tokens[static_cast<std::size_t>(request)];
  return static_cast<std::int32_t>(std::max<std::int64_t>(0, known - prompt));
}

void ScheduledReplica::WriteProgress(std::vector<std::int32_t>& generated) const {
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    if (seats_[i].request == kNoRequest) continue;
    generated[static_cast<std::size_t>(seats_[i].request)] = Generated(static_cast<JobIndex>(i));
  }
}

// A batch as it is formed.
void ScheduledReplica::Observe(Step& step) {
  StepRecord& record = step.record;
  record.replica = in_.number;
  record.scheduled = now_;
  record.members.clear();
  record.preempted.clear();
  record.finished.clear();
  record.transfer = record.interference = record.prefill_tokens = 0;
  for (const SchedulerState::Restarted& restarted : state_.restarted) {
    record.preempted.push_back(SeatOf(restarted.job).request);
  }
  for (const BatchMember& member : step.members) {
    const Job& job = state_.job(member.job);
    const RequestId request = SeatOf(member.job).request;
    const std::int64_t computed = job.prefilled() ? job.processed - 1 : job.processed;
    const bool again = in_.results.preemptions[static_cast<std::size_t>(request)] > 0;
    const MemberKind kind = SeatOf(member.job).fresh ? MemberKind::kNew
                            : job.processed > 0      ? MemberKind::kContinued
                            : again                  ? MemberKind::kResumed
                                                     : MemberKind::kNew;
    record.members.push_back({request, member.tokens, computed, kind,
                              job.prefilled() || computed + member.tokens == job.prompt});
  }
  record.free_after_schedule = setup_.limits.blocks - state_.used();
  record.used_after_schedule = kv_blocks_used();
  record.running_after_schedule = running();
  record.waiting_after_schedule = queued();
}

}  // namespace servecast
