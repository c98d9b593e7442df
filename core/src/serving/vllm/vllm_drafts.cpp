// Decodes with drafts, by rules S1 to S31 of the golden traces with drafts. What a step asks for
// and gets is one rule with all others' (vllm_grants.cpp); here is what becomes of it.
//
// A number of drafts is drawn as the step is scheduled that verifies them. What follows from it the
// scheduler may know only when the step's outputs are applied: `computed` and `placeholders` are
// vLLM's own counters, optimistic with async scheduling. What the machine has to know at once, the
// tokens that a step will deliver, follows from `coming`, which vLLM has not.
//
// How far a decode advances is its own, so each is looked at in each step. But those of whom a step
// asks nothing but how many drafts are accepted are apart from these, as columns (DraftGroup):
// every rule holds for its members, but only where it says no more than this: each computes its
// token and all drafts, and gets a block where these need one. They join and leave before a
// schedule call; steps that might lack tokens or blocks are formed without it.
#include <algorithm>
#include <utility>

#include "serving/vllm/vllm_scheduler.h"

namespace servecast {

VllmScheduler::Drafts::Drafts(const ReplicaInput& in, const DraftRules& rules,
                              std::size_t steps_in_flight)
    : acceptance(in.engine.speculative, in.requests, in.seed),
      group(rules, acceptance, in.engine.block_size, steps_in_flight),
      steps(steps_in_flight),
      token_delay(in.latency.OutputTokenDelay()) {}

void VllmScheduler::StartDrafts() {
  in_.scratch.draws.resize(in_.requests.arrival.size());
  drafts_ = std::make_unique<Drafts>(in_, rules_, machine_.most_in_flight());
  drafts_->groups = MayGroup();
}

// ---- One step ------------------------------------------------------------------------------

// Before a schedule call. The group gets what it asks for, and its drafts' fate is drawn.
void VllmScheduler::BeginDrafts(Call& call) {
  GatherGroup();
  DraftGroup& group = drafts_->group;
  if (group.empty()) return;
  const std::int64_t members = group.size(), blocks = group.blocks();
  call.budget -= members * group.tokens();
  const std::int64_t accepted = group.Begin();
  kv_.Take(group.blocks() - blocks, machine_.now());
  drafts_->group_made = members + accepted;
  machine_.Verified(members, members * group.drafts(), accepted, accepted);
}

// What the outputs of those apart will be.
void VllmScheduler::DrawOutputs() {
  VerifiedStep& step = drafts_->forming;
  step.outputs.clear();
  std::int64_t members = 0, makers = 0, tokens = 0;
  std::int64_t verified = 0, all_drafts = 0, all_accepted = 0;
  for (const SlotId id : apart_) {
    Slot& slot = SlotAt(id);
    Drafted& d = slot.of_drafts;
    if (slot.chunk == 0) continue;
    ++members;
    const bool verifies = d.drafts > 0;
    d.drafts = 0;
    if (!Samples(slot)) continue;  // S8
    // S5: the token that is due comes first, a cut takes the last drafts.
    std::int64_t drafts = slot.computed + slot.chunk - slot.known - d.placeholders, accepted = 0;
    if (verifies && drafts > 0) {
      const auto r = static_cast<std::size_t>(slot.request);
      const std::int64_t n = in_.scratch.draws[r].verified++;
      accepted = drafts_->acceptance.Accepted(slot.request, n, drafts);
      ++verified;
      all_drafts += drafts;
      all_accepted += accepted;
    } else if (!d.padded) {
      drafts = 0;
    }
    const std::int64_t made = std::min(1 + accepted, d.most - slot.known - d.coming);
    makers += made > 0 ? 1 : 0;
    tokens += made;
    step.outputs.push_back({slot.request, id, slot.admission, static_cast<std::int32_t>(drafts),
                            static_cast<std::int32_t>(accepted), static_cast<std::int32_t>(made),
                            slot.decodes});
  }
  step.members = members;
  step.makers = makers;
  step.tokens = tokens;
  machine_.Verified(verified, all_drafts, all_accepted, tokens - makers);
}

void VllmScheduler::FillGroup(StepPlan& plan) {
  const DraftGroup& group = drafts_->group;
  if (group.empty()) return;
  const std::int64_t members = group.size();
  machine_.CountDelay(plan, group.last_step(), members);
  plan.shape.decode_kv_blocks += group.blocks();
  AddDrafted(plan.drafted, group.tokens(), group.computed() - members * group.tokens(), members);
  plan.kv_unused += group.blocks() * kv_.block_size() - group.computed();
}

// Counts the step's tokens as computed, as vLLM does before its results are known.
void VllmScheduler::AdvanceDrafted(Step& step) {
  VerifiedStep& made = drafts_->steps[step.place];
  std::swap(made, drafts_->forming);
  const std::int64_t next = rules_.After(made.members);
  const bool async = in_.engine.async_scheduling;
  step.plain = false;
  step.sampled = made.tokens;
  step.made = made.makers;
  auto output = made.outputs.begin();
  for (const SlotId id : apart_) {
    Slot& slot = SlotAt(id);
    if (slot.chunk == 0) continue;
    slot.computed += slot.chunk;
    slot.kind = MemberKind::kContinued;
    slot.busy_until = step.end;
    if (output == made.outputs.end() || output->slot != id) {
      slot.decodes = false;
      continue;
    }
    Drafted& d = slot.of_drafts;
    const std::int64_t makes = output->made, drafts = output->drafts;
    ++output;
    if (!slot.decodes) CountPrefill(slot, step.end);
    slot.decodes = true;
    d.padded = false;
    ++d.in_flight;
    d.coming += makes;
    if (makes > 0 && Made(slot)) CountDecode(slot, *group_);
    if (!async) continue;
    d.placeholders += 1 + drafts;  // S22
    d.drafts = next;
  }
  DraftGroup& group = drafts_->group;
  if (group.empty()) return;
  step.sampled += drafts_->group_made;
  step.made += group.size();
  group.Launched(step.place, step.end);
}

// Gaps of one length that follow each other become one sample.
[[gnu::always_inline]] void VllmScheduler::CountGap(const Step& step, TimeNs gap) {
  Drafts& d = *drafts_;
  if (d.gaps > 0 && gap != d.gap) machine_.NextToken(step, d.gap, std::exchange(d.gaps, 0));
  d.gap = gap;
  ++d.gaps;
}

// Unless it has ended meanwhile. `next`: drafts of its next step.
[[gnu::always_inline]] void VllmScheduler::Deliver(const Verified& output, Step& step,
                                                   std::int64_t next) {
  const auto r = static_cast<std::size_t>(output.request);
  Slot& slot = SlotAt(output.slot);
  const bool runs = slot.admission == output.admission, async = in_.engine.async_scheduling;
  if (!runs && in_.results.state[r] != RequestState::kQueued) return;
  const std::int64_t generated = in_.results.generated[r] + output.made;
  in_.results.generated[r] = static_cast<std::int32_t>(generated);
  if (generated == output.made) {
    machine_.FirstToken(output.request, step);
  } else {
    // A client gets all of them at once; what delays each of them adds up.
    CountGap(step, step.end - last_token_[r] + (output.made - 1) * drafts_->token_delay);
  }
  last_token_[r] = step.end;
  if (!runs) {  // a victim
    if (generated == machine_.OutputLimit(output.request)) {
      Finish(output.request, output.slot, step);
    }
    return;
  }
  Drafted& d = slot.of_drafts;
  const std::int64_t rejected = output.drafts - output.accepted;
  slot.computed -= rejected;  // S10
  slot.known += output.made;
  d.coming -= output.made;
  --d.in_flight;
  if (async) {
    d.placeholders -= rejected + output.made;        // S23
    Register(slot, slot.computed - d.placeholders);  // S20
  }
  if (slot.known == d.most) {
    Finish(output.request, output.slot, step);
  } else if (!async) {
    d.drafts = rules_.varies ? ProposedFor(slot, next) : next;  // S12
  }
}

// By a drafter that has seen the step's output.
std::int64_t VllmScheduler::ProposedFor(const Slot& slot, std::int64_t most) const {
  const std::int64_t n = in_.scratch.draws[static_cast<std::size_t>(slot.request)].proposed++;
  const std::int64_t proposed = drafts_->acceptance.Proposed(slot.request, n, most);
  return std::max<std::int64_t>(0, std::min(proposed, in_.max_model_len - slot.known));
}

void VllmScheduler::ApplyDrafted(Step& step) {
  Drafts& d = *drafts_;
  const VerifiedStep& made = d.steps[step.place];
  const std::int64_t next = rules_.After(made.members);
  for (const Verified& output : made.outputs) Deliver(output, step, next);
  if (!d.group.empty()) DeliverGroup(step);
  if (d.gaps > 0) machine_.NextToken(step, d.gap, std::exchange(d.gaps, 0));
}

// What steps in flight make of it no client reads.
void VllmScheduler::GiveUpDrafted(SlotId id) {
  if (SlotAt(id).phase == Phase::kVerify) LeaveGroup(id);
  for (std::size_t i = 0; i < machine_.in_flight(); ++i) {
    Step& step = machine_.InFlight(i);
    for (const Verified& output : drafts_->steps[step.place].outputs) {
      if (output.request == SlotAt(id).request) step.sampled -= output.made;
    }
  }
}

// ---- The group -----------------------------------------------------------------------------

// Whether drafts are the same number for all, one block more is always enough, and no windows take
// another.
bool VllmScheduler::MayGroup() const {
  const std::int64_t threshold = in_.engine.long_prefill_token_threshold;
  return !rules_.varies && !in_.windows.any() && rules_.by_members.empty() &&
         drafts_->acceptance.Draws() && 1 + rules_.most <= kv_.block_size() &&
         (threshold == 0 || threshold >= 1 + rules_.most);
}

// Before a schedule call: who may not be in the next step leaves, who is alike joins; if the step
// may lack something, there is no group.
void VllmScheduler::GatherGroup() {
  if (!drafts_->groups) return;
  DraftGroup& group = drafts_->group;
  while (!group.empty()) {
    const DraftGroup::Place place = group.Ending();
    if (place < 0) break;
    LeaveGroup(group.ids()[static_cast<std::size_t>(place)]);
  }
  if (Free() >= running_ && rules_.budget > running_ * group.tokens()) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < apart_.size(); ++i) {
      const SlotId id = apart_[i];
      if (Joins(SlotAt(id))) {
        JoinGroup(id);
      } else {
        apart_[kept++] = id;
      }
    }
    apart_.resize(kept);
  }
  if (group.empty() || Suffices(rules_.budget)) return;
  while (!group.empty()) LeaveGroup(group.ids().back());
}

