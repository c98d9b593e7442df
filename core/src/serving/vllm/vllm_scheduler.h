// The vLLM V1 scheduler. Hides that most steps touch no request at all, and with drafts what a
// schedule call does not know: how many of those in flight will be accepted.
//
// Requests that decode are a group, of which no step touches a member (decode_group.h). A run of
// such steps goes on while nothing can change the batch: no request is in prefill; blocks suffice;
// the head of the queue, if there is one, cannot be admitted (blocks only shrink in a run and seats
// and budget stay, so once blocked it stays blocked); and none arrives that could be. Under fcfs an
// arrival behind a blocked head changes nothing. Any other step is formed by a schedule call:
// vllm_grants.cpp.
//
// A token counts from the moment it is scheduled (decision 033). With pipeline stages there are
// several groups, which take turns: vllm_stages.cpp. With drafts decodes do not advance alike: they
// are looked at one by one, or are columns of another group: vllm_drafts.cpp. With adapters, those
// of a run's members take its seats and are a part of its price: adapter_seats.h.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/base.h"
#include "serving/replica/decode_group.h"
#include "serving/replica/draft_rules.h"
#include "serving/replica/machine.h"
#include "serving/replica/scheduler.h"
#include "serving/replica/wait_queue.h"
#include "serving/vllm/adapter_seats.h"
#include "serving/vllm/draft_group.h"
#include "serving/vllm/encoder_cache.h"

namespace servecast {

class VllmScheduler final : public Scheduler {
 public:
  explicit VllmScheduler(Machine& machine);

  void Enqueue(RequestId request) override;
  bool GiveUp(RequestId request) override;
  void Arrive(RequestId request, TimeNs time) override;
  void LoseTransfer(RequestId request) override;

  Formed Form(StepPlan& plan) override;
  void Launched(Step& step, const StepPlan& plan, TimeNs interference) override;
  void Apply(Step& step) override;

  const DecodeRun* BeginRun() override {
    const bool decodes = apart_.empty() && endings_ == 0 && group_->size() > 0 && !staged();
    return decodes ? RunOfDecodes() : nullptr;
  }
  void EndsMember(Step& step) override;
  void EndRun(std::int64_t) override { NoteToken(); }

  std::int64_t running() const override { return running_; }
  std::int64_t waiting() const override { return queue_.size() + seats_.waiting(); }
  std::int64_t image_hits() const override { return images_ ? images_->hits() : 0; }
  bool HasRequests() const override { return running_ > 0 || waiting() > 0 || !incoming_.empty(); }
  bool MayStall() const override { return !incoming_.empty(); }
  std::optional<TimeNs> QuietUntil() override;
  void WriteProgress(std::vector<std::int32_t>& generated) const override;
  const PrefixCacheReport& prefix_cache() override;
  KvOffloadReport kv_offload() const override;
  void Observe(StepRecord& record) const override;

 private:
  using SlotId = std::int32_t;
  static constexpr SlotId kNoSlot = -1;

  enum class Phase : std::uint8_t {
    kApart,   // looked at one by one: computes its prompt, or recomputes; or see Slot::decodes
    kDecode,  // in a group: one token a step
    kVerify,  // in the group of those that verify all drafts
    kEnding,  // its last token is in flight; not with drafts
  };

  // With drafts, of a request apart. vLLM's own counters, which with async scheduling are
  // optimistic: what follows from a draw it may know only when the step's outputs are applied.
  struct Drafted {
    std::int64_t drafts = 0;        // that wait for its next step
    std::int64_t placeholders = 0;  // async: tokens that steps in flight may make
    std::int64_t registered = 0;    // of its first tokens: whose full blocks have content
    // What vLLM does not know: tokens that steps in flight make, and how many of all end it.
    std::int64_t coming = 0, most = 0;
    std::size_t in_flight = 0;     // steps that make some
    DraftGroup::Place place = -1;  // in the group, which then has what a step changes of it
    bool padded = false;           // in the step that is being formed its drafts are only made up
  };

