// One engine instance: the vLLM V1 scheduler over a paged KV cache, and the step loop. Hides that
// most steps touch no request at all (replica.cpp opens with how).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/base.h"
#include "metrics/recorder.h"
#include "servecast/report.h"
#include "servecast/scenario.h"
#include "serving/engine.h"
#include "serving/hooks.h"
#include "serving/inbox.h"
#include "serving/kv/kv_cache.h"
#include "serving/replica/decode_group.h"
#include "serving/replica/pipeline.h"
#include "serving/replica/queue_policy.h"
#include "serving/replica/wait_queue.h"
#include "workload/request_table.h"

namespace servecast {

// By request, of which each is on one replica at a time, so that many replicas share it.
struct ReplicaScratch {
  explicit ReplicaScratch(const RequestTable& requests)
      : last_token(static_cast<std::size_t>(requests.size()), 0),
        slot(requests.timeout.size(), -1) {}
  std::vector<TimeNs> last_token;  // the last one before it stopped decoding
  std::vector<std::int32_t> slot;  // where it runs; empty without time-outs
};

struct SchedulerSetup;

// What a replica is given; all of it outlives the replica.
struct ReplicaInput {
  const EngineSpec& engine;
  const SchedulerSpec& scheduler;
  std::int64_t pool_blocks = 0;    // vLLM's pool: one of them is never used
  std::int64_t max_model_len = 0;  // effective: see EffectiveMaxModelLen
  const RequestTable& requests;
  Inbox& inbox;
  const LatencyModel& latency;
  RequestResults& results;
  Recorder& recorder;
  ReplicaScratch& scratch;
  TimeNs horizon = kNever;  // no step starts at or after it
  StepObserver* observer = nullptr;
  std::vector<KvTier> kv_tiers = {};  // behind the GPU's KV cache
  std::int64_t number = 0;            // for an observer
  bool one_of_many = false;           // sees a part of the requests
  // Those of a pipeline, which then price the steps; nullptr: one stage, which `latency` prices.
  // Not together with async scheduling or KV tiers.
  const std::vector<PipelineStage>* stages = nullptr;
  const SchedulerSetup* setup = nullptr;  // batches by another scheduler (scheduled_replica.h)
  // Prefill: requests end here with their first token, which no client gets if the decode side
  // sends it. Decode: a request that was prefilled elsewhere has its KV sent. By requests'
  // HandOver; see the inbox's events. With them: no KV tiers, no garbage collection.
  PoolRole role = PoolRole::kMixed;
  bool first_token_from_decode = false;
};

// The longest sequence that an engine serves: the least of the model's and the engine's limit and
// the KV cache; without chunked prefill a prompt, or a recomputation, must fit one step.
std::int64_t EffectiveMaxModelLen(const EngineSpec& engine, std::int64_t model_max_len,
                                  std::int64_t usable_blocks);

// After so many schedule calls that preempted, and none that yielded a token, equally urgent
// requests give way from the last of the running list, for the rest of the run (see Victim).
inline constexpr std::int64_t kMostTokenlessCalls = 1000;

// Averages of preemptions below it are 0.
inline constexpr double kNegligible = 1e-12;

class Replica final : public Engine {
 public:
  explicit Replica(const ReplicaInput& input);

  // Stops, too, where the inbox does not allow more (its until()): then false, if there is work.
  // True of a routed replica that has nothing to do until it is sent more, or a transfer ends.
  bool Advance(std::int64_t max_steps) override;

  void Arrive(RequestId request, TimeNs time) override;
  void FreeHandedOver(RequestId request, TimeNs time) override;
  TimeNs Wakes() override { return sleeps_ ? in_.inbox.NextTimeout() : kNever; }

  TimeNs now() const override { return now_; }
  TimeNs QuietUntil() override;
  std::int64_t running() const override { return running_; }
  std::int64_t queued() const override { return Waiting(); }
  std::int64_t completed() const override { return completed_; }
  std::int64_t timed_out() const override { return timed_out_; }
  std::int64_t length_capped() const override { return length_capped_; }
  std::int64_t kv_blocks_used() const override { return kv_.used(); }
  const PrefixCacheReport& prefix_cache() override;
  KvOffloadReport kv_offload() const override;
  void WriteProgress(std::vector<std::int32_t>& generated) const override;
  SchedulerCounts counts() const override;

