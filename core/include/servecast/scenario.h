// A scenario is data: everything that a user may vary, and nothing that code derives from it.
// Member initialisers are the defaults; ranges, units and help of every member stand once, in
// core/src/io/fields.cpp: the parser, the canonical text and the catalogue read them there, and so
// do the command's help and the page's form.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "servecast/epp.h"
#include "servecast/result.h"

namespace servecast {

inline constexpr int kScenarioSchema = 1;
// Fixed by memory: a request costs about 100 bytes in a run.
inline constexpr std::int64_t kMaxRequests = 5'000'000;

using NumberTable = std::vector<std::vector<double>>;

enum class DType { kBfloat16, kFloat16, kFloat32 };
std::int64_t BytesPerValue(DType dtype);

// What the weights of the matrices are stored as; embedding, LM head, router and norms keep
// torch_dtype, and with mxfp4 all but the experts do (mxfp4_all: none of them). int8 rounds
// activations to 8 bits as well; int8_w8a16 and int4 do not.
enum class Quantization { kNone, kFp8, kInt4, kNvfp4, kMxfp4, kInt8, kInt8W8A16, kNf4, kMxfp4All };

// What the MLP of a layer is. Auto: experts where the model has them and the layer is not among
// its first `num_dense_layers`, else dense.
enum class LayerMlp { kAuto, kDense, kExperts, kNone };

// Equal layers in a row: how they mix tokens, what they keep of them (core/src/cost/layers), and
// their MLP. A size of 0 is the model's own where the model has one.
struct LayerSpec {
  std::string kind = "full";  // as registered in core/src/cost/layers
  std::int64_t count = 1;
  LayerMlp mlp = LayerMlp::kAuto;
  std::int64_t intermediate_size = 0;  // of its MLP, or of one of its experts
  bool shares_kv = false;              // reads the KV of an earlier layer and keeps none
  // Attention.
  std::int64_t num_attention_heads = 0, num_key_value_heads = 0, head_dim = 0, v_head_dim = 0;
  std::int64_t window = 0;  // sliding: tokens that it looks back; chunked: tokens of a chunk
  bool gated = false;       // a gate as wide as the heads' output, of the query projection
  bool k_eq_v = false;      // values are the keys: the cache has both, the weights one
  // Sparse attention: which keys count is chosen by an indexer.
  std::int64_t index_n_heads = 0, index_head_dim = 0, index_topk = 0;
  std::int64_t compress_ratio = 0;  // tokens that become one entry of the cache
  // States: heads, their keys and values, the convolution before them.
  std::int64_t state_heads = 0, state_key_heads = 0, state_key_dim = 0, state_value_dim = 0;
  std::int64_t state_size = 0, state_groups = 0, inner_size = 0, conv_kernel = 0;
  std::int64_t state_chunk = 0;  // tokens that the kernels of states take at a time; 0: not said
  bool float32_state = false;

