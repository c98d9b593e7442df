// vLLM's scheduler with drafts, and with seats for adapters, by rules S1 to S31 of its golden
// traces with drafts. Hides what a schedule call does not know: how many of the drafts in flight
// will be accepted, and so how many tokens each step of a request still makes.
//
// Every sequence is looked at in every step. How far one advances is its own, so what makes decode
// runs of vllm_scheduler.h cheap does not hold; in exchange all is said once and plainly. It is
// used only where a scenario has drafts or adapters' seats (Replica). Those of whom a step asks
// nothing but how many drafts are accepted are apart, as columns (DraftGroup): they join it and
// leave it in sequence_group.cpp, and steps that might lack tokens or blocks are formed without it.
//
// A number of drafts is drawn as the step is scheduled that verifies them. What follows from it the
// scheduler may know only when the step's outputs are applied: `computed` and `placeholders` are
// vLLM's own counters, optimistic with async scheduling. What the machine has to know at once, the
// tokens that a step will deliver, follows from `coming`, which vLLM has not.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <vector>

#include "base/base.h"
#include "serving/replica/draft_group.h"
#include "serving/replica/draft_rules.h"
#include "serving/replica/replica.h"
#include "serving/replica/scheduler.h"
#include "serving/replica/wait_queue.h"

namespace servecast {

class SequenceScheduler final : public Scheduler {
 public:
  explicit SequenceScheduler(Replica& replica);

  void Enqueue(RequestId request) override;
  bool GiveUp(RequestId request) override;
  void Arrive(RequestId, TimeNs) override {}  // not where prefill and decode are apart

  Formed Form(StepPlan& plan) override;
  void Launched(Step& step, const StepPlan& plan, TimeNs interference) override;
  void Apply(Step& step) override;

  const DecodeRun* BeginRun() override { return nullptr; }
  void EndRun(std::int64_t) override {}

  std::int64_t running() const override { return static_cast<std::int64_t>(running_.size()); }
  std::int64_t waiting() const override {
    return waiting_.size() + static_cast<std::int64_t>(aside_.size());
  }
  bool HasRequests() const override { return running() > 0 || waiting() > 0; }
  bool MayStall() const override { return false; }
  TimeNs QuietUntil() override { return replica_.now(); }
  // Results have what was delivered, at all times, but of the group.
  void WriteProgress(std::vector<std::int32_t>& generated) const override;
  const PrefixCacheReport& prefix_cache() override;
  void Observe(StepRecord& record) const override;

 private:
  using Id = std::int32_t;  // place of a sequence

  // A place among those set aside: in the order of the queue.
  struct Aside {
    double key = -std::numeric_limits<double>::infinity();
    TimeNs arrival = 0;
    std::int64_t order = 0;  // by a key the request's number
    RequestId request = kNoRequest;

    friend bool operator<(const Aside& a, const Aside& b) {
      if (a.key != b.key) return a.key < b.key;
      return a.arrival != b.arrival ? a.arrival < b.arrival : a.order < b.order;
    }
  };

  struct Sequence {
    RequestId request = kNoRequest;  // kNoRequest: the place is free
    std::int64_t prompt = 0;
    std::int64_t asked = 0;  // output tokens; it ends after `limit` of them
    std::int64_t limit = 0;
    std::int32_t lora = 0;
    double priority = 0;  // what a victim is chosen by

    // As the scheduler sees it.
    DraftGroup::Place place = -1;   // in the group, which then has what a step changes of it
    std::int64_t order = 0;         // of its latest admission
    std::int64_t generated = 0;     // output tokens that were delivered
    std::int64_t computed = 0;      // tokens whose KV is done or scheduled
    std::int64_t placeholders = 0;  // async: tokens that steps in flight may make
    std::int64_t drafts = 0;        // that wait for its next step
    bool running = false;
    std::optional<Aside> aside;  // its place there
    bool prefilling = true;      // its latest step ended within what is known, or it had none
    bool preempted = false;      // since it was last admitted
    bool admitted = false;       // at least once

    KvCache::Holding holding;
    std::int64_t blocks = 0;      // all that it holds
    std::int64_t registered = 0;  // of its first tokens: whose full blocks have content

    std::int64_t in_flight = 0;               // steps
    std::int64_t coming = 0;                  // tokens that they make
    std::int64_t verified = 0, proposed = 0;  // draws so far

    TimeNs last_token = 0, last_step = 0;  // when it had, or will have, them
    TimeNs began = 0;                      // start of its first step since it was last admitted
    std::int64_t to_recompute = 0;         // output tokens that it had then

    std::int64_t Known() const { return prompt + generated; }
    bool Made() const { return generated + coming >= limit; }
    bool InGroup() const { return place >= 0; }
  };

  // Of a step.
  struct Member {
    Id id = 0;
    RequestId request = kNoRequest;  // if it is still the sequence's, that has not ended
    std::int64_t tokens = 0, drafts = 0, before = 0;
    std::int64_t accepted = 0;
    std::int64_t made = 0;  // tokens that it delivers
    MemberKind kind = MemberKind::kContinued;
    bool decodes = false;  // it was not prefilling before
    bool padded = false;   // its drafts were only made up
    bool yields = false;
    bool counts = false;  // it had tokens to make
  };

