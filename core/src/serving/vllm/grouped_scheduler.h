// vLLM's rules for a model whose layers keep blocks in several groups (serving/kv/grouped_kv.h):
// one schedule call after another, each over all that run. A request that decodes is looked at
// closely only where its blocks change, which it knows in advance.
//
// "Rule" with a number is one of vLLM's golden traces' README, with B or E one of the hybrid set's.
// What it has not is in io/feature_checks.cpp: drafts, adapters, pipeline stages, KV from
// elsewhere.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/base.h"
#include "serving/kv/grouped_kv.h"
#include "serving/replica/decode_group.h"
#include "serving/replica/machine.h"
#include "serving/replica/scheduler.h"
#include "serving/replica/wait_queue.h"
#include "serving/vllm/encoder_cache.h"

namespace servecast {

class GroupedScheduler final : public Scheduler {
 public:
  explicit GroupedScheduler(Machine& machine);

  void Enqueue(RequestId request) override;
  bool GiveUp(RequestId request) override;
  void Arrive(RequestId, TimeNs) override {}

  Formed Form(StepPlan& plan) override;
  void Launched(Step& step, const StepPlan& plan, TimeNs interference) override;
  void Apply(Step& step) override;

  const DecodeRun* BeginRun() override;
  void FirstOfRun(const Step& step) override;
  void EndRun(std::int64_t steps) override;

  std::int64_t running() const override { return static_cast<std::int64_t>(running_.size()); }
  std::int64_t waiting() const override { return queue_.size(); }
  bool HasRequests() const override { return !running_.empty() || queue_.size() > 0; }
  // E8: those that run wait for room for their images, which they hold themselves.
  bool MayStall() const override { return images_ && aligns_; }
  std::optional<TimeNs> QuietUntil() override { return machine_.now(); }
  void WriteProgress(std::vector<std::int32_t>& generated) const override;
  std::int64_t image_hits() const override { return images_ ? images_->hits() : 0; }
  const PrefixCacheReport& prefix_cache() override;
  std::int64_t walked() const override { return kv_.taken() / 4 + scheduled_ / 8; }
  void Observe(StepRecord& record) const override;

 private:
  using SlotId = std::int32_t;

  struct Slot {
    RequestId request = kNoRequest;
    std::int64_t admission = -1;  // grows along the running list; -1: it is free
    double priority = 0;
    TimeNs arrival = 0;
    std::int64_t prompt = 0, most = 0;  // tokens; with those that it makes
    std::int64_t known = 0;             // prompt and applied outputs
    std::int64_t junction = 0;          // B15, of its admission
    std::int64_t computed = 0;          // scheduled
    std::int64_t placeholders = 0;      // outputs of steps in flight
    std::int64_t in_flight = 0;         // tokens of these steps
    std::int64_t chunk = 0;             // granted in this call
    // Until it has computed so many, decoding with `quiet_lag` tokens in flight, its blocks stay.
    std::int64_t quiet_until = 0, quiet_lag = -1;
    GroupedKv::Table table;
    MemberKind kind = MemberKind::kNew;
    bool sampling =
        false;  // it has had a token since it was admitted, or will from a step in flight
    TimeNs admitted = 0, last_step = -1, interference_before = 0;

    bool decodes() const { return computed >= prompt && computed >= known + placeholders - 1; }
  };
  // Of a member of a step in flight.
  struct Output {
    SlotId slot = -1;
    RequestId request = kNoRequest;
    std::int64_t admission = 0, tokens = 0;
    bool sampled = false;
    bool counted = false;  // its gap is one of Step::decodes: the step is a later one of a run
  };

  Slot& At(SlotId id) { return slots_[static_cast<std::size_t>(id)]; }
  const Slot& At(SlotId id) const { return slots_[static_cast<std::size_t>(id)]; }
  std::vector<Output>& OutputsOf(const Step& step) { return outputs_[step.place]; }
  std::int64_t Known(RequestId request) const {
    const auto r = static_cast<std::size_t>(request);
    return in_.requests.prompt_tokens[r] + in_.results.generated[r];
  }
  std::int64_t Threshold() const {
    const std::int64_t threshold = in_.engine.long_prefill_token_threshold;
    return threshold > 0 ? threshold : INT64_MAX;
  }

  std::int64_t Asked(const Slot& slot) const;
  std::int64_t Split(std::int64_t from, std::int64_t tokens, std::int64_t prompt,
                     std::int64_t known, std::int64_t junction) const;
  void Grant(StepPlan& plan);
  bool TakeFor(std::size_t& at, std::int64_t tokens, StepPlan& plan);
  std::size_t Victim() const;
  void Preempt(std::size_t at, StepPlan& plan);
  void Admit(StepPlan& plan);
  BlockedBy AdmitHead();
  bool FitsWith(const GroupedKv::Hit& hit, std::int64_t known, std::int64_t tokens) const;
  bool HasImages(RequestId request) const { return images_ && images_->Has(request); }
  SlotId Seat(RequestId request);
  void Unseat(SlotId id);
  void LeaveRun(SlotId id);
  void SetQuiet(Slot& slot, std::int64_t computed, std::int64_t in_flight);
  void TellMachine();

  void Fill(StepPlan& plan);
  void CountHit(const Slot& slot, std::int64_t known);
  void Deliver(const Output& output, Step& step);
  void EndInQueue(const Output& output, Step& step);
  void Finish(SlotId id, Step& step);
  void CountGap(TimeNs end, TimeNs gap, std::int64_t tokens);

  Machine& machine_;
  const ReplicaInput in_;
  GroupedKv kv_;
  const std::int64_t budget_, watermark_;
  const bool victim_by_priority_, aligns_;
  WaitQueue queue_;
  std::shared_ptr<EncoderCache> images_;  // nullptr: no prompt has any
  std::vector<Slot> slots_;
  std::vector<SlotId> free_slots_;
  std::vector<SlotId> running_;               // in order of admission
  std::vector<SlotId> members_;               // of the step that is being formed, as scheduled
  std::vector<std::vector<Output>> outputs_;  // by a step's place
  std::vector<std::int32_t>& slot_of_;        // by request, with time-outs
  std::int64_t left_ = 0;                     // of the budget, in this call
  std::int64_t admissions_ = 0, tokenless_calls_ = 0;
  std::int64_t scheduled_ = 0;  // members of steps, so far
  // Why the head of the queue waits, while nothing that it waits for changes; else nothing.
  BlockedBy head_waits_ = BlockedBy::kNothing;
  TimeNs interference_ = 0;  // by which prefills made steps with decodes longer, so far
  struct Gap {
    TimeNs gap = 0;
    std::int64_t tokens = 0;
  };
  Gap gap_;
  DecodeSums decodes_;       // of a run
  TimeNs first_of_run_ = 0;  // when the first step of the last run ends
  PrefixCacheReport cached_;
};

}  // namespace servecast
