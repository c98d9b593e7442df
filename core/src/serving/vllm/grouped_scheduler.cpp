// See grouped_scheduler.h.
#include "serving/vllm/grouped_scheduler.h"

#include <algorithm>
#include <utility>

#include "serving/replica/scheduler_entry.h"
#include "serving/replica/scheduler_setup.h"

namespace servecast {

std::unique_ptr<Scheduler> MakeGroupedScheduler(Machine& machine) {
  return std::make_unique<GroupedScheduler>(machine);
}

GroupedScheduler::GroupedScheduler(Machine& machine)
    : Scheduler({}),
      machine_(machine),
      in_(machine.input()),
      kv_(*in_.kv_plan,
          {machine.kv().total(), in_.engine.free_contentless_first,
           in_.engine.frees_states_across_gaps},
          in_.requests),
      budget_(in_.setup.limits.max_num_batched_tokens),
      watermark_(in_.setup.limits.watermark_blocks),
      victim_by_priority_(machine.policy().victim_by_priority()),
      aligns_(in_.kv_plan->groups.state_block > 0 &&
              in_.kv_plan->rules.Mode() == StateMode::kAlign),
      queue_(in_.results.state, machine.policy().by_key()),
      images_(MakeEncoderCache(in_)),
      outputs_(machine.most_in_flight()),
      slot_of_(in_.scratch.slot),
      decodes_(1) {
  const auto slots =
      static_cast<std::size_t>(std::min(in_.engine.max_num_seqs, in_.requests.size()));
  slots_.resize(slots);
  for (std::size_t i = slots; i > 0; --i) free_slots_.push_back(static_cast<SlotId>(i - 1));
}

void GroupedScheduler::Enqueue(RequestId request) {
  if (queue_.size() == 0 || queue_.by_key()) head_waits_ = BlockedBy::kNothing;
  queue_.Push(machine_.policy().KeyOf(request),
              in_.requests.arrival[static_cast<std::size_t>(request)], request);
}

// The machine counts the blocks of its cache.
void GroupedScheduler::TellMachine() {
  KvCache& kv = machine_.kv();
  const std::int64_t more = kv_.free() - kv.free();
  if (more < 0) {
    kv.Take(-more);
  } else if (more > 0) {
    KvCache::Holding none;
    kv.Release(none, kNoRequest, more, 0, false);
  }
}

// ---- A schedule call -----------------------------------------------------------------------

Formed GroupedScheduler::Form(StepPlan& plan) {
  if (!HasRequests()) return Formed::kNothing;
  kv_.BeginCall();
  if (images_) images_->BeginStep();
  members_.clear();
  left_ = budget_;
  Grant(plan);
  if (plan.preempted.empty()) {
    Admit(plan);
  } else {
    plan.blocked = BlockedBy::kKvBlocks;
    ++tokenless_calls_;
  }
  kv_.EndCall();
  // To look at a head with images changes what the encoder's cache has.
  const bool lasts = plan.preempted.empty() && queue_.size() > 0 &&
                     (plan.blocked == BlockedBy::kSeats ||
                      (plan.blocked == BlockedBy::kKvBlocks && !HasImages(queue_.Head())));
  head_waits_ = lasts ? plan.blocked : BlockedBy::kNothing;
  machine_.SmoothPreemptions(plan.preempted.size(), running());
  TellMachine();
  if (members_.empty()) return plan.preempted.empty() ? Formed::kNothing : Formed::kAgain;
  Fill(plan);
  return Formed::kStep;
}

// Rules 2, 21 and 22.
std::int64_t GroupedScheduler::Asked(const Slot& slot) const {
  if (slot.placeholders > 0 && slot.computed + 2 - slot.placeholders >= slot.most) return 0;
  return std::min({slot.known + slot.placeholders - slot.computed, Threshold(), left_});
}

// B13: of so many tokens behind `from`, those up to where a state is to be kept.
std::int64_t GroupedScheduler::Split(std::int64_t from, std::int64_t tokens, std::int64_t prompt,
                                     std::int64_t known, std::int64_t junction) const {
  const std::int64_t prefill = std::max(prompt, known - 1);
  if (!aligns_ || from >= prefill) return tokens;
  const std::int64_t b = in_.kv_plan->groups.cache_block;
  std::int64_t end = from + tokens;
  if (end < prefill) {
    const std::int64_t whole = end / b * b;
    if (whole > from || b <= std::min(budget_, Threshold())) end = whole;
  }
  std::int64_t unit_end = 0;
  if (in_.kv_plan->rules.match_unit) {
    unit_end = prompt / *in_.kv_plan->rules.match_unit * *in_.kv_plan->rules.match_unit;
    if (unit_end <= known / b * b || unit_end > prompt) unit_end = 0;
  }
  const std::int64_t stops[] = {from % b == 0 ? 0 : (from / b + 1) * b, known / b * b, unit_end,
                                junction <= from ? 0 : from + (junction - from) / b * b};
  for (const std::int64_t stop : stops) {
    if (stop > from && stop < end) end = stop;
  }
  return std::max<std::int64_t>(0, end - from);
}

void GroupedScheduler::SetQuiet(Slot& slot, std::int64_t computed, std::int64_t in_flight) {
  slot.quiet_until = kv_.NextChange(computed, in_flight);
  slot.quiet_lag = in_flight;
}

// The running list in its order.
void GroupedScheduler::Grant(StepPlan& plan) {
  for (std::size_t i = 0; i < running_.size() && left_ > 0; ++i) {
    const SlotId id = running_[i];
    Slot& slot = At(id);
    slot.chunk = 0;
    std::int64_t tokens = Asked(slot);
    const bool images = tokens > 0 && HasImages(slot.request);
    if (images) tokens = images_->Cut(slot.request, slot.computed, tokens);
    if (tokens > 0) tokens = Split(slot.computed, tokens, slot.prompt, slot.known, slot.junction);
    if (tokens <= 0) continue;
    const bool quiet = tokens == 1 && slot.computed < slot.quiet_until &&
                       slot.in_flight == slot.quiet_lag && slot.computed >= slot.prompt;
    if (!quiet && !TakeFor(i, tokens, plan)) return;
    if (images) images_->Take(slot.request);
    slot.chunk = tokens;
    left_ -= tokens;
    members_.push_back(id);
  }
}

// Blocks for so many tokens of the one at running_[at], preempting others until there are enough.
// False: it was the victim itself.
bool GroupedScheduler::TakeFor(std::size_t& at, std::int64_t tokens, StepPlan& plan) {
  Slot& slot = At(running_[at]);
  for (;;) {
    kv_.GiveUp(slot.table, slot.request, slot.computed - slot.in_flight);
    if (kv_.Needed(slot.table, slot.computed, slot.computed + tokens) <= kv_.free()) break;
    in_.recorder->BlocksRefused(1);
    const std::size_t victim = Victim();
    const bool itself = victim == at;
    Preempt(victim, plan);
    if (itself) return false;
    if (victim < at) --at;
  }
  const std::int64_t upto = std::min(slot.computed + tokens, slot.known);
  kv_.Take(slot.table, slot.computed, slot.computed + tokens);
  kv_.Register(slot.table, slot.request, upto);
  kv_.RegisterInside(slot.table, slot.request, slot.computed, upto);
  SetQuiet(slot, slot.computed, slot.in_flight);
  return true;
}

// Rule 9. Two requests of one priority and arrival can take the blocks from each other for ever;
// here, once that is seen, the first prevails.
std::size_t GroupedScheduler::Victim() const {
  std::size_t worst = running_.size() - 1;
  if (!victim_by_priority_) return worst;
  worst = 0;
  for (std::size_t i = 1; i < running_.size(); ++i) {
    const Slot &a = At(running_[i]), &b = At(running_[worst]);
    if (a.priority != b.priority ? a.priority > b.priority : a.arrival > b.arrival) worst = i;
    const bool equal = a.priority == b.priority && a.arrival == b.arrival;
    if (equal && tokenless_calls_ >= kMostTokenlessCalls) worst = i;
  }
  return worst;
}

// Rule 10; what it was granted in this call returns to the budget.
void GroupedScheduler::Preempt(std::size_t at, StepPlan& plan) {
  const SlotId id = running_[at];
  Slot& slot = At(id);
  const auto r = static_cast<std::size_t>(slot.request);
  const auto member = std::find(members_.begin(), members_.end(), id);
  if (member != members_.end()) {
    left_ += slot.chunk;
    members_.erase(member);
  }
  const TimeNs start = machine_.StartTime();
  Setbacks& s = in_.results.SetbacksOf(r);
  s.preempted_at = start;
  s.last_step = slot.last_step;
  if (slot.sampling) {
    if (slot.known + slot.placeholders < slot.most) {  // else it was counted
      in_.results.interference[r] += interference_ - slot.interference_before;
    }
  } else if (slot.known > slot.prompt) {
    s.recompute += start - slot.admitted;
  }
  in_.results.generated[r] = static_cast<std::int32_t>(slot.known - slot.prompt);
  LeaveRun(id);
  kv_.Release(slot.table, slot.request, true);
  if (images_) {
    images_->TakeOut(slot.request);
    images_->Drop(slot.request);
  }
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(at));
  machine_.Preempted(slot.request);
  plan.preempted.push_back(slot.request);
  queue_.PushPreempted(machine_.policy().KeyOf(slot.request), slot.arrival, slot.request);
  Unseat(id);
}

