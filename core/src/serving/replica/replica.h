// One engine instance: the machine that runs the steps which its scheduler forms (scheduler.h). It
// has the clock, the inbox, the device or the pipeline stages, the steps in flight, the KV blocks,
// requests between two replicas, and whatever clients and reports see.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/base.h"
#include "base/number_map.h"
#include "metrics/recorder.h"
#include "servecast/report.h"
#include "servecast/scenario.h"
#include "serving/engine.h"
#include "serving/hooks.h"
#include "serving/inbox.h"
#include "serving/kv/kv_cache.h"
#include "serving/replica/host_stalls.h"
#include "serving/replica/pipeline.h"
#include "serving/replica/queue_policy.h"
#include "serving/replica/scheduler.h"
#include "serving/replica/slow_periods.h"
#include "workload/request_table.h"

namespace servecast {

// By request, of which each is on one replica at a time, so that many replicas share it.
struct ReplicaScratch {
  explicit ReplicaScratch(const RequestTable& requests)
      : last_token(static_cast<std::size_t>(requests.size()), 0),
        slot(requests.timeout.size(), -1) {}
  std::vector<TimeNs> last_token;  // the last one before it stopped decoding, or with drafts any
  std::vector<std::int32_t> slot;  // where it runs; empty without time-outs
  struct Draws {
    std::int64_t verified = 0, proposed = 0;
  };
  std::vector<Draws> draws;  // of its drafts, so far; empty without
};

struct SchedulerSetup;
class QueueCaps;

// What a replica is given; all of it outlives the replica.
struct ReplicaInput {
  const EngineSpec& engine;
  const SchedulerSpec& scheduler;
  const SchedulerSetup& setup;
  std::int64_t pool_blocks = 0;    // vLLM's pool: one of them is never used
  std::int64_t max_model_len = 0;  // effective: see EffectiveMaxModelLen
  const RequestTable& requests;
  Inbox* inbox = nullptr;  // its own, as the recorder is: never nullptr once it runs
  const LatencyModel& latency;
  RequestResults& results;
  Recorder* recorder = nullptr;
  ReplicaScratch& scratch;
  TimeNs horizon = kNever;  // no step starts at or after it
  StepObserver* observer = nullptr;
  std::vector<KvTier> kv_tiers = {};  // behind the GPU's KV cache
  std::int64_t number = 0;            // for an observer, and of the draws of its host's stalls
  bool one_of_many = false;           // sees a part of the requests
  // Those of a pipeline, which then price the steps; nullptr: one stage, which `latency` prices.
  // Not together with async scheduling or KV tiers.
  const std::vector<PipelineStage>* stages = nullptr;
  // Prefill: requests end here with their first token, which no client gets if the decode side
  // sends it. Decode: a request that was prefilled elsewhere has its KV sent. By requests'
  // HandOver; see the inbox's events. With them: no KV tiers, no garbage collection.
  PoolRole role = PoolRole::kMixed;
  bool first_token_from_decode = false;
  std::int64_t seed = 1;   // of the draws of accepted drafts and of stalls
  KvWindows windows = {};  // not together with KV tiers, another scheduler or another role
  // Of layers in several groups, with vLLM's scheduler alone; nullptr: one table a request.
  const KvPlan* kv_plan = nullptr;
  std::int64_t most_image_tokens = 0;  // of the largest image that the model can have
  TimeNs dies_at = kNever;  // no step that ends after it has an effect; before the horizon
  std::int64_t ranks = 1;   // in lock step, each with the seats, blocks and tokens of `setup`
  const SlowdownSpec* slowdowns = nullptr;  // nullptr: none. Not with stages
};

// The longest sequence that an engine serves: the least of the model's and the engine's limit and
// the KV cache; without chunked prefill a prompt, or a recomputation, must fit one step.
std::int64_t EffectiveMaxModelLen(const EngineSpec& engine, std::int64_t model_max_len,
                                  std::int64_t usable_blocks, const KvWindows& windows = {},
                                  const KvPlan* kv_plan = nullptr);

// Averages of preemptions below it are 0.
inline constexpr double kNegligible = 1e-12;

class Replica final : public Engine {
 public:
  explicit Replica(const ReplicaInput& input);