// It was in all steps in flight as it will be in the next, and in each made all it could.
bool VllmScheduler::Joins(const Slot& slot) const {
  const Drafted& d = slot.of_drafts;
  const DraftGroup& group = drafts_->group;
  const auto r = static_cast<std::size_t>(slot.request);
  if (!slot.decodes || d.drafts != group.drafts()) return false;
  if (d.in_flight != machine_.in_flight()) return false;
  if (!group.empty() &&
      (slot.busy_until != group.last_step() || last_token_[r] != group.last_token()))
    return false;
  if (slot.computed + 1 + group.tokens() >= d.most ||  // it may have made so many yet
      slot.computed + group.tokens() + rules_.lookahead > in_.max_model_len) {
    return false;
  }
  for (std::size_t i = 0; i < machine_.in_flight(); ++i) {
    const std::vector<Verified>& members = drafts_->steps[machine_.InFlight(i).place].outputs;
    const auto member = std::find_if(members.begin(), members.end(), [&slot](const Verified& m) {
      return m.request == slot.request;
    });
    if (member->drafts != group.drafts() || !member->decodes) return false;
  }
  return true;
}

void VllmScheduler::JoinGroup(SlotId id) {
  Slot& slot = SlotAt(id);
  DraftGroup& group = drafts_->group;
  const auto r = static_cast<std::size_t>(slot.request);
  if (group.empty()) {
    group.StartAt(slot.busy_until, last_token_[r]);
    drafts_->newest = 0;
  }
  const std::int64_t before_end = slot.of_drafts.most - group.tokens() - 2;
  const std::int64_t before_cap = in_.max_model_len - group.tokens() - rules_.lookahead;
  const DraftGroup::Place place = group.Join({.id = id,
                                              .computed = slot.computed,
                                              .blocks = slot.blocks,
                                              .last = std::min(before_end, before_cap),
                                              .draws = in_.scratch.draws[r].verified},
                                             slot.request);
  slot.phase = Phase::kVerify;
  slot.of_drafts.place = place;
  drafts_->newest = std::max(drafts_->newest, slot.admission);
  if (seats_.any()) seats_.JoinGroup(slot.request);
  for (std::size_t i = 0; i < machine_.in_flight(); ++i) {
    const std::size_t step = machine_.InFlight(i).place;
    std::vector<Verified>& members = drafts_->steps[step].outputs;
    const auto member = std::find_if(members.begin(), members.end(), [&slot](const Verified& m) {
      return m.request == slot.request;
    });
    group.SetAccepted(step, place, member->accepted);
    members.erase(member);
  }
}

