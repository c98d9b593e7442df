// TensorRT-LLM's own scheduler (serving/trtllm/trtllm_scheduler.h), as a scenario's choice.
#include "serving/replica/scheduler_entry.h"

namespace servecast::scheduler_trtllm {
namespace {

using enum Feature;

constexpr Lack kTrtllmLacks[] = {
    {kVidur, "Vidur has none such"},
    {kDrafts, "its drafts are not modelled"},
    {kAdapters, "its pages of adapters are not modelled"},
    {kQueueCaps, "only vLLM's server has such caps"},
    {kHostOverlap, "its overlap scheduler is async_scheduling"},
    {kStages, "its loop for several stages is not modelled"},
    {kRoles, "its transfers between servers are not modelled"},
    {kTiers, "its offload to host memory is not modelled"},
    {kTimeouts, "how it cancels requests is not modelled"},
    {kOrders, "its order is in scheduler.waiting_queue"},
    {kPriorities, "its priorities are in scheduler.waiting_queue"},
    {kVictims, "it pauses the last of its list"},
    {kPreemptionMean, "it keeps no average of preemptions"},
    {kImages, "when it encodes them anew is not known"},
};

void Refuse(const Scenario& s, Issues& issues) {
  const EngineSpec& e = s.engine;
  const TrtllmSpec& o = s.scheduler.trtllm;
  const std::int64_t unit = o.chunk_unit_size.value_or(e.block_size);
  const struct {
    bool broken;
    const char *path, *message;
  } rules[] = {
      {unit % e.block_size != 0, "/scheduler/chunk_unit_size",
       "found %, allowed multiples of engine.block_size: a chunk is whole KV blocks"},
      {e.enable_chunked_prefill && e.max_num_batched_tokens < unit,
       "/engine/max_num_batched_tokens",
       "found %, allowed from scheduler.chunk_unit_size up with scheduler.policy \"trtllm\": a "
       "chunk is whole units"},
      {o.enable_attention_dp && s.cluster.pool().attention_data_parallel == 1,
       "/scheduler/enable_attention_dp",
       "found %, allowed true with attention_data_parallel above 1: its ranks are the replicas "
       "that share experts"},
      {o.attention_dp_enable_balance && !o.enable_attention_dp,
       "/scheduler/attention_dp_enable_balance",
       "found %, allowed true with scheduler.enable_attention_dp: it is a rule between ranks"},
      {o.enable_attention_dp &&
           (o.batch_wait_timeout_iters > 0 || o.batch_wait_max_tokens_ratio > 0),
       "/scheduler/batch_wait_timeout_iters",
       "found %, allowed 0 with scheduler.enable_attention_dp, as is batch_wait_max_tokens_ratio: "
       "TensorRT-LLM waits for no fuller batch with it"},
      {e.watermark > 0, "/engine/watermark",
       "found %, allowed 0 with scheduler.policy \"trtllm\": it keeps no KV blocks free"},
  };
  for (const auto& rule : rules) {
    if (rule.broken) issues.push_back({rule.path, rule.message});
  }
}

}  // namespace

extern const SchedulerEntry kEntry = {
    .name = "trtllm",
    .help =
        "TensorRT-LLM: an active list, whose capacity scheduler reserves KV blocks until a request "
        "ends (or for its next step, with pauses), and a micro-batch scheduler for tokens",
    .has = {kWholePrompts},
    .lacks = kTrtllmLacks,
    .make = nullptr,
    .splits_prompts = true,
    .preempts = true,
    .overlaps = true,
    .own_cache = true,
    .departure =
        "batches: KV blocks are reserved until a request ends, or it is paused at its place in "
        "the active list; blocks of a whole prompt are taken with its first chunk",
    .refuse = Refuse,
    .machine = MakeTrtllmScheduler,
};

}  // namespace servecast::scheduler_trtllm
