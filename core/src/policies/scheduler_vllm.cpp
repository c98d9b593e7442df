// vLLM's own scheduler (serving/replica/vllm_scheduler.h), as a scenario's choice.
#include "serving/replica/batch_scheduler.h"

namespace servecast {

extern const SchedulerEntry kSchedulerVllm;
const SchedulerEntry kSchedulerVllm = {
    .name = "vllm",
    .help = "vLLM V1: one token budget for prefill and decode, recompute preemption",
    .make = nullptr,
    .splits_prompts = true,
    .obeys_chunked_prefill = true,
    .preempts = true,
    .overlaps = true,
    .machine = MakeVllmScheduler,
};

}  // namespace servecast
