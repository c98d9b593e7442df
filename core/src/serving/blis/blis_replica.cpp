// See blis_replica.h. In BLIS's terms: Handle is the event loop, RunStep its four phases (form the
// batch, execute, complete, schedule the next step). What looks wrong here is meant, unless a
// comment says "ours".
#include "serving/blis/blis_replica.h"

#include <algorithm>
#include <cmath>

#include "serving/policy.h"

namespace servecast {
namespace {

//                              ties   chain  granted phantom first  forget budget evicted limits
//                              claimed mirrors
constexpr BlisEra kFebruary = {false, false, false, true,  false, false,
                               false, true,  false, false, false};
constexpr BlisEra kToday = {true, true, true, false, true, true, true, false, true, true, true};

// Ours, since BLIS would go on for ever. After so many steps that gave nobody a token the head of
// the queue is dropped. So is the last request of a batch that is preempted, when that happened so
// often since a completion. Not at once, though it may have had all blocks: a prompt that is all
// cached holds none when it comes back. With a host still later, as each time other blocks go
// there.
constexpr std::int64_t kStuckSteps = 1000;
constexpr std::int64_t kLoneEvictions = 16, kLoneEvictionsWithHost = 100;

constexpr std::int64_t kLastUs = kClockEnd / 1000;

// Sums of delays stay within the clock.
std::int64_t Sum(std::int64_t a, std::int64_t b) { return std::min(a + b, kLastUs); }

// A block that comes back costs the latency, cut to whole microseconds, and its own time on the
// link, rounded up. Bandwidths are decimal fractions: what their rounding adds to a whole number is
// none.
BlisKv::Host HostOf(const BlisInput& in, const BlisEra& era) {
  constexpr double kMostUs = kMaxStepNs / 1000;
  const double us =
      std::floor(in.host.base_ns / 1e3) + std::ceil(in.host.block_ns / 1e3 * (1 - 1e-12));
  return {in.host.blocks, era.mirrors, in.engine.kv_offload.threshold,
          static_cast<BlisKv::Us>(std::min(us, kMostUs))};
}

}  // namespace

const BlisEra& EraOf(Compat compat) { return compat == Compat::kBlis ? kToday : kFebruary; }

// --- Events --------------------------------------------------------------------------------------

BlisReplica::BlisReplica(const BlisInput& input)
    : in_(input),
      era_(EraOf(input.engine.compat)),
      policy_(input.scheduler, input.requests),
      horizon_(std::min(input.horizon, kClockEnd) / 1000),
      token_delay_(input.latency.OutputTokenDelay() / 1000),
      end_delay_(input.latency.PostDecodeDelay() / 1000),
      max_model_len_(0),
      most_lone_evictions_(input.host.blocks > 0 ? kLoneEvictionsWithHost : kLoneEvictions),
      kv_({input.blocks, input.engine.block_size, input.engine.enable_prefix_caching,
           era_.counts_claimed_blocks, HostOf(input, era_)},
          input.requests),
      events_(era_.orders_events),
      queue_(input.results.state, policy_.by_key()),
      places_(static_cast<std::size_t>(input.requests.size()), Place::kComing),
      seat_of_(static_cast<std::size_t>(input.requests.size()), kNoSeat) {
  if (era_.limits) {
    max_model_len_ =
        std::min({input.model_max_len, input.engine.max_model_len.value_or(input.model_max_len),
                  input.blocks * input.engine.block_size});
  }
  for (RequestId r = 0; r < input.requests.size(); ++r) {
    TimeNs& arrival = in_.requests.arrival[Index(r)];
    most_tokens_ = std::max<std::int64_t>(
        most_tokens_, std::int64_t{PromptOf(r)} + in_.requests.output_tokens[Index(r)]);
    if (arrival < 0) continue;
    arrival -= arrival % 1000;
    in_.results.enqueue[Index(r)] = arrival + in_.latency.EnqueueDelay(PromptOf(r));
    events_.Push(arrival / 1000, Kind::kArrival, r);
  }
}

std::vector<std::string_view> BlisReplica::departures() const {
  const bool tiered = in_.host.blocks > 0;
  const std::pair<bool, std::string_view> all[] = {
      {true, "drain: when a batch drains, the next arrival starts while its last step still runs"},
      {true, "cached prompts: one that is cached as a whole costs nothing; vLLM computes a token"},
      {true, "preemption: what was generated is thrown away and made again; vLLM keeps it"},
      {true, "alpha: per-token time of the host is added at the client, never to the device"},
      {true, "scheduling: always synchronous, with no time of the host between two steps"},
      {true, "time: all durations are cut to whole microseconds"},
      {era_.phantom_gap, "phantom gap: each completed request has one gap between tokens too many"},
      {!era_.one_chain, "two chains: two arrivals of one instant start two loops over one batch"},
      {!era_.only_granted_advance, "free tokens: decodes that the budget left out advance too"},
      {!era_.forgets_on_preemption, "latencies: those from before a preemption are counted again"},
      {!era_.returns_budget, "budget: the tokens of a preempted request are lost to its step"},
      {tiered && era_.mirrors,
       "offload: each step copies all blocks of its batch, whatever the threshold; what comes back "
       "costs its transfer and is computed all the same"},
      {tiered && !era_.mirrors,
       "offload: blocks leave when a request does, and come back when blocks run short, whosever "
       "they are"},
  };
  std::vector<std::string_view> departures;
  for (const auto& [applies, sentence] : all) {
    if (applies) departures.push_back(sentence);
  }
  return departures;
}

bool BlisReplica::Advance(std::int64_t max_steps) {
  std::int64_t steps = 0;
  while (HasEvent()) {
    if (steps == max_steps) return false;
    const BlisEvents::Event event = events_.Pop();
    now_ = event.time;
    Handle(event);
    steps += BlisEvents::KindOf(event) == Kind::kStep ? 1 : 0;
  }
  if (!events_.empty() && in_.horizon < kClockEnd) now_ = horizon_;
  RecordPending(horizon_);
  return true;
}

// One within the horizon. A time-out that comes too late is none, and does not move the clock.
bool BlisReplica::HasEvent() {
  const auto cancelled = [this](const BlisEvents::Event& event) {
    return BlisEvents::KindOf(event) == Kind::kTimeout &&
           places_[Index(event.request)] == Place::kGone;
  };
  while (!events_.empty() && cancelled(events_.Top())) events_.Pop();
  return !events_.empty() && events_.Top().time <= horizon_;
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
  if ((max_model_len_ > 0 && prompt >= max_model_len_) ||
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
  ++timed_out_;
  if (place == Place::kWaiting) {
    queue_.DropOne();
    RecordQueue();
  }
  const SeatId seat = seat_of_[Index(request)];
  if (seat == kNoSeat) return;
  if (place == Place::kInBatch) {
    CountTokens(seat);
    batch_.erase(std::find(batch_.begin(), batch_.end(), seat));
  }
  Leave(seat);
}

// --- A step --------------------------------------------------------------------------------------

void BlisReplica::RunStep() {
  kv_.StartStep(now_);
  Step step;
  step.budget = in_.engine.max_num_batched_tokens;
  GrantToBatch(step);
  Admit(step);
  const Us took = Price(step);
  const bool observed = in_.observer != nullptr && !batch_.empty();
  if (observed) ObserveSchedule();
  MoveOn(took);
  for (const SeatId seat : batch_) kv_.Mirror(At(seat).holding);
  Complete(took);
  if (observed) ObserveStep(took);
  stuck_steps_ = step.granted || queue_.size() == 0 ? 0 : stuck_steps_ + 1;
  // While the tail makes way, the head of the batch has its last token after at most twice as many
  // steps as it has tokens. Victims by priority can take the blocks from each other for ever, as
  // they lose what they made.
  contested_steps_ += step.preempted ? 1 : 0;
  const bool endless = contested_steps_ >= kStuckSteps + 4 * most_tokens_ && queue_.size() > 0;
  if (stuck_steps_ >= kStuckSteps || endless) GiveUpOnHead();
  step_pending_ = !batch_.empty() || queue_.size() > 0;
  if (step_pending_) events_.Push(Sum(now_, took), Kind::kStep, kNoRequest);
}

void BlisReplica::GrantToBatch(Step& step) {
  if (era_.only_granted_advance) {
    for (const SeatId seat : batch_) At(seat).granted = 0;
  }
  if (era_.visits_evicted) {
    visited_ = batch_;
    for (const SeatId seat : visited_) {
      if (step.budget <= 0 || !GrantTo(seat, step)) break;
    }
    return;
  }
  for (std::size_t i = 0; i < batch_.size() && step.budget > 0; ++i) {
    const SeatId seat = batch_[i];
    if (!GrantTo(seat, step)) break;
    while (i >= batch_.size() || batch_[i] != seat) --i;  // victims before it are gone
  }
}

// Tokens of a request that runs, or (February) did when the step began. False: no room for it.
bool BlisReplica::GrantTo(SeatId id, Step& step) {
  const std::int64_t prompt = PromptOf(At(id).request);
  const std::int64_t progress = At(id).progress;
  const std::int64_t threshold = in_.engine.long_prefill_token_threshold;
  std::int64_t tokens = prompt - progress;
  if (tokens > 0) {
    if (threshold > 0) tokens = std::min(tokens, threshold);
    tokens = std::min(tokens, step.budget);
    if (max_model_len_ > 0) tokens = std::min(tokens, max_model_len_ - 1 - progress);
  } else {
    tokens = max_model_len_ > 0 && progress + 1 > max_model_len_ - 1 ? 0 : 1;
  }
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
    in_.recorder.BlocksRefused(1);
    if (batch_.empty()) return false;
    const std::size_t victim = VictimOf();
    const bool itself = batch_[victim] == id;
    Preempt(victim, step);
    if (itself) return false;
  }
}

std::size_t BlisReplica::VictimOf() const {
  std::size_t victim = batch_.size() - 1;
  if (!era_.limits || in_.scheduler.preemption != "priority") return victim;
  victim = 0;
  for (std::size_t i = 1; i < batch_.size(); ++i) {
    const Seat &a = At(batch_[i]), &b = At(batch_[victim]);
    const bool later = ArrivalOf(a.request) > ArrivalOf(b.request);
    if (a.priority > b.priority || (a.priority == b.priority && later)) victim = i;
  }
  return victim;
}

void BlisReplica::Preempt(std::size_t victim, Step& step) {
  const SeatId id = batch_[victim];
  Seat& seat = At(id);
  const RequestId request = seat.request;
  batch_.erase(batch_.begin() + static_cast<std::ptrdiff_t>(victim));
  step.preempted = true;
  if (era_.returns_budget) step.budget += seat.granted;
  const bool alone = batch_.empty();
  kv_.Release(seat.holding);
  seat.progress = seat.computed = 0;
  if (era_.forgets_on_preemption) {
    seat.granted = 0;
    seat.gaps.clear();
    seat.has_first = false;
    in_.results.first_token[Index(request)] = -1;
  }
  in_.results.generated[Index(request)] = 0;
  ++in_.results.preemptions[Index(request)];
  in_.recorder.Preempted(now());
  if (in_.observer != nullptr) record_.preempted.push_back(request);
  if (!era_.orders_events) events_.Push(now_, Kind::kPreempted, request);
  if (alone && ++lone_evictions_ >= most_lone_evictions_) return Drop(request);
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
    if (max_model_len_ > 0) tokens = std::min(tokens, max_model_len_ - 1 - cached);
    const SeatId id = SeatFor(request);
    if (!kv_.Admit(At(id).holding, request, cached + tokens)) {
      in_.recorder.BlocksRefused(1);
      return;
    }
    queue_.Pop();
    places_[Index(request)] = Place::kInBatch;
    in_.results.state[Index(request)] = RequestState::kRunning;
    RecordQueue();
    batch_.push_back(id);
    step.budget -= tokens;
    step.granted = true;
    At(id).granted = tokens;
    At(id).computed = cached + tokens;
    At(id).fresh = true;
    if (in_.results.first_scheduled[Index(request)] < 0) {
      in_.results.cached_tokens[Index(request)] = static_cast<std::int32_t>(cached);
      prefix_cache_.query_tokens += prompt;
      prefix_cache_.hit_tokens += cached;
      host_hits_ += std::max<std::int64_t>(kv_.found() - hits, 0);
    } else {
      prefix_cache_.resumed_hit_tokens += cached;
    }
    in_.results.first_scheduled[Index(request)] = now();  // the last time counts
    events_.Push(now_, Kind::kScheduled, request);
  }
  step.blocked = BlockedBy::kNothing;
}