  friend bool operator==(const LayerSpec&, const LayerSpec&) = default;
};

// A transformer, in the words of Hugging Face's config.json.
struct ModelSpec {
  std::string name;
  std::int64_t num_hidden_layers = 0;
  std::int64_t hidden_size = 0;
  std::int64_t num_attention_heads = 0;
  std::int64_t num_key_value_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t intermediate_size = 0;  // of one expert when there are experts
  std::int64_t mlp_matrices = 3;       // gate, up and down; 2: without a gate
  std::int64_t vocab_size = 0;
  std::int64_t max_position_embeddings = 0;
  bool tie_word_embeddings = false;
  bool attention_bias = false;           // on the q, k and v projections
  std::int64_t num_local_experts = 0;    // 0: dense
  std::int64_t num_experts_per_tok = 0;  // 0: dense
  // With experts: width of those that every token goes through, and the layers that have a dense
  // MLP instead, and its width.
  std::int64_t shared_expert_intermediate_size = 0;
  std::int64_t num_dense_layers = 0;
  std::int64_t dense_intermediate_size = 0;
  // Latent attention (MLA): 0 without. What the cache holds of a token is kv_lora_rank +
  // qk_rope_head_dim values a layer.
  std::int64_t kv_lora_rank = 0;
  std::int64_t q_lora_rank = 0;
  std::int64_t qk_nope_head_dim = 0;
  std::int64_t qk_rope_head_dim = 0;
  std::int64_t v_head_dim = 0;
  // Layers whose attention looks back so many tokens only.
  std::int64_t sliding_window = 0;
  std::int64_t num_sliding_layers = 0;
  // Layers of several kinds: a period, repeated until there are num_hidden_layers. Empty: all are
  // as the fields above say.
  std::vector<LayerSpec> layers = {};
  std::int64_t expert_hidden_size = 0;  // width that experts work in; 0: hidden_size
  Quantization quantization = Quantization::kNone;
  Quantization expert_quantization = Quantization::kNone;  // of experts; none: as quantization
  // Weights that share a scale of 16 bits. 0: 128 in int4, 32 in nf4, a row in int8_w8a16.
  std::int64_t quantization_group_size = 0;
  bool quantization_zero_points = false;  // each group has one, as wide as a weight
  bool top_p_by_default = false;          // its generation_config.json has a top-p or top-k
  DType torch_dtype = DType::kBfloat16;
};

// One GPU and its links. Peaks are dense vendor figures; efficiencies are measured shares of them.
// How the GPUs of a node reach each other: over NVLink; over PCIe, reading each other's memory; or
// over PCIe by way of the host's memory. Auto: NVLink where no PCIe is so fast, else a guess, the
// host.
enum class Interconnect { kAuto, kNvlink, kPcieP2p, kPcieHost };

struct HardwareSpec {
  std::string name;
  double memory_gib = 0;  // as CUDA reports it
  double memory_bandwidth_gb_s = 0;
  double peak_fp32_tflops = 0;  // of plain 32-bit units, not of tensor cores; 0: unknown
  double peak_bf16_tflops = 0;
  double peak_fp8_tflops = 0;    // 0: 8-bit weights are multiplied in 16 bits
  double peak_fp4_tflops = 0;    // 0: likewise
  double peak_int8_tops = 0;     // 0: unknown, so int8 is multiplied in 16 bits
  double interconnect_gb_s = 0;  // per direction, to the other GPUs of a tensor-parallel group
  double interconnect_latency_us = 0;
  Interconnect interconnect = Interconnect::kAuto;
  double layer_latency_us = 0;  // fixed time of a layer: the latencies of its kernels
  // Query rows that a decode's attention costs in a step with prefill, as kernels fill tiles.
  double mixed_attention_rows = 1;
  double compute_efficiency = 0;       // best share of the peak that large GEMMs reach
  double attention_efficiency = 0.5;   // the same of attention over long prompts
  double bandwidth_efficiency = 0;     // share of the bandwidth that reads of weights reach
  double kv_bandwidth_efficiency = 0;  // the same of the KV cache; 0: as for weights
  // Power of one GPU, W (metrics/power.h); 0: not known, so no power is shown. Idle, and the most
  // that it may draw; what a running step adds, and what its arithmetic and its reads add at the
  // peaks of the data sheet.
  double idle_w = 0, power_cap_w = 0, busy_w = 0, compute_w = 0, memory_w = 0;
  // Shares by which mean power and the energy of a token were off in nine of ten set-ups that the
  // law was not fitted to; 0: not known.
  double power_error = 0, energy_error = 0;
  // Set lower than power_cap_w, W; 0: it is not. Slows arithmetic (cost/power_limit.h).
  double power_limit_w = 0;
  // What a GPU's share of the host draws, W; what a site draws for each watt of its machines; and
  // what a kWh costs ($) and emits (g of CO2 equivalent), 0: not stated.
  double host_w = 0, pue = 1, price_per_kwh = 0, co2_g_per_kwh = 0;
  std::optional<double> price_per_gpu_hour;  // $
  std::string price_basis;  // terms and date of that price; a price over a preset's has its own
  // Of its node; 0: unknown, so a group is priced as if in one node. Links between nodes are per
  // GPU and direction.
  std::int64_t gpus_per_node = 0;
  double inter_node_gb_s = 0;
  double inter_node_latency_us = 0;
  bool nodes_assumed = false;  // these three are not a vendor's figures
  // Found by measuring, and kept when a scenario changes figures: the model of step times that
  // "auto" means, and two presets of GPUs: whose measured operators are used, and whose measured
  // runs tell how far off the model is.
  std::string auto_backend = "analytic";
  std::string operators = "nearest";
  std::string compared_as = "none";
  // Written by the parser: the figures that are not those of `compared_as`, by name.
  std::vector<std::string> changed = {};

