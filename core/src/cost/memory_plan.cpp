// See memory_plan.h: what is resident beside the KV cache, and how many blocks have room. With
// pipeline stages that with the least room decides.
#include "cost/memory_plan.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/base.h"
#include "base/text.h"
#include "cost/kv_groups.h"
#include "cost/model_bytes.h"

namespace servecast {
namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

// Memory that vLLM keeps beside weights and KV cache, per GPU. Three terms, set so that the block
// counts which vLLM logs at start (gpu_memory_utilization 0.9, max_num_seqs 128) come out within
// 2 %: Llama-2-7B, Qwen2.5-7B, Mistral-Nemo (TP 1 and 2), Yi-34B, CodeLlama-34B, Mixtral-8x7B,
// Llama-3.1-70B on H100, Llama-3.1-8B on A100-PCIe-40GB. docs/model.md lists the residuals.
constexpr double kRuntimeGib = 0.45;          // CUDA context, graphs, small buffers
constexpr double kCollectiveGib = 0.4;        // NCCL buffers when there is a tensor-parallel group
constexpr double kSamplerBytesPerLogit = 30;  // the profile run samples max_num_seqs rows of logits

double GraphsGib(const EngineSpec& e) {
  if (e.cuda_graphs != CudaGraphs::kCaptured) return 0;
  std::int64_t graphs = 0;
  for (std::int64_t n = 1; n <= e.cuda_graph_max_bs; ++n) graphs += CaptureSize(n) == n ? 1 : 0;
  return static_cast<double>(graphs) * e.cuda_graph_mib / 1024;
}

// The layers that GPUs of one stage hold, and what stands before and behind them.
struct Stage {
  ModelSpec layers;
  std::int64_t from = 0;             // the first of them
  std::int64_t expert_replicas = 1;  // that share its experts
  bool first = true, last = true;
};

// What the widest layer of a forward pass of the profile run holds: of each token of the budget the
// hidden state and its residual, and what its MLP's matrices write, of experts that of each that it
// chooses, whose results lie side by side until they are summed. Freed before logits are sampled,
// so the larger of the two counts. Qwen3-14B in int4 on an L40S with 8 seats and 8,192 tokens has
// room for 203,264 tokens by vLLM's log: 4.6 % more without, 1.7 % with it.
double ActivationBytes(const Scenario& s, std::int64_t tp) {
  const ModelSpec& m = s.model;
  const double hidden = D(m.hidden_size);
  const double width = D(m.mlp_matrices) / D(tp);
  const double dense = D(m.num_local_experts > 0 ? std::max(m.dense_intermediate_size,
                                                            m.shared_expert_intermediate_size)
                                                 : m.intermediate_size);
  const double experts = D(m.num_experts_per_tok) * (width * D(m.intermediate_size) + hidden);
  const double mlp = std::max(width * dense, m.num_local_experts > 0 ? experts : 0);
  return D(s.engine.max_num_batched_tokens) * (2 * hidden + mlp) * D(BytesPerValue(m.torch_dtype));
}

double OverheadGib(const Scenario& s, const Stage& stage, std::int64_t tp) {
  // TensorRT-LLM's profile run samples no row for each of its 2,048 places.
  const bool samples_all = stage.last && s.scheduler.Trtllm() == nullptr;
  const std::int64_t rows = samples_all ? s.engine.max_num_seqs : 0;
  const auto logits = static_cast<double>(rows * s.model.vocab_size);
  const bool group = tp > 1 || !stage.first || !stage.last;
  const double working = std::max(kSamplerBytesPerLogit * logits, ActivationBytes(s, tp));
  return kRuntimeGib + (group ? kCollectiveGib : 0) + working / kGib + GraphsGib(s.engine);
}

// One stage's embedding and LM head are one table where they are tied; two stages need two.
double WeightBytes(const Stage& stage, const EngineSpec& engine, std::int64_t tp) {
  const bool both = stage.first && stage.last && !stage.layers.tie_word_embeddings;
  return WeightBytes(stage.layers, tp,
                     both                        ? 2
                     : stage.first || stage.last ? 1
                                                 : 0,
                     ExpertShare(stage.layers, engine, tp * stage.expert_replicas));
}

// The layers [first, first + count) as a model of their own.
ModelSpec PartOf(const ModelSpec& m, std::int64_t first, std::int64_t count) {
  ModelSpec part = m;
  if (!m.layers.empty()) {
    const std::vector<LayerSpec> all = LayersOf(m);
    part.layers.assign(all.data() + first, all.data() + first + count);
  }
  part.num_hidden_layers = count;
  part.num_dense_layers = std::clamp<std::int64_t>(m.num_dense_layers - first, 0, count);
  // Those with a window stand at even distances.
  const std::int64_t sliding = std::min(m.num_sliding_layers, m.num_hidden_layers);
  const auto before = [&](std::int64_t layer) { return sliding * layer / m.num_hidden_layers; };
  part.num_sliding_layers = before(first + count) - before(first);
  return part;
}

std::vector<Stage> StagesOf(const Scenario& s) {
  std::vector<Stage> stages;
  std::int64_t first = 0;
  for (const std::int64_t count : StageLayers(s.model, s.cluster.pool().pipeline_parallel)) {
    const std::int64_t behind = first + count;
    stages.push_back({PartOf(s.model, first, count), first,
                      s.cluster.pool().attention_data_parallel, first == 0,
                      behind == s.model.num_hidden_layers});
    first = behind;
  }
  return stages;
}

// Of the drafter, which is on the GPUs of the only stage. It shares embedding and LM head with the
// model, unless it is a model by itself or chooses from a vocabulary of its own.
double DrafterWeightBytes(const Scenario& s, std::int64_t tp) {
  if (!s.engine.speculative.HasDrafter()) return 0;
  const Scenario drafter = DrafterScenario(s);
  const ModelSpec& m = drafter.model;
  int tables = s.engine.speculative.draft_vocab_size > 0 ? 1 : 0;
  if (s.engine.speculative.method == DraftMethod::kDraftModel) {
    tables = m.tie_word_embeddings ? 1 : 2;
  }
  const std::int64_t gpus = tp * s.cluster.pool().attention_data_parallel;
  return WeightBytes(m, tp, tables, ExpertShare(m, drafter.engine, gpus));
}

// Its layers are among those that a KV block has room for.
double DrafterKvBytesPerToken(const Scenario& s, std::int64_t tp) {
  if (!s.engine.speculative.HasDrafter()) return 0;
  const ModelSpec m = DrafterScenario(s).model;
  return KvBytes(m, s.engine.kv_cache_dtype, tp, m.num_hidden_layers);
}

// Of all seats, which are there whether or not an adapter is on them.
double SeatBytes(const Scenario& s, const Stage& stage, std::int64_t tp) {
  if (s.engine.max_loras == 0) return 0;
  return D(s.engine.max_loras * BytesPerValue(s.model.torch_dtype)) *
         AdapterValues(stage.layers, s.engine.max_lora_rank, tp);
}

// Of the vision encoder, in the first stage. With data parallelism each GPU has all of it.
double EncoderBytes(const Scenario& s, const Stage& stage, std::int64_t tp) {
  if (!stage.first) return 0;
  const VisionParameters p = VisionParametersOf(s.model);
  const bool whole = s.engine.mm_encoder_tp_mode == EncoderParallel::kData;
  return (p.layers + p.merger) * D(BytesPerValue(s.model.torch_dtype)) / (whole ? 1 : D(tp));
}

double AllWeightBytes(const Scenario& s, const Stage& stage, std::int64_t tp) {
  return WeightBytes(stage, s.engine, tp) + DrafterWeightBytes(s, tp) + SeatBytes(s, stage, tp) +
         EncoderBytes(s, stage, tp);
}

// SGLang's share, of weights and KV cache alone: in its model_runner.py the cache has what is left
// of it behind the weights, and what is beside them is in the rest of the memory.
const std::optional<double>& StaticShare(const Scenario& s) {
  static const std::optional<double> kNone;
  const SglangSpec* sglang = s.scheduler.Sglang();
  return sglang != nullptr ? sglang->mem_fraction_static : kNone;
}

double UsableGib(const Scenario& s, const Stage& stage, std::int64_t tp) {
  const std::optional<double>& share = StaticShare(s);
  if (share) return s.hardware.memory_gib * *share + OverheadGib(s, stage, tp);
  const TrtllmSpec* trtllm = s.scheduler.Trtllm();
  if (trtllm != nullptr && trtllm->free_gpu_memory_fraction) {  // of what the others leave
    const double taken = AllWeightBytes(s, stage, tp) / kGib + OverheadGib(s, stage, tp);
    const double left = std::max(0.0, s.hardware.memory_gib - taken);
    return std::min(taken, s.hardware.memory_gib) + left * *trtllm->free_gpu_memory_fraction;
  }
  return s.hardware.memory_gib * s.engine.gpu_memory_utilization;
}

double KvGib(const Scenario& s, const Stage& stage, std::int64_t tp) {
  return UsableGib(s, stage, tp) - AllWeightBytes(s, stage, tp) / kGib - OverheadGib(s, stage, tp);
}

// Whether vLLM's manager of groups is on (A5).
bool GroupsOn(const Scenario& s) {
  if (s.engine.hybrid_kv_cache_manager != HybridKvManager::kAuto) {
    return s.engine.hybrid_kv_cache_manager == HybridKvManager::kOn;
  }
  return std::none_of(s.model.layers.begin(), s.model.layers.end(),
                      [](const LayerSpec& layer) { return layer.kind == "chunked"; });
}

// What the scheduler by groups has. Without it windows of models that have no list of layers are
// counted (KvWindows), and a list of layers is refused (io/feature_checks.cpp).
bool GroupsAreKept(const Scenario& s) {
  const EngineSpec& e = s.engine;
  const PoolSpec& pool = s.cluster.pool();
  return s.scheduler.IsVllm() && e.compat == Compat::kNone && !e.kv_offload.On() &&
         pool.role == PoolRole::kMixed && pool.pipeline_parallel == 1 && !e.speculative.On() &&
         e.max_loras == 0 && e.gc_pass_us == 0 && e.admission_reserve == 0;
}

std::int64_t TokensInFlight(const Scenario& s) {
  const std::int64_t stages = s.cluster.pool().pipeline_parallel;
  return s.engine.max_num_batched_tokens * (stages > 1                  ? stages
                                            : s.engine.async_scheduling ? 2
                                                                        : 1);
}

// What the layers cache, in their order.
std::vector<KvLayer> CachesOf(const Scenario& s, std::int64_t tp) {
  std::vector<KvLayer> caches;
  for (const LayerSpec& layer : LayersOf(s.model)) {
    const LayerInput in = InputOf(s.model, layer, tp, s.engine.kv_cache_dtype);
    for (KvLayer& cache : FindLayerKind(layer.kind).caches(in)) caches.push_back(cache);
  }
  return caches;
}

KvRules RulesOf(const Scenario& s, std::int64_t tp) {
  const ModelSpec& m = s.model;
  KvRules rules;
  rules.block_size = KvBlockSize(s);
  const LayerSpec own;  // by the model's own heads
  const LayerInput in = InputOf(m, own, tp, s.engine.kv_cache_dtype);
  rules.latent = Latent(m);
  rules.full_token_bytes = rules.latent ? (m.kv_lora_rank + m.qk_rope_head_dim) * in.kv_value_bytes
                                        : 2 * in.kv_heads_of_gpu() * m.head_dim * in.kv_value_bytes;
  rules.prefix_caching = s.engine.enable_prefix_caching;
  rules.all_states = s.engine.mamba_cache_mode == MambaCacheMode::kAll;
  for (const LayerSpec& layer : m.layers) {
    const LayerKindEntry& kind = FindLayerKind(layer.kind);
    const std::vector<KvLayer> caches = kind.caches(InputOf(m, layer, tp));
    if (caches.empty() || caches[0].kind != KvKind::kState) continue;
    rules.all_states = rules.all_states && kind.all_states;
    rules.state_chunk = layer.state_chunk;
  }
  rules.by_groups = GroupsOn(s);
  rules.max_model_len =
      std::min(m.max_position_embeddings, s.engine.max_model_len.value_or(INT64_MAX));
  rules.in_flight = TokensInFlight(s);
  rules.match_unit = s.engine.prefix_match_unit;
  return rules;
}

// Whether windows are counted beside the blocks of the full layers: every layer keeps all tokens
// where KV is loaded or sent, and by other schedulers.
bool CountsWindows(const Scenario& s) {
  const ModelSpec& m = s.model;
  return m.layers.empty() && s.scheduler.IsVllm() && s.engine.compat == Compat::kNone &&
         !Latent(m) && m.sliding_window > 0 && m.num_sliding_layers > 0 &&
         m.num_sliding_layers < m.num_hidden_layers && !s.engine.kv_offload.On() &&
         s.cluster.pool().role == PoolRole::kMixed && !KvByGroups(s);
}

// The layers in the order of the model, then the drafter's. Require: CountsWindows.
KvGroups CountedGroups(const Scenario& s, std::int64_t tp) {
  KvRules rules = RulesOf(s, tp);
  rules.block_size = s.engine.block_size;
  std::vector<KvLayer> layers = CachesOf(s, tp);
  for (KvLayer& layer : layers) layer.block_size = s.engine.block_size;
  if (s.engine.speculative.HasDrafter()) {
    const ModelSpec drafter = DrafterScenario(s).model;
    const KvLayer own = {
        .token_bytes = static_cast<std::int64_t>(KvBytes(drafter, s.engine.kv_cache_dtype, tp, 1)),
        .block_size = s.engine.block_size};
    layers.insert(layers.end(), static_cast<std::size_t>(drafter.num_hidden_layers), own);
  }
  return GroupLayers(std::move(layers), rules);
}

std::int64_t FullGroups(const KvGroups& groups) {
  return std::count_if(groups.groups.begin(), groups.groups.end(),
                       [](const KvGroup& group) { return group.kind == KvKind::kFull; });
}

KvWindows WindowsOf(const Scenario& s, const KvGroups& groups) {
  const std::int64_t full = FullGroups(groups), size = s.engine.block_size;
  const std::int64_t slide = static_cast<std::int64_t>(groups.groups.size()) - full;
  const std::int64_t window = s.model.sliding_window;
  KvWindows w;
  w.units = CeilDiv(slide, full);
  w.every = slide == 1 ? full : 1;
  w.most = CeilDiv(window - 1, size) + 1;
  w.most_admitted = CeilDiv(window - 1 + TokensInFlight(s), size) + 1;
  return w;
}

// Of one position of a request in the full layers; without groups in all layers.
double BlockBytes(const Scenario& s, const Stage& stage, std::int64_t tp) {
  if (KvByGroups(s)) {
    return D(GroupLayers(CachesOf(s, tp), RulesOf(s, tp)).BlockBytes(0, INT64_MAX));
  }
  if (CountsWindows(s)) {
    const KvGroups groups = CountedGroups(s, tp);
    const bool drafter = s.engine.speculative.HasDrafter();
    const std::int64_t last = drafter ? INT64_MAX : stage.from + stage.layers.num_hidden_layers;
    return D(FullGroups(groups) * groups.BlockBytes(stage.from, last));
  }
  const std::int64_t layers = stage.layers.num_hidden_layers;
  return (KvBytes(stage.layers, s.engine.kv_cache_dtype, tp, layers) +
          DrafterKvBytesPerToken(s, tp)) *
         static_cast<double>(s.engine.block_size);
}

// The reserved block and one to use, and what windows take beside it.
double LeastKvBytes(const Scenario& s, const Stage& stage, std::int64_t tp) {
  if (KvByGroups(s)) {
    const KvRules rules = RulesOf(s, tp);
    const KvGroups groups = GroupLayers(CachesOf(s, tp), rules);
    return D(1 + groups.Planned(1, rules)) * D(groups.BlockBytes(0, INT64_MAX));
  }
  const std::int64_t windows = CountsWindows(s) ? WindowsOf(s, CountedGroups(s, tp)).Held(1) : 0;
  return D(2 + windows) * BlockBytes(s, stage, tp);
}

bool Fits(const Scenario& s, const Stage& stage, std::int64_t tp) {
  return KvGib(s, stage, tp) * kGib >= LeastKvBytes(s, stage, tp);
}

Unfit UnfitAt(const Scenario& s, const std::vector<Stage>& stages, const Stage& stage,
              std::int64_t tp) {
  Unfit u;
  u.gpu = s.hardware.name;
  u.tensor_parallel = tp;
  u.stage = &stage - stages.data();
  u.stages = static_cast<std::int64_t>(stages.size());
  u.total_gib = s.hardware.memory_gib;
  u.usable_gib = UsableGib(s, stage, tp);
  u.weights_gib = AllWeightBytes(s, stage, tp) / kGib;
  u.overhead_gib = OverheadGib(s, stage, tp);
  u.kv_gib = LeastKvBytes(s, stage, tp) / kGib;
  for (std::int64_t more = tp * 2; more <= 64; more *= 2) {
    if (!Divides(s.model, more)) continue;
    const auto fits = [&](const Stage& other) {
      const std::int64_t layers = other.layers.num_hidden_layers;
      return KvGib(s, other, more) * kGib >=
             KvBytes(other.layers, s.engine.kv_cache_dtype, more, layers) * 1024;
    };
    if (!std::all_of(stages.begin(), stages.end(), fits)) continue;
    u.enough_tensor_parallel = more;
    break;
  }
  return u;
}

Issue DoesNotFit(const Scenario& s, const Unfit& u, const Stage& stage) {
  std::string enough, where;
  if (u.enough_tensor_parallel) {
    enough = Format("; tensor_parallel {} would fit", *u.enough_tensor_parallel);
  }
  if (u.stages > 1) {
    where = Format(" in stage {} of {}, which has {} layers", u.stage + 1, u.stages,
                   stage.layers.num_hidden_layers);
  }
  const std::string share =
      StaticShare(s)
          ? Format("mem_fraction_static {} and the overhead", NumberText(*StaticShare(s)))
          : Format("gpu_memory_utilization {}", NumberText(s.engine.gpu_memory_utilization));
  return {"/model",
          Format("{} does not fit on {} x {}{}: weights {} GiB and {} GiB of engine overhead per "
                 "GPU, but {} GiB usable ({} GiB x {}){}",
                 s.model.name.empty() ? "the model" : s.model.name, u.tensor_parallel,
                 u.gpu.empty() ? "the GPU" : u.gpu, where, ShortNumber(u.weights_gib),
                 ShortNumber(u.overhead_gib), ShortNumber(u.usable_gib), NumberText(u.total_gib),
                 share, enough),
          "does_not_fit"};
}

// The first stage that has not room enough; nullptr: all have. A number of blocks that is given
// replaces the profile run's answer, not the memory that is there.
const Stage* TooLarge(const Scenario& s, const std::vector<Stage>& stages, std::int64_t tp) {
  for (const Stage& stage : stages) {
    if (s.engine.num_gpu_blocks_override
            ? AllWeightBytes(s, stage, tp) / kGib > UsableGib(s, stage, tp)
            : !Fits(s, stage, tp)) {
      return &stage;
    }
  }
  return nullptr;
}

// Where a share of weights and KV cache leaves too little for what is beside them.
std::optional<Issue> LeavesTooLittle(const Scenario& s, const Stage& stage, std::int64_t tp) {
  const double needed = OverheadGib(s, stage, tp), total = s.hardware.memory_gib;
  if (UsableGib(s, stage, tp) <= total) return std::nullopt;
  return Issue{"/scheduler/mem_fraction_static",
               Format("found {}, allowed up to {}: beside weights and KV cache the engine needs {} "
                      "of {} GiB",
                      NumberText(*StaticShare(s)), ShortNumber(1 - needed / total),
                      ShortNumber(needed), NumberText(total))};
}

// A number that is given, or as many as there is room for.
std::int64_t PoolBlocks(const Scenario& s, std::int64_t groups, double room) {
  if (s.engine.num_gpu_blocks_override) return *s.engine.num_gpu_blocks_override / groups;
  const SglangSpec* sglang = s.scheduler.Sglang();
  const TrtllmSpec* trtllm = s.scheduler.Trtllm();
  const auto blocks = static_cast<std::int64_t>(room);
  std::int64_t most = INT64_MAX - 1;
  if (sglang != nullptr && sglang->max_total_tokens) {
    most = *sglang->max_total_tokens / s.engine.block_size;
  } else if (trtllm != nullptr && trtllm->max_tokens) {
    most = CeilDiv(*trtllm->max_tokens, s.engine.block_size);
  }
  return std::min(blocks, std::max<std::int64_t>(1, most) + 1);
}

// Of blocks that are planned by groups, or given by hand.
Issue HoldsNoRequest(const Scenario& s, const ModelCost& c, std::int64_t needed) {
  return {s.engine.num_gpu_blocks_override ? "/engine/num_gpu_blocks_override" : "/model",
          Format("KV memory of {} blocks holds no request: with this model's groups of layers the "
                 "shortest takes {}, beside the one that is reserved",
                 c.pool_blocks, needed),
          "does_not_fit"};
}

}  // namespace

