// See sequence_scheduler.h; a schedule call is in sequence_grants.cpp.
#include "serving/replica/sequence_scheduler.h"

#include <algorithm>
#include <utility>

namespace servecast {

std::unique_ptr<Scheduler> MakeSequenceScheduler(Replica& replica) {
  return std::make_unique<SequenceScheduler>(replica);
}

namespace {

std::vector<std::int32_t>& PlacesOf(const ReplicaInput& in) {
  in.scratch.slot.resize(in.requests.arrival.size(), -1);
  return in.scratch.slot;
}

}  // namespace

SequenceScheduler::SequenceScheduler(Replica& replica)
    : Scheduler({}),
      replica_(replica),
      in_(replica.input()),
      kv_(replica.kv()),
      rules_(in_.engine),
      acceptance_(in_.engine.speculative, in_.requests, in_.seed),
      async_(in_.engine.async_scheduling),
      token_delay_(in_.latency.OutputTokenDelay()),
      watermark_blocks_(
          static_cast<std::int64_t>(in_.engine.watermark * static_cast<double>(in_.pool_blocks))),
      victim_by_priority_(replica.policy().victim_by_priority()),
      id_of_(PlacesOf(in_)),
      group_(rules_, acceptance_, in_.engine.block_size, replica.most_in_flight()),
      groups_(MayGroup()),
      waiting_(in_.results.state, replica.policy().by_key()),
      steps_(replica.most_in_flight()) {}

void SequenceScheduler::Enqueue(RequestId request) {
  const auto r = static_cast<std::size_t>(request);
  Id id = static_cast<Id>(sequences_.size());
  if (free_.empty()) {
    sequences_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  Sequence& s = At(id) = Sequence{};
  s.request = request;
  s.prompt = in_.requests.prompt_tokens[r];
  s.asked = in_.requests.output_tokens[r];
  s.limit = replica_.OutputLimit(request);
  s.lora = in_.requests.lora.empty() ? 0 : in_.requests.lora[r];
  s.priority = replica_.policy().PriorityOf(request);
  id_of_[r] = id;
  waiting_.Push(replica_.policy().KeyOf(request), in_.requests.arrival[r], request);
}

// ---- One step ------------------------------------------------------------------------------

Formed SequenceScheduler::Form(StepPlan& plan) {
  if (!HasRequests()) return Formed::kNothing;
  members_.clear();
  std::int64_t budget = rules_.budget;
  GatherGroup();
  if (!group_.empty()) BeginGroup(budget);
  GrantRunning(plan, budget);
  if (plan.preempted.empty()) {
    Admit(plan, budget);
  } else {
    plan.blocked = BlockedBy::kKvBlocks;
    ++tokenless_calls_;
  }
  replica_.SmoothPreemptions(plan.preempted.size(), running());
  if (members_.empty() && group_.empty())
    return plan.preempted.empty() ? Formed::kNothing : Formed::kAgain;
  Advance();
  Fill(plan);
  return Formed::kStep;
}

// Counts the step's tokens as computed, as vLLM does before its results are known, and draws what
// these will be.
void SequenceScheduler::Advance() {
  const std::int64_t next = rules_.After(static_cast<std::int64_t>(members_.size()));
  for (Member& member : members_) {
    Sequence& s = At(member.id);
    s.computed += member.tokens;
    ++s.in_flight;
    member.counts = !s.Made();
    member.yields = s.computed >= s.Known() + s.placeholders;  // S8
    s.prefilling = !member.yields;
    if (!member.yields) continue;
    if (member.drafts > 0 && !member.padded) {
      member.accepted = acceptance_.Accepted(s.request, s.verified++, member.drafts);
    }
    member.made = std::min(1 + member.accepted, s.limit - s.generated - s.coming);
    s.coming += member.made;
    if (member.drafts > 0 && !member.padded) {
      const std::int64_t used = std::max<std::int64_t>(0, member.made - 1);
      replica_.Verified(1, member.drafts, member.accepted, used);
    }
    if (!async_) continue;
    s.placeholders += 1 + member.drafts;  // S22
    s.drafts = next;
  }
}

void SequenceScheduler::Fill(StepPlan& plan) {
  const TimeNs start = replica_.StartTime();
  for (const Member& member : members_) {
    Sequence& s = At(member.id);
    const auto r = static_cast<std::size_t>(member.request);
    if (in_.results.first_scheduled[r] < 0) in_.results.first_scheduled[r] = start;
    if (member.kind != MemberKind::kContinued) s.began = start;
    if (member.kind == MemberKind::kResumed) {
      Setbacks& setbacks = in_.results.SetbacksOf(r);
      setbacks.preempted += start - setbacks.preempted_at;
      if (s.to_recompute == 0) setbacks.preempted_to_first = setbacks.preempted;
    }
    if (member.kind != MemberKind::kNew) {
      if (s.last_step >= start) {
        ++plan.in_turn;
      } else {
        in_.recorder.StepDelay(start, start - s.last_step, 1);
      }
    }
    if (!member.decodes) {
      plan.chunks.push_back({member.tokens, member.before, s.prompt, member.yields});
      continue;
    }
    plan.shape.decode_kv_blocks += s.blocks;
    if (member.tokens > 1) {
      AddDrafted(plan.drafted, member.tokens, member.before);
    } else {
      ++plan.shape.decode_seqs;
      plan.shape.decode_context_tokens += member.before;
    }
  }
  for (const Id id : apart_) {
    plan.kv_unused += At(id).blocks * kv_.block_size() - At(id).computed;
  }
  if (!group_.empty()) FillGroup(plan, start);
  if (!in_.requests.lora.empty()) CountAdapters(plan);
}

void SequenceScheduler::CountAdapters(StepPlan& plan) {
  adapters_.clear();
  for (const OfAdapter& each : group_adapters_) adapters_.push_back(each.lora);
  AdapterWork& work = plan.shape.lora;
  work.tokens = adapted_in_group_ * group_.tokens();
  for (const bool decodes : {true, false}) {
    for (const Member& member : members_) {
      const std::int32_t lora = At(member.id).lora;
      if (lora == 0 || member.decodes != decodes) continue;
      work.tokens += member.tokens;
      AddAdapter(lora);
    }
    work.adapters = static_cast<std::int64_t>(adapters_.size());
    if (decodes) plan.decodes_lora = work;
  }
}

void SequenceScheduler::Launched(Step& step, const StepPlan& plan, TimeNs interference) {
  // Without decodes in it, it is no prefill that makes one wait.
  if (plan.shape.decode_seqs == 0 && plan.drafted.empty()) interference = 0;
  step.plain = false;
  step.sampled = step.made = 0;
  for (const Member& member : members_) {
    Sequence& s = At(member.id);
    const auto r = static_cast<std::size_t>(member.request);
    step.sampled += member.made;
    step.made += member.made > 0 ? 1 : 0;
    s.last_step = step.end;
    if (member.yields && !member.decodes && s.to_recompute > 0) {
      in_.results.SetbacksOf(r).recompute += step.end - s.began;
    }
    if (member.decodes && member.counts) in_.results.interference[r] += interference;
  }
  if (!group_.empty()) {
    step.sampled += group_made_;
    step.made += group_.size();
    group_.Launched(step.place, step.end, interference);
  }
  if (step.sampled > 0 && tokenless_calls_ < kMostTokenlessCalls) tokenless_calls_ = 0;
  if (interference > 0 && members_.size() < apart_.size()) {  // those that sit it out
    for (const Id id : apart_) {
      const Sequence& s = At(id);
      const bool in_it = s.last_step == step.end;
      if (in_it || s.prefilling || s.Made()) continue;
      in_.results.interference[static_cast<std::size_t>(s.request)] += interference;
    }
  }
  steps_[step.place].swap(members_);
}

void SequenceScheduler::Apply(Step& step) {
  const std::vector<Member>& members = steps_[step.place];
  for (const Member& member : members) Deliver(member, step);
  if (!group_.empty()) DeliverGroup(step);
  if (gaps_ > 0) replica_.NextToken(step, gap_, std::exchange(gaps_, 0));
  if (!async_ && rules_.most > 0) ProposeAfter(members);
}

// What a member's step made, unless it has ended meanwhile.
void SequenceScheduler::Deliver(const Member& member, Step& step) {
  Sequence& s = At(member.id);
  if (s.request != member.request) return;
  --s.in_flight;
  if (!member.yields) return;
  const std::int64_t rejected = member.drafts - member.accepted;
  if (s.running) {  // S10, S23; not of a victim
    s.computed -= rejected;
    if (async_) s.placeholders -= rejected + member.made;
  }
  s.generated += member.made;
  s.coming -= member.made;
  if (s.running && async_) Register(s, s.computed - s.placeholders);  // S20
  in_.results.generated[static_cast<std::size_t>(s.request)] =
      static_cast<std::int32_t>(s.generated);
  if (s.generated == member.made) {
    replica_.FirstToken(s.request, step);
  } else {
    // A client gets all of them at once; what delays each of them adds up.
    CountGap(step, step.end - s.last_token + (member.made - 1) * token_delay_);
  }
  s.last_token = step.end;
  if (s.generated == s.limit) Finish(member.id, step);
}

// Gaps of one length that follow each other become one sample.
void SequenceScheduler::CountGap(const Step& step, TimeNs gap) {
  if (gaps_ > 0 && gap != gap_) replica_.NextToken(step, gap_, std::exchange(gaps_, 0));
  gap_ = gap;
  ++gaps_;
}

// S12: the drafter has seen the step's output.
void SequenceScheduler::ProposeAfter(const std::vector<Member>& members) {
  const std::int64_t most = rules_.After(static_cast<std::int64_t>(members.size()));
  for (const Member& member : members) {
    Sequence& s = At(member.id);
    if (s.request != member.request || !member.yields) continue;
    s.drafts = most;
    if (!rules_.varies) continue;
    s.drafts =
        std::max<std::int64_t>(0, std::min(acceptance_.Proposed(s.request, s.proposed++, most),
                                           in_.max_model_len - s.Known()));
  }
}

void SequenceScheduler::Finish(Id id, Step& step) {
  Sequence& s = At(id);
  if (s.running) {
    Release(s, in_.inbox.HasNextTurn(s.request));
    LeaveRunning(id);
  } else {
    LeaveQueue(s);
    replica_.EndedInQueue();
  }
  replica_.Finish(s.request, s.generated, step);
  Free(id);
}

// ---- Moves of one sequence -----------------------------------------------------------------

void SequenceScheduler::Release(Sequence& s, bool findable) {
  kv_.Release(s.holding, s.request, s.blocks, s.registered, findable);
  s.blocks = s.registered = 0;
}

void SequenceScheduler::LeaveRunning(Id id) {
  running_.erase(std::find(running_.begin(), running_.end(), id));
  apart_.erase(std::find(apart_.begin(), apart_.end(), id));
  At(id).running = false;
}

bool SequenceScheduler::GiveUp(RequestId request) {
  const Id id = IdOf(request);
  Sequence& s = At(id);
  if (s.InGroup()) Leave(id);
  for (std::size_t i = 0; i < replica_.in_flight() && s.in_flight > 0; ++i) {
    Step& step = replica_.InFlight(i);
    for (const Member& member : steps_[step.place]) {  // made, but no client reads it
      if (member.request == request) step.sampled -= member.made;
    }
  }
  if (s.running) {
    Release(s, false);
    LeaveRunning(id);
  } else {
    LeaveQueue(s);
    replica_.QueueChanged();
  }
  Free(id);
  return true;
}

// ---- For others ----------------------------------------------------------------------------

const PrefixCacheReport& SequenceScheduler::prefix_cache() {
  cached_.evicted_blocks = kv_.Evicted();
  return cached_;
}

void SequenceScheduler::Observe(StepRecord& record) const {
  // Running sequences come in their order, and last those that were just admitted.
  auto member = members_.begin();
  for (const Id id : running_) {
    if (At(id).InGroup()) {
      ObserveGroup(id, record);
    } else if (member != members_.end() && member->id == id) {
      const Member& m = *member++;
      record.members.push_back(
          {m.request, m.tokens, m.before, m.kind, m.made, m.drafts, m.accepted});
    }
  }
}

}  // namespace servecast