  friend bool operator==(const HardwareSpec&, const HardwareSpec&) = default;
};

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
  double lora_overhead_us = 0;          // of a step that has adapters in it
  double step_overhead_us = 0;          // host time in every step
  double sequence_overhead_us = 0;      // host and sampling time per sequence in a step
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

  friend bool operator==(const SchedulerSpec&, const SchedulerSpec&) = default;
};

// What a replica serves: whole requests, their prefill, or their decode.
enum class PoolRole { kMixed, kPrefill, kDecode };

struct PoolSpec {
  std::string name;
  PoolRole role = PoolRole::kMixed;
  std::int64_t replicas = 1;
  std::int64_t tensor_parallel = 1;
  std::int64_t pipeline_parallel = 1;
  // So many replicas share one set of experts, spread over the GPUs of all of them.
  std::int64_t attention_data_parallel = 1;
  // Where they are other than the scenario's.
  std::optional<HardwareSpec> hardware;
  std::optional<EngineSpec> engine;
  std::optional<SchedulerSpec> scheduler;

  std::int64_t GpusOfReplica() const { return tensor_parallel * pipeline_parallel; }
  std::int64_t Gpus() const { return replicas * GpusOfReplica(); }
};

// Prefill and decode on different replicas, between which KV blocks travel over one shared link.
// The link is as Vidur's profiles measured send and receive between two DGX H100: 34 GB/s, and up
// to 50 us beside; other GPUs' bandwidth by their own links between nodes (cost/nodes.h).
struct DisaggregationSpec {
  bool first_token_from_decode = false;
  std::int64_t above_tokens = 0;  // prompts up to this length are served whole
  double base_latency_us = 50;
  std::optional<double> bandwidth_gb_s;

  friend bool operator==(const DisaggregationSpec&, const DisaggregationSpec&) = default;
};

// What a scaler goes by, summed over replicas. Waiting and outstanding have what the gateway holds.
enum class ScalingMetric { kWaiting, kRunning, kOutstanding, kKvUsage };

// Replicas that come and go (serving/cluster/membership.h). A cold start is the sum of its parts. A
// start of vLLM beside its weights: torch.compile 45.8 s, graph capture 37 s, 90.8 s in all
// (start-up log in runai-model-streamer #67); weights at 0.9 GB/s (kaito #2325: 51.75 GiB in 62 s).
struct ScalingSpec {
  std::string policy = "none";
  ParamMap params;  // of the chosen scaler
  std::int64_t min_replicas = 1, max_replicas = 8;
  ScalingMetric metric = ScalingMetric::kWaiting;
  NumberTable schedule;  // [from_s, replicas]
  double scrape_period_s = 15, scrape_delay_s = 0;
  double node_s = 0, image_s = 0, engine_s = 91;
  double weights_gb_s = 0.9;

  bool On() const { return policy != "none"; }
};

// Replicas that fail (serving/cluster/failures.h): by schedule, after exponential lifetimes of mean
// `mtbf_s`, or both. The default restart is that of a container on a node that has the image: 62 s
// for weights of 51.75 GiB and 91 s for vLLM's start, as in ScalingSpec.
struct FailureSpec {
  NumberTable schedule;  // [at_s, replica]
  std::optional<double> mtbf_s;
  double restart_s = 153;
  double detect_s = 0;  // until the router knows

  bool On() const { return mtbf_s || !schedule.empty(); }
};

struct ClusterSpec {
  std::vector<PoolSpec> pools = std::vector<PoolSpec>(1);
  std::string router = "round_robin";
  ParamMap router_params;  // of the chosen router
  EppSpec epp;             // of the router "epp"
  std::string decode_router = "least_outstanding";
  ParamMap decode_router_params;
  DisaggregationSpec disaggregation;
  ScalingSpec scaling;
  FailureSpec failures;

