// See blis_replica.h. In BLIS's terms, Handle is the event loop; the steps are in blis_step.cpp.
// What looks wrong here is meant, unless a comment says "ours".
#include "serving/blis/blis_replica.h"

#include <algorithm>
#include <cmath>

#include "serving/policy.h"

namespace servecast {
namespace {

// A block that comes back costs the latency, cut to whole microseconds, and its own time on the
// link, rounded up. Bandwidths are decimal fractions: what rounding them adds to a whole number
// does not count.
BlisKv::Host HostOf(const BlisInput& in, const BlisEra& era) {
  constexpr double kMostUs = kMaxStepNs / 1000;
  const double us =
      std::floor(in.host.base_ns / 1e3) + std::ceil(in.host.block_ns / 1e3 * (1 - 1e-12));
  return {in.host.blocks, era.mirrors, in.engine.kv_offload.threshold,
          static_cast<BlisKv::Us>(std::min(us, kMostUs))};
}

}  // namespace

std::unique_ptr<Engine> MakeBlisReplica(const BlisInput& input) {
  return std::make_unique<BlisReplica>(input);
}

// --- Events --------------------------------------------------------------------------------------

BlisReplica::BlisReplica(const BlisInput& input)
    : in_(input),
      era_(EraOf(input.engine.compat)),
      tail_makes_way_(!era_.limits || input.scheduler.preemption != "priority"),
      policy_(input.scheduler, input.requests),
      limits_{std::min(input.horizon, kClockEnd) / 1000, input.latency.OutputTokenDelay() / 1000,
              input.latency.PostDecodeDelay() / 1000},
      kv_({input.blocks, input.engine.block_size, input.engine.enable_prefix_caching,
           era_.counts_claimed_blocks, HostOf(input, era_)},
          input.requests),
      events_(era_.orders_events),
      queue_(input.results.state, policy_.by_key()),
      places_(static_cast<std::size_t>(input.requests.size()), Place::kComing),
      seats_(input.requests.size()),
      decodes_(input.engine.block_size),
      gaps_(input.warmup),
      guard_(input.host.blocks > 0) {
  record_.index = -1;
  if (era_.limits) {
    limits_.model_len =
        std::min({input.model_max_len, input.engine.max_model_len.value_or(input.model_max_len),
                  input.blocks * input.engine.block_size});
  }
  for (RequestId r = 0; r < input.requests.size(); ++r) {
    TimeNs& arrival = in_.requests.arrival[Index(r)];
    guard_.Expect(PromptOf(r) + OutputOf(r));
    if (arrival < 0) continue;
    arrival -= arrival % 1000;
    in_.results.enqueue[Index(r)] = arrival + in_.latency.EnqueueDelay(PromptOf(r));
    events_.Push(arrival / 1000, Kind::kArrival, r);
  }
}

bool BlisReplica::Advance(std::int64_t max_steps) {
  std::int64_t steps = 0;
  while (HasEvent()) {
    if (steps == max_steps) break;
    const BlisEvents::Event event = events_.Pop();
    now_ = event.time;
    Handle(event);
    steps += BlisEvents::KindOf(event) == Kind::kStep ? 1 : 0;
  }
  gaps_.WriteTo(in_.recorder);
  if (HasEvent()) return false;
  if (!events_.empty() && in_.horizon < kClockEnd) now_ = limits_.horizon;
  RecordPending(limits_.horizon);
  return true;
}

// One within the horizon. A time-out of a request that is gone is none, and does not move the
// clock.
bool BlisReplica::HasEvent() {
  const auto cancelled = [this](const BlisEvents::Event& event) {
    return BlisEvents::KindOf(event) == Kind::kTimeout &&
           places_[Index(event.request)] == Place::kGone;
  };
  while (!events_.empty() && cancelled(events_.Top())) events_.Pop();
  return !events_.empty() && events_.Top().time <= limits_.horizon;
}

void BlisReplica::Handle(const BlisEvents::Event& event) {
  const RequestId r = event.request;
  switch (BlisEvents::KindOf(event)) {
    case Kind::kArrival:
      events_.Push(in_.results.enqueue[Index(r)] / 1000, Kind::kQueued, r);
      if (era_.limits && !in_.requests.timeout.empty() && in_.requests.timeout[Index(r)] != kNever)
        events_.Push(Sum(now_, in_.requests.timeout[Index(r)] / 1000), Kind::kTimeout, r);
      break;
    case Kind::kQueued:
      Enqueue(r);
      break;
    case Kind::kStep:
      RunStep();
      break;
    case Kind::kTimeout:
      TimeOut(r);
      break;
    case Kind::kScheduled:  // marks of a time line: they take their places in the queue
    case Kind::kLeft:
    case Kind::kPreempted:
      break;
  }
}

void BlisReplica::Enqueue(RequestId request) {
  if (places_[Index(request)] == Place::kGone) return;  // timed out on its way
  const std::int64_t prompt = PromptOf(request);
  if ((limits_.model_len > 0 && prompt >= limits_.model_len) ||
      CeilDiv(prompt, kv_.block_size()) > in_.blocks) {
    Drop(request);
  } else {
    places_[Index(request)] = Place::kWaiting;
    in_.results.state[Index(request)] = RequestState::kQueued;
    queue_.Push(policy_.KeyOf(request), in_.requests.arrival[Index(request)], request);
    RecordQueue();
  }
  if (step_pending_) return;
  events_.Push(now_, Kind::kStep, kNoRequest);
  step_pending_ = era_.one_chain;
}

void BlisReplica::TimeOut(RequestId request) {
  const Place place = places_[Index(request)];
  in_.results.state[Index(request)] = RequestState::kTimedOut;
  places_[Index(request)] = Place::kGone;
  ++ends_.timed_out;
  if (place == Place::kWaiting) {
    queue_.DropOne();
    RecordQueue();
  }
  const SeatId seat = seats_.Of(request);
  if (seat == kNoSeat) return;
  if (place == Place::kInBatch) {
    TakeOutOfBatch(seat);
    CountTokens(seat);
  }
  Leave(seat);
}

// --- Ends of requests ----------------------------------------------------------------------------

void BlisReplica::GiveUpOnHead() {
  const RequestId head = queue_.Head();
  queue_.Pop();
  Drop(head);
}

// The session ends with it: its next turn never arrives.
void BlisReplica::Drop(RequestId request) {
  in_.results.state[Index(request)] = RequestState::kDropped;
  in_.results.first_scheduled[Index(request)] = in_.results.first_token[Index(request)] = -1;
  in_.results.generated[Index(request)] = 0;
  places_[Index(request)] = Place::kGone;
  guard_.Left();
  if (seats_.Of(request) != kNoSeat) Leave(seats_.Of(request));
  RecordQueue();
}

void BlisReplica::Leave(SeatId id) {
  kv_.Release(At(id).holding);
  seats_.Free(id);
}

void BlisReplica::ArriveNext(RequestId request, Us time) {
  const std::vector<TimeNs>& think = in_.requests.think;
  const std::size_t next = Index(request) + 1;
  if (next >= think.size() || think[next] < 0) return;
  const Us arrival = Sum(time, think[next] / 1000);
  in_.requests.arrival[next] = arrival * 1000;
  in_.results.enqueue[next] =
      arrival * 1000 + in_.latency.EnqueueDelay(in_.requests.prompt_tokens[next]);
  events_.Push(arrival, Kind::kArrival, static_cast<RequestId>(next));
}

// --- What others ask -----------------------------------------------------------------------------

// Steps may overlap; what runs add up must not count a time twice, nor one after the run.
void BlisReplica::RecordPending(Us until) {
  if (!pending_.present) return;
  pending_.present = false;
  const Us from = std::min(std::max(pending_.start, recorded_until_), until);
  recorded_until_ = std::max(from, std::min(pending_.end, until));
  in_.recorder.Step(from * 1000, recorded_until_ * 1000, pending_.levels, pending_.tokens,
                    pending_.bound, pending_.blocked);
}

// BLIS's hit rate: claimed blocks over claimed and fresh ones, decodes included. In February what
// came back from the host is a hit, too, and an allocation that it cannot help a miss.
const PrefixCacheReport& BlisReplica::prefix_cache() {
  const std::int64_t back = era_.mirrors ? 0 : kv_.host().tiers[0].loaded_blocks;
  prefix_cache_.hit_blocks = kv_.hits() + back;
  prefix_cache_.query_blocks = prefix_cache_.hit_blocks + kv_.misses() + kv_.host_misses();
  prefix_cache_.evicted_blocks = kv_.evicted();
  return prefix_cache_;
}

KvOffloadReport BlisReplica::kv_offload() const {
  KvOffloadReport report = kv_.host();
  report.on = in_.engine.kv_offload.On();
  report.tiers[0].hit_blocks = host_hits_;
  report.tiers[0].hit_tokens = host_hits_ * kv_.block_size();
  return report;
}

std::vector<std::string_view> BlisReplica::departures() const {
  return DeparturesOf(era_, in_.host.blocks > 0);
}

void BlisReplica::WriteProgress(std::vector<std::int32_t>& generated) const {
  for (const BlisMember& member : batch_) {
    const Seat& seat = At(member.seat);
    const std::int64_t decoded = ProgressOf(seat) - PromptOf(seat.request);
    generated[Index(seat.request)] = decoded < 0 ? 0 : static_cast<std::int32_t>(decoded + 1);
  }
}

// A step as it was formed and priced. A request that is all cached is in its first one without
// tokens. One that was preempted when the batch was empty is reported with the next step.
void BlisReplica::ObserveSchedule() {
  ++record_.index;
  record_.scheduled = record_.start = now();
  record_.members.clear();
  record_.finished.clear();
  record_.prefill_tokens = 0;
  for (const BlisMember& member : batch_) {
    const Seat& seat = At(member.seat);
    if (seat.granted == 0 && !seat.fresh) continue;
    const std::int64_t prompt = PromptOf(seat.request);
    const std::int64_t progress = ProgressOf(seat);
    const bool prefill = progress < prompt;
    const bool again = in_.results.preemptions[Index(seat.request)] > 0;
    const MemberKind kind = !seat.fresh ? MemberKind::kContinued
                            : again     ? MemberKind::kResumed
                                        : MemberKind::kNew;
    if (prefill) record_.prefill_tokens += seat.granted;
    record_.members.push_back(
        {seat.request, seat.granted, progress, kind, !prefill || seat.computed == prompt});
  }
  record_.bound = pending_.bound;
  record_.free_after_schedule = kv_.free();
  record_.used_after_schedule = kv_.used();
  record_.running_after_schedule = running();
  record_.waiting_after_schedule = queue_.size();
}

void BlisReplica::ObserveStep(Us took) {
  record_.end = Sum(now_, took) * 1000;
  record_.free_after_step = kv_.free();
  record_.running_after_step = running();
  record_.waiting_after_step = queue_.size();
  in_.observer->OnStep(record_);
  record_.preempted.clear();
}

}  // namespace servecast
