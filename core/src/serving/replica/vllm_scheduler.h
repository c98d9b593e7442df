// The vLLM V1 scheduler. Hides that most steps touch no request at all.
//
// Requests that decode are a group, of which no step touches a member (decode_group.h). A run of
// such steps goes on while nothing can change the batch: no request is in prefill; blocks suffice;
// the head of the queue, if there is one, cannot be admitted (blocks only shrink in a run and seats
// and budget stay, so once blocked it stays blocked); and none arrives that could be. Under fcfs an
// arrival behind a blocked head changes nothing. Any other step is formed by a schedule call:
// vllm_grants.cpp.
//
// A token counts from the moment it is scheduled (decision 013). With pipeline stages there are
// several groups, which take turns: vllm_stages.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/base.h"
#include "serving/replica/decode_group.h"
#include "serving/replica/replica.h"
#include "serving/replica/scheduler.h"
#include "serving/replica/wait_queue.h"

namespace servecast {

class VllmScheduler final : public Scheduler {
 public:
  explicit VllmScheduler(Replica& replica);

  void Enqueue(RequestId request) override;
  bool GiveUp(RequestId request) override;
  void Arrive(RequestId request, TimeNs time) override;

  Formed Form(StepPlan& plan) override;
  void Launched(Step& step, const StepPlan& plan, TimeNs interference) override;
  void Apply(Step& step) override;

  const DecodeRun* BeginRun() override {
    const bool decodes = prefills_.empty() && endings_ == 0 && group_->size() > 0 && !staged();
    return decodes ? RunOfDecodes() : nullptr;
  }
  void EndsMember(Step& step) override;
  void EndRun(std::int64_t) override { NoteToken(); }

  std::int64_t running() const override { return running_; }
  std::int64_t waiting() const override { return queue_.size(); }
  bool HasRequests() const override {
    return running_ > 0 || queue_.size() > 0 || !incoming_.empty();
  }
  bool MayStall() const override { return !incoming_.empty(); }
  TimeNs QuietUntil() override;
  void WriteProgress(std::vector<std::int32_t>& generated) const override;
  const PrefixCacheReport& prefix_cache() override;
  KvOffloadReport kv_offload() const override;
  void Observe(StepRecord& record) const override;

 private:
  using SlotId = std::int32_t;
  static constexpr SlotId kNoSlot = -1;

  enum class Phase : std::uint8_t {
    kPrefill,  // computes its prompt, or recomputes; or missed a step and catches up
    kDecode,   // one token a step
    kEnding,   // its last token is in flight
  };

  // A seat of the running list. While a request decodes, its progress is not stored but follows
  // from its group's: see ComputedNow.
  struct Slot {
    RequestId request = kNoRequest;
    SlotId previous = kNoSlot, next = kNoSlot;  // running list, in order of admission
    std::int64_t admission = 0;                 // grows along the running list
    std::int64_t computed = 0;        // tokens whose KV is there or in flight; not of a decode
    std::int64_t ahead = 0;           // decode: of its group's steps
    std::int64_t joined_with = 0;     // computed tokens when it last joined the decodes
    std::int64_t known = 0;           // prefill: tokens to compute: prompt + generated
    std::int64_t decodes_before = 0;  // prefill: decodes ahead of it in the running list
    std::int64_t chunk = 0;           // prefill: granted in this call
    std::int64_t granted_call = -1;   // the last call of GrantByPreempting that gave it tokens
    double priority = 0;
    Phase phase = Phase::kPrefill;
    DecodeGroup* group = nullptr;  // that it decodes in
    TimeNs busy_until = 0;         // stages only; not decoding: the end of the latest step it is in
    // Since its last admission; the sums as they stood then, or when its prefill ended.
    TimeNs admitted = 0, interference_before = 0, transfer_before = 0;
    bool catches_up = false;  // a decode that missed a step: for a latency model still a decode
    MemberKind kind = MemberKind::kNew;  // how it came into its current step
    KvCache::Holding holding;
  };

  // A victim with a step in flight: it stays in the queue until that ends. A token that would be
  // handed on is lost.
  struct Held {
    RequestId request = kNoRequest;
    TimeNs until = 0;
    // Its output tokens but for that which the step makes; -1: the step makes none.
    std::int64_t delivered = -1;
    bool decoded = false;  // it makes it as a plain decode
  };

  // A schedule call.
  struct Call {
    StepPlan& plan;
    std::int64_t budget = 0;  // tokens left
  };

