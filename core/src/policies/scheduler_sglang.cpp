// SGLang's own scheduler (serving/sglang/sglang_scheduler.h), as a scenario's choice.
#include "serving/replica/scheduler_entry.h"

namespace servecast::scheduler_sglang {
namespace {

using enum Feature;

constexpr Lack kSglangLacks[] = {
    {kVidur, "Vidur has none such"},
    {kDrafts, "its drafts are not modelled"},
    {kAdapters, "its seats of adapters are not modelled"},
    {kQueueCaps, "only vLLM's server has such caps"},
    {kHostOverlap, "it is synchronous"},
    {kStages, "its loop for several stages is not modelled"},
    {kRoles, "its queues of prefill and decode servers are not modelled"},
    {kTiers, "its loads from slower memory are not modelled"},
    {kTimeouts, "how it aborts requests is not modelled"},
    {kOrders, "its orders are in scheduler.schedule_policy"},
    {kVictims, "see scheduler.retraction_policy"},
    {kPreemptionMean, "it keeps no average of preemptions"},
    {kKvGroups, "its pools of states and windows are not modelled"},
};

void Refuse(const Scenario& s, Issues& issues) {
  const EngineSpec& e = s.engine;
  const SglangSpec& o = s.scheduler.sglang;
  const bool by_prefix =
      o.schedule_policy == SglangQueue::kLpm || o.schedule_policy == SglangQueue::kDfsWeight;
  const struct {
    bool broken;
    const char *path, *message;
  } rules[] = {
      {by_prefix && o.enable_priority_scheduling && !o.disable_priority_preemption,
       "/scheduler/schedule_policy",
       "found %, allowed \"fcfs\" and \"lof\" with enable_priority_scheduling unless "
       "disable_priority_preemption is set: where prefixes order the queue, two requests may "
       "preempt each other for ever"},
      {e.disable_chunked_mm_input, "/engine/disable_chunked_mm_input",
       "found true, allowed false with scheduler.policy \"sglang\": it is an option of vLLM's"},
      {e.enable_chunked_prefill && e.max_num_batched_tokens < e.block_size,
       "/engine/max_num_batched_tokens",
       "found %, allowed from engine.block_size up with scheduler.policy \"sglang\": a chunk is "
       "whole pages"},
  };
  for (const auto& rule : rules) {
    if (rule.broken) issues.push_back({rule.path, rule.message});
  }
}

}  // namespace

extern const SchedulerEntry kEntry = {
    .name = "sglang",
    .help =
        "SGLang: prompts first, tokens when none can be admitted; admission by an estimate of what "
        "will be needed, and retraction when it was too low",
    .has = {kWholePrompts, kImages},
    .lacks = kSglangLacks,
    .make = nullptr,
    .splits_prompts = true,
    .preempts = true,
    .overlaps = true,
    // Rule 2 of its golden traces; whole pages, so that the longest one fits alone.
    .keeps_room = [](const EngineSpec& e) { return 2 * e.block_size; },
    .own_cache = true,
    .departure =
        "batches: prompts or tokens, never both unless mixed chunks are on; prompts first; a radix "
        "cache; admission by SGLang's estimate of tokens to come",
    .refuse = Refuse,
    .machine = MakeSglangScheduler,
};

}  // namespace servecast::scheduler_sglang