// What the group did not write down for each follows from how many tokens it has computed.
void VllmScheduler::LeaveGroup(SlotId id) {
  Slot& slot = SlotAt(id);
  Drafted& d = slot.of_drafts;
  DraftGroup& group = drafts_->group;
  const auto r = static_cast<std::size_t>(slot.request);
  d.in_flight = machine_.in_flight();
  d.coming = 0;
  for (std::size_t i = 0; i < d.in_flight; ++i) {
    const std::size_t step = machine_.InFlight(i).place;
    const std::int64_t accepted = group.AcceptedIn(step, d.place);
    drafts_->steps[step].outputs.push_back({.request = slot.request,
                                            .slot = id,
                                            .admission = slot.admission,
                                            .drafts = static_cast<std::int32_t>(group.drafts()),
                                            .accepted = static_cast<std::int32_t>(accepted),
                                            .made = static_cast<std::int32_t>(1 + accepted),
                                            .decodes = true});
    d.coming += 1 + accepted;
  }
  const bool async = in_.engine.async_scheduling;
  const std::int64_t last_made = async ? 1 : 1 + group.AcceptedIn(0, d.place);
  const DraftGroup::Member member = group.Leave(d.place);
  if (!group.empty() && static_cast<std::size_t>(d.place) < group.ids().size()) {
    SlotAt(group.ids()[static_cast<std::size_t>(d.place)]).of_drafts.place = d.place;
  }
  if (seats_.any()) seats_.LeaveGroup(slot.request);
  const std::int64_t ahead = AheadInGroup();
  slot.phase = Phase::kApart;
  slot.decodes = true;
  slot.computed = member.computed;
  slot.blocks = member.blocks;
  slot.known = slot.computed + 1 - ahead;
  slot.busy_until = group.last_step();
  d.place = -1;
  d.placeholders = async ? ahead : 0;
  // S19: what was known as its latest step was scheduled; S20: or all but the last token since.
  std::int64_t& draws = in_.scratch.draws[r].verified;
  if (member.draws > draws) d.registered = slot.known - last_made;
  draws = member.draws;
  last_token_[r] = group.last_token();
  in_.results.generated[r] = static_cast<std::int32_t>(slot.known - in_.requests.prompt_tokens[r]);
  const auto after = std::find_if(apart_.begin(), apart_.end(), [this, &slot](SlotId other) {
    return SlotAt(other).admission > slot.admission;
  });
  apart_.insert(after, id);
}