// ---- The queue -----------------------------------------------------------------------------

// From the head, until the first that cannot be admitted.
void GroupedScheduler::Admit(StepPlan& plan) {
  while (queue_.size() > 0) {
    plan.blocked = running() >= in_.engine.max_num_seqs ? BlockedBy::kSeats
                   : left_ <= 0                         ? BlockedBy::kTokenBudget
                                                        : AdmitHead();
    if (plan.blocked == BlockedBy::kKvBlocks) in_.recorder->BlocksRefused(1);
    if (plan.blocked != BlockedBy::kNothing) return;
  }
}

// Why it cannot be admitted. What its images hold of the encoder's cache it keeps, unless it is for
// blocks, or a state of this call (B14), that it waits (E3).
BlockedBy GroupedScheduler::AdmitHead() {
  const RequestId head = queue_.Head();
  const std::int64_t known = Known(head);
  const std::int64_t prompt = in_.requests.prompt_tokens[static_cast<std::size_t>(head)];
  const GroupedKv::Hit hit = kv_.LookUp(head, known);
  std::int64_t tokens = std::min(known - hit.tokens, Threshold());
  if (!in_.engine.enable_chunked_prefill && tokens > left_) return BlockedBy::kTokenBudget;
  tokens = std::min(tokens, left_);
  if (HasImages(head)) tokens = images_->Cut(head, hit.tokens, tokens);
  if (tokens > 0) tokens = Split(hit.tokens, tokens, prompt, known, hit.junction);
  if (tokens <= 0) return BlockedBy::kTokenBudget;
  if (!FitsWith(hit, known, hit.tokens + tokens)) {
    if (images_) images_->Drop(head);
    return hit.fresh_state ? BlockedBy::kTokenBudget : BlockedBy::kKvBlocks;
  }
  queue_.Pop();
  const SlotId id = Seat(head);
  Slot& slot = At(id);
  slot.computed = hit.tokens;
  slot.junction = hit.junction;
  slot.chunk = tokens;
  kv_.Admit(slot.table, hit.tokens + tokens);
  kv_.Register(slot.table, head, std::min(hit.tokens + tokens, known));
  kv_.RegisterInside(slot.table, head, hit.tokens, std::min(hit.tokens + tokens, known));
  if (HasImages(head)) images_->Take(head);
  left_ -= tokens;
  members_.push_back(id);
  if (kv_.prefix_caching()) CountHit(slot, known);
  return BlockedBy::kNothing;
}

