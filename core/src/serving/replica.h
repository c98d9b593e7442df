// One engine instance: the vLLM V1 scheduler over a paged KV cache, and the step loop. Hides that
// most steps touch no request at all (replica.cpp opens with how).
#pragma once

#include <cstdint>
#include <vector>

#include "base/base.h"
#include "base/indexed_heap.h"
#include "metrics/recorder.h"
#include "servecast/scenario.h"
#include "serving/hooks.h"
#include "serving/kv_cache.h"
#include "workload/request_table.h"

namespace servecast {

// What a replica is given; all of it outlives the replica.
struct ReplicaInput {
  const EngineSpec& engine;
  std::int64_t pool_blocks = 0;    // vLLM's pool: one of them is never used
  std::int64_t max_model_len = 0;  // effective: see EffectiveMaxModelLen
  const RequestTable& requests;
  const std::vector<RequestId>& order;  // who comes, by (enqueue time, id)
  const LatencyModel& latency;
  RequestResults& results;
  Recorder& recorder;
  TimeNs horizon = kNever;  // no step starts at or after it
  StepObserver* observer = nullptr;
};

// The longest sequence that an engine serves: the least of the model's and the engine's limit and
// the KV cache; without chunked prefill a prompt, or a recomputation, must fit one step.
std::int64_t EffectiveMaxModelLen(const EngineSpec& engine, std::int64_t model_max_len,
                                  std::int64_t usable_blocks);

class Replica {
 public:
  explicit Replica(const ReplicaInput& input);

  // Runs at most `max_steps` steps; true when there is nothing left to do.
  bool Advance(std::int64_t max_steps);

  TimeNs now() const { return now_; }
  std::int64_t running() const { return running_; }
  std::int64_t queued() const { return QueueLength(); }
  std::int64_t completed() const { return completed_; }
  std::int64_t length_capped() const { return length_capped_; }
  std::int64_t kv_blocks_used() const { return kv_.used(); }
  // Output tokens so far of a running request; for the others see RequestResults::generated.
  void WriteProgress(std::vector<std::int32_t>& generated) const;

 private:
  using SlotId = std::int32_t;
  static constexpr SlotId kNoSlot = -1;

  // A seat of the running list. While a request decodes, its progress is not stored but follows
  // from the replica's decode-step counter: computed + (decode_step_ - join_step).
  struct Slot {
    RequestId request = kNoRequest;
    SlotId previous = kNoSlot, next = kNoSlot;  // running list, in order of admission
    std::int64_t admission = 0;                 // grows along the running list
    std::int64_t computed = 0;                  // tokens whose KV is there (decoding: at join_step)
    std::int64_t join_step = 0;
    bool decoding = false;
    MemberKind kind = MemberKind::kNew;  // how it came into its current step
  };

  // A member of the running list that still computes its prompt (or recomputes after preemption).
  struct Prefill {
    SlotId slot = kNoSlot;
    std::int64_t known = 0;           // tokens to compute: prompt + generated
    std::int64_t decodes_before = 0;  // decodes ahead of it in the running list
    std::int64_t chunk = 0;           // granted in this step
  };

  // What one schedule call decided.
  struct Plan {
    std::int64_t budget = 0;  // tokens left
    bool preempted = false;
    BlockedBy blocked = BlockedBy::kNothing;
  };

  // The step, in its order.
  bool Close();
  void Deliver();
  bool Schedule(Plan& plan);
  bool GrantAll(Plan& plan);
  void GrantByPreempting(Plan& plan);
  void Admit(Plan& plan);
  void Execute(const Plan& plan);
  void AdvanceDecodes();
  void CompletePrefills(TimeNs end);
  void CompleteDecodes(TimeNs end);
  std::int64_t DecodeRun(std::int64_t max_steps);

  // The rules' parts.
  BlockedBy HeadBlockedBy(std::int64_t free_blocks, std::int64_t budget) const;
  std::int64_t ChunkOf(std::int64_t tokens, std::int64_t budget) const;
  void Preempt(SlotId slot);
  void JoinDecodes(SlotId slot);
  void LeaveDecodes(SlotId slot);
  void Finish(SlotId slot_id, TimeNs end);

  // Running list, seats and queue.
  SlotId AddToRunning(RequestId request);
  void RemoveFromRunning(SlotId slot);
  void CountDecodesBefore(std::int64_t admission, std::int64_t change);
  std::int64_t QueueLength() const {
    return static_cast<std::int64_t>(preempted_.size()) + arrived_ - admitted_;
  }
  RequestId Head() const;
  void PopHead();
  std::int64_t Known(RequestId request) const;
  std::int64_t OutputLimit(RequestId request) const;
  std::int64_t ComputedNow(const Slot& slot) const {
    return slot.decoding ? slot.computed + decode_step_ - slot.join_step : slot.computed;
  }
  std::int64_t& PhaseOf(const Slot& slot);
  Slot& SlotAt(SlotId id) { return slots_[static_cast<std::size_t>(id)]; }
  const Slot& SlotAt(SlotId id) const { return slots_[static_cast<std::size_t>(id)]; }
  TimeNs NextEnqueue() const {
    return arrived_ < static_cast<std::int64_t>(in_.order.size()) ? EnqueueOf(arrived_) : kNever;
  }
  TimeNs EnqueueOf(std::int64_t index) const {
    return in_.results
        .enqueue[static_cast<std::size_t>(in_.order[static_cast<std::size_t>(index)])];
  }

  // For an observer only.
  void ObserveSchedule();
  void ObserveStep(TimeNs start, TimeNs end);
  std::size_t MemberPosition(RequestId request) const;

  ReplicaInput in_;
  std::int64_t seats_;
  std::int64_t watermark_blocks_;
  TimeNs token_delay_;
  KvCache kv_;

  TimeNs now_ = 0;
  std::int64_t running_ = 0, completed_ = 0, length_capped_ = 0;

  std::vector<Slot> slots_;
  std::vector<SlotId> free_slots_;
  SlotId first_ = kNoSlot, last_ = kNoSlot;
  std::int64_t admissions_ = 0;

  // Queue (fcfs): preempted requests, the next at the back; then arrivals in order.
  std::vector<RequestId> preempted_;
  std::int64_t arrived_ = 0, admitted_ = 0;  // of in_.order

  std::vector<Prefill> prefills_;  // in running order
  std::vector<PrefillChunk> chunks_;

  // All decodes together.
  std::int64_t decodes_ = 0, decode_context_ = 0;
  std::int64_t decode_step_ = 0;
  std::vector<std::int64_t>
      phase_;                    // [s mod block_size]: decodes that need a block at decode step s
  std::size_t phase_index_ = 0;  // decode_step_ mod block_size
  IndexedHeap finishes_;         // slot by (decode step of its last token, admission)
  std::vector<TimeNs> last_token_;  // by request: last token before a preemption

  StepRecord record_;
};

}  // namespace servecast