  // What an admission takes.
  struct Admission {
    KvCache::Hit hit;
    std::int64_t tokens = 0, blocks = 0;
    bool padded = false;
  };

  // The group (sequence_group.cpp).
  bool MayGroup() const;
  void GatherGroup();
  bool Joins(const Sequence& s) const;
  void Join(Id id);
  void Leave(Id id);
  void CountInGroup(std::int32_t lora, std::int64_t more);
  void Scatter();
  bool Suffices(std::int64_t budget) const;
  void BeginGroup(std::int64_t& budget);
  void FillGroup(StepPlan& plan, TimeNs start);
  void DeliverGroup(const Step& step);
  void ObserveGroup(Id id, StepRecord& record) const;

  // A schedule call (sequence_grants.cpp).
  std::int64_t Asked(const Sequence& s) const;
  void GrantRunning(StepPlan& plan, std::int64_t& budget);
  bool MakeRoom(Id id, std::int64_t tokens, std::size_t& at, StepPlan& plan, std::int64_t& budget);
  std::size_t VictimAt() const;
  void Preempt(Id id, StepPlan& plan, std::int64_t& budget);
  void Admit(StepPlan& plan, std::int64_t& budget);
  void AddAdapter(std::int32_t lora);
  bool AllSeatsTaken() const {
    const std::int64_t seats = in_.engine.max_loras;
    return seats > 0 && static_cast<std::int64_t>(adapters_.size()) >= seats;
  }
  bool PassedOver(const Sequence& s) const;
  const Aside* NextAside(const Aside& after) const;
  bool ComesFirst(const Aside& one);
  void SetAside(Sequence& s);
  void LeaveQueue(Sequence& s);
  BlockedBy Refusal(const Sequence& s, std::int64_t budget, bool only_decodes,
                    Admission& admission);
  void Begin(Id id, const Admission& admission);
  std::int64_t CutToThreshold(std::int64_t tokens) const;
  std::int64_t SlotsWith(std::int64_t tokens) const;
  std::int64_t BlocksWith(std::int64_t tokens) const { return kv_.BlocksFor(SlotsWith(tokens)); }
  void Register(Sequence& s, std::int64_t tokens);

  // A step.
  void Advance();
  void Fill(StepPlan& plan);
  void CountAdapters(StepPlan& plan);
  void Deliver(const Member& member, Step& step);
  void ProposeAfter(const std::vector<Member>& members);
  void Finish(Id id, Step& step);
  void CountGap(const Step& step, TimeNs gap);

  // Moves of one sequence.
  Id IdOf(RequestId request) const { return id_of_[static_cast<std::size_t>(request)]; }
  Sequence& At(Id id) { return sequences_[static_cast<std::size_t>(id)]; }
  const Sequence& At(Id id) const { return sequences_[static_cast<std::size_t>(id)]; }
  void Release(Sequence& s, bool findable);
  void LeaveRunning(Id id);
  void Free(Id id) {
    At(id).request = kNoRequest;
    free_.push_back(id);
  }

  Replica& replica_;
  const ReplicaInput in_;
  KvCache& kv_;
  const DraftRules rules_;
  const Acceptance acceptance_;
  const bool async_;
  const TimeNs token_delay_;
  std::int64_t watermark_blocks_;
  bool victim_by_priority_;

  std::vector<Sequence> sequences_;
  std::vector<Id> free_;
  std::vector<Id>& id_of_;   // by request (ReplicaScratch)
  std::vector<Id> running_;  // in order of admission
  std::vector<Id> apart_;    // of them, in that order, who are not in the group
  DraftGroup group_;
  bool groups_;                  // there may be a group
  std::int64_t group_made_ = 0;  // tokens that the step that is being formed makes of it
  struct OfAdapter {
    std::int32_t lora = 0;
    std::int64_t members = 0;
  };
  std::vector<OfAdapter> group_adapters_;  // whose members are in the group
  std::int64_t adapted_in_group_ = 0;      // these members
  std::int64_t newest_ = 0;  // the latest to join is the latest admitted, by Sequence::order
  std::int64_t admissions_ = 0;
  WaitQueue waiting_;
  std::set<Aside> aside_;  // those that others have overtaken, for want of an adapter's seat
  std::vector<std::set<Aside>> aside_of_;  // the same by adapter
  std::int64_t set_aside_ = 0;             // so far
  std::vector<std::int32_t> adapters_;     // of the step that is being formed
  std::int64_t tokenless_calls_ = 0;       // that preempted, since a step yielded a token

  std::vector<Member> members_;             // of the step that is being formed
  std::vector<std::vector<Member>> steps_;  // by a step's place
  PrefixCacheReport cached_;
  TimeNs gap_ = 0;
  std::int64_t gaps_ = 0;  // of this length, so far
};

}  // namespace servecast