// Whether the last look-up's request, of so many known tokens, may have its first `tokens` now.
bool GroupedScheduler::FitsWith(const GroupedKv::Hit& hit, std::int64_t known,
                                std::int64_t tokens) const {
  if (hit.fresh_state) return false;  // B14
  const std::int64_t room = kv_.free() - (running_.empty() ? 0 : watermark_);
  if (in_.engine.scheduler_reserve_full_isl && kv_.NeededToAdmit(known, true) > room) return false;
  return kv_.NeededToAdmit(tokens, false) <= room;
}

GroupedScheduler::SlotId GroupedScheduler::Seat(RequestId request) {
  const SlotId id = free_slots_.back();
  free_slots_.pop_back();
  const auto r = static_cast<std::size_t>(request);
  Slot& slot = At(id);
  slot.request = request;
  slot.admission = admissions_++;
  slot.priority = machine_.policy().PriorityOf(request);
  slot.arrival = in_.requests.arrival[r];
  slot.prompt = in_.requests.prompt_tokens[r];
  slot.most = slot.prompt + machine_.OutputLimit(request);
  slot.known = Known(request);
  slot.placeholders = slot.in_flight = 0;
  slot.quiet_lag = -1;
  slot.sampling = false;
  slot.kind = in_.results.preemptions[r] > 0 ? MemberKind::kResumed : MemberKind::kNew;
  slot.last_step = -1;
  running_.push_back(id);
  in_.results.state[r] = RequestState::kRunning;
  if (!slot_of_.empty()) slot_of_[r] = id;
  return id;
}