BlisReplica::SeatId BlisReplica::SeatFor(RequestId request) {
  SeatId& id = seat_of_[Index(request)];
  if (id != kNoSeat) return id;
  if (free_seats_.empty()) {
    free_seats_.push_back(static_cast<SeatId>(seats_.size()));
    seats_.emplace_back();
  }
  id = free_seats_.back();
  free_seats_.pop_back();
  At(id) = Seat{};
  At(id).request = request;
  At(id).priority = policy_.PriorityOf(request);
  return id;
}

BlisReplica::Us BlisReplica::Price(const Step& step) {
  BatchShape shape;
  chunks_.clear();
  std::int64_t tokens = 0;
  for (const SeatId id : batch_) {
    const Seat& seat = At(id);
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
  transfer_ += transfer;
  record_.transfer = std::min(transfer, kLastUs) * 1000;
  const Us took = price.duration / 1000 + transfer;
  RecordPending(horizon_);
  pending_ = {now_,           Sum(now_, took), {running(), kv_.used(), tokens, 0, Unused()},
              price.bound,    step.blocked,    0,
              !batch_.empty()};
  return took;
}

// Tokens for which the blocks in use have room, and that they do not hold.
std::int64_t BlisReplica::Unused() const {
  std::int64_t unused = 0;
  for (const Seat& seat : seats_) {
    if (!seat.holding.blocks.empty()) unused += kv_.block_size() - seat.holding.last_fill;
  }
  return unused;
}

void BlisReplica::MoveOn(Us took) {
  for (const SeatId id : batch_) {
    Seat& seat = At(id);
    const std::int64_t prompt = PromptOf(seat.request);
    seat.fresh = false;
    const std::int64_t before = seat.progress;
    if (seat.progress < prompt) {
      seat.progress = seat.computed;
    } else if (seat.granted > 0 || !era_.only_granted_advance) {
      ++seat.progress;
      AddGap(seat, Sum(took, token_delay_));
      if (!era_.counts_first_token) ++pending_.tokens;
    }
    if (seat.progress != before) {
      const Us wait = std::max<Us>(0, now_ - seat.last_step);
      if (seat.last_step >= 0) in_.recorder.StepDelay(now(), wait * 1000, 1);
      seat.last_step = Sum(now_, took);
    }
    if (seat.progress == prompt && !seat.has_first) {
      seat.has_first = true;
      seat.first_token = Sum(now_ + took, token_delay_) - ArrivalOf(seat.request);
      in_.results.first_token[Index(seat.request)] =
          (ArrivalOf(seat.request) + seat.first_token) * 1000;
    }
  }
}

// February forgets no gap when it preempts, and may preempt for ever: what is kept is bounded by
// the number of different ones.
void BlisReplica::AddGap(Seat& seat, Us gap) {
  auto& gaps = seat.gaps;
  if (!gaps.empty() && gaps.back().first == gap) {
    ++gaps.back().second;
    return;
  }
  if (gaps.size() == seat.most_gaps) {
    std::sort(gaps.begin(), gaps.end());
    std::size_t kept = 0;
    for (const auto& next : gaps) {
      if (kept > 0 && gaps[kept - 1].first == next.first) {
        gaps[kept - 1].second += next.second;
      } else {
        gaps[kept++] = next;
      }
    }
    gaps.resize(kept);
    seat.most_gaps = std::max<std::size_t>(1024, 2 * kept);
  }
  gaps.push_back({gap, 1});
}

void BlisReplica::Complete(Us took) {
  std::size_t kept = 0;
  for (const SeatId id : batch_) {
    const Seat& seat = At(id);
    const std::int64_t last = PromptOf(seat.request) + OutputOf(seat.request) - 1;
    const bool capped = max_model_len_ > 0 && seat.progress >= max_model_len_ - 1;
    if (seat.progress < last && !capped) {
      batch_[kept++] = id;
      continue;
    }
    if (seat.progress < last) ++length_capped_;
    Finish(id, took);
  }
  batch_.resize(kept);
}

void BlisReplica::Finish(SeatId id, Us took) {
  Seat& seat = At(id);
  const RequestId request = seat.request;
  if (era_.phantom_gap) seat.gaps.push_back({Sum(took, token_delay_), 1});
  if (seat.progress < PromptOf(request) + OutputOf(request)) {
    // Room for the last token, if there is any; it may evict a cached block.
    const std::int64_t at = seat.progress;
    if (!kv_.Allocate(seat.holding, request, at, at + 1, false)) in_.recorder.BlocksRefused(1);
  }
  events_.Push(Sum(now_, took), Kind::kLeft, request);
  if (in_.observer != nullptr) record_.finished.push_back(request);
  Us latency = Sum(seat.first_token, end_delay_);
  for (const auto& [gap, times] : seat.gaps) {
    const bool fits = gap == 0 || times <= (kLastUs - latency) / gap;
    latency = fits ? latency + gap * times : kLastUs;
    in_.recorder.InterTokenGap(now() + took * 1000, gap * 1000, times);
  }
  CountTokens(id);
  if (era_.counts_first_token) pending_.tokens += in_.results.generated[Index(request)];
  in_.results.completion[Index(request)] = Sum(ArrivalOf(request), latency) * 1000;
  in_.results.state[Index(request)] = RequestState::kCompleted;
  places_[Index(request)] = Place::kGone;
  ++completed_;
  lone_evictions_ = contested_steps_ = 0;
  Leave(id);
  ArriveNext(request, Sum(now_, took));
}

void BlisReplica::CountTokens(SeatId id) {
  const RequestId request = At(id).request;
  const std::int64_t decoded = At(id).progress - PromptOf(request);
  in_.results.generated[Index(request)] =
      decoded < 0 ? 0 : static_cast<std::int32_t>(std::min(decoded + 1, OutputOf(request)));
}

// --- Ends of requests ----------------------------------------------------------------------------

void BlisReplica::GiveUpOnHead() {
  stuck_steps_ = 0;
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
  lone_evictions_ = contested_steps_ = 0;
  if (seat_of_[Index(request)] != kNoSeat) Leave(seat_of_[Index(request)]);
  RecordQueue();
}

void BlisReplica::Leave(SeatId id) {
  Seat& seat = At(id);
  kv_.Release(seat.holding);
  seat_of_[Index(seat.request)] = kNoSeat;
  free_seats_.push_back(id);
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
  report.transfer_ns = std::min(transfer_, kLastUs) * 1000;
  return report;
}

void BlisReplica::WriteProgress(std::vector<std::int32_t>& generated) const {
  for (const SeatId id : batch_) {
    const std::int64_t decoded = At(id).progress - PromptOf(At(id).request);
    generated[Index(At(id).request)] = decoded < 0 ? 0 : static_cast<std::int32_t>(decoded + 1);
  }
}

// A step as it was formed and priced; whoever is all cached is in its first one without tokens. Who
// was preempted when nobody was left to run is told with the next step.
void BlisReplica::ObserveSchedule() {
  record_.index = observed_++;
  record_.scheduled = record_.start = now();
  record_.members.clear();
  record_.finished.clear();
  record_.prefill_tokens = 0;
  for (const SeatId id : batch_) {
    const Seat& seat = At(id);
    if (seat.granted == 0 && !seat.fresh) continue;
    const std::int64_t prompt = PromptOf(seat.request);
    const bool prefill = seat.progress < prompt;
    const bool again = in_.results.preemptions[Index(seat.request)] > 0;
    const MemberKind kind = !seat.fresh ? MemberKind::kContinued
                            : again     ? MemberKind::kResumed
                                        : MemberKind::kNew;
    if (prefill) record_.prefill_tokens += seat.granted;
    record_.members.push_back(
        {seat.request, seat.granted, seat.progress, kind, !prefill || seat.computed == prompt});
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
