// Who is in the group of decodes that verify all their drafts, or have none (DraftGroup), and what
// a step is for all of them together. Every rule of sequence_scheduler.h holds for its members, but
// only where it says no more than this: each computes its token and all drafts, and gets a block
// where these need one.
#include <algorithm>
#include <utility>

#include "serving/replica/sequence_scheduler.h"

namespace servecast {

// Whether drafts are the same number for all, one block more is always enough, and no windows take
// another.
bool SequenceScheduler::MayGroup() const {
  const std::int64_t threshold = in_.engine.long_prefill_token_threshold;
  return !rules_.varies && !in_.windows.any() && rules_.by_members.empty() && acceptance_.Draws() &&
         1 + rules_.most <= kv_.block_size() && (threshold == 0 || threshold >= 1 + rules_.most);
}

// Before a schedule call: who may not be in the next step leaves, who is alike joins; if the step
// may lack something, there is no group.
void SequenceScheduler::GatherGroup() {
  if (!groups_) return;
  while (!group_.empty()) {
    const DraftGroup::Place place = group_.Ending();
    if (place < 0) break;
    Leave(group_.ids()[static_cast<std::size_t>(place)]);
  }
  const std::int64_t all = running();
  if (kv_.free() >= all && rules_.budget > all * group_.tokens()) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < apart_.size(); ++i) {
      const Id id = apart_[i];
      if (Joins(At(id))) {
        Join(id);
      } else {
        apart_[kept++] = id;
      }
    }
    apart_.resize(kept);
  }
  if (!group_.empty() && !Suffices(rules_.budget)) Scatter();
}

// It was in all steps in flight as it will be in the next, and in each made all it could.
bool SequenceScheduler::Joins(const Sequence& s) const {
  if (s.prefilling || s.drafts != group_.drafts() || s.generated == 0) return false;
  if (s.in_flight != static_cast<std::int64_t>(replica_.in_flight())) return false;
  if (!group_.empty() && (s.last_step != group_.last_step() || s.last_token != group_.last_token()))
    return false;
  const std::int64_t made_yet = s.computed - s.prompt + 1;  // at most
  if (made_yet + group_.tokens() >= s.limit ||
      s.computed + group_.tokens() + rules_.lookahead > in_.max_model_len) {
    return false;
  }
  for (std::size_t i = 0; i < replica_.in_flight(); ++i) {
    const std::vector<Member>& members = steps_[replica_.InFlight(i).place];
    const auto member = std::find_if(members.begin(), members.end(),
                                     [&s](const Member& m) { return m.request == s.request; });
    if (member->padded || member->drafts != group_.drafts() || !member->decodes) return false;
  }
  return true;
}

void SequenceScheduler::Join(Id id) {
  Sequence& s = At(id);
  if (group_.empty()) {
    group_.StartAt(s.last_step, s.last_token);
    newest_ = 0;
  }
  const std::int64_t before_end = s.prompt + s.limit - group_.tokens() - 2;
  const std::int64_t before_cap = in_.max_model_len - group_.tokens() - rules_.lookahead;
  s.place = group_.Join({.id = id,
                         .computed = s.computed,
                         .blocks = s.blocks,
                         .last = std::min(before_end, before_cap),
                         .draws = s.verified},
                        s.request);
  newest_ = std::max(newest_, s.order);
  CountInGroup(s.lora, 1);
  for (std::size_t i = 0; i < replica_.in_flight(); ++i) {
    const std::size_t step = replica_.InFlight(i).place;
    std::vector<Member>& members = steps_[step];
    const auto member =
        std::find_if(members.begin(), members.end(), [id](const Member& m) { return m.id == id; });
    group_.SetAccepted(step, s.place, member->accepted);
    members.erase(member);
  }
}

void SequenceScheduler::CountInGroup(std::int32_t lora, std::int64_t more) {
  if (lora == 0) return;
  adapted_in_group_ += more;
  const auto at = std::find_if(group_adapters_.begin(), group_adapters_.end(),
                               [lora](const OfAdapter& each) { return each.lora == lora; });
  if (at == group_adapters_.end()) return group_adapters_.push_back({lora, more});
  at->members += more;
  if (at->members == 0) group_adapters_.erase(at);
}