void GroupedScheduler::Unseat(SlotId id) {
  At(id).admission = -1;
  free_slots_.push_back(id);
}

void GroupedScheduler::CountHit(const Slot& slot, std::int64_t known) {
  const std::int64_t block = in_.kv_plan->groups.cache_block;
  if (slot.kind == MemberKind::kResumed) {
    cached_.resumed_hit_tokens += slot.computed;
    return;
  }
  in_.results.cached_tokens[static_cast<std::size_t>(slot.request)] =
      static_cast<std::int32_t>(slot.computed);
  cached_.query_tokens += known;
  cached_.hit_tokens += slot.computed;
  cached_.query_blocks += known / block;
  cached_.hit_blocks += slot.computed / block;
}

// ---- A step --------------------------------------------------------------------------------

void GroupedScheduler::Fill(StepPlan& plan) {
  const TimeNs start = machine_.StartTime();
  std::int64_t decodes = 0, context = 0;
  for (const SlotId id : members_) {
    Slot& slot = At(id);
    const auto r = static_cast<std::size_t>(slot.request);
    if (slot.kind == MemberKind::kContinued) {
      if (slot.last_step >= start) {
        ++plan.in_turn;
      } else {
        in_.recorder->StepDelay(start, start - slot.last_step, 1);
      }
    } else {
      slot.admitted = start;
      if (in_.results.first_scheduled[r] < 0) in_.results.first_scheduled[r] = start;
      if (slot.kind == MemberKind::kResumed) {
        Setbacks& s = in_.results.SetbacksOf(r);
        s.preempted += start - s.preempted_at;
        if (slot.known == slot.prompt) s.preempted_to_first = s.preempted;
        if (s.last_step >= 0)
          in_.recorder->StepDelay(start, std::max<TimeNs>(0, start - s.last_step), 1);
      }
    }
    if (slot.chunk == 1 && slot.decodes()) {
      ++decodes;
      context += slot.computed;
      continue;
    }
    plan.chunks.push_back({slot.chunk, slot.computed, slot.prompt,
                           slot.computed + slot.chunk >= slot.known + slot.placeholders});
  }
  plan.shape.decode_seqs = decodes;
  plan.shape.decode_context_tokens = context;
  if (images_) plan.shape.images = images_->images();
}

void GroupedScheduler::Launched(Step& step, const StepPlan& plan, TimeNs interference) {
  if (plan.shape.decode_seqs > 0) interference_ += interference;
  if (step.sampled > 0 && tokenless_calls_ < kMostTokenlessCalls) tokenless_calls_ = 0;
  step.plain = false;
  std::vector<Output>& outputs = OutputsOf(step);
  outputs.clear();
  scheduled_ += static_cast<std::int64_t>(members_.size());
  for (const SlotId id : members_) {
    Slot& slot = At(id);
    if (plan.encode > 0 && slot.computed < slot.prompt && slot.known == slot.prompt) {
      in_.results.AddEncode(static_cast<std::size_t>(slot.request), plan.encode);
    }
    slot.computed += slot.chunk;
    slot.in_flight += slot.chunk;
    const bool sampled = slot.computed >= slot.known + slot.placeholders;
    if (sampled) {
      const bool prefilled = !(slot.chunk == 1 && slot.computed > slot.prompt);
      if (prefilled || slot.kind != MemberKind::kContinued) {
        slot.interference_before = interference_;
        if (slot.known > slot.prompt && slot.placeholders == 0) {
          in_.results.SetbacksOf(static_cast<std::size_t>(slot.request)).recompute +=
              step.end - slot.admitted;
        }
      }
      ++slot.placeholders;
      slot.sampling = true;
      if (slot.known + slot.placeholders == slot.most) {
        in_.results.interference[static_cast<std::size_t>(slot.request)] +=
            interference_ - slot.interference_before;
      }
    }
    if (images_) images_->Computed(slot.request, slot.computed - slot.placeholders);
    slot.kind = MemberKind::kContinued;
    slot.last_step = step.end;
    outputs.push_back({id, slot.request, slot.admission, slot.chunk, sampled, false});
  }
}

