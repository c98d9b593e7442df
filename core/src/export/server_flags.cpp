// Options of servers that a scenario's engine, model and pools are: the reverse of
// import/vllm_options and import/sglang_command.
#include <array>
#include <cmath>

#include "base/text.h"
#include "export/targets.h"
#include "io/presets.h"
#include "io/sglang_names.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

// Engine members that are options of vLLM; the rest a server cannot be told.
const std::set<std::string>& VllmMembers() {
  static const std::set<std::string> kMembers = {"max_num_seqs",
                                                 "max_num_batched_tokens",
                                                 "max_num_queued_reqs",
                                                 "api_server_count",
                                                 "max_num_queued_tokens",
                                                 "max_model_len",
                                                 "block_size",
                                                 "gpu_memory_utilization",
                                                 "kv_cache_dtype",
                                                 "num_gpu_blocks_override",
                                                 "enable_prefix_caching",
                                                 "enable_chunked_prefill",
                                                 "long_prefill_token_threshold",
                                                 "async_scheduling",
                                                 "enable_expert_parallel",
                                                 "kv_offload",
                                                 "speculative",
                                                 "max_loras",
                                                 "max_lora_rank",
                                                 "hybrid_kv_cache_manager",
                                                 "mamba_cache_mode",
                                                 "cuda_graphs"};
  return kMembers;
}

const char* NameOf(Quantization quantization) {
  constexpr const char* kNames[] = {"none", "fp8",        "int4", "nvfp4",    "mxfp4",
                                    "int8", "int8_w8a16", "nf4",  "mxfp4_all"};
  return kNames[static_cast<int>(quantization)];
}

// What the model's preset says of a member; null: it has no preset, or says nothing.
Json PresetModel(const ExportJob& job, const char* member) {
  const Json* preset = FindPresetDocument("models", job.Preset("model"));
  return preset == nullptr ? Json() : preset->value(member, Json());
}

class Flags {
 public:
  void Add(const char* name) { words_.emplace_back(name); }
  void Add(const char* name, const std::string& value) {
    words_.emplace_back(name);
    words_.push_back(value);
  }
  void Add(const char* name, std::int64_t value) { Add(name, Format("{}", value)); }
  // "--enable-x" or "--no-enable-x".
  void Switch(std::string_view name, bool on) {
    words_.push_back(Format("{}{}", on ? "--" : "--no-", name));
  }
  FlagWords Take() { return std::move(words_); }

 private:
  FlagWords words_;
};

// Whether the weights are other than the model's files have them.
bool HasOtherWeights(const ExportJob& job) {
  const Json published = PresetModel(job, "quantization");
  const std::string of = published.is_string() ? published.get<std::string>() : "none";
  return NameOf(job.scenario().model.quantization) != of;
}

// The weights, where they are other than the model's files have them.
void AddWeights(ExportJob& job, Flags& flags) {
  const ModelSpec& model = job.scenario().model;
  if (HasOtherWeights(job) && model.quantization == Quantization::kFp8) {
    flags.Add("--quantization", "fp8");
  } else if (!job.Preset("model").empty()) {
    LeaveOutWeights(job);
  }
  if (model.torch_dtype == DType::kFloat32) flags.Add("--dtype", "float32");
  if (model.torch_dtype == DType::kFloat16 && PresetModel(job, "torch_dtype") != "float16")
    flags.Add("--dtype", "float16");
}

void AddCache(ExportJob& job, const EngineSpec& e, Flags& flags) {
  if (e.block_size != 16) flags.Add("--block-size", e.block_size);
  flags.Add("--gpu-memory-utilization", NumberText(e.gpu_memory_utilization));
  if (e.kv_cache_dtype == KvCacheDType::kFp8) flags.Add("--kv-cache-dtype", "fp8");
  if (e.num_gpu_blocks_override) flags.Add("--num-gpu-blocks-override", *e.num_gpu_blocks_override);
  flags.Switch("enable-prefix-caching", e.enable_prefix_caching);
  if (e.hybrid_kv_cache_manager != HybridKvManager::kAuto) {
    flags.Switch("disable-hybrid-kv-cache-manager",
                 e.hybrid_kv_cache_manager == HybridKvManager::kOff);
  }
  if (e.mamba_cache_mode == MambaCacheMode::kAll) flags.Add("--mamba-cache-mode", "all");
  if (e.kv_offload.cpu_gib > 0) flags.Add("--kv-offloading-size", NumberText(e.kv_offload.cpu_gib));
  if (e.kv_offload.On()) {
    job.LeaveOut("engine.kv_offload", "latencies and bandwidths are the machine's");
  }
  if (e.kv_offload.disk_gib > 0)
    job.LeaveOut("engine.kv_offload.disk_gib", "vLLM's options know no disk");
}

