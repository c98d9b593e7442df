// See job_scheduler.h.
#include "serving/batch/job_scheduler.h"

#include <algorithm>
#include <utility>

namespace servecast {

std::unique_ptr<Scheduler> MakeJobScheduler(Machine& machine) {
  return std::make_unique<JobScheduler>(machine);
}

namespace {

std::vector<JobIndex>& JobsOf(const ReplicaInput& in) {
  in.scratch.slot.resize(in.requests.arrival.size(), -1);
  return in.scratch.slot;
}

}  // namespace

JobScheduler::JobScheduler(Machine& machine)
    : Scheduler({.forms_between = true, .shared_to_first = true}),
      machine_(machine),
      in_(machine.input()),
      setup_(in_.setup),
      rules_(setup_.entry->make()),
      job_of_(JobsOf(in_)),
      state_(setup_.limits, machine.kv(), machine.policy(), {in_.results.state, job_of_}),
      members_(machine.most_in_flight()),
      decodes_(setup_.limits.block_size) {}

void JobScheduler::Enqueue(RequestId request) {
  const auto r = static_cast<std::size_t>(request);
  const std::int64_t prompt = in_.requests.prompt_tokens[r];
  const std::int64_t room = in_.max_model_len - prompt;
  const std::int64_t output = machine_.AnswerLimit(request);
  Job job;
  job.request = request;
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
}

// ---- A batch -------------------------------------------------------------------------------

Formed JobScheduler::Form(StepPlan& plan) {
  batch_.clear();
  state_.restarted.clear();
  state_.blocked = BlockedBy::kNothing;
  const std::size_t under_way = state_.under_way.size();
  rules_->Form(state_, batch_);
  if (state_.blocked == BlockedBy::kKvBlocks) in_.recorder->BlocksRefused(1);
  in_.recorder->BlocksRefused(static_cast<std::int64_t>(state_.restarted.size()));
  CountRestarts(plan);
  if (in_.role == PoolRole::kDecode) {
    SendForKv(under_way);
    ResumeFresh();
  }
  if (batch_.empty()) {
    // By a key another request may have room now. Vidur looks again when something happens.
    const bool again = !state_.restarted.empty() && !setup_.limits.as_vidur;
    return again ? Formed::kAgain : Formed::kNothing;
  }
  Fill(plan);
  return Formed::kStep;
}

void JobScheduler::CountRestarts(StepPlan& plan) {
  const TimeNs now = machine_.now();
  for (const SchedulerState::Restarted& restarted : state_.restarted) {
    Seat& seat = SeatOf(restarted.job);
    if (seat.fresh) LoseFresh(seat);
    const auto r = static_cast<std::size_t>(seat.request);
    machine_.Preempted(seat.request);
    plan.preempted.push_back(seat.request);
    in_.results.generated[r] = Generated(restarted.job);
    Setbacks& s = in_.results.SetbacksOf(r);
    if (!restarted.prefilled && seat.last_token >= 0) s.recompute += now - seat.admitted;
    s.preempted_at = now;
  }
  if (!state_.restarted.empty()) state_.blocked = BlockedBy::kKvBlocks;
}

void JobScheduler::Fill(StepPlan& plan) {
  const TimeNs start = machine_.StartTime();
  std::int64_t decodes = 0, context = 0;
  for (const BatchMember& member : batch_) {
    const Job& job = state_.job(member.job);
    Seat& seat = SeatOf(member.job);
    seat.in_flight = true;
    seat.kind = KindOf(job);
    state_.Compute(member);
    if (seat.last_step >= 0) in_.recorder->StepDelay(start, start - seat.last_step, 1);
    if (job.prefilled()) {
      ++decodes;
      context += job.processed - 1;
      continue;
    }
    if (seat.kind != MemberKind::kContinued) {
      Begin(seat, start);
      if (setup_.limits.caches_prefixes) CountHit(job, seat.kind);
    }
    const auto r = static_cast<std::size_t>(seat.request);
    plan.chunks.push_back({member.tokens, job.processed, in_.requests.prompt_tokens[r],
                           job.processed + member.tokens == job.prompt});
  }
  plan.shape.decode_seqs = decodes;
  plan.shape.decode_context_tokens = context;
  plan.blocked = state_.blocked;
  plan.kv_unused = std::max<std::int64_t>(0, state_.unused());
}

MemberKind JobScheduler::KindOf(const Job& job) const {
  if (job.begun) return MemberKind::kContinued;
  const bool again =
      !job.prefilled() && in_.results.preemptions[static_cast<std::size_t>(job.request)] > 0;
  return again ? MemberKind::kResumed : MemberKind::kNew;
}

// As it was admitted; it computes the rest.
void JobScheduler::CountHit(const Job& job, MemberKind kind) {
  if (kind == MemberKind::kResumed) {
    cached_.resumed_hit_tokens += job.processed;
    return;
  }
  const std::int64_t block_size = setup_.limits.block_size;
  in_.results.cached_tokens[static_cast<std::size_t>(job.request)] =
      static_cast<std::int32_t>(job.processed);
  cached_.query_tokens += job.prompt;
  cached_.hit_tokens += job.processed;
  cached_.query_blocks += job.prompt / block_size;
  cached_.hit_blocks += job.processed / block_size;
}

// A job is in its first batch, or in its first since it was preempted.
void JobScheduler::Begin(Seat& seat, TimeNs start) {
  const auto r = static_cast<std::size_t>(seat.request);
  seat.admitted = start;
  in_.results.state[r] = RequestState::kRunning;
  if (in_.results.first_scheduled[r] < 0) in_.results.first_scheduled[r] = start;
  if (in_.results.preemptions[r] == 0) return;
  Setbacks& s = in_.results.SetbacksOf(r);
  s.preempted += start - s.preempted_at;
  if (seat.last_token < 0) s.preempted_to_first = s.preempted;
}

// Prefills make decodes wait: those beside them, and those that a batch of prompts alone keeps
// parked. What delays the first token is not counted.
void JobScheduler::Launched(Step& step, const StepPlan& plan, TimeNs interference) {
  step.plain = false;
  MembersOf(step).swap(batch_);
  if (plan.chunks.empty()) return;
  const auto waits = [&](JobIndex index) {
    const Seat& seat = SeatOf(index);
    if (!state_.job(index).prefilled() || seat.last_token < 0) return;
    in_.results.interference[static_cast<std::size_t>(seat.request)] += interference;
  };
  if (plan.shape.decode_seqs > 0) {
    for (const BatchMember& member : MembersOf(step)) waits(member.job);
  } else if (!machine_.staged()) {
    for (const JobIndex index : state_.parked) {
      if (!SeatOf(index).fresh) waits(index);
    }
  }
}

void JobScheduler::Apply(Step& step) {
  for (const BatchMember& member : MembersOf(step)) {
    Job& job = state_.job(member.job);
    Seat& seat = SeatOf(member.job);
    seat.in_flight = seat.fresh = false;
    seat.last_step = step.end;
    const bool decodes = job.prefilled();
    job.processed += member.tokens;
    if (decodes || job.processed == job.prompt) {  // makes a token
      job.processed += decodes ? 0 : 1;
      if (seat.last_token < 0) {
        if (!machine_.hides_tokens()) machine_.FirstToken(seat.request, step);
      } else {
        CountGap(step, step.end - seat.last_token, 1);
        if (!decodes) CountRecompute(seat, step.end);
      }
      seat.last_token = step.end;
    }
    if (job.processed == seat.total) {
      End(member.job, step);
    } else {
      Park(member.job);
    }
  }
  CountGap(step, 0, 0);
}

void JobScheduler::CountRecompute(const Seat& seat, TimeNs end) {
  in_.results.SetbacksOf(static_cast<std::size_t>(seat.request)).recompute += end - seat.admitted;
}

// A job has made all its tokens, or all that it makes here.
void JobScheduler::End(JobIndex index, Step& step) {
  Seat& seat = SeatOf(index);
  const RequestId request = seat.request;
  if (!machine_.HandsOver(request)) {
    seat.request = kNoRequest;
    state_.End(index, in_.inbox->HasNextTurn(request));
    const auto r = static_cast<std::size_t>(request);
    machine_.Finish(request, seat.total - in_.requests.prompt_tokens[r], step);
  } else if (seat.gave_up) {
    Park(index);
  } else {
    seat.request = kNoRequest;
    machine_.HandOn(Withhold(index, request), step.end);
  }
}

Machine::Withheld JobScheduler::Withhold(JobIndex index, RequestId request) {
  SchedulerState::Held held = state_.Withhold(index);
  return {request, std::move(held.holding), held.blocks, held.tokens, held.computed};
}

// ---- Many batches at once ------------------------------------------------------------------

// Batches of all parked decodes, up to the last before one ends.
const DecodeRun* JobScheduler::BeginRun() {
  if (machine_.staged() || in_.observer != nullptr || state_.parked.empty()) return nullptr;
  std::int64_t least_left = 0;
  if (!state_.arrived.empty() || !AllDecode(least_left)) return nullptr;
  const DecodeForecast forecast = rules_->Forecast(state_);
  DecodeRun& run = run_;
  run.most = std::min(forecast.most, least_left - 1);
  if (run.most <= 0) return nullptr;
  decodes_.Clear();
  for (const JobIndex index : state_.parked) decodes_.Join(state_.job(index).processed - 1);
  run.decodes = &decodes_;
  run.closed = forecast.closed;
  run.blocked = forecast.blocked;
  run.comers_blocked = forecast.comers_blocked;
  run.takes_blocks = forecast.grows;
  run.spare = forecast.grows && setup_.limits.as_vidur ? 1 : 0;
  run.kv_unused = state_.unused();
  run.prices_blocks = false;  // as in Fill
  run.first_apart = true;
  return &run;
}

// Whether all parked do; and the fewest tokens that one of them has to make.
bool JobScheduler::AllDecode(std::int64_t& least_left) {
  least_left = INT64_MAX;
  for (const JobIndex index : state_.parked) {
    const Job& job = state_.job(index);
    const Seat& seat = SeatOf(index);
    if (!job.prefilled() || seat.fresh || seat.total - job.processed <= 1) return false;
    least_left = std::min(least_left, seat.total - job.processed);
  }
  return true;
}

void JobScheduler::FirstOfRun(const Step& step) {
  for (const JobIndex index : state_.parked) {
    const Seat& seat = SeatOf(index);
    in_.recorder->StepDelay(step.start, step.start - seat.last_step, 1);
    CountGap(step, step.end - seat.last_token, 1);
  }
  CountGap(step, 0, 0);
}

void JobScheduler::EndRun(std::int64_t steps) {
  const TimeNs now = machine_.now();
  for (const JobIndex index : state_.parked) {
    SeatOf(index).last_token = SeatOf(index).last_step = now;
    state_.Ran(index, steps, run_.takes_blocks);
  }
  rules_->Decoded(steps);
}

// Gaps of one length become one sample. Without tokens: there are no more of this step.
void JobScheduler::CountGap(const Step& step, TimeNs gap, std::int64_t tokens) {
  if (gap_.tokens > 0 && (tokens == 0 || gap != gap_.gap)) {
    machine_.NextToken(step, gap_.gap, gap_.tokens);
    gap_.tokens = 0;
  }
  gap_ = {gap, gap_.tokens + tokens};
}

// ---- Clients that give up ------------------------------------------------------------------

// An engine hears of it between two batches of theirs.
bool JobScheduler::GiveUp(RequestId request) {
  const JobIndex index = job_of_[static_cast<std::size_t>(request)];
  if (SeatOf(index).in_flight) {
    SeatOf(index).gave_up = true;
    return false;
  }
  Leave(index);
  return true;
}

// Its client gave up while it was in flight.
void JobScheduler::GiveUpParked(JobIndex index) {
  const RequestId request = SeatOf(index).request;
  Leave(index);
  machine_.TimeOut(request);
}

// A job that waits or is parked.
void JobScheduler::Leave(JobIndex index) {
  Seat& seat = SeatOf(index);
  in_.results.generated[static_cast<std::size_t>(seat.request)] = Generated(index);
  if (state_.job(index).blocks > 0) {
    LeaveAdmitted(index);
  } else {
    state_.LeaveQueue(index);
    machine_.QueueChanged();
    if (state_.job(index).remote) {
      in_.inbox->Report({Inbox::HandOverEvent::Kind::kAbandoned, seat.request, machine_.now()});
    }
  }
  seat.request = kNoRequest;
}

// Blocks that KV is on its way to are free when it has come.
void JobScheduler::LeaveAdmitted(JobIndex index) {
  const bool remote = state_.job(index).remote;
  if (remote || SeatOf(index).fresh) {
    machine_.ExpectNoMore();
    machine_.QueueChanged();
  }
  if (remote) {
    state_.under_way.erase(std::find(state_.under_way.begin(), state_.under_way.end(), index));
    machine_.Withhold(Withhold(index, SeatOf(index).request));
    return;
  }
  std::vector<JobIndex>& parked =
      std::find(state_.arrived.begin(), state_.arrived.end(), index) != state_.arrived.end()
          ? state_.arrived
          : state_.parked;
  parked.erase(std::find(parked.begin(), parked.end(), index));
  state_.End(index, false);
}

// ---- Prefill here, decode there ------------------------------------------------------------

// To this replica, that decodes: as one that restarts, but that its tokens are computed elsewhere.
void JobScheduler::AddRemote(RequestId request, Job& job, Seat& seat) const {
  const auto r = static_cast<std::size_t>(request);
  if (!in_.results.HandedOver(r)) return;
  job.remote = true;
  job.prompt += in_.results.generated[r];
  if (in_.results.generated[r] > 0) seat.last_token = in_.scratch.last_token[r];
}

// For those that were admitted behind the first ones.
void JobScheduler::SendForKv(std::size_t first) {
  for (std::size_t i = first; i < state_.under_way.size(); ++i) {
    const JobIndex index = state_.under_way[i];
    const RequestId request = SeatOf(index).request;
    const std::int64_t prompt = in_.requests.prompt_tokens[static_cast<std::size_t>(request)];
    state_.Store(index, state_.job(index).prompt - 1);
    const std::int64_t cached = state_.CachedBlocks(index);
    machine_.SendForKv(request, CeilDiv(prompt, setup_.limits.block_size) - cached);
  }
}

void JobScheduler::Arrive(RequestId request, TimeNs time) {
  const auto at = std::find_if(state_.under_way.begin(), state_.under_way.end(),
                               [&](JobIndex index) { return SeatOf(index).request == request; });
  if (at == state_.under_way.end()) {  // its client gave up
    return machine_.FreeWithheld(request, time);
  }
  Job& job = state_.job(*at);
  job.remote = false;
  job.processed = job.prompt--;
  SeatOf(*at).fresh = true;
  SeatOf(*at).last_step = time;
  state_.arrived.push_back(*at);
  state_.under_way.erase(at);
}

void JobScheduler::ResumeFresh() {
  for (const BatchMember& member : batch_) {
    const Seat& seat = SeatOf(member.job);
    if (!seat.fresh) continue;
    machine_.Resume(seat.request);
    in_.results.state[static_cast<std::size_t>(seat.request)] = RequestState::kRunning;
  }
}

// It is preempted before it was in a batch: from now on it waits as any other that is.
void JobScheduler::LoseFresh(Seat& seat) {
  seat.fresh = false;
  in_.results.hand_overs[static_cast<std::size_t>(seat.request)].resumed = machine_.now();
  machine_.ExpectNoMore();
}

// ---- For others ----------------------------------------------------------------------------

std::int32_t JobScheduler::Generated(JobIndex index) const {
  if (machine_.hides_tokens()) return 0;
  const Job& job = state_.job(index);
  const std::int64_t known = job.prefilled() ? job.processed : job.prompt;
  const std::int64_t prompt =
      in_.requests.prompt_tokens[static_cast<std::size_t>(SeatOf(index).request)];
  return static_cast<std::int32_t>(std::max<std::int64_t>(0, known - prompt));
}

const PrefixCacheReport& JobScheduler::prefix_cache() {
  cached_.evicted_blocks = machine_.kv().Evicted();
  return cached_;
}

void JobScheduler::WriteProgress(std::vector<std::int32_t>& generated) const {
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    if (seats_[i].request == kNoRequest) continue;
    generated[static_cast<std::size_t>(seats_[i].request)] = Generated(static_cast<JobIndex>(i));
  }
}

void JobScheduler::Observe(StepRecord& record) const {
  for (const BatchMember& member : batch_) {
    const Job& job = state_.job(member.job);
    const RequestId request = SeatOf(member.job).request;
    const std::int64_t computed = job.prefilled() ? job.processed - 1 : job.processed;
    record.members.push_back({request, member.tokens, computed, SeatOf(member.job).kind,
                              job.prefilled() || computed + member.tokens == job.prompt});
  }
}

}  // namespace servecast