  // The only pool: of a scenario for one pool alone (Scenario::UsePool), or of one that has no
  // more.
  const PoolSpec& pool() const { return pools.front(); }
  PoolSpec& pool() { return pools.front(); }
  bool Has(PoolRole role) const {
    for (const PoolSpec& pool : pools) {
      if (pool.role == role) return true;
    }
    return false;
  }
  std::int64_t Replicas() const {
    std::int64_t sum = 0;
    for (const PoolSpec& pool : pools) sum += pool.replicas;
    return sum;
  }
  std::int64_t Gpus() const {
    std::int64_t sum = 0;
    for (const PoolSpec& pool : pools) sum += pool.Gpus();
    return sum;
  }
};

// Published with BLIS for every model and GPU (defaults.yaml of inference-sim/inference-sim,
// trained_physics_coefficients, "iter29").
inline constexpr std::array<double, 3> kBlisAlpha = {15563.199579, 777.3455, 45.907545};
inline constexpr std::array<double, 10> kBlisBeta = {
    0.152128,   0,          1.36252915,  0.752037, 32.09546717,
    4.41684444, 126.024825, 481.8613888, 0,        1.94710771};

// Of the features of the latency model "physics", in microseconds. As they are here a step takes
// what its features that are times say, unscaled; nothing was fitted, so nothing else has a weight.
inline constexpr std::array<double, 16> kPhysicsBeta = {1e6, 1e6, 1e6, 1e6, 1e6, 0,   0, 0,
                                                        1e6, 0,   0,   0,   1e6, 1e6, 0, 0};
inline constexpr std::array<double, 11> kPhysicsWait = {0, 0, 0, 0, 1e6};  // the queue's drain

struct LatencySpec {
  std::string backend = "auto";
  // Microseconds. blackbox, roofline: delay before the queue = alpha[0] + alpha[1]*prompt;
  // alpha[2] per output token, outside the GPU. blackbox: step = beta[0] + beta[1]*prefill tokens
  // + beta[2]*decode tokens.
  std::vector<double> alpha = std::vector<double>(3, 0.0);
  std::vector<double> beta = std::vector<double>(3, 0.0);
  // trained_physics: before the queue, after the last token, per output token; and the factors of
  // its parts.
  std::vector<double> physics_alpha{kBlisAlpha.begin(), kBlisAlpha.end()};
  std::vector<double> physics_beta{kBlisBeta.begin(), kBlisBeta.end()};
  // physics: weights of its features for the delay before the queue, for the time of a step, and,
  // in estimates only, for the wait in the queue; and of a step in the average of preemptions.
  std::string variant = "corrected";
  std::vector<double> alpha_coefficients = std::vector<double>(11, 0.0);
  std::vector<double> beta_coefficients{kPhysicsBeta.begin(), kPhysicsBeta.end()};
  std::vector<double> wait_coefficients{kPhysicsWait.begin(), kPhysicsWait.end()};
  double preemption_gamma = 0.3;
  // roofline. Share of the peak that prefill and decode reach; default: BLIS's for the H100.
  std::optional<double> mfu_prefill, mfu_decode;
  // roofline, trained_physics: what these two know of a model beyond ModelSpec.
  std::int64_t weight_bytes = 2;               // of a weight
  double peak_fp8_tflops = 0;                  // used with weights of one byte; 0: the 16-bit peak
  std::int64_t interleave_moe_layer_step = 0;  // experts in one layer of this + 1; 0: in all
  std::int64_t intermediate_size_mlp = 0;      // of the layers between
};

enum class ArrivalProcess {
  kPoisson,
  kConstant,
  kTrace,
  kGamma,
  kWeibull,
  kUniform,
  kStatic,
  kClosedLoop
};
inline bool HasRate(ArrivalProcess process) {
  return process != ArrivalProcess::kTrace && process != ArrivalProcess::kStatic &&
         process != ArrivalProcess::kClosedLoop;
}
// What a run begins with. Spread: the clients of a closed loop at random points of the time that
// they think, and conversations of a flat rate that are under way. Together: all clients at 0, no
// conversation.
enum class LoadStart { kSpread, kTogether };
// How the rate changes over time; each is a factor of the rate.
enum class RateProfile { kFlat, kPiecewise, kDiurnal, kRamp };