void GroupedScheduler::Apply(Step& step) {
  for (const Output& output : OutputsOf(step)) {
    Slot& slot = At(output.slot);
    if (slot.admission != output.admission) {
      if (output.sampled) EndInQueue(output, step);
      continue;
    }
    slot.in_flight -= output.tokens;
    if (images_) images_->Passed(output.request, output.sampled);  // E5
    if (!output.sampled) continue;
    --slot.placeholders;
    ++slot.known;
    if (in_.engine.async_scheduling) {  // rule 23
      const std::int64_t there = slot.computed - slot.placeholders;
      if (output.tokens > 1 || there % in_.kv_plan->groups.cache_block == 0) {
        kv_.Register(slot.table, slot.request, there);
      }
    }
    if (output.counted) {
      in_.scratch.last_token[static_cast<std::size_t>(output.request)] = step.end;
    } else {
      Deliver(output, step);
    }
    if (slot.known == slot.most) Finish(output.slot, step);
  }
  CountGap(step.end, 0, 0);
  TellMachine();
}

// A token reaches its client.
void GroupedScheduler::Deliver(const Output& output, Step& step) {
  const auto r = static_cast<std::size_t>(output.request);
  const Slot& slot = At(output.slot);
  if (slot.known == slot.prompt + 1) {
    machine_.FirstToken(output.request, step);
  } else {
    CountGap(step.end, step.end - in_.scratch.last_token[r], 1);
  }
  in_.scratch.last_token[r] = step.end;
}

// A token of a request that was preempted while it was made (rule 24).
void GroupedScheduler::EndInQueue(const Output& output, Step& step) {
  const auto r = static_cast<std::size_t>(output.request);
  if (in_.results.state[r] != RequestState::kQueued) return;
  if (++in_.results.generated[r] == 1) {
    machine_.FirstToken(output.request, step);
  } else {
    CountGap(step.end, step.end - in_.scratch.last_token[r], 1);
  }
  in_.scratch.last_token[r] = step.end;
  if (in_.results.generated[r] < machine_.OutputLimit(output.request)) return;
  if (images_) images_->Drop(output.request);
  queue_.DropOne();
  head_waits_ = BlockedBy::kNothing;
  machine_.EndedInQueue();
  machine_.Finish(output.request, in_.results.generated[r], step);
}

void GroupedScheduler::Finish(SlotId id, Step& step) {
  Slot& slot = At(id);
  head_waits_ = BlockedBy::kNothing;
  const RequestId request = slot.request;
  kv_.Release(slot.table, request, false);
  running_.erase(std::find(running_.begin(), running_.end(), id));
  Unseat(id);
  machine_.Finish(request, slot.most - slot.prompt, step);
}

// Gaps of one length become one sample. Without tokens: there are no more of the step that ends.
void GroupedScheduler::CountGap(TimeNs end, TimeNs gap, std::int64_t tokens) {
  if (gap_.tokens > 0 && (tokens == 0 || gap != gap_.gap)) {
    machine_.NextToken(end, gap_.gap, gap_.tokens);
    gap_.tokens = 0;
  }
  gap_ = {gap, gap_.tokens + tokens};
}

// ---- Many steps at once --------------------------------------------------------------------

// Steps of the present decodes, up to the first that changes a block, ends one of them, or could
// admit another.
const DecodeRun* GroupedScheduler::BeginRun() {
  if (in_.observer != nullptr || running_.empty()) return nullptr;
  if (queue_.size() > 0 && head_waits_ == BlockedBy::kNothing) return nullptr;
  std::int64_t most = INT64_MAX;
  for (const SlotId id : running_) {
    const Slot& slot = At(id);
    const std::int64_t made = slot.known + slot.placeholders;
    const bool quiet = slot.computed == made - 1 && slot.computed >= slot.prompt &&
                       slot.kind == MemberKind::kContinued && slot.in_flight == slot.quiet_lag &&
                       slot.last_step >= 0;
    most = std::min({most, slot.quiet_until - slot.computed, slot.most - made - 1});
    if (!quiet || most <= 0) return nullptr;
  }
  // With two steps in flight each is formed while one computes, from the first on.
  if (machine_.most_in_flight() > 1 && machine_.in_flight() == 0) return nullptr;
  decodes_.Clear();
  for (const SlotId id : running_) decodes_.Join(At(id).computed);
  DecodeRun& run = run_;
  run = {};
  run.decodes = &decodes_;
  run.most = most;
  const bool seats = running() < in_.engine.max_num_seqs;
  run.closed = !seats || (queue_.size() > 0 && !queue_.by_key());
  run.blocked = queue_.size() > 0 ? head_waits_ : BlockedBy::kNothing;
  run.comers_blocked = BlockedBy::kSeats;
  run.takes_blocks = false;
  run.prices_blocks = false;
  run.first_apart = true;
  return &run;
}