  // A request that a step made a token for other than by plain decoding, or its last one.
  struct Output {
    RequestId request = kNoRequest;
    SlotId slot = kNoSlot;
    std::int64_t admission = 0;
    std::int32_t generated = 0;  // its output tokens with this one
    TimeNs previous = 0;         // when it had the one before
  };
  // Of a step in flight.
  struct Outputs {
    DecodeGroup* group = nullptr;  // of its decodes
    std::vector<Output> first;     // of prefills that ended, in running order
    std::vector<Output> last;      // in running order
  };

  // A request whose blocks are held though it has no seat: its KV is on its way here, or there.
  struct Incoming {
    RequestId request = kNoRequest;
    KvCache::Holding holding;
  };

  // A schedule call (vllm_grants.cpp).
  void Schedule(Call& call);
  bool GrantAll(Call& call);
  void GrantByPreempting(Call& call);
  void Admit(Call& call);
  inline void CountHit(const Slot& slot, const KvTiers::Loaded& loaded);
  BlockedBy HeadBlockedBy(std::int64_t free_blocks, std::int64_t budget);
  std::int64_t ChunkOf(std::int64_t tokens, std::int64_t budget) const;
  // Of the pool, for the tokens of a request from `computed` on.
  std::int64_t BlocksBetween(std::int64_t computed, std::int64_t tokens) const {
    return kv_.WithWindows(kv_.BlocksFor(tokens)) - kv_.WithWindows(kv_.BlocksFor(computed));
  }
  SlotId Victim() const;
  void Preempt(SlotId id, Call& call);
  void PauseUngranted();
  void ReleaseBlocks(Slot& slot, std::int64_t granted, bool findable);

  // Of the free blocks those of ended requests may be garbage, which has to be collected first.
  std::int64_t Free() const { return kv_.free() - garbage_.blocks; }
  bool CollectGarbage();
  // A request ended; its blocks are among the free since there were `free_before`.
  void LeaveGarbage(std::int64_t free_before) {
    if (garbage_.pass > 0) garbage_.blocks += kv_.free() - free_before;
  }

  // A step.
  inline void Fill(StepPlan& plan);
  const DecodeRun* RunOfDecodes();
  void EndDecodes(Outputs& outputs);
  void AdvancePrefills(const Step& step, Outputs& outputs);
  inline void Deliver(const Output& output, const Step& step);
  void Finish(const Output& output, Step& step);
  // A token was made. Once requests were seen to fight in vain, they would go on doing so.
  void NoteToken() {
    if (tokenless_calls_ < kMostTokenlessCalls) tokenless_calls_ = 0;
  }

  // Moves of one request.
  void JoinDecodes(SlotId id);
  void LeaveDecodes(SlotId id);
  void LeavePrefills(SlotId id);
  SlotId AddToRunning(RequestId request);
  void RemoveFromRunning(SlotId id);
  void CountDecodesBefore(std::int64_t admission, std::int64_t change);
  void GiveUpRunning(SlotId id);

  // Where its time goes (vllm_times.cpp).
  void CountWait(const Slot& slot);
  void CountPrefill(Slot& slot, TimeNs end) {
    const bool again =
        slot.known > in_.requests.prompt_tokens[static_cast<std::size_t>(slot.request)];
    if (again || replica_.transfer_total() != slot.transfer_before) CountSlowPrefill(slot, end);
    slot.interference_before = group_->interference;
    slot.transfer_before = replica_.transfer_total();
  }
  void CountSlowPrefill(const Slot& slot, TimeNs end);
  // Of its group; of one that caught up, the group that it was scheduled with.
  void CountDecode(const Slot& slot, const DecodeGroup& group) {
    in_.results.interference[static_cast<std::size_t>(slot.request)] +=
        group.interference - slot.interference_before;
    if (replica_.transfer_total() != slot.transfer_before) CountTransfer(slot);
  }
  void CountTransfer(const Slot& slot);
  void CountPreemption(const Slot& slot);
  TimeNs LastStepOf(const Slot& slot) const;
  std::int64_t CountStepDelays(TimeNs start);
  // Room in the blocks of requests that are no decodes of the open group.
  std::int64_t UnusedBeside() const;
  std::int64_t UnusedBy(std::int64_t tokens) const {
    return kv_.BlocksFor(tokens) * kv_.block_size() - tokens;
  }

