// SGLang's own scheduler (serving/replica/sglang_scheduler.h), as a scenario's choice.
#include "serving/replica/batch_scheduler.h"

namespace servecast::scheduler_sglang {
namespace {

bool HasTimeouts(const WorkloadSpec& w) {
  for (const ClassSpec& c : w.classes) {
    if (c.timeout_s) return true;
  }
  return false;
}

void Refuse(const Scenario& s, Issues& issues) {
  const EngineSpec& e = s.engine;
  const PoolSpec& pool = s.cluster.pools[0];
  const SglangSpec& o = s.scheduler.sglang;
  const bool by_prefix =
      o.schedule_policy == SglangQueue::kLpm || o.schedule_policy == SglangQueue::kDfsWeight;
  const struct {
    bool broken;
    const char *path, *message;
  } rules[] = {
      {e.compat != Compat::kNone, "/engine/compat",
       "found %, allowed \"none\" with scheduler.policy \"sglang\""},
      {pool.pipeline_parallel > 1, "/cluster/pools/0/pipeline_parallel",
       "found %, allowed 1 with scheduler.policy \"sglang\": its loop for several stages is not "
       "modelled"},
      {pool.role != PoolRole::kMixed, "/cluster/pools/0/role",
       "found %, allowed \"mixed\" with scheduler.policy \"sglang\": its queues of prefill and "
       "decode servers are not modelled"},
      {HasTimeouts(s.workload), "/workload/classes",
       "found a class with timeout_s, allowed none with scheduler.policy \"sglang\": how it aborts "
       "requests is not modelled"},
      {s.scheduler.order != "fcfs", "/scheduler/order",
       "found %, allowed \"fcfs\" with scheduler.policy \"sglang\": its orders are in "
       "scheduler.schedule_policy"},
      {s.scheduler.priority != "class", "/scheduler/priority",
       "found %, allowed \"class\" with scheduler.policy \"sglang\""},
      {s.scheduler.preemption != "auto", "/scheduler/preemption",
       "found %, allowed \"auto\" with scheduler.policy \"sglang\": see "
       "scheduler.retraction_policy"},
      {by_prefix && o.enable_priority_scheduling && !o.disable_priority_preemption,
       "/scheduler/schedule_policy",
       "found %, allowed \"fcfs\" and \"lof\" with enable_priority_scheduling unless "
       "disable_priority_preemption is set: where prefixes order the queue, two requests may "
       "preempt each other for ever"},
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

extern const SchedulerEntry kEntry;
const SchedulerEntry kEntry = {
    .name = "sglang",
    .help =
        "SGLang: prompts first, tokens when none can be admitted; admission by an estimate of what "
        "will be needed, and retraction when it was too low",
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