void AddDrafts(ExportJob& job, const SpeculativeSpec& s, Flags& flags) {
  if (!s.On()) return;
  constexpr const char* kMethods[] = {"",    "ngram",       "ngram_gpu", "eagle", "eagle3",
                                      "mtp", "draft_model", "dflash",    "dspark"};
  const std::string at_once = s.parallel_drafting ? R"(,"parallel_drafting":true)" : "";
  flags.Add("--speculative-config", Format(R"({{"method":"{}","num_speculative_tokens":{}{}}})",
                                           kMethods[static_cast<std::size_t>(s.method)],
                                           s.num_speculative_tokens, at_once));
  if (s.HasDrafter() && s.method != DraftMethod::kMtp) {
    job.LeaveOut("engine.speculative.method", "needs the drafter's checkpoint as \"model\"");
  }
  job.LeaveOut("engine.speculative.acceptance_length",
               "how many drafts are accepted is the texts' and the drafter's");
}

void AddAdapters(ExportJob& job, const EngineSpec& e, Flags& flags) {
  if (e.max_loras == 0) return;
  flags.Add("--enable-lora");
  flags.Add("--max-loras", e.max_loras);
  flags.Add("--max-lora-rank", e.max_lora_rank);
  job.LeaveOut("--lora-modules", "needs names and paths of the adapters");
}

void AddEncoder(const EngineSpec& e, Flags& flags) {
  if (e.mm_encoder_tp_mode == EncoderParallel::kData) flags.Add("--mm-encoder-tp-mode", "data");
  if (e.disable_chunked_mm_input) flags.Add("--disable-chunked-mm-input");
}

void AddScheduler(ExportJob& job, const EngineSpec& e, const SchedulerSpec& s, Flags& flags) {
  flags.Switch("enable-chunked-prefill", e.enable_chunked_prefill);
  flags.Switch("async-scheduling", e.async_scheduling);
  if (e.long_prefill_token_threshold > 0)
    flags.Add("--long-prefill-token-threshold", e.long_prefill_token_threshold);
  if (s.order == "priority_fcfs") {
    flags.Add("--scheduling-policy", "priority");
  } else if (s.order != "fcfs") {
    job.LeaveOut("scheduler.order = " + s.order, "vLLM's queue is fcfs or priority");
  }
  if (!s.IsVllm()) job.LeaveOut("scheduler.policy = " + s.policy, "a server has its own scheduler");
  if (e.cuda_graphs == CudaGraphs::kEager) flags.Add("--enforce-eager");
  if (e.cuda_graphs == CudaGraphs::kCaptured) {
    job.LeaveOut("engine.cuda_graphs = captured", "servers capture graphs by themselves");
  }
  job.LeaveOutRest("scheduler", {"order", "policy"}, "is no option of vLLM");
}

}  // namespace

void LeaveOutWeights(ExportJob& job) {
  if (!HasOtherWeights(job)) return;
  job.LeaveOut(Format("model.quantization = {}", NameOf(job.scenario().model.quantization)),
               "needs a checkpoint in that form: put its name in place of the model's");
}

