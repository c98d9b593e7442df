// trtllm-serve, with the YAML of TensorRT-LLM's LLM API in a heredoc before it.
#include <set>
#include <string>

#include "base/text.h"
#include "export/targets.h"

namespace servecast {
namespace {

const char* TruthText(bool value) { return value ? "true" : "false"; }

// What the scheduler has beside the engine's options; returns the members that are written.
std::set<std::string> SchedulerYaml(const SchedulerSpec& scheduler, std::string& cache,
                                    std::string& yaml) {
  const TrtllmSpec* o = scheduler.Trtllm();
  if (o == nullptr) return {};
  constexpr const char* kCapacities[] = {"GUARANTEED_NO_EVICT", "MAX_UTILIZATION", "STATIC_BATCH"};
  constexpr const char* kChunkings[] = {"FIRST_COME_FIRST_SERVED", "EQUAL_PROGRESS"};
  if (o->free_gpu_memory_fraction) {
    cache += Format("  free_gpu_memory_fraction: {}\n", NumberText(*o->free_gpu_memory_fraction));
  }
  if (o->max_tokens) cache += Format("  max_tokens: {}\n", *o->max_tokens);
  cache += Format("  enable_partial_reuse: {}\n  copy_on_partial_reuse: {}\n",
                  TruthText(o->enable_partial_reuse), TruthText(o->copy_on_partial_reuse));
  yaml += Format("scheduler_config:\n  capacity_scheduler_policy: {}\n",
                 kCapacities[static_cast<std::size_t>(o->capacity_scheduler_policy)]);
  if (o->context_chunking_policy != TrtllmChunking::kFirstComeFirstServed) {
    yaml += Format("  context_chunking_policy: {}\n",
                   kChunkings[static_cast<std::size_t>(o->context_chunking_policy)]);
  }
  if (o->batch_wait_timeout_iters > 0) {
    yaml += Format("batch_wait_timeout_iters: {}\n", o->batch_wait_timeout_iters);
  }
  if (o->batch_wait_max_tokens_ratio > 0) {
    yaml += Format("batch_wait_max_tokens_ratio: {}\n", NumberText(o->batch_wait_max_tokens_ratio));
  }
  if (o->enable_attention_dp) {
    yaml += "enable_attention_dp: true\n";
    if (o->attention_dp_enable_balance) {
      yaml += Format(
          "attention_dp_config:\n  enable_balance: true\n  timeout_iters: {}\n"
          "  batching_wait_iters: {}\n",
          o->attention_dp_timeout_iters, o->attention_dp_batching_wait_iters);
    }
  }
  return {"policy",
          "enable_attention_dp",
          "attention_dp_enable_balance",
          "attention_dp_timeout_iters",
          "attention_dp_batching_wait_iters",
          "free_gpu_memory_fraction",
          "max_tokens",
          "enable_partial_reuse",
          "copy_on_partial_reuse",
          "capacity_scheduler_policy",
          "context_chunking_policy",
          "batch_wait_timeout_iters",
          "batch_wait_max_tokens_ratio"};
}

// Ranks in lock step, each of so many GPUs; 1: none.
std::int64_t LockStepRanks(ExportJob& job, std::size_t pool) {
  return job.Scheduler(pool).RanksInStep()
             ? job.scenario().cluster.pools[pool].attention_data_parallel
             : 1;
}

// Replicas that share experts and step by themselves: no server of TensorRT-LLM has such.
void LeaveOutRanks(ExportJob& job, std::size_t pool) {
  const PoolSpec& p = job.scenario().cluster.pools[pool];
  if (p.attention_data_parallel > LockStepRanks(job, pool)) {
    job.LeaveOut(
        Format("cluster.pools.{}.attention_data_parallel = {}", pool, p.attention_data_parallel),
        "enable_attention_dp is not written: without scheduler.enable_attention_dp the forecast is "
        "not of ranks in lock step");
  }
}

}  // namespace

std::string TrtllmYaml(ExportJob& job, std::size_t pool) {
  const PoolSpec& p = job.scenario().cluster.pools[pool];
  const EngineSpec& e = job.Engine(pool);
  std::string cache = Format("  enable_block_reuse: {}\n  tokens_per_block: {}\n",
                             TruthText(e.enable_prefix_caching), e.block_size);
  if (e.kv_cache_dtype == KvCacheDType::kFp8) cache += "  dtype: fp8\n";
  std::string yaml;
  const std::set<std::string> scheduled = SchedulerYaml(job.Scheduler(pool), cache, yaml);
  const std::int64_t group = p.tensor_parallel * LockStepRanks(job, pool);
  std::string text = Format("tensor_parallel_size: {}\n", group);
  if (p.pipeline_parallel > 1) text += Format("pipeline_parallel_size: {}\n", p.pipeline_parallel);
  if (e.enable_expert_parallel) text += Format("moe_expert_parallel_size: {}\n", group);
  text +=
      Format("max_batch_size: {}\nmax_num_tokens: {}\n", e.max_num_seqs, e.max_num_batched_tokens);
  if (e.max_model_len) text += Format("max_seq_len: {}\n", *e.max_model_len);
  text += Format("enable_chunked_prefill: {}\ndisable_overlap_scheduler: {}\n",
                 TruthText(e.enable_chunked_prefill), TruthText(!e.async_scheduling));
  text += "kv_cache_config:\n" + cache + yaml;
  job.LeaveOutRest("scheduler", scheduled, "is left out for TensorRT-LLM");
  job.LeaveOutRest("engine",
                   {"max_num_seqs", "max_num_batched_tokens", "max_model_len", "block_size",
                    "kv_cache_dtype", "enable_prefix_caching", "enable_chunked_prefill",
                    "async_scheduling", "enable_expert_parallel"},
                   "is left out for TensorRT-LLM");
  return text;
}

std::string WriteTrtllm(ExportJob& job) {
  std::string text;
  const std::size_t pools = job.scenario().cluster.pools.size();
  for (std::size_t i = 0; i < pools; ++i) {
    const std::string file = pools == 1 ? "trtllm.yml" : Format("trtllm-{}.yml", i);
    text += PoolHeading(job, i);
    if (const std::string engine = job.PresetAt(i, "engine"); engine.find("trtllm") != 0) {
      job.LeaveOut(job.SectionAt(i, "engine") + ".preset " + engine,
                   "the forecast is of that engine, not of TensorRT-LLM");
    }
    LeaveOutRanks(job, i);
    if (job.scenario().cluster.pools[i].role != PoolRole::kMixed) {
      job.LeaveOut(Format("cluster.pools.{}.role", i),
                   "transfers between servers of TensorRT-LLM are not written");
    }
    text += Format("cat > {} <<'EOF'\n{}EOF\n", file, TrtllmYaml(job, i));
    for (const std::string& variable : LinkVariables(job, i)) text += variable + " ";
    text += CommandText("trtllm-serve " + job.model(), {"--extra_llm_api_options", file});
  }
  LeaveOutWeights(job);
  LeaveOutBesideServers(job, false);
  return text;
}

}  // namespace servecast