// Of all stages the one with the least room for blocks decides.
std::optional<Issue> PlanMemory(const Scenario& s, std::int64_t tp, ModelCost& c) {
  const std::vector<Stage> stages = StagesOf(s);
  c.total_gib = s.hardware.memory_gib;
  c.usable_gib = UsableGib(s, stages[0], tp);
  if (StaticShare(s)) {
    if (std::optional<Issue> issue = LeavesTooLittle(s, stages[0], tp)) return issue;
  }
  if (const Stage* stage = TooLarge(s, stages, tp)) {
    return DoesNotFit(s, UnfitAt(s, stages, *stage, tp), *stage);
  }
  std::int64_t full = 1;
  KvGroups groups;
  const KvRules rules = HasLayerKinds(s.model) ? RulesOf(s, tp) : KvRules{};
  if (KvByGroups(s)) {
    c.kv_plan = std::make_shared<KvPlan>(KvPlan{rules, GroupLayers(CachesOf(s, tp), rules)});
  } else if (CountsWindows(s)) {
    groups = CountedGroups(s, tp);
    full = FullGroups(groups);
    c.windows = WindowsOf(s, groups);
  }
  bool planned = false;
  for (const Stage& stage : stages) {
    const double block_bytes = BlockBytes(s, stage, tp);
    const double weights = AllWeightBytes(s, stage, tp) / kGib;
    const auto& given = s.engine.num_gpu_blocks_override;
    double kv_gib = KvGib(s, stage, tp);
    const double room = kv_gib * kGib / block_bytes;
    const std::int64_t blocks = PoolBlocks(s, full, room);
    if (given || blocks < static_cast<std::int64_t>(room)) {
      kv_gib = static_cast<double>(blocks) * block_bytes / kGib;
    }
    if (planned && (given ? weights <= c.weights_gib : blocks >= c.pool_blocks)) continue;
    planned = true;
    c.weight_bytes = AllWeightBytes(s, stage, tp);
    c.pool_blocks = blocks;
    c.kv_gib = kv_gib;
    c.usable_gib = UsableGib(s, stage, tp);
    c.weights_gib = weights;
    c.overhead_gib = OverheadGib(s, stage, tp);
  }
  c.usable_blocks = c.pool_blocks - (s.engine.compat == Compat::kNone ? 1 : 0);
  c.kv_tokens = c.usable_blocks * s.engine.block_size;
  if (c.windows.any()) {
    // A11: as many requests as the longest that there may be.
    std::int64_t longest = std::min(s.model.max_position_embeddings,
                                    c.windows.MostPositions(c.usable_blocks) * s.engine.block_size);
    longest = std::min(longest, s.engine.max_model_len.value_or(longest));
    const std::int64_t each = std::max<std::int64_t>(1, groups.Planned(longest, rules));
    c.kv_tokens = static_cast<std::int64_t>(D(c.pool_blocks * full) / D(each) * D(longest));
  }
  if (c.kv_plan != nullptr) {
    const KvGroups& all = c.kv_plan->groups;
    const std::int64_t longest = all.Longest(c.usable_blocks, rules.max_model_len, rules);
    if (longest == 0) return HoldsNoRequest(s, c, all.Planned(1, rules));
    c.kv_tokens =
        static_cast<std::int64_t>(D(c.pool_blocks) / D(all.Planned(longest, rules)) * D(longest));
  }
  return std::nullopt;
}
std::int64_t KvBlockSize(const Scenario& s) {
  std::int64_t least = s.engine.block_size;
  for (const LayerSpec& layer : s.model.layers) {
    least = std::max(least, FindLayerKind(layer.kind).least_block);
  }
  return least;
}