// Whether the group and, of those apart, whoever comes before one of it get all they ask for, and
// none of these has to give way for blocks.
bool VllmScheduler::Suffices(std::int64_t budget) const {
  const DraftGroup& group = drafts_->group;
  budget -= group.size() * group.tokens();
  std::int64_t free = Free();
  for (const SlotId id : apart_) {
    const Slot& slot = SlotAt(id);
    const std::int64_t asked = CutToThreshold(Asked(slot));
    if (asked > budget && slot.admission < drafts_->newest) return false;
    const std::int64_t tokens = std::min(asked, budget);
    budget -= tokens;
    free -= Taken(slot.blocks, BlocksWith(slot, tokens));
  }
  return budget >= 0 && (free >= group.size() || free >= group.Due());
}

void VllmScheduler::DeliverGroup(const Step& step) {
  DraftGroup& group = drafts_->group;
  const TimeNs gap = step.end - group.last_token();
  if (drafts_->token_delay == 0) {
    machine_.NextToken(step, gap, group.size());
  } else {
    const std::vector<std::int64_t>& tally = group.Tally(step.place);
    for (std::size_t accepted = 0; accepted < tally.size(); ++accepted) {
      if (tally[accepted] == 0) continue;
      const TimeNs delays = static_cast<TimeNs>(accepted) * drafts_->token_delay;
      machine_.NextToken(step, gap + delays, tally[accepted]);
    }
  }
  group.Apply(step.place, step.end);
}

}  // namespace servecast
