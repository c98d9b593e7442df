// See vllm_scheduler.h.
#include "serving/vllm/vllm_scheduler.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "serving/replica/scheduler_entry.h"

namespace servecast {

std::unique_ptr<Scheduler> MakeVllmScheduler(Machine& machine) {
  return std::make_unique<VllmScheduler>(machine);
}

VllmScheduler::VllmScheduler(Machine& machine)
    : Scheduler({}),
      machine_(machine),
      in_(machine.input()),
      kv_(machine.kv()),
      rules_(in_.engine),
      watermark_blocks_(
          static_cast<std::int64_t>(in_.engine.watermark * static_cast<double>(in_.pool_blocks))),
      victim_by_priority_(machine.policy().victim_by_priority()),
      queue_(in_.results.state, machine.policy().by_key()),
      seats_(in_.engine.max_loras, in_.requests.lora),
      images_(MakeEncoderCache(in_)),
      last_token_(in_.scratch.last_token),
      slot_of_(in_.scratch.slot),
      outputs_(machine.most_in_flight()) {
  const auto slots =
      static_cast<std::size_t>(std::min(in_.engine.max_num_seqs, in_.requests.size()));
  const std::size_t groups = in_.stages == nullptr ? 1 : in_.stages->size() + 1;
  groups_.reserve(groups);  // addresses hold
  while (groups_.size() < groups) {
    groups_.emplace_back(in_.engine.block_size, in_.windows, slots, in_.latency.PricesLongest());
  }
  group_ = groups_.data();
  for (std::size_t i = 1; i < groups; ++i) free_groups_.push_back(&groups_[i]);
  slots_.resize(slots);
  for (std::size_t i = slots; i > 0; --i) free_slots_.push_back(static_cast<SlotId>(i - 1));
  apart_.reserve(slots);
  if (rules_.most > 0) StartDrafts();
  garbage_.pass = static_cast<TimeNs>(std::nearbyint(in_.engine.gc_pass_us * 1e3));
}

void VllmScheduler::Enqueue(RequestId request) {
  queue_.Push(machine_.policy().KeyOf(request),
              in_.requests.arrival[static_cast<std::size_t>(request)], request);
}

// ---- One step by the rules -----------------------------------------------------------------

// What the call granted, as a batch.
[[gnu::always_inline]] void VllmScheduler::Fill(StepPlan& plan) {
  const TimeNs start = machine_.StartTime();
  BatchShape shape = group_->shape();
  shape.transfer_blocks = plan.shape.transfer_blocks;
  plan.decodes = group_->size();
  plan.kv_unused = UnusedBeside() + group_->unused();
  machine_.CountDelay(plan, staged() && plan.decodes > 0 ? group_->end : start, plan.decodes);
  if (drafts_) DrawOutputs();
  for (const SlotId id : apart_) {
    Slot& slot = SlotAt(id);
    plan.kv_unused += slot.blocks * kv_.block_size() - (slot.computed + slot.chunk);
    if (slot.chunk == 0) continue;
    const auto r = static_cast<std::size_t>(slot.request);
    if (slot.kind == MemberKind::kContinued) {
      machine_.CountDelay(plan, slot.busy_until, 1);
    } else {
      if (in_.results.first_scheduled[r] < 0) in_.results.first_scheduled[r] = start;
      slot.admitted = start;
      slot.transfer_before = machine_.transfer_total();
      slot.interference_before = group_->interference;
      if (slot.kind == MemberKind::kResumed) CountWait(slot);
      if (slot.kind == MemberKind::kResumed || slot.decodes) {
        machine_.CountDelay(plan, WaitsSince(slot), 1);
      }
    }
    if (slot.decodes) {
      if (staged()) slot.interference_before = group_->interference;
      shape.decode_kv_blocks += slot.blocks;
      if (slot.chunk > 1) {
        AddDrafted(plan.drafted, slot.chunk, slot.computed);
        continue;
      }
      ++shape.decode_seqs;
      shape.decode_context_tokens += slot.computed;
      shape.decode_longest = std::max(shape.decode_longest, slot.computed);
    } else {
      plan.chunks.push_back(
          {slot.chunk, slot.computed, in_.requests.prompt_tokens[r], Samples(slot)});
    }
  }
  if (images_) shape.images = images_->images();
  plan.shape = shape;
  plan.host = std::exchange(garbage_.due, 0);
  if (drafts_) FillGroup(plan);
  if (seats_.any_used()) CountAdapters(plan);
}

// The products of adapters: those of decodes, and with prefills of all.
void VllmScheduler::CountAdapters(StepPlan& plan) {
  seats_.BeginStep();
  AdapterWork& work = plan.shape.lora;
  work = seats_.OfGroup(rules_.most + 1);
  for (const bool decodes : {true, false}) {
    for (const SlotId id : apart_) {
      const Slot& slot = SlotAt(id);
      if (slot.chunk == 0 || slot.decodes != decodes || seats_.Of(slot.request) == 0) continue;
      work.tokens += slot.chunk;
      seats_.Add(slot.request);
    }
    work.adapters = seats_.adapters();
    if (decodes) plan.decodes_lora = work;
  }
}

Formed VllmScheduler::Form(StepPlan& plan) {
  if (running_ == 0 && waiting() == 0 && arrived_.empty()) return Formed::kNothing;
  Call call{plan, rules_.budget};
  if (drafts_) BeginDrafts(call);
  Schedule(call);
  if (call.budget < rules_.budget) {
    Fill(plan);
    return Formed::kStep;
  }
  // Preemption may leave nothing to compute; the blocks are there at the next call. Or they are
  // held for transfers.
  return plan.preempted.empty() ? Formed::kNothing : Formed::kAgain;
}

// Counts the step's tokens as computed.
void VllmScheduler::Launched(Step& step, const StepPlan& plan, TimeNs interference) {
  const bool decodes = plan.shape.decode_seqs > 0 || !plan.drafted.empty();
  if (decodes) group_->interference += interference;
  if (drafts_) AdvanceDrafted(step);
  if (step.sampled > 0) NoteToken();
  Outputs& outputs = OutputsOf(step);
  outputs.first.clear();
  outputs.last.clear();
  outputs.images.clear();
  outputs.group = group_;
  if (drafts_) return;
  if (staged()) step.before = group_->end;
  group_->end = step.end;
  group_->Step();
  if (group_->HasEnded()) EndDecodes(outputs);
  if (images_) AdvanceImages(outputs, plan.encode);
  AdvanceApart(step, outputs);
  step.plain = !staged() && outputs.first.empty() && outputs.last.empty() && outputs.images.empty();
  if (staged()) ChooseFreeGroup();
}

// Every decode has made a token; those whose last it is leave the decodes.
void VllmScheduler::EndDecodes(Outputs& outputs) {
  DecodeGroup& group = *outputs.group;
  while (group.HasEnded()) {
    const SlotId id = group.Ended();
    Slot& slot = SlotAt(id);
    CountDecode(slot, group);
    LeaveDecodes(id);
    slot.phase = Phase::kEnding;
    ++endings_;
    outputs.last.push_back({slot.request, id, slot.admission, 0, 0});
  }
}

// Those apart with images, before what they were granted counts as computed. `encode`: by which
// images made the step longer.
void VllmScheduler::AdvanceImages(Outputs& outputs, TimeNs encode) {
  for (const SlotId id : apart_) {
    const Slot& slot = SlotAt(id);
    if (slot.chunk == 0) continue;
    const auto r = static_cast<std::size_t>(slot.request);
    if (encode > 0 && slot.known == in_.requests.prompt_tokens[r]) {
      in_.results.AddEncode(r, encode);
    }
    if (!images_->Has(slot.request)) continue;
    const std::int64_t computed = slot.computed + slot.chunk;
    const bool samples = computed == slot.known;
    images_->Computed(slot.request, computed - (samples ? 1 : 0));
    outputs.images.push_back({slot.request, id, slot.admission, samples ? 1 : 0, 0});
  }
}

void VllmScheduler::AdvanceApart(const Step& step, Outputs& outputs) {
  std::size_t kept = 0;
  std::int64_t joined = 0;
  std::vector<Output>& last = outputs.last;
  const std::size_t decodes_ended = last.size();
  for (const SlotId id : apart_) {
    Slot& slot = SlotAt(id);
    slot.decodes_before += joined;
    slot.computed += slot.chunk;
    if (slot.chunk > 0) {
      slot.kind = MemberKind::kContinued;
      slot.busy_until = step.end;
    }
    if (slot.computed < slot.known) {
      apart_[kept++] = id;
      continue;
    }
    // The token after all known ones.
    const auto r = static_cast<std::size_t>(slot.request);
    const Output output{slot.request, id, slot.admission,
                        static_cast<std::int32_t>(slot.known - in_.requests.prompt_tokens[r] + 1),
                        last_token_[r]};
    outputs.first.push_back(output);
    if (!slot.decodes || output.generated == 1) CountPrefill(slot, step.end);
    slot.joined_with = slot.computed;
    slot.decodes = false;
    if (output.generated == machine_.OutputLimit(slot.request)) {
      CountDecode(slot, *group_);  // if it caught up
      slot.phase = Phase::kEnding;
      ++endings_;
      last.push_back(output);
    } else {
      JoinDecodes(id);
      ++joined;
    }
  }
  apart_.resize(kept);
  if (decodes_ended == 0 || last.size() == decodes_ended) return;
  // Both parts are in running order.
  const auto middle = last.begin() + static_cast<std::ptrdiff_t>(decodes_ended);
  merged_.resize(last.size());
  std::merge(last.begin(), middle, middle, last.end(), merged_.begin(),
             [](const Output& a, const Output& b) { return a.admission < b.admission; });
  last.swap(merged_);
}

[[gnu::always_inline]] void VllmScheduler::Deliver(const Output& output, const Step& step) {
  const auto r = static_cast<std::size_t>(output.request);
  if (in_.results.state[r] == RequestState::kTimedOut || machine_.hides_tokens()) return;
  if (LosesToken(output.request)) return;
  in_.results.generated[r] = output.generated;
  if (output.generated == 1) {
    machine_.FirstToken(output.request, step);
  } else {
    machine_.NextToken(step, step.end - output.previous);
  }
}

void VllmScheduler::Apply(Step& step) {
  if (drafts_) return ApplyDrafted(step);
  Outputs& outputs = OutputsOf(step);
  for (const Output& output : outputs.images) {
    const bool same = SlotAt(output.slot).admission == output.admission;
    images_->Passed(output.request, output.generated > 0 && same);
  }
  for (const Output& output : outputs.first) Deliver(output, step);
  for (const Output& output : outputs.last) Finish(output.request, output.slot, step);
  if (outputs.group != group_) ChooseAppliedGroup(outputs.group);
}

// The last token's KV is never written: blocks are those of all tokens but it.
void VllmScheduler::Finish(RequestId request, SlotId id, Step& step) {
  const RequestState state = in_.results.state[static_cast<std::size_t>(request)];
  if (state == RequestState::kTimedOut) return;
  if (machine_.HandsOver(request)) return HandOn(request, id, step.end);
  if (state == RequestState::kQueued) {  // preempted with its last token in flight
    LeaveQueue(request);
    machine_.EndedInQueue();
  } else {
    Slot& slot = SlotAt(id);
    const std::int64_t free = kv_.free();
    const bool findable = in_.inbox->HasNextTurn(request);
    if (drafts_) {
      LeaveApart(id);
      ReleaseBlocks(slot, 0, findable);
    } else {
      --endings_;
      kv_.Release(slot.holding, request, kv_.BlocksFor(slot.computed), slot.computed, findable);
    }
    LeaveGarbage(free);
    RemoveFromRunning(id);
  }
  machine_.Finish(request, machine_.OutputLimit(request), step);
}

// ---- Many steps at once --------------------------------------------------------------------

// Up to the first that ends a decode; none when a schedule call could change the batch now.
const DecodeRun* VllmScheduler::RunOfDecodes() {
  const DecodeGroup& group = *group_;
  DecodeRun& run = run_;
  run.blocked = BlockedBy::kNothing;
  const bool seats = running_ < in_.engine.max_num_seqs;
  if (!arrived_.empty()) {
    if (seats) return nullptr;
    run.blocked = BlockedBy::kSeats;
  }
  if (seats_.any()) {
    if (seats_.waiting() > 0) return nullptr;
    seats_.BeginStep();
    run.lora = seats_.OfGroup(1);
  }
  if (queue_.size() > 0) {
    const RequestId head = queue_.Head();
    if (seats_.any() && !seats_.MaySeat(head)) return nullptr;
    const std::int64_t budget = rules_.budget - group.size();
    run.blocked = NoRoom(budget);
    if (run.blocked == BlockedBy::kNothing) {
      if (HasImages(head)) return nullptr;  // to look at them takes hold of some
      run.blocked = HeadBlockedBy(head, Free() - group.due() - group.windows_due(), budget);
    }
    if (run.blocked == BlockedBy::kNothing) return nullptr;
    if (run.blocked == BlockedBy::kKvBlocks && garbage_.blocks > 0) return nullptr;
    // A cached block that no request holds costs a first chunk more than a lost one, and a whole
    // prompt more than its copy that one holds: the decodes may take it and so let the head in.
    // What it finds in the tiers may be lost or become more by what the decodes overwrite.
    const bool may_gain = !in_.engine.scheduler_reserve_full_isl || hit_.copied;
    const bool may_lose = hit_.idle > 0 || hit_.stored > 0;
    if (run.blocked == BlockedBy::kKvBlocks && may_lose && may_gain) return nullptr;
    // So a prompt that a step takes whole or not at all may begin to fit it, or no longer: then it
    // waits for tokens, not for blocks.
    const bool whole = !in_.engine.enable_chunked_prefill;
    if (whole && kv_.tiered() && run.blocked != BlockedBy::kSeats) return nullptr;
    if (whole && hit_.idle > 0 && run.blocked == BlockedBy::kKvBlocks) return nullptr;
  }
  run.closed = !seats || (run.blocked != BlockedBy::kNothing && !queue_.by_key());
  run.comers_blocked = BlockedBy::kSeats;
  run.decodes = group_;
  run.most = run.last = group.last_step() - group.step() + 1;
  run.spare = garbage_.blocks;
  run.kv_unused = UnusedBeside() + group.room();
  return &run;
}

void VllmScheduler::EndsMember(Step& step) {
  Outputs& outputs = OutputsOf(step);
  outputs.first.clear();
  outputs.last.clear();
  outputs.images.clear();
  outputs.group = group_;
  step.plain = false;
  EndDecodes(outputs);
}

// Foresees what a run would do.
std::optional<TimeNs> VllmScheduler::QuietUntil() {
  const TimeNs now = machine_.now();
  const bool decodes_only = group_->size() > 0 && apart_.empty() && endings_ == 0 &&
                            queue_.size() == 0 && incoming_.empty() && !machine_.withholds();
  if (!decodes_only || staged() || in_.windows.any() || seats_.any() || garbage_.blocks > 0 ||
      in_.latency.PreemptionWeight() != 0 || in_.inbox->NextEnqueue() != kNever) {
    return now;
  }
  // What ends leaves at `time`.
  const TimeNs time = group_->QuietUntil(in_.latency, machine_.StartTime(), kv_.free());
  return std::max(std::min(time - 1, in_.inbox->NextTimeout()), now);
}

// ---- Moves of one request ------------------------------------------------------------------

void VllmScheduler::JoinDecodes(SlotId id) {
  Slot& slot = SlotAt(id);
  const auto r = static_cast<std::size_t>(slot.request);
  const std::int64_t generated = slot.computed + 1 - in_.requests.prompt_tokens[r];
  slot.phase = Phase::kDecode;
  slot.group = group_;
  if (seats_.any()) seats_.JoinGroup(slot.request);
  slot.ahead = group_->Join(id, slot.computed, machine_.OutputLimit(slot.request) - generated,
                            slot.admission);
}

// The caller says what it is now.
void VllmScheduler::LeaveDecodes(SlotId id) {
  Slot& slot = SlotAt(id);
  slot.computed = ComputedNow(slot);
  slot.busy_until = slot.group->end;
  slot.group->Leave(id, slot.ahead);
  if (seats_.any()) seats_.LeaveGroup(slot.request);
  CountDecodesBefore(slot.admission, -1);
}

void VllmScheduler::LeaveApart(SlotId id) {
  apart_.erase(std::find(apart_.begin(), apart_.end(), id));
}

bool VllmScheduler::GiveUp(RequestId request) {
  const auto r = static_cast<std::size_t>(request);
  if (images_) images_->Drop(request);
  if (in_.results.state[r] == RequestState::kQueued) {
    if (!GiveUpTransfer(request)) LeaveQueue(request);
    machine_.QueueChanged();
    if (!held_.empty()) GiveUpHeld(request);
  } else if (in_.results.state[r] == RequestState::kRunning) {
    GiveUpRunning(slot_of_[r]);
  }
  return true;
}

void VllmScheduler::GiveUpRunning(SlotId id) {
  Slot& slot = SlotAt(id);
  const auto r = static_cast<std::size_t>(slot.request);
  if (drafts_) GiveUpDrafted(id);
  const bool in_flight = slot.phase != Phase::kApart && InFlight(slot);
  const std::int64_t computed = ComputedNow(slot);
  if (slot.phase != Phase::kApart) {
    in_.results.generated[r] = static_cast<std::int32_t>(
        computed + 1 - in_.requests.prompt_tokens[r] - (in_flight ? 1 : 0));
  }
  if (in_flight) {  // its token is made, but no client reads it
    const bool decoded = computed > slot.joined_with;
    if (staged()) {
      machine_.LoseTokenAt(BusyUntil(slot), decoded);
    } else {
      Machine::LoseToken(machine_.Newest(), decoded);
    }
  }
  if (slot.phase == Phase::kDecode) {
    LeaveDecodes(id);
  } else if (slot.phase == Phase::kApart) {
    LeaveApart(id);
  } else {
    --endings_;
  }
  const std::int64_t free = kv_.free();
  ReleaseBlocks(slot, 0, false);
  LeaveGarbage(free);
  RemoveFromRunning(id);
}

// ---- Running list --------------------------------------------------------------------------

VllmScheduler::SlotId VllmScheduler::AddToRunning(RequestId request) {
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
  if (drafts_) slot.of_drafts = {};
  slot.priority = machine_.policy().PriorityOf(request);
  slot.phase = Phase::kApart;
  slot.decodes = false;
  slot.kind = in_.results.preemptions[r] > 0 ? MemberKind::kResumed : MemberKind::kNew;
  (last_ == kNoSlot ? first_ : SlotAt(last_).next) = id;
  last_ = id;
  ++running_;
  in_.results.state[r] = RequestState::kRunning;
  if (!slot_of_.empty()) slot_of_[r] = id;
  return id;
}

void VllmScheduler::RemoveFromRunning(SlotId id) {
  Slot& slot = SlotAt(id);
  slot.admission = -1;
  (slot.previous == kNoSlot ? first_ : SlotAt(slot.previous).next) = slot.next;
  (slot.next == kNoSlot ? last_ : SlotAt(slot.next).previous) = slot.previous;
  free_slots_.push_back(id);
  --running_;
}

void VllmScheduler::CountDecodesBefore(std::int64_t admission, std::int64_t change) {
  for (const SlotId id : apart_) {
    if (SlotAt(id).admission > admission) SlotAt(id).decodes_before += change;
  }
}

// ---- For others ----------------------------------------------------------------------------

const PrefixCacheReport& VllmScheduler::prefix_cache() {
  cached_.report.evicted_blocks = kv_.Evicted();
  return cached_.report;
}

KvOffloadReport VllmScheduler::kv_offload() const {
  KvOffloadReport report = kv_.OffloadReport();
  for (std::size_t i = 0; i < kKvTiers; ++i) {
    report.tiers[i].hit_blocks = cached_.tiers[i];
    report.tiers[i].hit_tokens = cached_.tiers[i] * kv_.block_size();
  }
  return report;
}

void VllmScheduler::WriteProgress(std::vector<std::int32_t>& generated) const {
  for (SlotId id = first_; id != kNoSlot; id = SlotAt(id).next) {
    const Slot& slot = SlotAt(id);
    if (slot.phase == Phase::kApart) continue;
    const auto r = static_cast<std::size_t>(slot.request);
    const std::int64_t ahead =
        slot.phase == Phase::kVerify ? AheadInGroup() : std::int64_t{InFlight(slot) ? 1 : 0};
    generated[r] =
        static_cast<std::int32_t>(ComputedNow(slot) + 1 - in_.requests.prompt_tokens[r] - ahead);
  }
}

void VllmScheduler::Observe(StepRecord& record) const {
  std::size_t verified = 0;  // outputs of them so far
  for (SlotId id = first_; id != kNoSlot; id = SlotAt(id).next) {
    const Slot& slot = SlotAt(id);
    if (slot.phase == Phase::kDecode && slot.group == group_) {
      record.members.push_back({slot.request, 1, ComputedNow(slot), MemberKind::kContinued, 1});
    } else if (slot.phase == Phase::kApart && slot.chunk > 0) {
      Verified made{.made = Samples(slot) ? 1 : 0};
      if (drafts_ && Samples(slot)) made = drafts_->forming.outputs[verified++];
      record.members.push_back({slot.request, slot.chunk, slot.computed, slot.kind, made.made,
                                made.drafts, made.accepted});
    } else if (slot.phase == Phase::kVerify) {
      const DraftGroup& group = drafts_->group;
      const std::int64_t accepted = group.AcceptedNow(slot.of_drafts.place);
      record.members.push_back({slot.request, group.tokens(), ComputedNow(slot) - group.tokens(),
                                MemberKind::kContinued, 1 + accepted, group.drafts(), accepted});
    }
  }
}

}  // namespace servecast