FlagWords VllmFlags(ExportJob& job, std::size_t pool) {
  const PoolSpec& p = job.scenario().cluster.pools[pool];
  const EngineSpec& e = job.Engine(pool);
  Flags flags;
  flags.Add("--tensor-parallel-size", p.tensor_parallel);
  if (p.pipeline_parallel > 1) flags.Add("--pipeline-parallel-size", p.pipeline_parallel);
  if (p.attention_data_parallel > 1) flags.Add("--data-parallel-size", p.attention_data_parallel);
  if (e.enable_expert_parallel) flags.Add("--enable-expert-parallel");
  // It goes past NCCL, so two cards that are peers would be faster than the forecast.
  if (!LinkVariables(job, pool).empty()) flags.Add("--disable-custom-all-reduce");
  flags.Add("--max-num-seqs", e.max_num_seqs);
  flags.Add("--max-num-batched-tokens", e.max_num_batched_tokens);
  // By itself a server has one for each of its ranks.
  if (e.api_server_count > 1)
    flags.Add("--api-server-count", e.api_server_count * p.attention_data_parallel);
  if (e.max_num_queued_reqs) flags.Add("--max-num-queued-reqs", *e.max_num_queued_reqs);
  if (e.max_num_queued_tokens) flags.Add("--max-num-queued-tokens", *e.max_num_queued_tokens);
  if (e.max_model_len) flags.Add("--max-model-len", *e.max_model_len);
  AddCache(job, e, flags);
  AddScheduler(job, e, job.Scheduler(pool), flags);
  AddDrafts(job, e.speculative, flags);
  AddAdapters(job, e, flags);
  AddEncoder(e, flags);
  AddWeights(job, flags);
  const Json samples = PresetModel(job, "top_p_by_default");
  if (samples == true && !job.scenario().model.top_p_by_default)
    flags.Add("--generation-config", "vllm");
  if (p.role != PoolRole::kMixed) {
    const char* role = p.role == PoolRole::kPrefill ? "kv_producer" : "kv_consumer";
    flags.Add("--kv-transfer-config",
              Format(R"({{"kv_connector":"NixlConnector","kv_role":"{}"}})", role));
  }
  job.LeaveOutRest("engine", VllmMembers(), "is no option of vLLM");
  return flags.Take();
}

namespace {

// What the scheduler has beside the engine's options; returns the members that are written.
std::set<std::string> AddSglangScheduler(const SchedulerSpec& scheduler, Flags& flags) {
  if (scheduler.Sglang() == nullptr) return {};
  const SglangSpec& o = scheduler.sglang;
  const SglangSpec usual;
  constexpr const char* kPolicies[] = {"fcfs", "lpm", "dfs-weight", "lof"};
  constexpr const char* kEvictions[] = {"lru", "lfu", "slru", "fifo", "filo", "mru", "priority"};
  if (o.schedule_policy != usual.schedule_policy) {
    flags.Add("--schedule-policy", kPolicies[static_cast<std::size_t>(o.schedule_policy)]);
  }
  if (o.schedule_conservativeness != usual.schedule_conservativeness) {
    flags.Add("--schedule-conservativeness", NumberText(o.schedule_conservativeness));
  }
  if (o.max_prefill_tokens != usual.max_prefill_tokens) {
    flags.Add("--max-prefill-tokens", o.max_prefill_tokens);
  }
  if (o.prefill_max_requests) flags.Add("--prefill-max-requests", *o.prefill_max_requests);
  if (o.enable_mixed_chunk) flags.Add("--enable-mixed-chunk");
  if (o.radix_eviction_policy != usual.radix_eviction_policy) {
    flags.Add("--radix-eviction-policy",
              kEvictions[static_cast<std::size_t>(o.radix_eviction_policy)]);
  }
  if (o.enable_priority_scheduling) flags.Add("--enable-priority-scheduling");
  if (o.disable_priority_preemption) flags.Add("--disable-priority-preemption");
  if (o.retraction_policy == SglangRetraction::kPriority) {
    flags.Add("--retraction-policy", "priority");
  }
  if (o.max_total_tokens) flags.Add("--max-total-tokens", *o.max_total_tokens);
  if (o.schedule_low_priority_values_first) flags.Add("--schedule-low-priority-values-first");
  if (o.priority_scheduling_preemption_threshold !=
      usual.priority_scheduling_preemption_threshold) {
    flags.Add("--priority-scheduling-preemption-threshold",
              o.priority_scheduling_preemption_threshold);
  }
  std::set<std::string> written = {"policy",
                                   "mem_fraction_static",
                                   "max_total_tokens",
                                   "disable_priority_preemption",
                                   "retraction_policy",
                                   "schedule_policy",
                                   "schedule_conservativeness",
                                   "max_prefill_tokens",
                                   "prefill_max_requests",
                                   "enable_mixed_chunk",
                                   "radix_eviction_policy",
                                   "enable_priority_scheduling",
                                   "schedule_low_priority_values_first",
                                   "priority_scheduling_preemption_threshold"};
  for (const SglangVariable& variable : kSglangVariables) written.emplace(variable.member);
  return written;
}

// What starts the router of a scenario, or writes it; "": not known.
std::string RouterCommand(const ClusterSpec& cluster) {
  static constexpr std::pair<std::string_view, std::string_view> kCommands[] = {
      {"epp", "target llm-d-router"},
      {"cache_aware", "python -m sglang_router.launch_router --policy cache_aware"},
      {"power_of_two", "python -m sglang_router.launch_router --policy power_of_two"},
      {"random", "python -m sglang_router.launch_router --policy random"},
      {"prefix_aware", "vllm-router --routing-logic prefixaware"},
      {"kv_lookup", "vllm-router --routing-logic kvaware"},
      {"session_affinity", "vllm-router --routing-logic session"},
      {"vllm_dp", "vllm serve --data-parallel-size, with its own balancer"}};
  std::string text;
  for (const auto& [policy, command] : kCommands) {
    if (policy == cluster.router) text = command;
  }
  static constexpr std::array<const char*, 3> kOptions[] = {
      {"cache_aware", "cache_threshold", "cache-threshold"},
      {"cache_aware", "balance_abs_threshold", "balance-abs-threshold"},
      {"cache_aware", "balance_rel_threshold", "balance-rel-threshold"},
      {"cache_aware", "max_tree_size", "max-tree-size"},
      {"cache_aware", "eviction_interval_s", "eviction-interval-secs"},
      {"kv_lookup", "kv_aware_threshold", "kv-aware-threshold"}};
  for (const auto& [policy, param, option] : kOptions) {
    const auto value = cluster.router_params.find(std::string_view(param));
    if (policy != cluster.router || value == cluster.router_params.end()) continue;
    text += Format(" --{} {}", option, NumberText(value->second));
  }
  return text;
}

}  // namespace

