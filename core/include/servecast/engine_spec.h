// A server's engine and its scheduler as a scenario has them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "servecast/number_table.h"

namespace servecast {

// Whose rules the engine follows: those of scheduler.policy, or, quirks included, those of the
// simulator BLIS, as it was in February 2026 and as it is since, or those of
// Vidur.
enum class Compat { kNone, kBlisFebruary2026, kBlis, kVidur };
inline bool IsBlis(Compat compat) {
  return compat == Compat::kBlisFebruary2026 || compat == Compat::kBlis;
}

// Launch of a step's kernels: a part of step_overhead_us; one by one; or, for decode steps, a
// replay of a captured CUDA graph.
enum class CudaGraphs { kImplied, kEager, kCaptured };

// Slower memory for KV blocks that the GPU evicts: host memory, and disk behind it. Capacities
// are those of all GPUs of a replica together, bandwidths those of each GPU's own link.
// Latencies and bandwidths are assumed: of PCIe Gen5 x16, 64 GB/s at most, and of one NVMe drive.
struct KvOffloadSpec {
  double cpu_gib = 0;
  double cpu_latency_us = 10;
  double cpu_bandwidth_gb_s = 50;
  double disk_gib = 0;
  double disk_latency_us = 80;
  double disk_bandwidth_gb_s = 7;
  double threshold = 0;

  bool On() const { return cpu_gib > 0 || disk_gib > 0; }
  friend bool operator==(const KvOffloadSpec&, const KvOffloadSpec&) = default;
};

enum class KvCacheDType { kAuto, kFp8 };

// vLLM's manager of KV groups. Auto: on, but for models with chunked attention.
enum class HybridKvManager { kAuto, kOn, kOff };
// Of layers with a state: one a request (none), one at the end of a block (align), one at the end
// of each (all). Auto: align with prefix caching, none without.
enum class MambaCacheMode { kAuto, kAll };

// How a tensor-parallel group encodes images: each GPU a slice of every one, or whole ones.
enum class EncoderParallel { kWeights, kData };

// Who proposes draft tokens that the model verifies; vLLM's methods by vLLM's names.
enum class DraftMethod {
  kNone,
  kNgram,     // earlier tokens of the request itself, looked up by the host
  kNgramGpu,  // the same on the GPU
  kEagle,     // a layer or more of its own, on the model's hidden states
  kEagle3,
  kMtp,         // the model's own layers for it
  kDraftModel,  // a smaller model
  kDflash,      // all drafts of a step at once
  kDspark,
};

// Speculative decoding. How many drafts are accepted is an input: no model is executed.
struct SpeculativeSpec {
  DraftMethod method = DraftMethod::kNone;
  std::int64_t num_speculative_tokens = 3;
  // Rows of [from, to, drafts]: drafts by the members of a step.
  NumberTable num_speculative_tokens_per_batch_size;
  bool parallel_drafting = false;  // eagle, eagle3, draft_model: all drafts of a step at once
  // A waiting request with one token to compute gets drafts that are never accepted, so that all
  // members of a step of decodes are alike.
  bool pads_one_token = true;
  // Tokens of a step that verifies all its drafts, the model's own included, on average; or, by
  // position, the probability that it and all before it are accepted: rows of [position, rate]; or
  // as was measured (acceptance_curves.h).
  std::string acceptance_as = "none";
  double acceptance_length = 2;
  NumberTable acceptance_rates;
  double draft_share = 1;  // ngram: of the steps in which it finds drafts
  // The drafter's cost: layers like the model's, but for what is said here (0: as the model's).
  std::int64_t draft_num_hidden_layers = 1;
  std::int64_t draft_hidden_size = 0, draft_num_attention_heads = 0;
  std::int64_t draft_num_key_value_heads = 0, draft_head_dim = 0;
  std::int64_t draft_intermediate_size = 0, draft_vocab_size = 0;
  double draft_overhead_us = 0;  // host time of each of its passes