  EngineLoad LoadAt(TimeNs time) const override {
    return now_ <= time ? EngineLoad{running_, kv_.used()} : load_;
  }

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

  // What one schedule call decided.
  struct Plan {
    std::int64_t budget = 0;  // tokens left
    bool preempted = false;
    BlockedBy blocked = BlockedBy::kNothing;
  };

  // A request that a step made a token for other than by plain decoding, or its last one.
  struct Output {
    RequestId request = kNoRequest;
    SlotId slot = kNoSlot;
    std::int64_t admission = 0;
    std::int32_t generated = 0;  // its output tokens with this one
    TimeNs previous = 0;         // when it had the one before
  };

  // A step between its schedule call and the moment when its outputs are applied.
  struct Batch {
    TimeNs start = 0, end = 0;
    TimeNs before = 0;             // when its decodes had the token before
    DecodeGroup* group = nullptr;  // of its decodes
    StepLevels levels;
    StepBound bound = StepBound::kOverhead;
    BlockedBy blocked = BlockedBy::kNothing;
    std::int64_t decodes = 0, sampled = 0;  // tokens to deliver: of decodes, of all
    std::int64_t made = 0;  // tokens, with those of requests that are given up meanwhile
    PrefillWork prefill;
    std::vector<Output> first;  // of prefills that ended, in running order
    std::vector<Output> last;   // in running order
    StepRecord record;
  };

  // A request whose blocks are held though it does not run: here it was prefilled, or it is to
  // decode here and its KV is on its way or there.
  struct Parked {
    RequestId request = kNoRequest;
    KvCache::Holding holding;
  };

  // The loop and the step, in its order.
  bool Done() const;
  bool Close();
  void Deliver();
  void Enqueue(RequestId request, TimeNs time);
  bool GiveUp();
  bool Schedule(Plan& plan);
  bool GrantAll(Plan& plan);
  void GrantByPreempting(Plan& plan);
  void Admit(Plan& plan);
  void Launch(const Plan& plan);
  void CountPadding();
  void EndDecodes(Batch& batch);
  void AdvancePrefills(Batch& batch);
  void CountPrefillWork(Batch& batch, const StepPrice& price, const BatchShape& shape);
  void Apply();
  std::int64_t DecodeRun(std::int64_t max_steps);

  // The rules' parts.
  BlockedBy HeadBlockedBy(std::int64_t free_blocks, std::int64_t budget);
  std::int64_t ChunkOf(std::int64_t tokens, std::int64_t budget) const;
  // KV blocks that may be taken: free, and not waiting for a garbage collection.
  std::int64_t Free() const { return kv_.free() - garbage_; }
  bool CollectGarbage();
  // A request ended; its blocks are among the free since there were `free_before`.
  void LeaveGarbage(std::int64_t free_before) {
    if (gc_pass_ > 0) garbage_ += kv_.free() - free_before;
  }
  SlotId Victim() const;
  void Preempt(SlotId slot);
  void PauseUngranted();
  // A token was made. Once requests were seen to fight in vain, they would go on doing so.
  void NoteToken() {
    if (tokenless_calls_ < kMostTokenlessCalls) tokenless_calls_ = 0;
  }
  // A schedule call preempted so many. A memory too faint to be seen is none: the average ends.
  void SmoothPreemptions(std::size_t preempted) {
    if (preemption_weight_ == 0) return;
    const double rate =
        static_cast<double>(preempted) / static_cast<double>(std::max<std::int64_t>(running_, 1));
    load_.preemption_ema =
        preemption_weight_ * rate + (1 - preemption_weight_) * load_.preemption_ema;
    if (load_.preemption_ema < kNegligible) load_.preemption_ema = 0;
  }
  void JoinDecodes(SlotId slot);
  void LeaveDecodes(SlotId slot);
  void LeavePrefills(SlotId slot);
  void ReleaseBlocks(Slot& slot, std::int64_t granted, bool findable);
  void Finish(const Output& output, TimeNs end);
  // Where its time goes (replica_times.cpp).
  void CountWait(const Slot& slot);
  void CountPrefill(Slot& slot, TimeNs end) {
    const bool again =
        slot.known > in_.requests.prompt_tokens[static_cast<std::size_t>(slot.request)];
    if (again || transfer_total_ != slot.transfer_before) CountSlowPrefill(slot, end);
    slot.interference_before = group_->interference;
    slot.transfer_before = transfer_total_;
  }
  void CountSlowPrefill(const Slot& slot, TimeNs end);
  // Of its group; of one that caught up, the group that it was scheduled with.
  void CountDecode(const Slot& slot, const DecodeGroup& group) {
    in_.results.interference[static_cast<std::size_t>(slot.request)] +=
        group.interference - slot.interference_before;
    if (transfer_total_ != slot.transfer_before) CountTransfer(slot);
  }
  void CountTransfer(const Slot& slot);
  void CountPreemption(const Slot& slot);
  TimeNs LastStepOf(const Slot& slot);
  std::int64_t CountStepDelays(TimeNs start);
  // Room in the blocks of requests that are no decodes of the open group (replica_times.cpp).
  std::int64_t UnusedBeside() const;
  std::int64_t UnusedBy(std::int64_t tokens) const {
    return kv_.BlocksFor(tokens) * kv_.block_size() - tokens;
  }
  void Abort(RequestId request);