bool KvByGroups(const Scenario& s) { return GroupsAreKept(s) && NeedsKvGroups(s); }

bool NeedsKvGroups(const Scenario& s) {
  const ModelSpec& m = s.model;
  if (!HasLayerKinds(m)) return false;
  const bool on = GroupsOn(s);
  if (m.layers.empty()) return on && !Latent(m);                              // windows
  if (s.engine.hybrid_kv_cache_manager == HybridKvManager::kOn) return true;  // of one group, too
  if (!KnowsLayers(m)) return false;
  return std::any_of(m.layers.begin(), m.layers.end(), [&](const LayerSpec& layer) {
    const std::vector<KvLayer> caches =
        FindLayerKind(layer.kind).caches(InputOf(m, layer, 1, s.engine.kv_cache_dtype));
    return std::any_of(caches.begin(), caches.end(), [on](const KvLayer& cache) {
      return cache.kind == KvKind::kState || (cache.kind != KvKind::kFull && on);
    });
  });
}

std::vector<std::int64_t> StageLayers(const ModelSpec& model, std::int64_t stages) {
  std::vector<std::int64_t> layers(static_cast<std::size_t>(stages),
                                   model.num_hidden_layers / stages);
  const std::int64_t rest = model.num_hidden_layers % stages;
  for (std::int64_t i = 0; i < rest; ++i) ++layers[static_cast<std::size_t>(stages - 2 - i)];
  return layers;
}

Scenario StageScenario(const Scenario& s, std::int64_t stage) {
  const std::vector<Stage> stages = StagesOf(s);
  Scenario part = s;
  const Stage& own = stages[static_cast<std::size_t>(stage)];
  part.model = own.layers;
  part.cluster.pool().pipeline_parallel = 1;
  if (!own.last) part.model.vocab_size = 0;  // nothing is sampled
  return part;
}

std::optional<Unfit> UnfitOf(const Scenario& s) {
  if (!KnowsLayers(s.model)) return std::nullopt;
  const std::int64_t tp = s.cluster.pool().tensor_parallel;
  if (!Divides(s.model, tp)) return std::nullopt;
  const std::vector<Stage> stages = StagesOf(s);
  const Stage* stage = TooLarge(s, stages, tp);
  if (stage == nullptr) return std::nullopt;
  return UnfitAt(s, stages, *stage, tp);
}

}  // namespace servecast