FlagWords LinkVariables(ExportJob& job, std::size_t pool) {
  const bool alone = job.GpusOfServer(pool) == 1;
  if (alone || job.Hardware(pool).interconnect != Interconnect::kPcieHost) return {};
  if (job.scenario().hardware.interconnect == Interconnect::kPcieHost) {
    job.hardware_written.insert("interconnect");
  }
  return {"NCCL_P2P_DISABLE=1"};
}

FlagWords SglangVariables(const ExportJob& job, std::size_t pool) {
  const SchedulerSpec& scheduler = job.Scheduler(pool);
  if (scheduler.Sglang() == nullptr) return {};
  const auto values = [](const SglangSpec& o) {
    const auto whole = [](std::int64_t value) { return Format("{}", value); };
    return std::array{NumberText(o.init_new_token_ratio),
                      NumberText(o.min_new_token_ratio_factor),
                      whole(o.new_token_ratio_decay_steps),
                      whole(o.retract_decode_steps),
                      whole(o.clip_max_new_tokens),
                      whole(o.in_batch_check_threshold),
                      whole(o.in_batch_deprioritize_threshold)};
  };
  const auto said = values(scheduler.sglang), usual = values({});
  static_assert(said.size() == std::size(kSglangVariables));
  FlagWords words;
  for (std::size_t i = 0; i < said.size(); ++i) {
    if (said[i] != usual[i]) words.push_back(Format("{}={}", kSglangVariables[i].name, said[i]));
  }
  return words;
}

