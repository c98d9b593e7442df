// One engine instance whose batches a BatchScheduler makes: Vidur's schedulers, by rules without
// Vidur's faults or, for compat vidur, with them. Batches go through pipeline stages, each first
// come, first served and one at a time; as many are in flight as there are stages.
//
// At one instant batches end, then requests come, then clients give up, then batches are formed.
// All times of a batch are known when it is formed: a stage begins it when the stage before has
// sent it and the batch before it is gone.
//
// By its role it may end requests with their first token, or take in such requests: see
// scheduled_hand_over.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "serving/replica/batch_scheduler.h"
#include "serving/replica/decode_group.h"
#include "serving/replica/pipeline.h"
#include "serving/replica/replica.h"

namespace servecast {

struct SchedulerSetup {
  const SchedulerEntry* entry = nullptr;
  SchedulerLimits limits;
  std::int64_t report_block = 1;     // KV blocks here to one of the report's
  std::int64_t declared_output = 0;  // by each client; in compat vidur its true one
  std::vector<std::string_view> departures;
};

// Of a scenario whose scheduler.policy is not vllm.
std::unique_ptr<SchedulerSetup> MakeSchedulerSetup(const Scenario& scenario, const ModelCost& cost,
                                                   std::int64_t max_model_len,
                                                   const RequestTable& requests);

// What such a scenario, with one pool, has that none of these schedulers goes with, and what its
// own does not.
void RefuseForBatchScheduler(const Scenario& scenario, Issues& issues);

class ScheduledReplica final : public Engine {
 public:
  // Requires: input.setup; its latency model's delays do not depend on load.
  explicit ScheduledReplica(const ReplicaInput& input);

  // As Replica::Advance.
  bool Advance(std::int64_t max_steps) override;

  void Arrive(RequestId request, TimeNs time) override;
  void FreeHandedOver(RequestId request, TimeNs time) override;
  TimeNs Wakes() override { return Idle() ? kNever : NextEvent(); }

  TimeNs now() const override { return now_; }
  TimeNs ready() const override {
    const TimeNs next = in_.inbox.NextEnqueue();
    if (Idle()) return next != kNever ? std::max(now_, next) : now_;
    return settled_ && NextEvent() > now_ ? NextEvent() - 1 : now_;
  }
  EngineLoad LoadAt(TimeNs time) const override {
    return now_ <= time ? EngineLoad{running(), kv_blocks_used()} : load_;
  }
  std::int64_t running() const override { return state_.admitted() - expected_; }
  std::int64_t queued() const override { return state_.waiting() + expected_; }
  std::int64_t completed() const override { return completed_; }
  std::int64_t timed_out() const override { return timed_out_; }
  std::int64_t length_capped() const override { return length_capped_; }
  std::int64_t kv_blocks_used() const override {
    return CeilDiv(state_.used(), setup_.report_block);
  }
  const PrefixCacheReport& prefix_cache() override { return no_cache_; }
  SchedulerCounts counts() const override;
  std::vector<std::string_view> departures() const override { return setup_.departures; }
  void WriteProgress(std::vector<std::int32_t>& generated) const override;

 private:
  // Of a job, what its scheduler does not know.
  struct Seat {
    RequestId request = kNoRequest;  // kNoRequest: the job has ended
    std::int64_t total = 0;          // prompt and output
    TimeNs last_token = -1;          // its end; -1: none yet
    TimeNs last_step = -1;           // the end of its last one, or when its KV came; -1: none yet
    TimeNs admitted = 0;             // start of its first batch since it last waited
    bool in_flight = false, gave_up = false;
    bool fresh = false;  // its KV has arrived here, and no batch with it has ended since
  };
  // Blocks of a request that is not served here any more, until its KV has gone or come.
  struct Withheld {
    RequestId request = kNoRequest;
    std::int64_t blocks = 0, tokens = 0;
  };
  struct Step {
    Batch members;
    TimeNs start = 0, end = 0;  // in the first stage, of the last
    StepLevels levels;
    StepBound bound = StepBound::kOverhead;
    BlockedBy blocked = BlockedBy::kNothing;
    std::int64_t sampled = 0;
    PrefillWork prefill;
    StepRecord record;
  };