struct ArrivalSpec {
  ArrivalProcess process = ArrivalProcess::kPoisson;
  double rate_per_s = 1;
  double cv = 2;  // gamma, weibull: standard deviation of the gaps over their mean
  // Of the processes that have a rate.
  std::optional<std::int64_t> max_concurrency;  // requests that clients have in flight at most
  RateProfile profile = RateProfile::kFlat;
  NumberTable rate_factors = {{0, 1}};  // piecewise: [from_s, factor], the first from 0
  double peak_hour = 14;                // diurnal
  double peak_to_trough = 4;
  double period_h = 24;
  double ramp_from = 0;  // ramp: factors
  double ramp_to = 1;
  double ramp_s = 600;
  NumberTable spikes;  // [start_s, duration_s, factor], on top of the profile
  // closed_loop
  std::int64_t concurrency = 16;
  double think_time_s = 0;  // mean, exponential
  // closed_loop, and processes with a rate
  LoadStart start = LoadStart::kSpread;
  // trace
  double rate_scale = 1;    // arrivals come this many times as fast
  double keep = 1;          // share of the rows
  std::int64_t repeat = 1;  // times that the trace is played; 0: until there are enough requests

  friend bool operator==(const ArrivalSpec&, const ArrivalSpec&) = default;
};

// Clients hold back what would be too much at a time.
inline bool CapsClients(const ArrivalSpec& arrivals) {
  return HasRate(arrivals.process) && arrivals.max_concurrency.has_value();
}

enum class LengthDistribution {
  kFixed,
  kUniform,
  kLognormal,
  kEmpirical,
  kTrace,
  kNormal,
  kZipf,
  kRatio,    // outputs only: of the prompt
  kWorkload  // of a class: as the workload's
};

// A length is an increasing function of one uniform draw.
inline bool HasOneDraw(LengthDistribution distribution) {
  return distribution == LengthDistribution::kUniform ||
         distribution == LengthDistribution::kNormal ||
         distribution == LengthDistribution::kLognormal ||
         distribution == LengthDistribution::kEmpirical;
}

// Tokens. Only the members of its distribution count; draws are rounded to the nearest token and
// clipped to [min, max].
struct LengthSpec {
  LengthDistribution distribution = LengthDistribution::kFixed;
  std::int64_t value = 512;         // fixed
  std::int64_t min = 1;             // uniform, zipf, normal, lognormal
  std::optional<std::int64_t> max;  // uniform and zipf (required), normal, lognormal
  double mean = 512;                // normal
  double stddev = 128;              // normal
  double median = 256;              // lognormal
  double p99 = 2048;                // lognormal
  double theta = 0.6;               // zipf: the k-th length has weight k^-theta
  bool scrambled = false;           // zipf: the frequent lengths are spread over [min, max]
  double ratio = 20;                // ratio: prompt tokens per output token
  double scale = 1;                 // trace
  // Outputs drawn from one number: Spearman's rank correlation with the prompt.
  double correlation = 0;
  NumberTable quantiles;  // empirical: [probability, tokens], both ascending

  friend bool operator==(const LengthSpec&, const LengthSpec&) = default;
};

// A shared prefix of prompts (a system prompt), before the drawn prompt tokens.
struct PrefixSpec {
  std::int64_t groups = 0;  // each request belongs to one, drawn evenly; 0: nothing is shared
  std::int64_t tokens = 0;  // of the prefix, the same for all requests of a group

  friend bool operator==(const PrefixSpec&, const PrefixSpec&) = default;
};

// Conversations: turn k+1 arrives a think time after turn k is complete, and its prompt is all that
// was said before, then the drawn prompt tokens. The arrival process starts sessions.
struct SessionSpec {
  std::int64_t turns = 1;   // 1: every request stands alone
  double think_time_s = 0;  // mean, exponential