// What the group did not write down for each follows from how many tokens it has computed.
void SequenceScheduler::Leave(Id id) {
  Sequence& s = At(id);
  const auto r = static_cast<std::size_t>(s.request);
  const std::size_t in_flight = replica_.in_flight();
  const std::int64_t tokens = group_.tokens();
  s.coming = 0;
  for (std::size_t i = 0; i < in_flight; ++i) {
    const std::size_t step = replica_.InFlight(i).place;
    const std::int64_t accepted = group_.AcceptedIn(step, s.place);
    steps_[step].push_back({.id = id,
                            .request = s.request,
                            .tokens = tokens,
                            .drafts = group_.drafts(),
                            .accepted = accepted,
                            .made = 1 + accepted,
                            .decodes = true,
                            .yields = true,
                            .counts = true});
    s.coming += 1 + accepted;
  }
  const std::int64_t last_made = async_ ? 1 : 1 + group_.AcceptedIn(0, s.place);
  const DraftGroup::Member member = group_.Leave(s.place);
  if (!group_.empty() && static_cast<std::size_t>(s.place) < group_.ids().size()) {
    At(group_.ids()[static_cast<std::size_t>(s.place)]).place = s.place;
  }
  s.place = -1;
  CountInGroup(s.lora, -1);
  s.in_flight = static_cast<std::int64_t>(in_flight);
  const std::int64_t ahead = s.in_flight * tokens;
  s.computed = member.computed;
  s.blocks = member.blocks;
  s.placeholders = async_ ? ahead : 0;
  s.generated = s.computed + 1 - ahead - s.prompt;
  // S19: what was known as its latest step was scheduled; S20: or all but the last token since.
  if (member.draws > s.verified) s.registered = s.Known() - last_made;
  s.verified = member.draws;
  s.last_step = group_.last_step();
  s.last_token = group_.last_token();
  in_.results.interference[r] += group_.interference() - member.interference;
  in_.results.generated[r] = static_cast<std::int32_t>(s.generated);
  const auto after = std::find_if(apart_.begin(), apart_.end(),
                                  [this, &s](Id other) { return At(other).order > s.order; });
  apart_.insert(after, id);
}

void SequenceScheduler::Scatter() {
  while (!group_.empty()) Leave(group_.ids().back());
}

// Whether the group and, of those apart, whoever comes before one of it get all they ask for, and
// none of these has to give way for blocks.
bool SequenceScheduler::Suffices(std::int64_t budget) const {
  budget -= group_.size() * group_.tokens();
  std::int64_t free = kv_.free();
  for (const Id id : apart_) {
    const Sequence& s = At(id);
    const std::int64_t asked = Asked(s);
    if (asked > budget && s.order < newest_) return false;
    const std::int64_t tokens = std::min(asked, budget);
    budget -= tokens;
    free -= std::max<std::int64_t>(0, BlocksWith(s.computed + tokens) - s.blocks);
  }
  return budget >= 0 && (free >= group_.size() || free >= group_.Due());
}

// Its part of a schedule call, and the draws (Advance).
void SequenceScheduler::BeginGroup(std::int64_t& budget) {
  const std::int64_t members = group_.size(), blocks = group_.blocks();
  budget -= members * group_.tokens();
  const std::int64_t accepted = group_.Begin();
  kv_.Take(group_.blocks() - blocks, replica_.now());
  group_made_ = members + accepted;
  if (group_.drafts() == 0) return;
  replica_.Verified(members, members * group_.drafts(), accepted, accepted);
}

void SequenceScheduler::FillGroup(StepPlan& plan, TimeNs start) {
  const std::int64_t members = group_.size(), tokens = group_.tokens();
  if (group_.last_step() >= start) {
    plan.in_turn += members;
  } else {
    in_.recorder.StepDelay(start, start - group_.last_step(), members);
  }
  plan.shape.decode_kv_blocks += group_.blocks();
  const std::int64_t context = group_.computed() - members * tokens;
  if (tokens > 1) {
    AddDrafted(plan.drafted, tokens, context, members);
  } else {
    plan.shape.decode_seqs += members;
    plan.shape.decode_context_tokens += context;
  }
  plan.kv_unused += group_.blocks() * kv_.block_size() - group_.computed();
}

void SequenceScheduler::DeliverGroup(const Step& step) {
  const TimeNs gap = step.end - group_.last_token();
  if (token_delay_ == 0) {
    replica_.NextToken(step, gap, group_.size());
  } else {
    const std::vector<std::int64_t>& tally = group_.Tally(step.place);
    for (std::size_t accepted = 0; accepted < tally.size(); ++accepted) {
      if (tally[accepted] == 0) continue;
      const TimeNs delays = static_cast<TimeNs>(accepted) * token_delay_;
      replica_.NextToken(step, gap + delays, tally[accepted]);
    }
  }
  group_.Apply(step.place, step.end);
}

void SequenceScheduler::WriteProgress(std::vector<std::int32_t>& generated) const {
  const std::int64_t ahead = static_cast<std::int64_t>(replica_.in_flight()) * group_.tokens();
  for (const Id id : group_.ids()) {
    const Sequence& s = At(id);
    generated[static_cast<std::size_t>(s.request)] =
        static_cast<std::int32_t>(group_.ComputedOf(s.place) + 1 - ahead - s.prompt);
  }
}

void SequenceScheduler::ObserveGroup(Id id, StepRecord& record) const {
  const Sequence& s = At(id);
  const std::int64_t accepted = group_.AcceptedNow(s.place);
  record.members.push_back({s.request, group_.tokens(),
                            group_.ComputedOf(s.place) - group_.tokens(), MemberKind::kContinued,
                            1 + accepted, group_.drafts(), accepted});
}

}  // namespace servecast