  bool Idle() const;
  bool Close();
  TimeNs NextEvent() const;
  void Deliver();
  void Enqueue(RequestId request, TimeNs time);
  bool GiveUp();
  void Abort(RequestId request, JobIndex index);
  bool Form();
  void CountRestarts();
  // Room in used KV blocks that holds no token; Vidur's faults may store more than they take.
  std::int64_t Unused(std::int64_t used, std::int64_t stored) const {
    return std::max<std::int64_t>(0, used * setup_.limits.block_size - stored);
  }
  void Launch(Step& step);
  StepPrice PriceOf(const BatchShape& shape) const {
    return pipeline_ ? pipeline_->Price(shape) : in_.latency.Price(shape);
  }
  void CountPrefills(Step& step, const BatchShape& shape, TimeNs alone);
  void Apply();
  void Finish(JobIndex index, TimeNs end);

  // Prefill here, decode there (scheduled_hand_over.cpp).
  bool HidesTokens() const { return in_.role == PoolRole::kPrefill && in_.first_token_from_decode; }
  bool HandsOver(RequestId request) const;
  void HandOn(JobIndex index, TimeNs end);
  void AddRemote(RequestId request, Job& job, Seat& seat) const;
  void SendForKv(std::size_t first);
  void ResumeFresh(const Batch& members);
  void LoseFresh(Seat& seat);
  void AbortAdmitted(RequestId request, JobIndex index);

  std::int64_t DecodeRun(std::int64_t max_steps);
  bool PrepareRun(DecodeForecast& forecast);
  void CountGap(TimeNs end, TimeNs gap, std::int64_t tokens);
  void Observe(Step& step);

  // Of the next batch: with one stage none is formed while it is busy.
  TimeNs StartTime() const { return pipeline_ ? std::max(now_, pipeline_->free()) : now_; }
  bool CanForm() const { return in_flight_ < steps_.size() && StartTime() < in_.horizon; }
  Step& Oldest() { return steps_[first_step_]; }
  const Step& Oldest() const { return steps_[first_step_]; }
  Step& Free() { return steps_[(first_step_ + in_flight_) % steps_.size()]; }
  Seat& SeatOf(JobIndex index) { return seats_[static_cast<std::size_t>(index)]; }
  std::int32_t Generated(JobIndex index) const;

  ReplicaInput in_;
  const SchedulerSetup& setup_;
  std::unique_ptr<BatchScheduler> scheduler_;
  SchedulerState state_;
  std::vector<Seat> seats_;           // by job
  std::vector<JobIndex>& job_of_;     // by request, for time-outs (ReplicaScratch)
  std::optional<Pipeline> pipeline_;  // none: one stage
  std::vector<Step> steps_;           // ring: at most one per stage is in flight
  std::size_t first_step_ = 0, in_flight_ = 0;
  std::vector<PrefillChunk> chunks_;
  TimeNs token_delay_, delivery_delay_;
  PrefixCacheReport no_cache_;
  SchedulerCounts counts_;
  EngineLoad load_;  // as the latest batch was formed
  TimeNs now_ = 0;
  TimeNs recorded_until_ = 0;  // the end of the last step that ended
  bool settled_ = false;       // nothing has happened since no batch could be formed
  TimeNs woken_ = kNever;      // a transfer has ended since then, at that time
  std::int64_t expected_ = 0;  // KV under way or there, in no batch yet
  std::vector<Withheld> withheld_;
  std::int64_t completed_ = 0, timed_out_ = 0, length_capped_ = 0;

  struct Gap {
    TimeNs end = 0, gap = 0;
    std::int64_t tokens = 0;
  };
  Gap gap_;         // of the members so far that had the same
  DecodeSums run_;  // of a decode run: the parked
};

}  // namespace servecast
