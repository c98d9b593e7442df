// See model_cost.h.
#include "cost/model_cost.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/base.h"
#include "base/text.h"
#include "cost/encoder_times.h"
#include "cost/memory_plan.h"
#include "cost/model_bytes.h"
#include "cost/vidur_planner.h"

namespace servecast {

std::int64_t ExpertLayers(const ModelSpec& m) {
  if (!m.layers.empty()) {
    const std::vector<LayerSpec> all = LayersOf(m);
    std::int64_t count = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      count += MlpOf(m, all[i], static_cast<std::int64_t>(i)) == LayerMlp::kExperts ? 1 : 0;
    }
    return count;
  }
  return m.num_local_experts > 0
             ? std::max<std::int64_t>(0, m.num_hidden_layers - m.num_dense_layers)
             : 0;
}

bool Latent(const ModelSpec& m) { return m.kv_lora_rank > 0; }

std::int64_t BytesPerValue(DType dtype) {
  switch (dtype) {
    case DType::kBfloat16:
    case DType::kFloat16:
      return 2;
    case DType::kFloat32:
      return 4;
  }
  return 2;
}

void Scenario::UsePool(std::size_t i) {
  const bool encoders = cluster.Has(PoolRole::kEncode);
  PoolSpec pool = std::move(cluster.pools[i]);
  if (pool.hardware) hardware = *pool.hardware;
  if (pool.engine) engine = *pool.engine;
  if (pool.scheduler) scheduler = *pool.scheduler;
  if (pool.scaling) cluster.scaling = *pool.scaling;
  pool.hardware.reset();
  pool.engine.reset();
  pool.scheduler.reset();
  pool.scaling.reset();
  if (encoders) LeaveToEncoders(pool, *this);
  cluster.pools.assign(1, std::move(pool));
}

double ParameterCount(const ModelSpec& m) {
  ModelSpec plain = m;
  plain.quantization = plain.expert_quantization = Quantization::kNone;
  return WeightBytes(plain, 1, m.tie_word_embeddings ? 1 : 2, 1) / D(BytesPerValue(m.torch_dtype));
}

ModelFigures FiguresOf(const ModelSpec& m) {
  ModelFigures figures;
  figures.parameters = figures.active = ParameterCount(m);
  if (m.num_local_experts > 0) {
    const double idle = 1 - D(m.num_experts_per_tok) / D(m.num_local_experts);
    figures.active -= idle * ParametersOf(m, 1).experts;
  }
  for (const LayerSpec& layer : LayersOf(m)) {
    const LayerInput in = InputOf(m, layer, 1);
    for (const KvLayer& cache : FindLayerKind(layer.kind).caches(in)) {
      const bool state = cache.kind == KvKind::kState;
      (state ? figures.state_bytes : figures.kv_bytes_per_token) +=
          D(cache.token_bytes) / D(cache.ratio);
    }
  }
  return figures;
}

Scenario DrafterScenario(const Scenario& s) {
  const SpeculativeSpec& drafts = s.engine.speculative;
  Scenario part = s;
  ModelSpec& m = part.model;
  const auto set = [](std::int64_t& figure, std::int64_t own) {
    if (own > 0) figure = own;
  };
  const bool itself = drafts.method == DraftMethod::kDraftModel;
  const bool experts = drafts.method == DraftMethod::kMtp && m.num_local_experts > 0;
  if (!experts && m.num_local_experts > 0) {
    // As wide as what a token passes in the model.
    m.intermediate_size =
        m.dense_intermediate_size > 0
            ? m.dense_intermediate_size
            : m.num_experts_per_tok * m.intermediate_size + m.shared_expert_intermediate_size;
    m.num_local_experts = m.num_experts_per_tok = m.shared_expert_intermediate_size = 0;
    part.engine.enable_expert_parallel = false;
  }
  if (drafts.method != DraftMethod::kMtp) m.quantization = Quantization::kNone;
  m.num_hidden_layers = drafts.draft_num_hidden_layers;
  m.num_dense_layers = m.num_sliding_layers = m.sliding_window = 0;
  m.layers.clear();
  set(m.intermediate_size, drafts.draft_intermediate_size);
  set(m.vocab_size, drafts.draft_vocab_size);
  if (itself) {
    set(m.hidden_size, drafts.draft_hidden_size);
    set(m.num_attention_heads, drafts.draft_num_attention_heads);
    set(m.num_key_value_heads, drafts.draft_num_key_value_heads);
    set(m.head_dim, drafts.draft_head_dim);
    if (drafts.draft_num_attention_heads > 0) m.kv_lora_rank = 0;  // of its own attention
  } else {
    // A projection of the model's hidden states, and of the token, to the drafter's width: one
    // matrix, here as so much more MLP.
    const std::int64_t widths = drafts.method == DraftMethod::kEagle3 ? 3 : 2;
    std::int64_t& mlp = experts ? m.shared_expert_intermediate_size : m.intermediate_size;
    mlp += widths * m.hidden_size / m.mlp_matrices / m.num_hidden_layers;
  }
  part.engine.speculative = {};
  part.engine.max_loras = 0;  // adapters are the model's
  part.engine.step_overhead_us = drafts.draft_overhead_us;
  part.engine.sequence_overhead_us = part.engine.sampler_ns_per_logit = 0;
  return part;
}

