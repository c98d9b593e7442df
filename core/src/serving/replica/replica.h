// One engine instance: the loop that runs the steps which its scheduler forms (scheduler.h) on its
// machine (machine.h). At one instant steps end, then requests come, then clients give up, then
// steps are formed: see replica.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/base.h"
#include "serving/engine.h"
#include "serving/replica/machine.h"
#include "serving/replica/slow_periods.h"

namespace servecast {

class Replica final : public Engine, private Machine {
 public:
  explicit Replica(const ReplicaInput& input);

  // Stops, too, where the inbox does not allow more (its until()): then false, if there is work.
  // True of a routed replica that has nothing to do until it is sent more, or a transfer ends.
  bool Advance(std::int64_t max_steps) override;

  void Arrive(RequestId request, TimeNs time) override;
  void FreeHandedOver(RequestId request, TimeNs time) override { FreeWithheld(request, time); }
  void LoseTransfer(RequestId request, TimeNs time) override;
  std::vector<RequestId> WithheldFor() const override;
  void Die(TimeNs time) override;
  TimeNs EndBy(TimeNs now, TimeNs time) override;
  TimeNs Wakes() override {
    const bool step_is_lost = in_flight_ > 0 && Oldest().end > in_.dies_at;
    return Idle() || step_is_lost ? kNever : NextEvent();
  }

  TimeNs now() const override { return now_; }
  TimeNs ready() const override {
    const TimeNs next = Idle() ? in_.inbox->NextEnqueue() : kNever;
    if (next != kNever) return std::max(now_, next);
    return settled_ && !Idle() && NextEvent() > now_ ? NextEvent() - 1 : now_;
  }
  TimeNs QuietUntil() override { return scheduler_->QuietUntil().value_or(ready()); }
  std::int64_t running() const override { return scheduler_->running(); }
  std::int64_t queued() const override { return waiting(); }
  std::int64_t completed() const override { return ended_.completed; }
  std::int64_t timed_out() const override { return ended_.timed_out; }
  std::int64_t rejected() const override { return ended_.rejected; }
  std::int64_t length_capped() const override { return ended_.length_capped; }
  std::int64_t kv_blocks_used() const override {
    return report_block_ == 1 ? kv_.used() : CeilDiv(kv_.used(), report_block_);
  }
  const PrefixCacheReport& prefix_cache() override { return scheduler_->prefix_cache(); }
  KvOffloadReport kv_offload() const override;
  void WriteProgress(std::vector<std::int32_t>& generated) const override {
    scheduler_->WriteProgress(generated);
  }
  SchedulerCounts counts() const override;
  std::vector<std::string_view> departures() const override;

  EngineLoad LoadAt(TimeNs time) const override {
    return now_ <= time ? EngineLoad{running(), kv_blocks_used()} : load_;
  }
  LastStep LastStepAt(TimeNs time) const override {
    return now_ <= time && Idle() ? LastStep{} : last_step_;
  }

 private:
  // The loop and the step, in its order.
  bool Idle() const { return in_flight_ == 0 && !scheduler_->HasRequests(); }
  bool Close();
  void PassTo(TimeNs time);
  TimeNs NextEvent() const;
  void Deliver();
  void DeliverUpTo(TimeNs last);
  bool GiveUp();
  std::int64_t RunDecodes(const DecodeRun& run, std::int64_t max_steps);
  StepPrice PriceAt(TimeNs start, const BatchShape& shape) const {
    StepPrice price = in_.latency.Price(shape);
    if (slow_) price.duration = slow_->Stretched(start, price.duration);
    return price;
  }
  bool EndsAfter(TimeNs time, const DecodeRun& run) const;
  inline void RunStep(const DecodeRun& run, std::int64_t before, const StepLevels& levels,
                      const StepPrice& price, BlockedBy blocked);
  Formed Form();
  inline Step& NewStep();
  inline void Launch();
  inline TimeNs CountPrefills(Step& step, const StepPrice& price);
  void CountImages(const StepPrice& price);
  void CountDrafted(Step& step);
  void CountPadding();
  void Apply();
  void RecordToNext(const Step& step, std::int64_t tokens);
  // Of several ranks in lock step (replica_ranks.cpp).
  StepPrice PriceRanks(bool with_prefills);
  void CountRanks(Step& step);
  void RecordRanks(const Step& step, std::int64_t tokens);

  Step& Oldest() { return steps_[first_step_]; }
  const Step& Oldest() const { return steps_[first_step_]; }
  bool CanForm() const { return in_flight_ < depth_ && StartTime() < last_start_; }
  // Whether what comes before the oldest step ends may have another one formed.
  bool FormsBetween() const { return scheduler_->habits().forms_between && CanForm(); }

  // For an observer only.
  void ObserveSchedule(StepRecord& record);
  void ObserveStep(Step& step);

  std::int64_t seats_;
  std::int64_t report_block_;  // blocks of kv_ to one of the report's
  bool prices_transfers_, delay_by_cache_;

  TimeNs last_start_;          // no step starts at or after it
  TimeNs recorded_until_ = 0;  // the end of the last step that ended
  bool settled_ = false;       // nothing has happened since no step could be formed

  StepPlan plan_;  // of the step that is being formed

  std::int64_t early_ = 0;             // delivered before the outputs of the steps that end at now_
  std::shared_ptr<SlowPeriods> slow_;  // nullptr: never
  LastStep last_step_;
  std::vector<std::pair<double, std::int64_t>> padded_;  // scratch: bucket, tokens
};

// By the scheduler that the input names.
std::unique_ptr<Engine> MakeReplica(const ReplicaInput& input);

}  // namespace servecast