  friend bool operator==(const SessionSpec&, const SessionSpec&) = default;
};

// LoRA adapters of the model: each session has one of them, or none where there are none.
struct AdapterSpec {
  std::int64_t count = 0;
  double theta = 0;  // the k-th has weight k^-theta; 0: all are equally likely

  friend bool operator==(const AdapterSpec&, const AdapterSpec&) = default;
};

inline LengthSpec LengthsOfTheWorkload() {
  LengthSpec spec;
  spec.distribution = LengthDistribution::kWorkload;
  return spec;
}

// Clients of one kind. What a class does not set is as in the workload.
struct ClassSpec {
  std::string name;
  double share = 1;                        // of the sessions, relative to the other classes
  std::optional<double> rate_per_s;        // arrivals of its own instead of a share
  std::int64_t priority = 0;               // lower is more urgent
  std::optional<double> ttft_deadline_ms;  // what the order edf goes by
  std::optional<double> timeout_s;         // after it the client gives up
  // Instead of the engine's: mean tokens of a step that verifies all its drafts.
  std::optional<double> acceptance_length;
  LengthSpec prompt_tokens = LengthsOfTheWorkload();
  LengthSpec output_tokens = LengthsOfTheWorkload();
  std::optional<std::int64_t> prefix_groups;  // none shared with other classes
  std::optional<std::int64_t> prefix_tokens;
  std::optional<std::int64_t> turns;
  std::optional<double> think_time_s;
  std::optional<std::int64_t> adapters;  // none shared with other classes
  std::optional<double> adapter_theta;

  friend bool operator==(const ClassSpec&, const ClassSpec&) = default;
};

// Clients that send a request again when it was turned away or timed out. The back-off before the
// k-th retry is min(backoff_s * multiplier^(k-1), max_backoff_s), less a share up to `jitter`.
// Defaults but for `max` are those of OpenAI's Python client.
struct RetrySpec {
  std::int64_t max = 0;  // retries of a request; 0: clients do not try again
  double backoff_s = 0.5, multiplier = 2, max_backoff_s = 8;
  double jitter = 0.25;
  // A retry is sent while fewer than this share of the requests so far were; none: always.
  std::optional<double> budget;

  bool On() const { return max > 0; }
  friend bool operator==(const RetrySpec&, const RetrySpec&) = default;
};

struct WorkloadSpec {
  std::string name;
  ArrivalSpec arrivals;
  LengthSpec prompt_tokens;
  LengthSpec output_tokens;
  PrefixSpec prefix;
  SessionSpec sessions;
  AdapterSpec adapters;
  std::vector<ClassSpec> classes;  // none: all requests are alike
  RetrySpec retries;
  std::int64_t requests = 1000;  // replayed arrivals: all of the trace, `repeat` times, instead

  bool HasTurns() const {  // conversations, of some class at least
    const auto turns = [this](const ClassSpec& c) { return c.turns.value_or(sessions.turns) > 1; };
    return classes.empty() ? sessions.turns > 1
                           : std::any_of(classes.begin(), classes.end(), turns);
  }
  friend bool operator==(const WorkloadSpec&, const WorkloadSpec&) = default;
};

enum class SloMetric { kTtft, kTpot, kItl, kE2e, kAttainment };

// A limit on a percentile of a latency; or, of kAttainment, limits that so many per cent of the
// requests must be within, each request within all of them.
struct SloSpec {
  SloMetric metric = SloMetric::kTtft;
  double percentile = 99;
  double limit_ms = 0;                             // not of kAttainment
  std::optional<double> ttft_ms, tpot_ms, e2e_ms;  // of kAttainment: one at least
  std::string of_class;  // name of a workload's class; empty: all requests
};

// The limits that a request has to be within: the only one, or those of attainment.
struct SloLimit {
  SloMetric metric = SloMetric::kTtft;
  double ms = 0;
};
std::vector<SloLimit> LimitsOf(const SloSpec& slo);

struct MeasureSpec {
  double warmup_s = 0;              // requests that arrive before it are left out of latencies
  std::optional<double> horizon_s;  // stop here; unfinished requests are counted as such
};