namespace {

bool AlikeInReach(const LayerWork& a, const LayerWork& b) {
  return a.reach == b.reach && a.chunked == b.chunked && a.tokens_of_key == b.tokens_of_key &&
         a.chosen == b.chosen;
}

// What the layers of a list do for tokens; see ModelCost::mixers.
void AddMixers(const Scenario& s, ModelCost& c) {
  c.attention_flops_per_pair = c.decode_flops_per_pair = 0;
  for (const LayerSpec& layer : LayersOf(s.model)) {
    const LayerInput in = InputOf(s.model, layer, c.tensor_parallel, s.engine.kv_cache_dtype);
    const LayerWork w = FindLayerKind(layer.kind).work(in);
    if (w.reach == 0 && w.chosen == 0) {
      c.attention_flops_per_pair += w.pair_flops;
      c.decode_flops_per_pair += w.decode_pair_flops;
    }
    c.attention_flops_per_pair += w.index_pair_flops;  // an indexer sees all keys
    c.decode_flops_per_pair += w.index_pair_flops;
    const auto same = std::find_if(c.mixers.begin(), c.mixers.end(),
                                   [&](const LayerWork& other) { return AlikeInReach(other, w); });
    if (same == c.mixers.end()) {
      c.mixers.push_back(w);
      continue;
    }
    same->pair_flops += w.pair_flops;
    same->decode_pair_flops += w.decode_pair_flops;
    same->key_bytes += w.key_bytes;
    same->index_pair_flops += w.index_pair_flops;
    same->index_key_bytes += w.index_key_bytes;
    same->state_bytes += w.state_bytes;
    same->token_flops += w.token_flops;
  }
}

}  // namespace