  // ---- For simulations and clusters ----

  // Stops, too, where the inbox does not allow more (its until()): then false, if there is work.
  // True of a routed replica that has nothing to do until it is sent more, or a transfer ends.
  bool Advance(std::int64_t max_steps) override;

  void Arrive(RequestId request, TimeNs time) override;
  void FreeHandedOver(RequestId request, TimeNs time) override;
  void Die(TimeNs time) override;
  TimeNs EndBy(TimeNs now, TimeNs time) override;
  TimeNs Wakes() override { return Idle() ? kNever : NextEvent(); }

  TimeNs now() const override { return now_; }
  TimeNs ready() const override {
    const TimeNs next = Idle() ? in_.inbox->NextEnqueue() : kNever;
    if (next != kNever) return std::max(now_, next);
    return settled_ && !Idle() && NextEvent() > now_ ? NextEvent() - 1 : now_;
  }
  TimeNs QuietUntil() override { return scheduler_->QuietUntil(); }
  std::int64_t running() const override { return scheduler_->running(); }
  std::int64_t queued() const override { return scheduler_->waiting() + expected_; }
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

  // ---- For its scheduler ----

  const ReplicaInput& input() const { return in_; }
  const QueuePolicy& policy() const { return policy_; }
  KvCache& kv() { return kv_; }
  // Of the next step: with one stage it may be behind one in flight.
  TimeNs StartTime() const { return device_free_ > now_ ? device_free_ : now_; }
  bool staged() const { return pipeline_.has_value(); }
  std::size_t in_flight() const { return in_flight_; }
  std::size_t most_in_flight() const { return depth_; }
  Step& Newest() { return InFlight(in_flight_ - 1); }
  Step& InFlight(std::size_t i) { return steps_[(first_step_ + i) % depth_]; }
  TimeNs transfer_total() const { return transfer_total_; }  // of the steps launched so far

  // Output tokens that a request makes at most, wherever; and here.
  std::int64_t AnswerLimit(RequestId request) const {
    const auto r = static_cast<std::size_t>(request);
    return std::min<std::int64_t>(in_.requests.output_tokens[r],
                                  in_.max_model_len - in_.requests.prompt_tokens[r]);
  }
  std::int64_t OutputLimit(RequestId request) const {
    return in_.role == PoolRole::kPrefill ? 1 : AnswerLimit(request);
  }
  bool HandsOver(RequestId request) const {
    return in_.role == PoolRole::kPrefill &&
           (in_.first_token_from_decode || AnswerLimit(request) > 1);
  }
  bool hides_tokens() const {
    return in_.role == PoolRole::kPrefill && in_.first_token_from_decode;
  }

  // Of a step whose outputs are applied: a request's first token; a later one, which came `gap`
  // after the one before; a request is done, and what it held is free.
  void FirstToken(RequestId request, const Step& step);
  void NextToken(const Step& step, TimeNs gap, std::int64_t tokens = 1) {
    in_.recorder->InterTokenGap(step.end, gap + token_delay_, tokens);
  }
  void Finish(RequestId request, std::int64_t generated, Step& step);
  // Its client gave up; what it held is free.
  void TimeOut(RequestId request);
  // A token that it would have had from the step is made, but no client reads it. `decoded`: it is
  // one of the step's `decodes`.
  static void LoseToken(Step& step, bool decoded) {
    --step.sampled;
    if (decoded) --step.decodes;
  }
  // Likewise, of the step that ends then.
  void LoseTokenAt(TimeNs end, bool decoded);