// Its gaps are counted when the run ends, or, if it is then in flight, as others are.
void GroupedScheduler::FirstOfRun(const Step& step) {
  for (const SlotId id : running_) {
    in_.recorder->StepDelay(step.start, std::max<TimeNs>(0, step.start - At(id).last_step), 1);
  }
  first_of_run_ = step.end;
}

// Those of its steps that are in flight are from now on as others are.
void GroupedScheduler::EndRun(std::int64_t steps) {
  const std::size_t in_flight = machine_.in_flight();
  const auto left = std::min(static_cast<std::int64_t>(in_flight), steps);
  const auto first = in_flight - static_cast<std::size_t>(left);
  const TimeNs newest = machine_.StartTime();
  const TimeNs applied = left > 0 ? machine_.InFlight(first).start : newest;
  for (std::size_t i = first; i < in_flight; ++i) {
    Step& step = machine_.InFlight(i);
    step.plain = false;
    std::vector<Output>& outputs = OutputsOf(step);
    outputs.clear();
    for (const SlotId id : running_) {
      const bool counted = i > first || left < steps;
      outputs.push_back({id, At(id).request, At(id).admission, 1, true, counted});
    }
  }
  if (left < steps) {
    for (const SlotId id : running_) CountGap(first_of_run_, first_of_run_ - At(id).last_step, 1);
    CountGap(first_of_run_, 0, 0);
  }
  for (const SlotId id : running_) {
    Slot& slot = At(id);
    slot.computed += steps;
    slot.known += steps - left;
    slot.placeholders += left;
    slot.in_flight += left;
    slot.last_step = newest;
    if (steps > left) in_.scratch.last_token[static_cast<std::size_t>(slot.request)] = applied;
  }
}

// ---- For others ----------------------------------------------------------------------------

// What it makes in steps of a run that are in flight is from now on counted as it is delivered.
void GroupedScheduler::LeaveRun(SlotId id) {
  for (std::size_t i = 0; i < machine_.in_flight(); ++i) {
    Step& step = machine_.InFlight(i);
    for (Output& output : OutputsOf(step)) {
      if (output.slot != id || output.admission != At(id).admission) continue;
      if (std::exchange(output.counted, false)) --step.decodes;
    }
  }
}

bool GroupedScheduler::GiveUp(RequestId request) {
  head_waits_ = BlockedBy::kNothing;
  const auto r = static_cast<std::size_t>(request);
  if (images_) images_->Drop(request);
  if (in_.results.state[r] == RequestState::kQueued) {
    queue_.DropOne();
    machine_.QueueChanged();
    return true;
  }
  if (in_.results.state[r] != RequestState::kRunning) return true;
  const SlotId id = slot_of_[r];
  Slot& slot = At(id);
  for (std::size_t i = 0; i < machine_.in_flight(); ++i) {
    for (const Output& output : OutputsOf(machine_.InFlight(i))) {
      if (output.slot != id || output.admission != slot.admission || !output.sampled) continue;
      Machine::LoseToken(machine_.InFlight(i), output.counted);
    }
  }
  in_.results.generated[r] = static_cast<std::int32_t>(slot.known - slot.prompt);
  kv_.Release(slot.table, request, false);
  running_.erase(std::find(running_.begin(), running_.end(), id));
  Unseat(id);
  TellMachine();
  return true;
}

void GroupedScheduler::WriteProgress(std::vector<std::int32_t>& generated) const {
  for (const SlotId id : running_) {
    const Slot& slot = At(id);
    generated[static_cast<std::size_t>(slot.request)] =
        static_cast<std::int32_t>(slot.known - slot.prompt);
  }
}

const PrefixCacheReport& GroupedScheduler::prefix_cache() {
  cached_.evicted_blocks = kv_.evicted();
  return cached_;
}

void GroupedScheduler::Observe(StepRecord& record) const {
  for (const SlotId id : members_) {
    const Slot& slot = At(id);
    record.members.push_back({slot.request, slot.chunk, slot.computed, slot.kind,
                              slot.computed + slot.chunk >= slot.known + slot.placeholders});
  }
}

}  // namespace servecast