// Of the form of a pack and the meaning of its constants; other versions are refused.
inline constexpr std::string_view kCalibrationSpecVersion = "1.0";

// Where constants come from that were fitted to a server's measurements (docs/how-to/calibrate.md).
// It changes no step, only what is known of them.
struct CalibrationSpec {
  std::string spec_version;          // "": constants are of no calibration
  std::string backend = "analytic";  // the latency model whose they are
  std::string coefficients;          // of a training: hash of those of the section latency
  // The measured server, by the names of presets where these mean it; `with`: ComparedFeatures.
  std::string model, gpu, engine, with;
  std::int64_t tensor_parallel = 1;
  std::string stated;  // the same as its files have it
  std::string files;   // what these were
  std::string date;
  std::int64_t measurements = 0;
  struct Parameter {
    std::string path;
    double value = 0, low = 0, high = 0;  // 95 %
    friend bool operator==(const Parameter&, const Parameter&) = default;
  };
  std::vector<Parameter> parameters;
  struct Range {
    std::string of;  // "prompt_tokens", "batch", "context_tokens", "output_tokens", "rate_per_s"...
    double low = 0, high = 0;
    friend bool operator==(const Range&, const Range&) = default;
  };
  std::vector<Range> seen;
  struct Error {
    std::string of, figure;  // "prompt", "step", "run"; "ttft", "tpot", "e2e", "step", "wait"
    bool held_out = false;
    std::int64_t points = 0;
    double median = 0, max = 0;  // absolute, per cent of what was measured
    friend bool operator==(const Error&, const Error&) = default;
  };
  std::vector<Error> errors;

  bool On() const { return !spec_version.empty(); }
  friend bool operator==(const CalibrationSpec&, const CalibrationSpec&) = default;
};

// A whole question to the simulator, presets resolved.
struct Scenario {
  std::string name;
  std::string description;
  std::int64_t seed = 1;
  ModelSpec model;
  HardwareSpec hardware;
  EngineSpec engine;
  ClusterSpec cluster;
  SchedulerSpec scheduler;
  LatencySpec latency;
  CalibrationSpec calibration;
  WorkloadSpec workload;
  std::vector<SloSpec> slo;
  MeasureSpec measure;

  // Written by the parser: the canonical document (presets by name, sorted keys, defaults dropped),
  // and the same with presets inlined. Labels (name, description) are not in `resolved_text`'s
  // fingerprint part: renaming a scenario does not change what it simulates.
  std::string canonical_text;
  std::string resolved_text;
  std::uint64_t id = 0;            // hash of canonical_text
  std::uint64_t content_hash = 0;  // hash of the resolved scenario without labels

  // Reduces the scenario to this pool alone; the texts stay.
  void UsePool(std::size_t pool);
};

// Reads a scenario document (schema 1). All issues are collected; unknown keys come with the
// nearest known one. O(size of the text).
Result<Scenario> ParseScenario(std::string_view text);
// Without its id, texts and content hash, which take half the time: for who has many to run.
Result<Scenario> ParseToRun(std::string_view text);

// `text` with members set: each override is "path.to.member=value" (list items by number), value
// as JSON or, failing that, as text. Only the form is checked here; ParseScenario checks the rest.
Result<std::string> ApplyOverrides(std::string_view text,
                                   const std::vector<std::string>& overrides);

// The document of an embedded preset scenario; nullopt when there is none of that name.
std::optional<std::string_view> ScenarioPreset(std::string_view id);

// The preset scenario whose name is nearest to `id`; "" when none is near.
std::string NearestScenarioPreset(std::string_view id);

// The readable link grammar "p=PRESET&path=value&...", percent-decoded here, to a document.
Result<std::string> ParseReadableLink(std::string_view fragment);

// Presets, every field of a scenario (type, unit, range, default, help), policies, columns: JSON,
// as wasm/servecast.d.ts describes it.
std::string CatalogJson();
// The same, with the columns that only the command writes.
std::string CommandCatalogJson();

// The same for a terminal.
std::string CatalogText();

// 16 hex digits.
std::string HashText(std::uint64_t hash);

}  // namespace servecast