  // A request left the running list for the queue.
  void Preempted(RequestId request);
  // So many requests did, or none, as a step was formed.
  void SmoothPreemptions(std::size_t preempted, std::int64_t running) {
    if (preemption_weight_ != 0) Smooth(preempted, running);
  }
  void GarbageCollected() { ++counts_.gc_passes; }
  // So many victims of a preemption wait that SGLang would have lost.
  void VictimsLost(std::int64_t victims) { counts_.lost_victims += victims; }
  // Members of a step that is launched have drafts, of which so many will be accepted, and so many
  // of the accepted tokens reach a client.
  void Verified(std::int64_t members, std::int64_t drafts, std::int64_t accepted,
                std::int64_t used) {
    counts_.verified_steps += members;
    counts_.draft_tokens += drafts;
    counts_.accepted_tokens += accepted;
    counts_.used_draft_tokens += used;
  }
  // The queue is another.
  void QueueChanged() { in_.recorder->Waiting(now_, queued()); }
  // A request ended in the queue, by a token that was in flight.
  void EndedInQueue() { ++left_queue_; }

  // Blocks that are held for a request which has no seat: it was prefilled here, or its client gave
  // up while its KV was on its way.
  struct Withheld {
    RequestId request = kNoRequest;
    KvCache::Holding holding;
    std::int64_t blocks = 0, tokens = 0;
    bool computed = true;  // here, so that others find it; else nobody looks at what comes
  };
  bool withholds() const { return !withheld_.empty(); }
  // Room for tokens in all blocks that are withheld.
  std::int64_t withheld_room() const { return withheld_room_; }
  void Withhold(Withheld blocks);
  // A request ends here with its first token, and goes on elsewhere.
  void HandOn(Withheld blocks, TimeNs end);
  // Blocks are taken for a request that was prefilled elsewhere; so many of them have to come.
  void SendForKv(RequestId request, std::int64_t blocks);
  // Requests whose KV is on its way or there, in no step yet; for clients they wait.
  std::int64_t expected() const { return expected_; }
  // It is in the step that is being formed.
  void Resume(RequestId request);
  // It will be in none: its client gave up, or it was preempted before.
  void ExpectNoMore() { --expected_; }

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
  void Smooth(std::size_t preempted, std::int64_t running);
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

  ReplicaInput in_;
  QueuePolicy policy_;
  KvCache kv_;
  std::int64_t seats_;
  std::int64_t report_block_;  // blocks of kv_ to one of the report's
  TimeNs token_delay_, delivery_delay_;
  HostStalls stalls_;
  double preemption_weight_;
  bool prices_transfers_, delay_by_cache_;

  TimeNs last_start_;  // no step starts at or after it
  TimeNs now_ = 0;
  TimeNs device_free_ = 0;     // end of the newest step; with stages, on the first of them
  TimeNs recorded_until_ = 0;  // the end of the last step that ended
  TimeNs transfer_total_ = 0;
  bool settled_ = false;   // nothing has happened since no step could be formed
  TimeNs woken_ = kNever;  // KV came, or blocks were given back, since then, at that time

  std::optional<Pipeline> pipeline_;  // none: one stage
  std::size_t depth_;                 // how many steps may be in flight
  std::vector<Step> steps_;           // ring of so many
  std::size_t first_step_ = 0, in_flight_ = 0;
  StepPlan plan_;  // of the step that is being formed

  std::vector<Withheld> withheld_;
  NumberMap<RequestId> place_of_;  // in it, by request
  std::int64_t withheld_room_ = 0;
  std::int64_t expected_ = 0;
  // Left the queue by ending in it, at now_: recorded once those that came before now_ are.
  std::int64_t left_queue_ = 0;
  std::int64_t early_ = 0;  // delivered before the outputs of the steps that end at now_
  struct Ended {
    std::int64_t completed = 0, timed_out = 0, rejected = 0, length_capped = 0;
  };
  Ended ended_;
  std::shared_ptr<QueueCaps> caps_;    // nullptr: none
  std::shared_ptr<SlowPeriods> slow_;  // nullptr: never
  SchedulerCounts counts_;
  EngineLoad load_;  // what an arrival finds, but for what waits
  std::vector<std::pair<double, std::int64_t>> padded_;  // scratch: bucket, tokens
  std::unique_ptr<Scheduler> scheduler_;                 // knows all of the above
};

// By the scheduler that the input names.
std::unique_ptr<Engine> MakeReplica(const ReplicaInput& input);

}  // namespace servecast
