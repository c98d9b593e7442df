// How tests and the conformance command look into a run: a step time of their own, and every step
// as it happened. Nothing here changes what is simulated.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/base.h"
#include "metrics/recorder.h"
#include "serving/policy.h"
#include "workload/request_table.h"

namespace servecast {

// How a member came into its step: for the first time, again after a preemption, or it was running.
enum class MemberKind : char { kNew = 'n', kResumed = 'r', kContinued = 'c' };

struct StepMember {
  RequestId id = kNoRequest;
  std::int64_t tokens = 0;           // computed in this step
  std::int64_t computed_before = 0;  // tokens whose KV was there before
  MemberKind kind = MemberKind::kContinued;
  // Output tokens that it yields: of a decode with drafts several, none of a request that the steps
  // in flight will have ended.
  std::int64_t sampled = 0;
  std::int64_t drafts = 0;    // of its tokens
  std::int64_t accepted = 0;  // of them

  friend bool operator==(const StepMember&, const StepMember&) = default;
};

// When a pipeline stage was busy with a step, sending included.
struct StageSpan {
  TimeNs start = 0, end = 0;

  friend bool operator==(const StageSpan&, const StageSpan&) = default;
};

// What SGLang's scheduler alone has, by the names of its golden traces.
struct SglangLevels {
  double new_token_ratio = 0;
  std::int64_t evictable_after_schedule = 0, evictable_after_step = 0;  // tokens
  std::int64_t running_batch = 0;
  std::int64_t retracted = 0;      // of `preempted`, the last ones: for lack of memory
  RequestId chunked = kNoRequest;  // whose prompt is unfinished
  bool batch_is_full = false;

  friend bool operator==(const SglangLevels&, const SglangLevels&) = default;
};

// Likewise TensorRT-LLM's, of a rank of attention data parallelism.
struct TrtllmRankLevels {
  std::int64_t contexts = 0, generating = 0;  // of the step's members, behind those of ranks before
  std::int64_t dummies = 0;                   // that generate beside them
  std::int64_t paused = 0, finished = 0;      // likewise of `preempted` and `finished`
  std::int64_t fitting = 0, active_after_schedule = 0, active_after_step = 0;
  std::int64_t free_after_schedule = 0, free_after_step = 0;
  // Its output waits for a step of all ranks (rule 71): `finished`, active_after_step and
  // free_after_step are in the next record, in `late`.
  bool kept = false;

  friend bool operator==(const TrtllmRankLevels&, const TrtllmRankLevels&) = default;
};
struct TrtllmLateOutput {
  std::int64_t rank = 0, active_after_step = 0, free_after_step = 0;
  std::vector<RequestId> finished;

  friend bool operator==(const TrtllmLateOutput&, const TrtllmLateOutput&) = default;
};

// Likewise TensorRT-LLM's.
struct TrtllmLevels {
  std::int64_t fitting = 0;  // that its capacity scheduler let through
  std::int64_t active_after_schedule = 0, active_after_step = 0;  // in its list
  std::vector<std::pair<RequestId, TimeNs>> activated;            // when, since the step before
  std::vector<TrtllmRankLevels> ranks;                            // empty: one
  std::vector<TrtllmLateOutput> late;                             // of the step before

  friend bool operator==(const TrtllmLevels&, const TrtllmLevels&) = default;
};

// Emitted when the step's output is applied: with async scheduling after the next one is scheduled.
struct StepRecord {
  std::int64_t replica = 0;
  std::int64_t index = 0;  // of the replica's, 0-based; steps without any token do not count
  TimeNs scheduled = 0, start = 0, end = 0;
  TimeNs transfer = 0;            // of its time: loading KV content from slower tiers
  TimeNs interference = 0;        // of its time: by which prefills made the decodes wait
  std::vector<StageSpan> stages;  // empty: one stage
  StepBound bound = StepBound::kOverhead;
  std::int64_t prefill_tokens = 0;   // the others are decodes'
  std::vector<StepMember> members;   // in scheduled order
  std::vector<RequestId> preempted;  // by this schedule call, in order
  std::vector<RequestId> finished;   // by this step's output, in scheduled order
  std::int64_t free_after_schedule = 0, free_after_step = 0;  // KV blocks; tokens, by lightllm
  std::int64_t used_after_schedule = 0;  // KV blocks of the replica, as its report counts them
  std::int64_t running_after_schedule = 0, waiting_after_schedule = 0;
  std::int64_t running_after_step = 0, waiting_after_step = 0;  // before later arrivals are added
  SglangLevels sglang;
  TrtllmLevels trtllm;

  friend bool operator==(const StepRecord&, const StepRecord&) = default;
};

class StepObserver {
 public:
  virtual ~StepObserver() = default;
  // The record is reused: copy what must outlive the call.
  virtual void OnStep(const StepRecord& step) = 0;
};

struct Deployment;

struct SimulationHooks {
  std::unique_ptr<LatencyModel> latency;   // instead of the scenario's
  std::vector<PipelineStage> stages;       // likewise
  StepObserver* observer = nullptr;        // not owned; outlives the simulation
  std::optional<RequestTable> requests;    // instead of the workload's
  std::shared_ptr<Deployment> deployment;  // instead of that of the scenario, which Redeploy makes
  Recorded recorded = {};                  // without all of it a report says less
};

}  // namespace servecast