  // Prefill here, decode there (replica_hand_over.cpp).
  bool HandsOver(RequestId request) const {
    return in_.role == PoolRole::kPrefill &&
           (in_.first_token_from_decode || AnswerLimit(request) > 1);
  }
  bool hides_tokens() const {
    return in_.role == PoolRole::kPrefill && in_.first_token_from_decode;
  }
  void HandOn(const Output& output, TimeNs end);
  // Preempted with its first token in flight: the blocks that it would hand over are gone.
  bool LosesToken(RequestId request) const {
    return HandsOver(request) &&
           in_.results.state[static_cast<std::size_t>(request)] == RequestState::kQueued;
  }
  bool ComesByTransfer(RequestId request) const {
    const auto r = static_cast<std::size_t>(request);
    return in_.role == PoolRole::kDecode && in_.results.HandedOver(r) &&
           in_.results.hand_overs[r].reserved < 0;
  }
  void TakeLostToken(const Slot& slot) {
    if (staged()) {
      TakeFromBatch(slot.busy_until, false);
    } else {
      --Newest().sampled;
    }
  }
  void Reserve(RequestId request);
  void AdmitArrived(Plan& plan);
  bool GiveUpTransfer(RequestId request);

  // Pipeline stages (replica_stages.cpp).
  bool staged() const { return pipeline_.has_value(); }
  void StartStages();
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
    return staged() ? BusyUntil(slot) > now_ : in_flight_ > 0;
  }
  void Hold(const Slot& slot);
  const Held* HeldOf(RequestId request) const;
  void PutBackPassed();
  void AbortHeld(RequestId request);
  void TakeFromBatch(TimeNs end, bool decoded);
  void RecordStaged(const Batch& batch);
  StepPrice PriceOf(const BatchShape& shape) const {
    return staged() ? pipeline_->Price(shape) : in_.latency.Price(shape);
  }

  // Running list and queue.
  std::int64_t Waiting() const { return queue_.size() + expected_; }
  SlotId AddToRunning(RequestId request);
  void RemoveFromRunning(SlotId slot);
  void CountDecodesBefore(std::int64_t admission, std::int64_t change);
  std::int64_t Known(RequestId request) const;
  std::int64_t AnswerLimit(RequestId request) const;
  std::int64_t OutputLimit(RequestId request) const {
    return in_.role == PoolRole::kPrefill ? 1 : AnswerLimit(request);
  }
  std::int64_t ComputedNow(const Slot& slot) const {
    return slot.phase == Phase::kDecode ? slot.group->step() + slot.ahead : slot.computed;
  }
  Slot& SlotAt(SlotId id) { return slots_[static_cast<std::size_t>(id)]; }
  const Slot& SlotAt(SlotId id) const { return slots_[static_cast<std::size_t>(id)]; }

