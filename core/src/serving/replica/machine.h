// What a scheduler has of its replica: the clock, the device or the pipeline stages, the steps in
// flight, the KV blocks, requests between two replicas, and what clients and reports see of them.
// It says what became of a step's members, and the machine checks it by the numbers of the
// invariants. The loop that asks the scheduler is the replica's (replica.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
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
  bool encodes_images = true;  // of its prompts; else these come with what images became
};

// The longest sequence that an engine serves: the least of the model's and the engine's limit and
// the KV cache; without chunked prefill a prompt, or a recomputation, must fit one step.
std::int64_t EffectiveMaxModelLen(const EngineSpec& engine, std::int64_t model_max_len,
                                  std::int64_t usable_blocks, const KvWindows& windows = {},
                                  const KvPlan* kv_plan = nullptr);

// Averages of preemptions below it are 0.
inline constexpr double kNegligible = 1e-12;

class Machine {
 public:
  const ReplicaInput& input() const { return in_; }
  TimeNs now() const { return now_; }
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
    NextToken(step.end, gap, tokens);
  }
  void NextToken(TimeNs end, TimeNs gap, std::int64_t tokens) {
    in_.recorder->InterTokenGap(end, gap + token_delay_, tokens);
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
  // In its queue, for clients those whose KV is on its way, too.
  std::int64_t waiting() const { return scheduler_->waiting() + expected_; }
  // Of the step that is formed: so many of its requests had their step before, or their KV, at
  // `ready`; it comes later for them, or they do not wait at all.
  void CountDelay(StepPlan& plan, TimeNs ready, std::int64_t requests) {
    const TimeNs start = StartTime();
    if (ready >= start) {
      plan.in_turn += requests;
    } else if (requests > 0) {
      in_.recorder->StepDelay(start, start - ready, requests);
    }
  }
  // The queue is another.
  void QueueChanged() { in_.recorder->Waiting(now_, waiting()); }
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
  // They are free: their KV has arrived on the decode side, or is not wanted there any more.
  void FreeWithheld(RequestId request, TimeNs time);
  // A request ends here with its first token, and goes on elsewhere.
  void HandOn(Withheld blocks, TimeNs end);
  // Likewise with the last of its images.
  void Encoded(RequestId request, TimeNs end);
  // Blocks are taken for a request that was prefilled elsewhere; so many of them have to come.
  void SendForKv(RequestId request, std::int64_t blocks);
  // Requests whose KV is on its way or there, in no step yet; for clients they wait.
  std::int64_t expected() const { return expected_; }
  // It is in the step that is being formed.
  void Resume(RequestId request);
  // It will be in none: its client gave up, or it was preempted before.
  void ExpectNoMore() { --expected_; }

 protected:
  explicit Machine(const ReplicaInput& input);
  ~Machine() = default;

  void Smooth(std::size_t preempted, std::int64_t running);

  ReplicaInput in_;
  QueuePolicy policy_;
  KvCache kv_;
  TimeNs token_delay_, delivery_delay_;
  HostStalls stalls_;
  double preemption_weight_;

  TimeNs now_ = 0;
  TimeNs device_free_ = 0;  // end of the newest step; with stages, on the first of them
  TimeNs transfer_total_ = 0;
  std::optional<Pipeline> pipeline_;  // none: one stage
  std::size_t depth_;                 // how many steps may be in flight
  std::vector<Step> steps_;           // ring of so many
  std::size_t first_step_ = 0, in_flight_ = 0;

  std::vector<Withheld> withheld_;
  NumberMap<RequestId> place_of_;  // in it, by request
  std::int64_t withheld_room_ = 0;
  std::int64_t expected_ = 0;
  TimeNs woken_ = kNever;  // KV came, or blocks were given back, since a step was formed, then
  // Left the queue by ending in it, at now_: recorded once those that came before now_ are.
  std::int64_t left_queue_ = 0;
  struct Ended {
    std::int64_t completed = 0, timed_out = 0, rejected = 0, length_capped = 0;
  };
  Ended ended_;
  std::shared_ptr<QueueCaps> caps_;  // nullptr: none
  SchedulerCounts counts_;
  EngineLoad load_;                       // what an arrival finds, but for what waits
  std::unique_ptr<Scheduler> scheduler_;  // knows all of the above
};

}  // namespace servecast