ModelCost WorkOf(const Scenario& s) {
  const ModelSpec& m = s.model;
  const std::int64_t tp = s.cluster.pool().tensor_parallel;
  ModelCost c;
  c.tensor_parallel = tp;
  c.layers = m.num_hidden_layers;
  c.experts = m.num_local_experts;
  c.experts_per_token = m.num_experts_per_tok;
  c.expert_replicas = s.cluster.pool().attention_data_parallel;
  c.expert_layers = ExpertLayers(m);
  const double group = D(tp), layers = D(m.num_hidden_layers);
  const double bytes = D(BytesPerValue(m.torch_dtype));
  const LayerParameters p = ParametersOf(m, tp);
  const double dense = p.split / group + p.whole;
  c.dense_bytes = dense * MovedBytes(m.quantization, DenseBytes(m)) + p.router * bytes;
  c.dense_flops_per_token = 2 * (dense + p.router);
  const std::int64_t gpus = tp * c.expert_replicas;
  const double share = ExpertShare(m, s.engine, gpus);
  if (s.engine.enable_expert_parallel) c.expert_parallel = gpus;
  c.expert_bytes = p.experts * share * MovedBytes(ExpertQuantization(m), ExpertBytes(m));
  if (c.experts > 0) {
    // As many tokens come from the other replicas as its own go to them.
    c.expert_flops_per_token =
        2 * p.experts * (share * D(c.expert_replicas)) * D(c.experts_per_token) / D(c.experts);
  }
  c.expert_type = ComputedIn(ExpertQuantization(m), s.hardware);
  if (ExpertQuantization(m) == Quantization::kNone) c.expert_type = PlainType(m);
  c.dense_type = m.quantization == Quantization::kMxfp4         ? MatrixType::k16
                 : m.expert_quantization == Quantization::kNone ? c.expert_type
                 : m.quantization == Quantization::kNone        ? PlainType(m)
                                                         : ComputedIn(m.quantization, s.hardware);
  const double lm_head = D(m.vocab_size * m.hidden_size) / group;
  c.lm_head_bytes = lm_head * bytes;
  c.lm_head_flops_per_token = 2 * lm_head;
  const double heads = layers * D(m.num_attention_heads) / group;
  c.attention_flops_per_pair = c.decode_flops_per_pair = 4 * heads * D(m.head_dim);
  if (Latent(m)) {
    c.attention_flops_per_pair =
        2 * heads * D(m.qk_nope_head_dim + m.qk_rope_head_dim + m.v_head_dim);
    c.decode_flops_per_pair = 2 * heads * D(2 * m.kv_lora_rank + m.qk_rope_head_dim);
  }
  if (m.sliding_window > 0) {
    c.window = D(m.sliding_window);
    c.window_share = D(std::min(m.num_sliding_layers, m.num_hidden_layers)) / layers;
  }
  if (s.engine.max_loras > 0) {
    const double values = AdapterValues(m, s.engine.max_lora_rank, tp);
    c.adapter_bytes = values * bytes;
    c.adapter_flops_per_token = 2 * values;
  }
  c.collective_bytes_per_token = D(m.hidden_size) * bytes;
  c.activation_bytes_per_token = bytes * ActivationsPerToken(m, tp);
  c.kv_bytes_per_token = KvBytes(m, s.engine.kv_cache_dtype, tp, m.num_hidden_layers);
  if (!m.layers.empty()) AddMixers(s, c);
  return c;
}

Result<ModelCost> ComputeModelCost(const Scenario& s) {
  const ModelSpec& m = s.model;
  const std::int64_t tp = s.cluster.pool().tensor_parallel;
  const std::int64_t stages = s.cluster.pool().pipeline_parallel;
  if (!Divides(m, tp)) {
    return Issue{"/cluster/pools/0/tensor_parallel",
                 Format("found {}, allowed a divisor of the model's {} attention heads that "
                        "divides, or is a multiple of, its {} KV heads",
                        tp, m.num_attention_heads, m.num_key_value_heads)};
  }
  if (stages > m.num_hidden_layers) {
    return Issue{
        "/cluster/pools/0/pipeline_parallel",
        Format("found {}, allowed up to the model's {} layers", stages, m.num_hidden_layers)};
  }
  if (m.torch_dtype == DType::kFloat32 && s.hardware.peak_fp32_tflops <= 0) {
    return Issue{"/hardware/peak_fp32_tflops",
                 "found 0, allowed above 0 with the model's torch_dtype float32: the GPU's data "
                 "sheet has the figure, without tensor cores"};
  }
  if (s.engine.speculative.HasDrafter() && !Divides(DrafterScenario(s).model, tp)) {
    return Issue{"/engine/speculative/draft_num_attention_heads",
                 Format("found {}, allowed heads of the draft model that divide over "
                        "tensor_parallel {} as the model's do",
                        s.engine.speculative.draft_num_attention_heads, tp)};
  }
  if (KvBlockSize(s) != s.engine.block_size && !KvByGroups(s)) {
    Scenario larger = s;
    larger.engine.block_size = KvBlockSize(s);
    return ComputeModelCost(larger);
  }
  ModelCost c = WorkOf(s);
  if (std::optional<Issue> issue = PlanMemory(s, tp, c)) return *issue;
  if (s.engine.compat == Compat::kVidur && !s.engine.num_gpu_blocks_override) {
    if (std::optional<Issue> issue = PlanAsVidur(s, c)) return *issue;
  }
  return c;
}

}  // namespace servecast