  bool On() const { return method != DraftMethod::kNone; }
  // It is a network with weights and, but for what it shares with the model, a KV cache.
  bool HasDrafter() const {
    return On() && method != DraftMethod::kNgram && method != DraftMethod::kNgramGpu;
  }
  bool DraftsAtOnce() const {
    return parallel_drafting || method == DraftMethod::kDflash || method == DraftMethod::kDspark;
  }
  friend bool operator==(const SpeculativeSpec&, const SpeculativeSpec&) = default;
};

// vLLM's options by vLLM's names, then what the engine costs outside the GPU's kernels.
struct EngineSpec {
  std::string name;
  std::string host = "default";  // the preset of hosts whose times lie over the engine preset's
  Compat compat = Compat::kNone;
  std::int64_t max_num_seqs = 256;
  std::int64_t max_num_batched_tokens = 2048;
  std::optional<std::int64_t> max_model_len;
  std::int64_t block_size = 16;
  double gpu_memory_utilization = 0.9;
  KvCacheDType kv_cache_dtype = KvCacheDType::kAuto;
  // As in vLLM: the whole pool, with the one block that is reserved and never used.
  std::optional<std::int64_t> num_gpu_blocks_override;
  bool enable_expert_parallel = false;  // whole experts on the GPUs of a group, not slices of all
  bool enable_prefix_caching = true;
  bool enable_chunked_prefill = true;
  std::int64_t long_prefill_token_threshold = 0;  // 0: off
  bool scheduler_reserve_full_isl = true;
  double watermark = 0;
  // A freed KV block that holds nothing findable goes to the front of the free list.
  bool free_contentless_first = true;
  bool async_scheduling = false;  // two batches in flight
  // Of models with layers of several kinds.
  HybridKvManager hybrid_kv_cache_manager = HybridKvManager::kAuto;
  MambaCacheMode mamba_cache_mode = MambaCacheMode::kAuto;
  std::optional<std::int64_t> prefix_match_unit;  // tokens; none: whole blocks
  // A state behind a gap that a drafted or late step left is freed, too: vLLM since September 2026.
  bool frees_states_across_gaps = true;
  KvOffloadSpec kv_offload;  // with prefix caching only
  SpeculativeSpec speculative;
  // Who comes beyond is turned away: so many requests that are not over, the new one among them;
  // so many prompt tokens of requests without a first token, its own not among them.
  std::optional<std::int64_t> max_num_queued_reqs, max_num_queued_tokens;
  // LoRA adapters: how many different ones a step may have, each with a seat in GPU memory for
  // matrices of max_lora_rank, whatever its own rank; 0: none are served (scenarios with adapters
  // are refused), and tables of requests that have some know no limit.
  std::int64_t max_loras = 0;
  std::int64_t max_lora_rank = 16;
  double lora_overhead_us = 0;  // of a step that has adapters in it
  // Images of prompts, where the model reads some.
  EncoderParallel mm_encoder_tp_mode = EncoderParallel::kWeights;
  bool disable_chunked_mm_input = false;  // no step computes a part of an image's tokens
  double step_overhead_us = 0;            // host time in every step
  double sequence_overhead_us = 0;        // host and sampling time per sequence in a step
  double sampler_ns_per_logit = 0;      // of each sampled token, if top-p or top-k sort its logits
  double request_overhead_ms = 0;       // from arrival at the server to the scheduler's queue
  double prompt_token_overhead_us = 0;  // likewise, per prompt token: tokenizer, hashes, copies
  std::int64_t api_server_count = 1;    // who take requests up, each at one at a time
  double delivery_overhead_us = 0;      // behind the engine, per token of a first token's step
  double host_stall_ms = 0;             // mean time that the server stands still: first tokens wait
  double host_stalls_per_s = 0;         // how often it does
  // Of `layer_latency_us`, what this engine's kernels take: fewer, where more of them are fused.
  double kernel_share = 1;
  // Of `bandwidth_efficiency`, what kernels of experts in 8 bits reach that read all of them in
  // each step; 0: they read those that tokens chose, as fast as others do.
  double fp8_experts_read_share = 0;
  // What prompts take more on Hopper where MXFP4 weights of experts are unpacked to 16 bits, as a
  // rate of their operations; 0: as with other kernels.
  double unpacked_experts_tflops = 0;
  // Latencies of an all-reduce that a layer waits where replicas share its experts: for the tokens
  // of the others, and for the results of its own.
  double expert_exchange_latencies = 2;
  // The engine preset whose measured runs tell how far off a model of step times is. Written by the
  // parser: the costs above that differ from that preset's, by name.
  std::string compared_as = "none";
  std::vector<std::string> changed = {};

  // Options after SFLLM; none is vLLM's, and all are off (docs/model.md, "Options after SFLLM").
  CudaGraphs cuda_graphs = CudaGraphs::kImplied;
  std::int64_t cuda_graph_max_bs = 32;  // largest batch captured
  double cuda_graph_mib = 80;           // of each captured batch size, per GPU
  double launch_eager_us = 100, launch_replay_us = 10;
  bool overlap_scheduling = false;  // host time runs beside the device's
  double admission_reserve = 0;     // admit while so many times the prompt's blocks are free
  double gc_pass_us = 0;            // time of a pass, which frees ended requests' blocks; 0: none
  double gc_fraction = 1;           // of the waiting blocks, freed by a pass

