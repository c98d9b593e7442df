// vLLM's own scheduler (serving/vllm/vllm_scheduler.h), as a scenario's choice.
#include "base/text.h"
#include "serving/replica/scheduler_entry.h"

namespace servecast::scheduler_vllm {
namespace {

using enum Feature;

constexpr Lack kVllmLacks[] = {{kVidur, "Vidur's vLLM is \"vllm_v0\""}};

void RefuseTooFewTokens(const Scenario& s, Issues& issues) {
  const EngineSpec& e = s.engine;
  if (e.max_num_batched_tokens >= e.max_num_seqs) return;
  issues.push_back({"/engine/max_num_batched_tokens",
                    Format("found {}, allowed from max_num_seqs {} up: every running request needs "
                           "a token in each step",
                           e.max_num_batched_tokens, e.max_num_seqs)});
}

}  // namespace

extern const SchedulerEntry kEntry = {
    .name = "vllm",
    .help = "vLLM V1: one token budget for prefill and decode, recompute preemption",
    .has = {kDrafts,      kAdapters,     kQueueCaps,    kStages,         kMoreStagesThanSeats,
            kRoles,       kTiers,        kTimeouts,     kRetries,        kOrders,
            kPriorities,  kVictims,      kLongPrefills, kReserve,        kGarbage,
            kHostOverlap, kWholePrompts, kBlis,         kPreemptionMean, kKvGroups,
            kFailures,    kImages,       kHedges},
    .lacks = kVllmLacks,
    .make = nullptr,
    .splits_prompts = true,
    .obeys_chunked_prefill = true,
    .preempts = true,
    .as_vllm = true,
    .overlaps = true,
    .refuse = RefuseTooFewTokens,
    .machine = MakeVllmScheduler,
};

}  // namespace servecast::scheduler_vllm
