// The loop that runs what a scheduler forms.
//
// At one instant steps end, then requests come, then clients give up, then steps are formed. All
// times of a step are known when it is formed: a stage begins it when the stage before has sent it
// and the step before it is gone.
//
// Sending a step to the device (Launch) and applying its outputs (Apply) are apart. Synchronously
// they follow each other; with async scheduling two steps are in flight, with pipeline stages as
// many as stages, so the next step is formed before this one's tokens are there. All that a
// scheduler needs of them is that they will come: so it may count a token from the moment it is
// scheduled, and Apply is left with what a client or the block pool sees.
//
// While nothing can change the batch, steps of decodes are done without asking the scheduler for
// each (RunDecodes), and touch no request (decode_group.h).
//
// tests/testing has the same twice, the naive way; the differential tests say they agree.
#include "serving/replica/replica.h"

#include <algorithm>
#include <cmath>

#include "serving/replica/draft_rules.h"
#include "serving/replica/queue_caps.h"
#include "serving/replica/scheduler_setup.h"

namespace servecast {
namespace {

// By Vidur's faults there may be more than max_num_seqs.
std::int64_t SeatsOf(const SchedulerLimits& limits) {
  return limits.as_vidur ? INT64_MAX : limits.max_num_seqs;
}

}  // namespace

std::unique_ptr<Engine> MakeReplica(const ReplicaInput& input) {
  return std::make_unique<Replica>(input);
}

Replica::Replica(const ReplicaInput& input)
    : Machine(input),
      seats_(SeatsOf(input.setup.limits) * input.ranks),
      report_block_(input.setup.report_block),
      prices_transfers_(input.latency.PricesTransfers()),
      delay_by_cache_(input.latency.DelayByCache()),
      last_start_(std::min(in_.horizon, in_.dies_at)),
      slow_(MakeSlowPeriods(input.slowdowns, input.seed, input.number)) {}

// ---- The loop ------------------------------------------------------------------------------

bool Replica::Advance(std::int64_t max_steps) {
  std::int64_t steps = 0;
  while (steps < max_steps) {
    const bool idle = Idle();
    if (idle) {
      in_.inbox->TakeUpBefore(in_.horizon);
      const TimeNs next = in_.inbox->NextEnqueue(), until = in_.inbox->until();
      if (next >= until && until != kNever) return true;
      // kNever included; not what came while the last step went beyond the horizon.
      if (next >= in_.horizon && next > now_) return Close();
      PassTo(next);
    }
    if (!settled_) {
      if (now_ >= in_.inbox->until()) return false;
      woken_ = kNever;
      Deliver();
      const bool gives_up = in_.inbox->NextTimeout() <= now_;
      if (gives_up && GiveUp()) {
        if (now_ >= in_.inbox->until()) return false;
        Deliver();
      }
      if ((idle || gives_up) && Idle()) continue;
      if (CanForm()) {
        const DecodeRun* run = scheduler_->BeginRun();
        const std::int64_t ran = run == nullptr ? 0 : RunDecodes(*run, max_steps - steps);
        steps += ran;
        if (ran > 0) continue;
        const Formed formed = Form();
        if (formed == Formed::kStep) ++steps;
        if (formed == Formed::kStep && in_flight_ < depth_) continue;
        if (formed == Formed::kAgain && in_flight_ == 0) continue;
      }
      settled_ = true;
    }
    in_.inbox->TakeUpBefore(
        in_flight_ > 0 ? Oldest().end : std::min({in_.horizon, woken_, in_.inbox->NextTimeout()}));
    const TimeNs next = NextEvent(), limit = in_.inbox->until();
    if (in_flight_ == 0) {
      if (next >= limit && limit != kNever) return true;
      if (next >= in_.horizon || now_ >= in_.horizon) return Close();
    } else if (next > limit && (FormsBetween() || next > in_.inbox->EndsBy())) {
      return false;  // one may be sent that comes before, or end
    } else if (next > in_.dies_at) {
      return !scheduler_->HasRequests();  // the step is lost
    }
    PassTo(next);
    while (in_flight_ > 0 && Oldest().end <= now_) Apply();
  }
  return Idle() && in_.inbox->until() == kNever && in_.inbox->NextEnqueue() >= in_.horizon &&
         Close();
}

// The run is over. What is enqueued before the clock stops waits until then, though for nothing.
bool Replica::Close() {
  if (in_.horizon != kClockEnd) {
    now_ = std::max(now_, in_.horizon);
    Deliver();
  }
  return true;
}

void Replica::PassTo(TimeNs time) {
  settled_ = false;
  if (time <= now_) return;
  if (left_queue_ > 0) {  // and nothing else is there, so nothing was delivered since
    left_queue_ = 0;
    QueueChanged();
  }
  if (in_flight_ == 0) load_.running = load_.kv_blocks_used = 0;
  now_ = time;
}

// When a step ends or, while another may be formed, a request or its KV comes, or blocks are given
// back; without a step also when a client gives up.
TimeNs Replica::NextEvent() const {
  if (in_flight_ == 0) {
    return std::min({in_.inbox->NextEnqueue(), woken_, in_.inbox->NextTimeout()});
  }
  const TimeNs end = Oldest().end;
  return FormsBetween() ? std::min({end, in_.inbox->NextEnqueue(), woken_}) : end;
}

void Replica::Deliver() {
  DeliverUpTo(now_);
  early_ = 0;
  if (left_queue_ == 0) return;
  left_queue_ = 0;
  QueueChanged();
}

void Replica::DeliverUpTo(TimeNs last) {
  for (TimeNs time = in_.inbox->NextEnqueue(); time <= last; time = in_.inbox->NextEnqueue()) {
    const RequestId request = in_.inbox->TakeNext();
    const auto r = static_cast<std::size_t>(request);
    load_.waiting = queued() + left_queue_;
    if (delay_by_cache_) {
      const std::int64_t prompt = in_.requests.prompt_tokens[r];
      load_.cached_tokens = kv_.LookUp(request, prompt).blocks * kv_.block_size();
    }
    if (in_.inbox->Arrives(request, load_)) continue;
    if (caps_ && !caps_->Takes(request, time)) {
      in_.results.state[r] = RequestState::kRejected;
      ++ended_.rejected;
      in_.inbox->TurnedAway(request, time);
      continue;
    }
    in_.results.state[r] = RequestState::kQueued;
    in_.inbox->Enqueued(request);
    scheduler_->Enqueue(request);
    in_.recorder->Waiting(time, queued() + left_queue_);
    in_.recorder->Came(time);
  }
}

// Clients that gave up by now; between two steps, as an engine hears of it. True when one may have
// sent another request at once.
bool Replica::GiveUp() {
  const std::int64_t before = ended_.timed_out;
  while (in_.inbox->NextTimeout() <= now_) {
    const RequestId request = in_.inbox->TakeTimeout();
    if (scheduler_->GiveUp(request)) TimeOut(request);
  }
  return ended_.timed_out > before && in_.inbox->InLoop();
}

// ---- One step ------------------------------------------------------------------------------

// Inline what is called in one place: a step is formed by few instructions.

[[gnu::always_inline]] Step& Replica::NewStep() {
  ++in_flight_;
  Step& step = Newest();
  step.start = step.before = StartTime();
  load_.kv_blocks_used = kv_blocks_used();
  step.prefill.keys = 0;
  step.plain = true;
  return step;
}

// A step has prefills: their work, and by how much they make what they share it with wait, or all
// that is not in it.
[[gnu::always_inline]] TimeNs Replica::CountPrefills(Step& step, const StepPrice& price) {
  PrefillWork work;
  std::int64_t tokens = 0;
  for (const PrefillChunk& chunk : plan_.chunks) {
    work.pairs += PairsOf(chunk);
    work.keys += chunk.context + chunk.tokens;
    step.sampled += chunk.samples ? 1 : 0;
    tokens += chunk.tokens;
  }
  work.without_head = step.sampled > 0 ? 0 : kStepUnit;
  step.prefill = work;
  step.levels.batch_tokens += tokens;
  step.record.prefill_tokens = tokens;
  counts_.prefill_tokens += tokens;
  last_step_.prefill_tokens = tokens;
  last_step_.prefill_requests = static_cast<std::int64_t>(plan_.chunks.size());
  if (plan_.chunks.size() > 1) CountPadding();
  if (plan_.shape.decode_seqs == 0 && plan_.drafted.empty()) return price.duration;
  if (!plan_.ranks.empty()) {
    step.record.interference = std::max<TimeNs>(0, price.duration - PriceRanks(false).duration);
    return step.record.interference;
  }
  BatchShape without = plan_.shape;
  without.prefill = {};
  without.lora = plan_.decodes_lora;
  without.images = 0;
  const StepPrice alone = staged() ? pipeline_->Price(without) : PriceAt(step.start, without);
  step.record.interference = std::max<TimeNs>(0, price.duration - alone.duration);
  return step.record.interference;
}

// Images are encoded before the step computes, for which all that is in it waits.
void Replica::CountImages(const StepPrice& price) {
  BatchShape without = plan_.shape;
  without.images = 0;
  plan_.encode = price.duration - PriceAt(StartTime(), without).duration;
  counts_.encoded_images += plan_.shape.images;
  counts_.encode_ns += plan_.encode;
}

// Decodes that verify drafts work as prefills do: several queries read each key once.
void Replica::CountDrafted(Step& step) {
  if (plan_.chunks.empty()) step.prefill = {};
  for (const DraftedDecodes& decodes : plan_.drafted) {
    const std::int64_t tokens = decodes.tokens;
    step.prefill.pairs +=
        tokens * decodes.context + decodes.sequences * (tokens * (tokens + 1) / 2);
    step.prefill.keys += decodes.Keys();
    last_step_.decode_context += decodes.context;
    step.levels.batch_tokens += decodes.sequences * tokens;
  }
}

// Sends the step to the device, and prices it.
[[gnu::always_inline]] void Replica::Launch() {
  const TimeNs start = StartTime();
  BatchShape& shape = plan_.shape;
  shape.prefill = plan_.chunks;
  shape.drafted = plan_.drafted;
  shape.preemption_ema = load_.preemption_ema;
  const StepPrice price = staged()              ? pipeline_->Enter(shape, start, plan_.host)
                          : plan_.ranks.empty() ? PriceAt(start, shape)
                                                : PriceRanks(true);
  if (slow_) {
    plan_.host = slow_->Stretched(start, plan_.host);
    plan_.transfer = slow_->Stretched(start, plan_.transfer);
  }
  if (shape.images > 0) CountImages(price);
  plan_.transfer =
      prices_transfers_ || staged() ? 0 : std::min(plan_.transfer, kMaxStepNs - price.duration);
  Step& step = NewStep();
  load_.running = running();
  SERVECAST_CHECK(load_.running <= seats_, "I7: at most max_num_seqs requests run");
  if (in_.observer != nullptr) ObserveSchedule(step.record);
  step.end = device_free_ = start + price.duration + plan_.host;
  if (staged()) step.end = pipeline_->end(), device_free_ = pipeline_->free();
  step.bound = price.bound;
  if (plan_.transfer > 0) {  // what is loaded has to be there before the step computes
    step.end = device_free_ += plan_.transfer;
    transfer_total_ += plan_.transfer;
    if (plan_.transfer > price.duration) step.bound = StepBound::kOverhead;
  }
  step.blocked = plan_.blocked;
  step.levels = {load_.running,     load_.kv_blocks_used,
                 shape.decode_seqs, shape.decode_context_tokens + shape.decode_seqs,
                 plan_.kv_unused,   plan_.in_turn};
  step.decodes = plan_.decodes;
  step.sampled = shape.decode_seqs + shape.DraftedSequences();
  last_step_ = {0, 0, shape.decode_context_tokens, step.sampled};
  if (!plan_.ranks.empty()) CountRanks(step);
  const TimeNs interference = plan_.chunks.empty() ? 0 : CountPrefills(step, price);
  if (!plan_.drafted.empty()) CountDrafted(step);
  step.made = step.sampled;
  if (staged() && in_.observer != nullptr) step.record.stages = pipeline_->spans();
  scheduler_->Launched(step, plan_, interference);
}

Formed Replica::Form() {
  plan_.Clear();
  const Formed formed = scheduler_->Form(plan_);
  QueueChanged();
  if (formed == Formed::kStep) {
    Launch();
  } else if (formed == Formed::kNothing && in_flight_ == 0) {
    SERVECAST_CHECK(expected_ > 0 || withholds() || scheduler_->MayStall(),
                    "I8: with work and nothing in flight there is a step");
  }
  return formed;
}

// What the step's prefills would compute in vain if each were padded to the longest of its bucket.
void Replica::CountPadding() {
  if (!policy_.has_buckets()) {
    std::int64_t longest = 0;
    for (const PrefillChunk& chunk : plan_.chunks) longest = std::max(longest, chunk.tokens);
    for (const PrefillChunk& chunk : plan_.chunks) counts_.padding_tokens += longest - chunk.tokens;
    return;
  }
  padded_.clear();
  for (const PrefillChunk& chunk : plan_.chunks) {
    padded_.emplace_back(policy_.BucketOf(chunk.prompt), chunk.tokens);
  }
  std::make_heap(padded_.begin(), padded_.end());
  std::pair<double, std::int64_t> longest = padded_.front();
  for (; !padded_.empty(); padded_.pop_back()) {  // of each bucket the longest first
    std::pop_heap(padded_.begin(), padded_.end());
    const auto [bucket, tokens] = padded_.back();
    if (bucket != longest.first) longest = padded_.back();
    counts_.padding_tokens += longest.second - tokens;
  }
}

// The oldest step is done: its tokens reach their clients, what is finished leaves.
void Replica::Apply() {
  Step& step = Oldest();
  // Who is turned away may try again before the step ends.
  if (caps_ && in_.inbox->InLoop()) {
    const std::int64_t before = queued();
    DeliverUpTo(step.end - 1);
    early_ += queued() - before;
  }
  in_.inbox->TakeUpAllBefore(step.end);
  now_ = std::max(now_, step.end);
  const std::int64_t tokens = hides_tokens() ? 0 : step.sampled;
  if (staged() && !scheduler_->habits().shared_to_first) {
    RecordToNext(step, tokens);
  } else if (!step.ranks.empty()) {
    RecordRanks(step, tokens);
    recorded_until_ = step.end;
  } else {
    in_.recorder->Step(std::max(step.start, recorded_until_), step.end, step.levels, tokens,
                       step.bound, step.blocked, step.prefill);
    recorded_until_ = step.end;
  }
  if (step.decodes > 0) NextToken(step, step.end - step.before, step.decodes);
  if (!step.plain) scheduler_->Apply(step);
  if (in_.observer != nullptr) ObserveStep(step);
  if (++first_step_ == depth_) first_step_ = 0;
  --in_flight_;
}

// Where steps overlap, levels and work count from a step's start until that of the next one, so
// that the time that steps share counts once; or, see Apply, from the end of the step before.
void Replica::RecordToNext(const Step& step, std::int64_t tokens) {
  const TimeNs until = in_flight_ > 1 ? std::min(step.end, InFlight(1).start) : step.end;
  in_.recorder->Step(step.start, until, step.levels, 0, step.bound, step.blocked, step.prefill);
  in_.recorder->Tokens(step.end, tokens);
}

// ---- Many steps at once --------------------------------------------------------------------

// One step of a run, `before` of which have been.
[[gnu::always_inline]] void Replica::RunStep(const DecodeRun& run, std::int64_t before,
                                             const StepLevels& levels, const StepPrice& price,
                                             BlockedBy blocked) {
  Step& step = NewStep();
  if (in_.observer != nullptr) {
    plan_.Clear();
    ObserveSchedule(step.record);
  }
  step.end = device_free_ = step.start + price.duration;
  step.bound = price.bound;
  step.blocked = blocked;
  step.levels = levels;
  step.decodes = step.sampled = run.decodes->size();
  if (run.first_apart && before == 0) {
    step.decodes = step.levels.in_turn = 0;
    scheduler_->FirstOfRun(step);
  }
  run.decodes->Step();
  if (before + 1 == run.last) scheduler_->EndsMember(step);
  if (in_flight_ == depth_) Apply();
}

// Steps of the present decodes, up to one that could be another; 0: the next one could.
std::int64_t Replica::RunDecodes(const DecodeRun& run, std::int64_t max_steps) {
  DecodeSums& decodes = *run.decodes;
  const std::int64_t most = std::min(run.most, max_steps), last = run.last;
  const std::int64_t size = decodes.size();
  const bool takes_blocks = run.takes_blocks;
  // One at a time, which no one else looks at, needs no place among the steps in flight.
  const bool in_ring = depth_ > 1 || in_.observer != nullptr;
  TimeNs next_enqueue = in_.inbox->NextEnqueue();
  TimeNs stop = std::min(in_.inbox->NextTimeout(), in_.inbox->until());
  BlockedBy blocked = run.blocked;
  std::int64_t ran = 0, kv_unused = run.kv_unused, spare = run.spare, context = 0;
  load_.running = running();
  while (ran < most && now_ < stop && StartTime() < last_start_) {
    if (next_enqueue <= now_) {
      in_.inbox->TakeUpBefore(now_);
      if ((in_.inbox->NextEnqueue() <= now_ || early_ > 0) && !run.closed) break;
      Deliver();
      next_enqueue = in_.inbox->NextEnqueue();
      stop = std::min(in_.inbox->NextTimeout(), in_.inbox->until());
      if (stop <= now_) break;
      if (blocked == BlockedBy::kNothing && scheduler_->waiting() > 0) blocked = run.comers_blocked;
    }
    const TimeNs ends_by = std::min(in_.dies_at, in_.inbox->EndsBy());
    if (ends_by < kNever && EndsAfter(ends_by, run)) break;
    const std::int64_t blocks = takes_blocks ? decodes.due() : 0;
    const std::int64_t taken = blocks + decodes.windows_due();
    if (taken + spare > kv_.free() && !scheduler_->MakeRoomInRun(spare)) break;
    kv_.Take(taken, now_);
    SmoothPreemptions(0, load_.running);
    BatchShape shape = decodes.shape();
    if (!run.prices_blocks) shape.decode_kv_blocks = 0;
    shape.preemption_ema = load_.preemption_ema;
    shape.lora = run.lora;
    context = shape.decode_context_tokens;
    const StepPrice price = PriceAt(StartTime(), shape);
    if (blocked == BlockedBy::kKvBlocks) in_.recorder->BlocksRefused(1);
    kv_unused += blocks * kv_.block_size() - size;
    const StepLevels levels = {load_.running,
                               kv_blocks_used(),
                               size,
                               decodes.context() + size,
                               std::max<std::int64_t>(0, kv_unused),
                               size};
    if (in_ring || ran + 1 == last || (ran == 0 && run.first_apart)) {
      RunStep(run, ran, levels, price, blocked);
    } else {
      const TimeNs end = now_ + price.duration;
      in_.recorder->Step(now_, end, levels, hides_tokens() ? 0 : size, price.bound, blocked);
      in_.recorder->InterTokenGap(end, price.duration + token_delay_, size);
      load_.kv_blocks_used = levels.kv_blocks;
      recorded_until_ = device_free_ = now_ = end;
      decodes.Step();
    }
    ++ran;
  }
  if (ran > 0) {
    last_step_ = {0, 0, context, size};
    scheduler_->EndRun(ran);
  }
  return ran;
}

// ---- For others ----------------------------------------------------------------------------

SchedulerCounts Replica::counts() const {
  SchedulerCounts counts = counts_;
  counts.walked = scheduler_->walked();
  counts.image_hits = scheduler_->image_hits();
  if (staged()) counts.stage_busy_ns = pipeline_->busy_ns();
  return counts;
}

KvOffloadReport Replica::kv_offload() const {
  KvOffloadReport report = scheduler_->kv_offload();
  report.transfer_ns = transfer_total_;
  return report;
}

std::vector<std::string_view> Replica::departures() const { return in_.setup.departures; }

void Replica::ObserveSchedule(StepRecord& record) {
  record.replica = in_.number;
  record.scheduled = now_;
  record.members.clear();
  record.finished.clear();
  record.preempted = plan_.preempted;
  record.transfer = plan_.transfer;
  record.interference = record.prefill_tokens = 0;
  scheduler_->Observe(record);
  record.free_after_schedule = kv_.free();
  record.used_after_schedule = kv_blocks_used();
  record.running_after_schedule = running();
  record.waiting_after_schedule = queued();
}

void Replica::ObserveStep(Step& step) {
  StepRecord& record = step.record;
  record.index = in_.recorder->steps() - 1;
  record.start = step.start;
  record.bound = step.bound;
  record.end = step.end;
  record.free_after_step = kv_.free();
  scheduler_->ObserveAfter(record);
  record.running_after_step = running();
  record.waiting_after_step = queued() - early_;
  in_.observer->OnStep(record);
}

}  // namespace servecast