FlagWords SglangFlags(ExportJob& job, std::size_t pool) {
  const PoolSpec& p = job.scenario().cluster.pools[pool];
  const EngineSpec& e = job.Engine(pool);
  Flags flags;
  const std::int64_t ranks = p.attention_data_parallel;
  flags.Add("--tp-size", p.tensor_parallel * ranks);
  if (p.pipeline_parallel > 1) flags.Add("--pp-size", p.pipeline_parallel);
  if (ranks > 1) {
    flags.Add("--dp-size", ranks);
    flags.Add("--enable-dp-attention");
  }
  if (e.enable_expert_parallel) flags.Add("--ep-size", p.tensor_parallel * ranks);
  if (!LinkVariables(job, pool).empty()) flags.Add("--disable-custom-all-reduce");
  flags.Add("--max-running-requests", e.max_num_seqs);
  flags.Add("--chunked-prefill-size", e.enable_chunked_prefill ? e.max_num_batched_tokens : -1);
  if (e.max_model_len) flags.Add("--context-length", *e.max_model_len);
  flags.Add("--page-size", e.block_size);
  if (e.api_server_count > 1) flags.Add("--tokenizer-worker-num", e.api_server_count);
  const SchedulerSpec& scheduler = p.scheduler ? *p.scheduler : job.scenario().scheduler;
  const std::optional<double>& share = scheduler.sglang.mem_fraction_static;
  flags.Add("--mem-fraction-static", NumberText(share.value_or(e.gpu_memory_utilization)));
  if (e.kv_cache_dtype == KvCacheDType::kFp8) flags.Add("--kv-cache-dtype", "fp8_e4m3");
  if (!e.enable_prefix_caching) flags.Add("--disable-radix-cache");
  if (!e.async_scheduling) flags.Add("--disable-overlap-schedule");
  if (e.cuda_graphs == CudaGraphs::kEager) flags.Add("--disable-cuda-graph");
  const std::set<std::string> scheduled = AddSglangScheduler(scheduler, flags);
  AddWeights(job, flags);
  if (p.role != PoolRole::kMixed) {
    flags.Add("--disaggregation-mode", p.role == PoolRole::kPrefill ? "prefill" : "decode");
  }
  if (!share) {
    job.LeaveOut("--mem-fraction-static",
                 "SGLang counts no activations in it: give it less than gpu_memory_utilization if "
                 "memory runs out");
  }
  std::set<std::string> written = VllmMembers();
  job.LeaveOutRest("scheduler", scheduled, "is left out for SGLang");
  for (const char* unknown :
       {"num_gpu_blocks_override", "long_prefill_token_threshold", "kv_offload",
        "scheduler_reserve_full_isl", "speculative", "max_loras", "max_lora_rank",
        "hybrid_kv_cache_manager", "mamba_cache_mode"}) {
    written.erase(unknown);
  }
  job.LeaveOutRest("engine", written, "is left out for SGLang");
  return flags.Take();
}

void LeaveOutBesideServers(ExportJob& job, bool knows_gpu, bool rolls) {
  const Scenario& s = job.scenario();
  job.LeaveOutSections({"workload"}, "is the clients': the target bench writes it");
  if (!job.Preset("model").empty()) {
    job.LeaveOutRest("model", {"quantization", "torch_dtype", "top_p_by_default"},
                     "is the checkpoint's: no option of a server says it");
  }
  job.LeaveOutSections({"slo"}, "targets are no settings of a server");
  job.LeaveOutSections({"latency", "measure", "seed"}, "is the simulation's own");
  job.LeaveOutRest("hardware", job.hardware_written, "figures of the GPU are no settings");
  for (std::size_t i = 0; i < s.cluster.pools.size(); ++i) {
    const std::string gpu = job.PresetAt(i, "hardware");
    if (!knows_gpu) {
      job.LeaveOut(job.SectionAt(i, "hardware") + (gpu.empty() ? "" : " " + gpu),
                   "is the machine that it runs on");
    }
    const std::int64_t gpus = job.GpusOfServer(i), node = job.Hardware(i).gpus_per_node;
    if (node > 0 && gpus > node) {
      job.LeaveOut(
          Format("cluster.pools.{}: {} GPUs of a server", i, gpus),
          Format("a node has {}: what starts one server on several nodes is not written", node));
    }
  }
  if (s.cluster.Replicas() > 1 && s.cluster.router != "round_robin") {
    const std::string command = RouterCommand(s.cluster);
    job.LeaveOut(
        "cluster.router.policy = " + s.cluster.router,
        "is the router's that stands before the servers" + (command.empty() ? "" : ": " + command));
  }
  constexpr const char* kScaler = "is an autoscaler's beside the servers: target autoscaler";
  if (s.cluster.scaling.On()) job.LeaveOut("cluster.scaling", kScaler);
  for (std::size_t i = 0; i < s.cluster.pools.size(); ++i) {
    const std::optional<ScalingSpec>& own = s.cluster.pools[i].scaling;
    if (own && own->On()) job.LeaveOut(Format("cluster.pools.{}.scaling", i), kScaler);
  }
  if (s.cluster.slowdowns.On()) job.LeaveOut("cluster.slowdowns", "is no setting of a server");
  if (s.cluster.failures.On()) job.LeaveOut("cluster.failures", "is no setting of a server");
  if (s.cluster.rolling_update.On()) {
    if (rolls) {
      job.LeaveOut("cluster.rolling_update.at_s", "an update begins when the Deployment changes");
    } else {
      job.LeaveOut("cluster.rolling_update", "is a Deployment's: target kubernetes");
    }
  }
  if (s.engine.compat != Compat::kNone)
    job.LeaveOut("engine.compat", "another simulator's rules: a server has vLLM's");
}

}  // namespace servecast