  // A seat of the running list. While a request decodes in a group, its progress is not stored but
  // follows from its group's: see ComputedNow.
  struct Slot {
    RequestId request = kNoRequest;
    SlotId previous = kNoSlot, next = kNoSlot;  // running list, in order of admission
    std::int64_t admission = 0;                 // grows along the running list; -1: it is free
    std::int64_t computed = 0;        // tokens whose KV is there or in flight; not in a group
    std::int64_t ahead = 0;           // decode: of its group's steps
    std::int64_t joined_with = 0;     // computed tokens when it last joined the decodes
    std::int64_t known = 0;           // apart: tokens to compute: prompt + generated
    std::int64_t blocks = 0;          // apart: that it holds
    std::int64_t needed = 0;          // apart: with those for its chunk
    std::int64_t decodes_before = 0;  // apart: decodes ahead of it in the running list
    std::int64_t chunk = 0;           // apart: granted in this call
    std::int64_t granted_call = -1;   // the last call of GrantByPreempting that gave it tokens
    double priority = 0;
    Phase phase = Phase::kApart;
    DecodeGroup* group = nullptr;  // that it decodes in
    TimeNs busy_until = 0;         // apart, or with stages not decoding: when its latest step ends
    // Since its last admission; the sums as they stood then, or when its prefill ended.
    TimeNs admitted = 0, interference_before = 0, transfer_before = 0;
    // Apart, but for a latency model a decode: it missed a step and catches up, or verifies drafts.
    bool decodes = false;
    MemberKind kind = MemberKind::kNew;  // how it came into its current step
    KvCache::Holding holding;
    Drafted of_drafts;
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
    // Of prompts with images, computed in part (`generated` 0) or to their end.
    std::vector<Output> images;
  };

  // With drafts: of a step, one apart that it makes tokens for.
  struct Verified {
    RequestId request = kNoRequest;
    SlotId slot = kNoSlot;
    std::int64_t admission = 0;
    std::int32_t drafts = 0, accepted = 0, made = 0;
    bool decodes = false;
  };
  struct VerifiedStep {
    std::int64_t members = 0;             // all of them apart
    std::int64_t makers = 0, tokens = 0;  // of them those that make tokens; these
    std::vector<Verified> outputs;        // in running order
  };
  // With drafts (vllm_drafts.cpp).
  struct Drafts {
    Drafts(const ReplicaInput& in, const DraftRules& rules, std::size_t steps_in_flight);