  friend bool operator==(const EngineSpec&, const EngineSpec&) = default;
};

// Parameters of policies, by name; absent: as registered (policy.h).
using ParamMap = std::map<std::string, double, std::less<>>;

enum class SglangVersion { k0516, k059 };
enum class SglangQueue { kFcfs, kLpm, kDfsWeight, kLof };
enum class RadixEviction { kLru, kLfu, kSlru, kFifo, kFilo, kMru, kPriority };
enum class SglangRetraction { kLength, kPriority };

// What SGLang's scheduler has beside the options that it shares with vLLM's: by its arguments'
// names, or those of its environment's variables (decision 048). Defaults are SGLang's.
struct SglangSpec {
  SglangVersion version = SglangVersion::k0516;
  // Of the GPU's memory, for weights and KV cache together; none: by gpu_memory_utilization.
  std::optional<double> mem_fraction_static;
  std::optional<std::int64_t> max_total_tokens;  // in the KV cache, at most
  SglangQueue schedule_policy = SglangQueue::kFcfs;
  double schedule_conservativeness = 1;
  std::int64_t max_prefill_tokens = 16384;
  std::optional<std::int64_t> prefill_max_requests;
  bool enable_mixed_chunk = false;
  std::optional<std::int64_t> max_new_tokens;  // that clients ask for; none: what each will make
  bool ignore_eos = false;
  RadixEviction radix_eviction_policy = RadixEviction::kLru;
  bool enable_priority_scheduling = false;
  bool schedule_low_priority_values_first = false;
  bool disable_priority_preemption = false;
  std::int64_t priority_scheduling_preemption_threshold = 10;
  SglangRetraction retraction_policy = SglangRetraction::kLength;
  double init_new_token_ratio = 0.7;
  double min_new_token_ratio_factor = 0.14;
  std::int64_t new_token_ratio_decay_steps = 600;
  std::int64_t retract_decode_steps = 20;
  std::int64_t clip_max_new_tokens = 4096;
  std::int64_t in_batch_check_threshold = 32;
  std::int64_t in_batch_deprioritize_threshold = 32;

  friend bool operator==(const SglangSpec&, const SglangSpec&) = default;
};

enum class TrtllmCapacity { kGuaranteedNoEvict, kMaxUtilization, kStaticBatch };
enum class TrtllmChunking { kFirstComeFirstServed, kEqualProgress };
enum class TrtllmQueue { kFcfs, kPriority };

// What TensorRT-LLM's scheduler has beside the options that it shares with vLLM's, by the names of
// its LLM API (decision 048). Defaults are TensorRT-LLM's.
struct TrtllmSpec {
  TrtllmCapacity capacity_scheduler_policy = TrtllmCapacity::kGuaranteedNoEvict;
  TrtllmChunking context_chunking_policy = TrtllmChunking::kFirstComeFirstServed;
  std::optional<std::int64_t> chunk_unit_size;  // none: a KV block
  bool enable_prefix_aware_scheduling = true;
  TrtllmQueue waiting_queue = TrtllmQueue::kFcfs;
  std::int64_t batch_wait_timeout_iters = 0;
  double batch_wait_max_tokens_ratio = 0;
  std::optional<std::int64_t> max_output_tokens;  // that clients allow; none: what each will make
  // Of kv_cache_config. The share is of the memory that weights and buffers leave; none: by
  // gpu_memory_utilization.
  std::optional<double> free_gpu_memory_fraction;
  std::optional<std::int64_t> max_tokens;  // in the KV cache, at most
  bool enable_partial_reuse = true;
  bool copy_on_partial_reuse = true;
  // Attention data parallelism: the replicas that share experts are ranks of one server, in lock
  // step. attention_dp_*: members of attention_dp_config.
  bool enable_attention_dp = false;
  bool attention_dp_enable_balance = false;
  std::int64_t attention_dp_timeout_iters = 50, attention_dp_batching_wait_iters = 10;  // passes

  friend bool operator==(const TrtllmSpec&, const TrtllmSpec&) = default;
};

// How a replica forms its batches and orders its queue. Policies by their registered names.
struct SchedulerSpec {
  std::string policy = "vllm";
  std::string order = "fcfs";
  std::string priority = "class";   // what a request's priority number is; lower is more urgent
  std::string preemption = "auto";  // victim: "tail", "priority"; auto: priority where it orders
  ParamMap params;                  // of the chosen order and priority
  SglangSpec sglang = {};           // with the policy sglang
  TrtllmSpec trtllm = {};           // with the policy trtllm

  // For who may not see the policies' entries.
  bool IsVllm() const { return policy == "vllm"; }
  const SglangSpec* Sglang() const { return policy == "sglang" ? &sglang : nullptr; }
  const TrtllmSpec* Trtllm() const { return policy == "trtllm" ? &trtllm : nullptr; }
  // Replicas that share experts step together, as the ranks of one engine.
  bool RanksInStep() const { return Trtllm() != nullptr && trtllm.enable_attention_dp; }

  friend bool operator==(const SchedulerSpec&, const SchedulerSpec&) = default;
};

}  // namespace servecast
