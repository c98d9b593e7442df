// See machine.h.
#include "serving/replica/machine.h"

#include <algorithm>

#include "serving/replica/draft_rules.h"
#include "serving/replica/queue_caps.h"
#include "serving/replica/scheduler_setup.h"
#include "serving/vllm/encode_scheduler.h"

namespace servecast {
namespace {

KvCache::Options CacheOptions(const ReplicaInput& in) {
  const SchedulerLimits& limits = in.setup.limits;
  return {limits.blocks * in.ranks,
          limits.block_size,
          limits.caches_prefixes && !in.setup.entry->own_cache && in.kv_plan == nullptr,
          in.engine.free_contentless_first,
          in.engine.kv_offload.threshold,
          in.one_of_many,
          in.windows,
          in.role == PoolRole::kPrefill};
}

}  // namespace

std::int64_t EffectiveMaxModelLen(const EngineSpec& engine, std::int64_t model_max_len,
                                  std::int64_t usable_blocks, const KvWindows& windows,
                                  const KvPlan* kv_plan) {
  const std::int64_t blocks = windows.any() ? windows.MostPositions(usable_blocks) : usable_blocks;
  std::int64_t length = kv_plan != nullptr
                            ? kv_plan->groups.Longest(usable_blocks, model_max_len, kv_plan->rules)
                            : std::min(model_max_len, blocks * engine.block_size);
  if (engine.max_model_len) length = std::min(length, *engine.max_model_len);
  if (!engine.enable_chunked_prefill) length = std::min(length, TokenBudget(engine) + 1);
  return length;
}

Machine::Machine(const ReplicaInput& input)
    : in_(input),
      policy_(input.scheduler, input.requests),
      kv_(CacheOptions(input), input.requests, input.kv_tiers),
      token_delay_(input.latency.OutputTokenDelay()),
      delivery_delay_(input.latency.DeliveryDelay()),
      stalls_(input.latency.Stalls(), input.seed, input.number),
      preemption_weight_(input.latency.PreemptionWeight()),
      depth_(static_cast<std::size_t>(input.setup.limits.stages)),
      steps_(depth_),
      caps_(MakeQueueCaps(input.engine, input.requests)) {
  in_.horizon = std::min(in_.horizon, kClockEnd);
  if (in_.stages != nullptr) pipeline_.emplace(*in_.stages);
  for (std::size_t i = 0; i < depth_; ++i) steps_[i].place = i;
  scheduler_ = in_.role == PoolRole::kEncode ? MakeEncodeScheduler(*this)
               : in_.kv_plan != nullptr      ? MakeGroupedScheduler(*this)
                                             : in_.setup.entry->machine(*this);
}

void Machine::FirstToken(RequestId request, const Step& step) {
  const auto r = static_cast<std::size_t>(request);
  if (caps_) caps_->FirstToken(request, step.end);
  TimeNs late = step.made * delivery_delay_;
  if (stalls_.Any()) late += stalls_.LeftAt(step.end + late);
  if (late > 0) in_.results.SetLate(r, late);
  const TimeNs seen = step.end + token_delay_ + in_.results.Late(r);
  if (in_.inbox->GaveUpBefore(request, seen)) return;
  in_.results.first_token[r] = seen;
  in_.inbox->FirstToken(request, seen);
}

void Machine::Finish(RequestId request, std::int64_t generated, Step& step) {
  const auto r = static_cast<std::size_t>(request);
  in_.results.generated[r] = static_cast<std::int32_t>(generated);
  in_.recorder->Left(step.end);
  if (caps_) caps_->Over(request, step.end);
  if (in_.observer != nullptr) step.record.finished.push_back(request);
  // Absurd delays end with the clock.
  const auto seen = static_cast<TimeNs>(
      std::min(WideInt{step.end} + WideInt{generated} * token_delay_ + in_.results.Late(r),
               WideInt{kNever}));
  if (in_.inbox->GaveUpBefore(request, seen)) {
    in_.results.state[r] = RequestState::kTimedOut;
    ++ended_.timed_out;
    in_.inbox->GaveUp(request, step.end);
    return;
  }
  in_.results.completion[r] = seen;
  in_.results.state[r] = RequestState::kCompleted;
  ++ended_.completed;
  ended_.length_capped += generated < in_.requests.output_tokens[r] ? 1 : 0;
  in_.inbox->Answered(request, step.end);
}

void Machine::LoseTokenAt(TimeNs end, bool decoded) {
  for (Step& step : steps_) {
    if (step.end == end) return LoseToken(step, decoded);
  }
}

void Machine::TimeOut(RequestId request) {
  in_.results.state[static_cast<std::size_t>(request)] = RequestState::kTimedOut;
  ++ended_.timed_out;
  in_.recorder->Left(now_);
  if (caps_) caps_->Over(request, now_);
  in_.inbox->GaveUp(request, now_);
}

void Machine::Preempted(RequestId request) {
  const auto r = static_cast<std::size_t>(request);
  ++in_.results.preemptions[r];
  in_.results.state[r] = RequestState::kQueued;
  in_.recorder->Preempted(now_);
}

// A memory too faint to be seen is none: the average ends.
void Machine::Smooth(std::size_t preempted, std::int64_t running) {
  const double rate =
      static_cast<double>(preempted) / static_cast<double>(std::max<std::int64_t>(running, 1));
  load_.preemption_ema =
      preemption_weight_ * rate + (1 - preemption_weight_) * load_.preemption_ema;
  if (load_.preemption_ema < kNegligible) load_.preemption_ema = 0;
}

}  // namespace servecast
