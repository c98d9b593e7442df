// The fields of schedulers that have options of their own: SGLang's and TensorRT-LLM's. See
// fields.cpp.
#include "io/fields_of.h"

namespace servecast {
namespace {

// What clients and the queue of SGLang are told.
void DescribeSglangQueue(Fields<SglangSpec>& f) {
  f.Enum({.name = "version", .help = "whose rules: before 0.5.16 no page is kept in reserve"},
         &SglangSpec::version, {"0.5.16", "0.5.9"});
  f.Add({.name = "mem_fraction_static",
         .unit = "1",
         .min = 0.01,
         .max = 1,
         .help = "of the GPU's memory for weights and KV cache, all else being beside it; default: "
                 "engine.gpu_memory_utilization, which is of all"},
        &SglangSpec::mem_fraction_static);
  f.Add({.name = "max_total_tokens",
         .unit = "tokens",
         .min = 1,
         .max = 1e12,
         .help = "most tokens that the KV cache has room for; default: what memory has"},
        &SglangSpec::max_total_tokens);
  f.Enum({.name = "schedule_policy",
          .help = "which waiting request is admitted first: fcfs; lpm: the longest cached prefix; "
                  "dfs-weight: by the radix tree; lof: the longest max_new_tokens"},
         &SglangSpec::schedule_policy, {"fcfs", "lpm", "dfs-weight", "lof"});
  f.Add({.name = "max_new_tokens",
         .unit = "tokens",
         .min = 1,
         .max = kMaxTokens,
         .help = "limit that clients ask for, which admission weighs; default: what each request "
                 "will make, as in benchmarks"},
        &SglangSpec::max_new_tokens);
  f.Add({.name = "ignore_eos",
         .help = "requests end by max_new_tokens alone, and admission trusts it where the radix "
                 "cache is off"},
        &SglangSpec::ignore_eos);
  f.Add({.name = "enable_priority_scheduling",
         .help = "requests of higher priority first; they may preempt others"},
        &SglangSpec::enable_priority_scheduling);
  f.Add({.name = "schedule_low_priority_values_first", .help = "a lower number is more urgent"},
        &SglangSpec::schedule_low_priority_values_first);
  f.Add({.name = "disable_priority_preemption",
         .help = "a more urgent request waits for a seat as any other"},
        &SglangSpec::disable_priority_preemption);
  f.Add({.name = "priority_scheduling_preemption_threshold",
         .unit = "1",
         .min = 0,
         .max = 1e9,
         .help = "a running request is preempted for one that is more urgent by more than this"},
        &SglangSpec::priority_scheduling_preemption_threshold);
  f.Enum({.name = "retraction_policy",
          .help = "who is retracted when KV memory runs out: who has made the fewest tokens "
                  "(length), or the least urgent (priority)"},
         &SglangSpec::retraction_policy, {"length", "priority"});
  f.Enum(
      {.name = "radix_eviction_policy", .help = "which leaf of the radix cache is evicted first"},
      &SglangSpec::radix_eviction_policy,
      {"lru", "lfu", "slru", "fifo", "filo", "mru", "priority"});
}

// What SGLang's admission reckons with.
void DescribeSglangBudget(Fields<SglangSpec>& f) {
  const auto tokens = [](const char* name, double min, const char* help) {
    return FieldSpec{.name = name, .unit = "tokens", .min = min, .max = kMaxTokens, .help = help};
  };
  f.Add(tokens("max_prefill_tokens", 1,
               "a batch of prompts takes no further request once it has so many tokens"),
        &SglangSpec::max_prefill_tokens);
  f.Add({.name = "prefill_max_requests",
         .unit = "requests",
         .min = 1,
         .max = 65536,
         .help = "most requests in a batch of prompts; default: no limit"},
        &SglangSpec::prefill_max_requests);
  f.Add(
      {.name = "enable_mixed_chunk", .help = "a batch of prompts takes the running decodes along"},
      &SglangSpec::enable_mixed_chunk);
  f.Add({.name = "schedule_conservativeness",
         .unit = "1",
         .min = 0.01,
         .max = 100,
         .help = "factor on the share of their max_new_tokens that running requests are expected "
                 "to need; higher admits less, and retracts less"},
        &SglangSpec::schedule_conservativeness);
  f.Add({.name = "init_new_token_ratio",
         .unit = "1",
         .min = 0.001,
         .max = 1,
         .help = "that share at first (SGLANG_INIT_NEW_TOKEN_RATIO)"},
        &SglangSpec::init_new_token_ratio);
  f.Add({.name = "min_new_token_ratio_factor",
         .unit = "1",
         .min = 0,
         .max = 1,
         .help = "how low it falls, as a part of that (SGLANG_MIN_NEW_TOKEN_RATIO_FACTOR)"},
        &SglangSpec::min_new_token_ratio_factor);
  f.Add({.name = "new_token_ratio_decay_steps",
         .unit = "steps",
         .min = 1,
         .max = 1e9,
         .help = "decode steps in which it falls so low (SGLANG_NEW_TOKEN_RATIO_DECAY_STEPS)"},
        &SglangSpec::new_token_ratio_decay_steps);
  f.Add(tokens("retract_decode_steps", 1,
               "room for each that runs on when requests are retracted "
               "(SGLANG_RETRACT_DECODE_STEPS)"),
        &SglangSpec::retract_decode_steps);
  f.Add(tokens("clip_max_new_tokens", 1,
               "admission weighs no more of a max_new_tokens than this "
               "(SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION)"),
        &SglangSpec::clip_max_new_tokens);
  f.Add(tokens("in_batch_check_threshold", 0,
               "lpm: a request with a longer hit is not compared with those before it in the queue "
               "(IN_BATCH_PREFIX_CACHING_CHECK_THRESHOLD)"),
        &SglangSpec::in_batch_check_threshold);
  f.Add(tokens("in_batch_deprioritize_threshold", 0,
               "lpm: one that shares so much with them waits for its prefix to be cached "
               "(IN_BATCH_PREFIX_CACHING_DEPRIORITIZE_THRESHOLD)"),
        &SglangSpec::in_batch_deprioritize_threshold);
}

// TensorRT-LLM's scheduler_config, kv_cache_config, and what stands beside them.
void DescribeTrtllm(Fields<TrtllmSpec>& f) {
  f.Enum({.name = "capacity_scheduler_policy",
          .help = "a request is admitted once KV blocks are free for all that it may become "
                  "(guaranteed_no_evict) or for its prompt, the last ones pausing when they run "
                  "out (max_utilization), or once all others have ended (static_batch)"},
         &TrtllmSpec::capacity_scheduler_policy,
         {"guaranteed_no_evict", "max_utilization", "static_batch"});
  f.Enum({.name = "context_chunking_policy",
          .help = "how prompts share a step's tokens: the first takes all it needs, or each as "
                  "many"},
         &TrtllmSpec::context_chunking_policy, {"first_come_first_served", "equal_progress"});
  f.Add({.name = "chunk_unit_size",
         .unit = "tokens",
         .min = 1,
         .max = kMaxTokens,
         .help = "chunks that do not end a prompt are multiples of it; default: a KV block"},
        &TrtllmSpec::chunk_unit_size);
  f.Add({.name = "enable_prefix_aware_scheduling",
         .help = "admission counts what the cache has of a prompt, and waits for a prefix that "
                 "another request is computing"},
        &TrtllmSpec::enable_prefix_aware_scheduling);
  f.Enum({.name = "waiting_queue",
          .help = "who enters the active list first; priority: the highest number. Inside the list "
                  "priorities change nothing"},
         &TrtllmSpec::waiting_queue, {"fcfs", "priority"});
  f.Add({.name = "batch_wait_timeout_iters",
         .unit = "steps",
         .min = 0,
         .max = 1e9,
         .help = "most steps that prompts wait for a fuller batch while others decode; 0: none"},
        &TrtllmSpec::batch_wait_timeout_iters);
  f.Add({.name = "batch_wait_max_tokens_ratio",
         .unit = "1",
         .min = 0,
         .max = 1,
         .help = "a batch with this share of max_num_tokens is full enough; 0: any is"},
        &TrtllmSpec::batch_wait_max_tokens_ratio);
  f.Add({.name = "max_output_tokens",
         .unit = "tokens",
         .min = 1,
         .max = kMaxTokens,
         .help = "limit that clients ask for, which guaranteed_no_evict reserves; default: what "
                 "each request will make, as in benchmarks. A request without one reserves "
                 "max_seq_len"},
        &TrtllmSpec::max_output_tokens);
  f.Add({.name = "free_gpu_memory_fraction",
         .unit = "1",
         .min = 0.01,
         .max = 1,
         .help = "of the memory that weights and buffers leave, for the KV cache; default: "
                 "engine.gpu_memory_utilization, which is of all"},
        &TrtllmSpec::free_gpu_memory_fraction);
  f.Add({.name = "max_tokens",
         .unit = "tokens",
         .min = 1,
         .max = 1e12,
         .help = "most tokens that the KV cache has room for; default: what memory has"},
        &TrtllmSpec::max_tokens);
  f.Add({.name = "enable_partial_reuse",
         .help = "a prompt may reuse the beginning of a cached KV block"},
        &TrtllmSpec::enable_partial_reuse);
  f.Add({.name = "copy_on_partial_reuse",
         .help = "by a copy where others use that block or build on it; else only a block that is "
                 "free is reused in part"},
        &TrtllmSpec::copy_on_partial_reuse);
}

void DescribeTrtllmRanks(Fields<TrtllmSpec>& f) {
  f.Add({.name = "enable_attention_dp",
         .help = "the replicas that share experts (attention_data_parallel) are ranks of one "
                 "server: it deals requests out to them, and they step together; false: each runs "
                 "by itself"},
        &TrtllmSpec::enable_attention_dp);
  f.Add({.name = "attention_dp_enable_balance",
         .help = "prompts wait until every rank has one; attention_dp_config.enable_balance"},
        &TrtllmSpec::attention_dp_enable_balance);
  f.Add({.name = "attention_dp_timeout_iters",
         .unit = "steps",
         .min = 0,
         .max = 1e9,
         .help = "with it, most steps that prompts wait for ranks without one; "
                 "attention_dp_config.timeout_iters"},
        &TrtllmSpec::attention_dp_timeout_iters);
  f.Add({.name = "attention_dp_batching_wait_iters",
         .unit = "steps",
         .min = 0,
         .max = 1e9,
         .help = "with it, steps that prompts of all ranks wait for more beside them; "
                 "attention_dp_config.batching_wait_iters"},
        &TrtllmSpec::attention_dp_batching_wait_iters);
}

}  // namespace

void DescribeSchedulers(FieldVisitor& v, SchedulerSpec& s, const SchedulerSpec& base) {
  for (const auto describe : {DescribeSglangQueue, DescribeSglangBudget}) {
    FieldsWhen<SglangSpec>(v, "policy", {"sglang"}, s.Sglang() != nullptr, s.sglang, base.sglang,
                           describe);
  }
  for (const auto describe : {DescribeTrtllm, DescribeTrtllmRanks}) {
    FieldsWhen<TrtllmSpec>(v, "policy", {"trtllm"}, s.Trtllm() != nullptr, s.trtllm, base.trtllm,
                           describe);
  }
}

}  // namespace servecast