    Acceptance acceptance;
    DraftGroup group;
    bool groups;                  // there may be a group
    std::int64_t group_made = 0;  // tokens that the step that is being formed makes of it
    std::int64_t newest = 0;      // of its members' admissions
    VerifiedStep forming;
    std::vector<VerifiedStep> steps;  // in flight, by a step's place
    TimeNs token_delay = 0;
    TimeNs gap = 0;
    std::int64_t gaps = 0;  // of this length, so far
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
  RequestId NextToAdmit();
  void SeatMembers();
  bool OnlyDecodes() const;
  bool HasImages(RequestId request) const { return images_ && images_->Has(request); }
  void CutToImages(Slot& slot);
  bool GiveBack(bool images);
  void LeaveQueue(RequestId request) {
    if (seats_.waiting() == 0 || !seats_.Remove(request)) queue_.DropOne();
  }
  inline void CountHit(const Slot& slot, const KvTiers::Loaded& loaded);
  BlockedBy NoRoom(std::int64_t budget) const;
  BlockedBy HeadBlockedBy(RequestId head, std::int64_t free_blocks, std::int64_t budget);
  std::int64_t Asked(const Slot& slot) const;
  std::int64_t CutToThreshold(std::int64_t tokens) const {
    const std::int64_t threshold = in_.engine.long_prefill_token_threshold;
    return threshold > 0 ? std::min(tokens, threshold) : tokens;
  }
  std::int64_t ChunkOf(std::int64_t tokens, std::int64_t budget) const {
    return std::min(CutToThreshold(tokens), budget);
  }
  std::int64_t SlotsWith(std::int64_t tokens) const;
  std::int64_t BlocksWith(std::int64_t tokens) const { return kv_.BlocksFor(SlotsWith(tokens)); }
  std::int64_t BlocksWith(const Slot& slot, std::int64_t tokens) const {
    const std::int64_t slots = SlotsWith(slot.computed + tokens);
    return slots <= slot.blocks * kv_.block_size() ? slot.blocks : kv_.BlocksFor(slots);
  }
  void TakeChunk(Slot& slot);
  void Register(Slot& slot, std::int64_t tokens);
  // Of the pool, for one that has some of its blocks.
  std::int64_t Taken(std::int64_t blocks, std::int64_t needed) const {
    return needed == blocks ? 0 : kv_.WithWindows(needed) - kv_.WithWindows(blocks);
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
  void AdvanceImages(Outputs& outputs, TimeNs encode);
  void AdvanceApart(const Step& step, Outputs& outputs);
  void CountAdapters(StepPlan& plan);
  // Whether the step's tokens of one apart, which are granted, are followed by one that is made.
  bool Samples(const Slot& slot) const {
    return slot.computed + slot.chunk >= slot.known + slot.of_drafts.placeholders;
  }
  inline void Deliver(const Output& output, const Step& step);
  void Finish(RequestId request, SlotId id, Step& step);
  // A token was made. Once requests were seen to fight in vain, they would go on doing so.
  void NoteToken() {
    if (tokenless_calls_ < kMostTokenlessCalls) tokenless_calls_ = 0;
  }

  // Moves of one request.
  void JoinDecodes(SlotId id);
  void LeaveDecodes(SlotId id);
  void LeaveApart(SlotId id);
  SlotId AddToRunning(RequestId request);
  void RemoveFromRunning(SlotId id);
  void CountDecodesBefore(std::int64_t admission, std::int64_t change);
  void GiveUpRunning(SlotId id);

  // Drafts (vllm_drafts.cpp).
  void StartDrafts();
  void BeginDrafts(Call& call);
  void DrawOutputs();
  void FillGroup(StepPlan& plan);
  void AdvanceDrafted(Step& step);
  void ApplyDrafted(Step& step);
  inline void Deliver(const Verified& output, Step& step, std::int64_t next);
  std::int64_t ProposedFor(const Slot& slot, std::int64_t most) const;
  inline void CountGap(const Step& step, TimeNs gap);
  void GiveUpDrafted(SlotId id);

  // All its tokens are made, or in flight.
  bool Made(const Slot& slot) const {
    return slot.known + slot.of_drafts.coming >= slot.of_drafts.most;
  }
  // Who is in the group.
  bool MayGroup() const;
  void GatherGroup();
  bool Joins(const Slot& slot) const;
  void JoinGroup(SlotId id);
  void LeaveGroup(SlotId id);
  bool Suffices(std::int64_t budget) const;
  void DeliverGroup(const Step& step);
  // Steps in flight compute so much of each of its members.
  std::int64_t AheadInGroup() const {
    return static_cast<std::int64_t>(machine_.in_flight()) * drafts_->group.tokens();
  }

  // Where its time goes (vllm_times.cpp).
  void CountWait(const Slot& slot);
  void CountPrefill(Slot& slot, TimeNs end) {
    const bool again =
        slot.known > in_.requests.prompt_tokens[static_cast<std::size_t>(slot.request)];
    if (again || machine_.transfer_total() != slot.transfer_before) CountSlowPrefill(slot, end);
    slot.interference_before = group_->interference;
    slot.transfer_before = machine_.transfer_total();
  }
  void CountSlowPrefill(const Slot& slot, TimeNs end);
  // Of its group; of one that caught up, the group that it was scheduled with.
  void CountDecode(const Slot& slot, const DecodeGroup& group) {
    in_.results.interference[static_cast<std::size_t>(slot.request)] +=
        group.interference - slot.interference_before;
    if (machine_.transfer_total() != slot.transfer_before) CountTransfer(slot);
  }
  void CountTransfer(const Slot& slot);
  void CountPreemption(const Slot& slot);
  TimeNs LastStepOf(const Slot& slot) const;
  TimeNs WaitsSince(const Slot& slot) const;
  // Room in the blocks of requests that are neither apart nor in the open group.
  std::int64_t UnusedBeside() const;

  // Prefill here, decode there (vllm_hand_over.cpp).
  void HandOn(RequestId request, SlotId id, TimeNs end);
  // Preempted with its first token in flight: the blocks that it would hand over are gone.
  bool LosesToken(RequestId request) const {
    return machine_.HandsOver(request) &&
           in_.results.state[static_cast<std::size_t>(request)] == RequestState::kQueued;
  }
  bool ComesByTransfer(RequestId request) const {
    const auto r = static_cast<std::size_t>(request);
    return in_.role == PoolRole::kDecode && in_.results.HandedOver(r) &&
           in_.results.hand_overs[r].reserved < 0;
  }
  void Reserve(RequestId request);
  void FreeIncoming(RequestId request);
  void AdmitArrived(Call& call);
  bool GiveUpTransfer(RequestId request);

  // Pipeline stages (vllm_stages.cpp).
  bool staged() const { return groups_.size() > 1; }
  void ChooseFreeGroup();
  void ChooseAppliedGroup(DecodeGroup* group);
  void PlacePrefills();
  bool MayRun(const Slot& slot) const {
    return slot.phase == Phase::kDecode ? slot.group == group_ : slot.phase == Phase::kApart;
  }
  // The end of the latest step that it is in; stages only.
  TimeNs BusyUntil(const Slot& slot) const {
    return slot.phase == Phase::kDecode ? slot.group->end : slot.busy_until;
  }
  // Whether a token of it, not apart, is in flight.
  bool InFlight(const Slot& slot) const {
    return staged() ? BusyUntil(slot) > machine_.now() : machine_.in_flight() > 0;
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
    if (slot.phase == Phase::kDecode) return slot.group->step() + slot.ahead;
    if (slot.phase != Phase::kVerify) return slot.computed;
    return drafts_->group.ComputedOf(slot.of_drafts.place);
  }
  Slot& SlotAt(SlotId id) { return slots_[static_cast<std::size_t>(id)]; }
  const Slot& SlotAt(SlotId id) const { return slots_[static_cast<std::size_t>(id)]; }
  Outputs& OutputsOf(const Step& step) { return outputs_[step.place]; }
  // When the latest token of a request that decodes in the group is, or will be, delivered.
  TimeNs LastTokenTime(const DecodeGroup& group) const {
    if (staged()) return group.end;
    return machine_.in_flight() > 0 ? machine_.Newest().end : machine_.now();
  }

  Machine& machine_;
  const ReplicaInput in_;
  KvCache& kv_;
  const DraftRules rules_;
  std::int64_t watermark_blocks_;
  bool victim_by_priority_;

  // Of the head of the queue, by HeadBlockedBy.
  KvCache::Hit hit_;
  std::int64_t wanted_ = 0;    // tokens to compute, before the budget cuts
  bool padded_ = false;        // they are one, and drafts that are made up
  bool only_decodes_ = false;  // the step has some and nothing else, by rules that pad there
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
  AdapterSeats seats_;
  std::shared_ptr<EncoderCache> images_;  // nullptr: no prompt has any
  std::vector<SlotId> apart_;             // in running order

  // With pipeline stages a request waits for its token before it can have the next, so there are as
  // many groups as steps, each scheduled when its own step is done, and one for new requests; else
  // there is one.
  std::vector<DecodeGroup> groups_;  // members by slot, in order of admission
  DecodeGroup* group_ = nullptr;     // the one that may be scheduled
  std::vector<DecodeGroup*> free_groups_;
  std::vector<TimeNs>& last_token_;  // ReplicaScratch
  std::vector<SlotId>& slot_of_;

  std::vector<Outputs> outputs_;    // by a step's place
  std::vector<Output> merged_;      // scratch
  std::unique_ptr<Drafts> drafts_;  // nullptr: none
  std::vector<Held> held_;
  std::vector<RequestId> passed_;  // scratch
};

}  // namespace servecast