  // Prefill here, decode there (vllm_hand_over.cpp).
  void HandOn(const Output& output, TimeNs end);
  // Preempted with its first token in flight: the blocks that it would hand over are gone.
  bool LosesToken(RequestId request) const {
    return replica_.HandsOver(request) &&
           in_.results.state[static_cast<std::size_t>(request)] == RequestState::kQueued;
  }
  bool ComesByTransfer(RequestId request) const {
    const auto r = static_cast<std::size_t>(request);
    return in_.role == PoolRole::kDecode && in_.results.HandedOver(r) &&
           in_.results.hand_overs[r].reserved < 0;
  }
  void Reserve(RequestId request);
  void AdmitArrived(Call& call);
  bool GiveUpTransfer(RequestId request);

  // Pipeline stages (vllm_stages.cpp).
  bool staged() const { return groups_.size() > 1; }
  void ChooseFreeGroup();
  void ChooseAppliedGroup(DecodeGroup* group);
  void PlacePrefills();
  bool MayRun(const Slot& slot) const {
    return slot.phase == Phase::kDecode ? slot.group == group_ : slot.phase == Phase::kPrefill;
  }
  // The end of the latest step that it is in; stages only.
  TimeNs BusyUntil(const Slot& slot) const {
    return slot.phase == Phase::kDecode ? slot.group->end : slot.busy_until;
  }
  // Whether a token of it, no longer in prefill, is in flight.
  bool InFlight(const Slot& slot) const {
    return staged() ? BusyUntil(slot) > replica_.now() : replica_.in_flight() > 0;
  }
  void Hold(const Slot& slot);
  const Held* HeldOf(RequestId request) const;
  void PutBackPassed();
  void GiveUpHeld(RequestId request);

  std::int64_t Known(RequestId request) const {
    const auto r = static_cast<std::size_t>(request);
    return in_.requests.prompt_tokens[r] + in_.results.generated[r];
  }
  std::int64_t ComputedNow(const Slot& slot) const {
    return slot.phase == Phase::kDecode ? slot.group->step() + slot.ahead : slot.computed;
  }
  Slot& SlotAt(SlotId id) { return slots_[static_cast<std::size_t>(id)]; }
  const Slot& SlotAt(SlotId id) const { return slots_[static_cast<std::size_t>(id)]; }
  Outputs& OutputsOf(const Step& step) { return outputs_[step.place]; }
  // When the latest token of a request that decodes in the group is, or will be, delivered.
  TimeNs LastTokenTime(const DecodeGroup& group) const {
    if (staged()) return group.end;
    return replica_.in_flight() > 0 ? replica_.Newest().end : replica_.now();
  }

  Replica& replica_;
  const ReplicaInput in_;
  KvCache& kv_;
  std::int64_t watermark_blocks_;
  bool victim_by_priority_;

  KvCache::Hit hit_;  // of the head of the queue, by HeadBlockedBy
  struct Cached {
    PrefixCacheReport report;
    std::array<std::int64_t, kKvTiers> tiers{};  // hit blocks, by first admissions
  };
  Cached cached_;
  struct Garbage {
    TimeNs pass = 0;          // duration; 0: blocks of ended requests are free at once
    std::int64_t blocks = 0;  // of the free ones: of ended requests, not collected yet
    TimeNs due = 0;           // collections for the step that is being formed
  };
  Garbage garbage_;

  std::int64_t running_ = 0, endings_ = 0;
  std::vector<Slot> slots_;
  std::vector<SlotId> free_slots_;
  SlotId first_ = kNoSlot, last_ = kNoSlot;
  std::int64_t admissions_ = 0, calls_ = 0;
  std::int64_t tokenless_calls_ = 0;  // that preempted, since a step yielded a token; see NoteToken

  WaitQueue queue_;
  std::vector<Incoming> incoming_;
  std::vector<RequestId> arrived_;  // of them, in order
  std::vector<SlotId> prefills_;    // in running order

  // With pipeline stages a request waits for its token before it can have the next, so there are as
  // many groups as steps, each scheduled when its own step is done, and one for new requests; else
  // there is one.
  std::vector<DecodeGroup> groups_;  // members by slot, in order of admission
  DecodeGroup* group_ = nullptr;     // the one that may be scheduled
  std::vector<DecodeGroup*> free_groups_;
  std::vector<TimeNs>& last_token_;  // ReplicaScratch
  std::vector<SlotId>& slot_of_;

  std::vector<Outputs> outputs_;  // by a step's place
  std::vector<Output> merged_;    // scratch
  std::vector<Held> held_;
  std::vector<RequestId> passed_;  // scratch
};

}  // namespace servecast