  // Batches in flight.
  Batch& NewBatch();
  Batch& Oldest() { return batches_[first_batch_]; }
  Batch& Newest() { return batches_[(first_batch_ + in_flight_ - 1) % batches_.size()]; }
  bool CanSchedule() const { return in_flight_ < batches_.size() && StartTime() < in_.horizon; }
  TimeNs StartTime() const { return device_free_ > now_ ? device_free_ : now_; }
  // When the latest token of a request that decodes in the group is, or will be, delivered.
  TimeNs LastTokenTime(const DecodeGroup& group) {
    if (staged()) return group.end;
    return in_flight_ > 0 ? Newest().end : now_;
  }

  // For an observer only.
  void ObserveSchedule(StepRecord& record);
  void ObserveStep(Batch& batch);

  ReplicaInput in_;
  QueuePolicy policy_;
  std::int64_t seats_;
  std::int64_t watermark_blocks_;
  TimeNs gc_pass_;  // duration; 0: blocks of ended requests are free at once
  TimeNs token_delay_, delivery_delay_;
  double preemption_weight_;
  bool prices_transfers_, delay_by_cache_;
  bool victim_by_priority_;
  KvCache kv_;
  KvCache::Hit hit_;  // of the head of the queue, by HeadBlockedBy
  PrefixCacheReport prefix_cache_;
  std::int64_t garbage_ = 0;  // of the free blocks: of ended requests, not collected yet
  TimeNs gc_due_ = 0;         // collections for the step that is being formed
  SchedulerCounts counts_;
  std::array<std::int64_t, kKvTiers> tier_hits_{};  // blocks, by first admissions
  EngineLoad load_;                                 // what an arrival finds, but for what waits
  TimeNs transfer_ = 0;  // of this schedule call's admissions from the KV tiers
  std::int64_t transfer_blocks_ = 0;
  TimeNs transfer_total_ = 0;  // of the steps launched so far

  TimeNs now_ = 0;
  TimeNs device_free_ = 0;  // end of the newest batch; with stages, on the first of them
  std::int64_t running_ = 0, completed_ = 0, timed_out_ = 0, length_capped_ = 0, endings_ = 0;

  std::vector<Slot> slots_;
  std::vector<SlotId> free_slots_;
  SlotId first_ = kNoSlot, last_ = kNoSlot;
  std::int64_t admissions_ = 0, calls_ = 0;
  std::int64_t tokenless_calls_ = 0;  // that preempted, since a step yielded a token; see NoteToken

  WaitQueue queue_;
  // Left the queue by finishing in it, at now_: recorded once those that came before now_ are.
  std::int64_t left_queue_ = 0;

  std::vector<Parked> handed_over_;  // prefilled here
  std::vector<Parked> incoming_;     // to decode here
  std::vector<RequestId> arrived_;   // of them, in order
  std::int64_t expected_ = 0;        // of them, whose client has not given up
  bool sleeps_ = false;  // it has requests, but nothing to do until told so, or one times out
  TimeNs woken_ = kNever;

  std::vector<SlotId> prefills_;  // in running order
  std::vector<PrefillChunk> chunks_;
  std::vector<std::pair<double, std::int64_t>> padded_;  // scratch: bucket, tokens
  std::vector<RequestId> preempted_;                     // by this call

  // With pipeline stages a request waits for its token before it can have the next, so there are as
  // many groups as batches, each scheduled when its own batch is done, and one for new requests;
  // else there is one.
  std::vector<DecodeGroup> groups_;  // members by slot, in order of admission
  DecodeGroup* group_ = nullptr;     // the one that may be scheduled
  std::vector<DecodeGroup*> free_groups_;
  std::vector<TimeNs>& last_token_;  // ReplicaScratch
  std::vector<SlotId>& slot_of_;

  std::vector<Output> merged_;  // scratch
  std::vector<Batch> batches_;  // ring; its size is how many may be in flight
  std::size_t first_batch_ = 0, in_flight_ = 0;

  std::optional<Pipeline> pipeline_;
  std::vector<Held> held_;
  std::vector<RequestId> passed_;  // scratch
};

// By the scheduler that the input names.
std::unique_ptr<Engine> MakeReplica(const ReplicaInput& input);

}  // namespace servecast
