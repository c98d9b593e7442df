// See vllm_hybrid_plan.h.
#include "testing/vllm_hybrid_plan.h"

#include <algorithm>

#include "base/base.h"
#include "cost/layers/layer_kind.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "testing/data_files.h"

namespace servecast::testing {
namespace {

using Json = nlohmann::json;

bool Flag(const Json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_boolean() && at->get<bool>();
}

std::int64_t Or(const Json& object, const char* name, std::int64_t otherwise) {
  const auto at = object.find(name);
  return at != object.end() && at->is_number() ? at->get<std::int64_t>() : otherwise;
}

std::string TextOr(const Json& object, const char* name, const char* otherwise) {
  const auto at = object.find(name);
  return at != object.end() && at->is_string() ? at->get<std::string>() : otherwise;
}

// One layer of the case by a kind of the engine; which of the kind's caches it is.
struct Described {
  ModelSpec model;
  LayerSpec layer;
  std::size_t cache = 0;
};

Described DescribedBy(const Json& spec) {
  Described d;
  const std::string kind = spec["kind"];
  LayerSpec& l = d.layer;
  ModelSpec& m = d.model;
  l.num_key_value_heads = Or(spec, "kv", 0);
  l.head_dim = Or(spec, "head", 0);
  l.v_head_dim = Or(spec, "head_v", 0);
  l.window = Or(spec, "window", Or(spec, "chunk", 0));
  l.conv_kernel = Or(spec, "conv", 0);
  l.float32_state = TextOr(spec, "ssm_dtype", "") == "float32";
  l.compress_ratio = Or(spec, "ratio", 0);
  if (kind == "full" || kind == "sliding" || kind == "cross") {
    l.kind = kind == "sliding" ? "sliding" : "full";
  } else if (kind == "chunked_local") {
    l.kind = "chunked";
  } else if (kind == "mla") {
    l.kind = "latent";
    m.qk_rope_head_dim = 64;
    m.kv_lora_rank = l.head_dim - 64;
  } else if (kind == "indexer") {
    l.kind = "sparse_latent";
    l.index_head_dim = l.head_dim - 4;
  } else if (kind == "gdn") {
    l.kind = "gated_delta";
    l.state_heads = spec["v_heads"];
    l.state_key_heads = spec["k_heads"];
    l.state_key_dim = spec["k_dim"];
    l.state_value_dim = spec["v_dim"];
  } else if (kind == "kda" || kind == "linear") {
    l.kind = kind == "kda" ? "kimi_delta" : "linear";
    l.state_heads = spec["heads"];
    l.state_key_dim = spec["head_dim"];
  } else if (kind == "mamba2") {
    l.kind = "mamba2";
    l.state_heads = spec["heads"];
    l.state_value_dim = spec["head_dim"];
    l.state_size = spec["state"];
    l.state_groups = spec["groups"];
    l.inner_size = spec["intermediate"];
  } else if (kind == "mamba1") {
    l.kind = "mamba1";
    l.inner_size = spec["intermediate"];
    l.state_size = spec["state"];
  } else if (kind == "short_conv") {
    l.kind = "short_conv";
    l.inner_size = spec["dim"];
  } else {  // DeepSeek V4: its caches are several entries of the list, here several of a layer
    l.kind = "compressed";
    l.head_dim = 512;
    l.index_head_dim = 128;
    const bool indexed = l.compress_ratio == 4;
    if (kind == "dsv4_mla") {
      d.cache = indexed ? 3 : 1;
    } else if (kind == "dsv4_state") {
      const bool of_indexer = indexed && spec["state_dim"] == 4 * l.index_head_dim;
      d.cache = of_indexer ? 1 : indexed ? 4 : 2;
    }
    if (kind != "dsv4_swa") l.window = 128;
  }
  return d;
}

KvLayer CacheOf(const Json& spec, const Json& settings) {
  const Described d = DescribedBy(spec);
  const std::string dtype = TextOr(settings, "kv_cache_dtype", "auto");
  const bool packed = dtype == "fp8_ds_mla";
  LayerSpec layer = d.layer;
  if (packed && layer.kind == "latent") layer.kind = "sparse_latent";
  const LayerInput in{d.model, layer, settings["tensor_parallel"], dtype == "auto" ? 2 : 1};
  const std::vector<KvLayer> caches = FindLayerKind(layer.kind).caches(in);
  KvLayer cache =
      caches.at(layer.kind == "sparse_latent" && d.layer.kind == "latent" ? 1 : d.cache);
  if (spec["kind"] == "cross") cache.kind = KvKind::kCross;
  return cache;
}

KvRules RulesOf(const Json& layers, const Json& settings) {
  KvRules rules;
  const std::string backend = TextOr(layers, "attention_backend", "flash_attn");
  rules.kernel_block = backend == "flashmla" ? 64 : 16;
  const std::int64_t preferred = backend == "flashmla" ? 64 : backend == "dsv4" ? 256 : 16;
  rules.block_size = Or(settings, "block_size", preferred);
  const std::int64_t tp = settings["tensor_parallel"];
  const std::int64_t bytes = TextOr(settings, "kv_cache_dtype", "auto") == "auto" ? 2 : 1;
  rules.latent = Flag(layers, "mla");
  const std::int64_t heads = std::max<std::int64_t>(1, Or(layers, "kv_heads", 1) / tp);
  const std::int64_t head = Or(layers, "head_size", 0);
  rules.full_token_bytes = rules.latent ? head * bytes : 2 * heads * head * bytes;
  rules.prefix_caching = Flag(settings, "enable_prefix_caching");
  rules.all_states = TextOr(settings, "mamba_cache_mode", "") == "all" &&
                     Flag(layers, "supports_mamba_cache_mode_all");
  rules.state_chunk = Or(layers, "mamba_chunk_size", 0);
  rules.by_groups =
      !Flag(settings, "disable_hybrid_kv_cache_manager") &&
      (!layers.contains("attention_chunk_size") || layers["attention_chunk_size"].is_null() ||
       Flag(settings, "allow_chunked_local_with_hybrid"));
  rules.max_model_len = settings["max_model_len"];
  const std::int64_t stages = Or(settings, "pipeline_parallel", 1);
  rules.in_flight = settings["max_num_batched_tokens"].get<std::int64_t>() *
                    (stages > 1                           ? stages
                     : Flag(settings, "async_scheduling") ? 2
                                                          : 1);
  rules.encoder_tokens = Or(settings, "max_num_encoder_input_tokens", 0);
  if (const std::int64_t unit = Or(settings, "prefix_match_unit", 0)) rules.match_unit = unit;
  return rules;
}

// Compares one thing after another; what differs first stays.
class Comparer {
 public:
  template <class T, class U>
  void Equal(const std::string& what, const T& ours, const U& theirs) {
    if (difference_.empty() && !(ours == theirs)) {
      difference_ =
          fmt::format("{}: engine {}, vLLM {}", what, Json(ours).dump(), Json(theirs).dump());
    }
  }
  const std::string& difference() const { return difference_; }

 private:
  std::string difference_;
};

std::string Places(const KvGroup& group, std::int64_t before) {
  std::string places;
  for (const std::int64_t layer : group.layers) {
    if (layer < before) places += (places.empty() ? "" : ",") + std::to_string(layer);
  }
  return places;
}

const char* NameOf(const KvGroup& group) {
  switch (group.kind) {
    case KvKind::kSliding:
      return "sliding_window";
    case KvKind::kChunked:
      return "chunked_local_attention";
    case KvKind::kState:
      return "mamba";
    case KvKind::kCross:
      return "cross_attention";
    case KvKind::kFull:
      break;
  }
  return "full_attention";
}

void CompareGroups(const KvPlan& plan, const Json& expected, std::int64_t before, Comparer& c) {
  const std::vector<KvGroup>& groups = plan.groups.groups;
  c.Equal("groups", groups.size(), expected.size());
  for (std::size_t i = 0; i < std::min(groups.size(), expected.size()); ++i) {
    const KvGroup& ours = groups[i];
    const Json& theirs = expected[i];
    const std::string at = fmt::format("group {} ", i), kind = theirs["kind"];
    if (kind.find("mla") == std::string::npos) c.Equal(at + "kind", NameOf(ours), kind);
    c.Equal(at + "layer_indices", Places(ours, before), theirs["layer_indices"]);
    c.Equal(at + "block_size", ours.block_size, theirs["block_size"]);
    const bool mixed = theirs.value("mixed_page_sizes", false);
    std::int64_t page = 0;
    for (const std::int64_t layer : ours.layers) {
      const std::int64_t bytes = plan.groups.page_bytes[static_cast<std::size_t>(layer)];
      if (layer < before) page = mixed ? page + bytes : bytes;
    }
    c.Equal(at + "mixed_page_sizes", ours.mixed, mixed);
    c.Equal(at + "page_size_bytes", page, theirs["page_size_bytes"]);
    c.Equal(at + "blocks_per_request_at_max_model_len",
            ours.Planned(plan.rules.max_model_len, plan.rules),
            theirs["blocks_per_request_at_max_model_len"]);
  }
}

// Rule A8: the least of all stages; a number that is given replaces it.
std::int64_t BlocksOf(const Json& settings, const KvGroups& groups) {
  if (const std::int64_t given = Or(settings, "num_gpu_blocks_override", 0)) return given;
  const std::int64_t stages = Or(settings, "pipeline_parallel", 1);
  const auto layers = static_cast<std::int64_t>(groups.layers.size());
  const Json& available = settings["available_memory_bytes"];
  std::int64_t least = INT64_MAX;
  for (std::int64_t i = 0; i < stages; ++i) {
    const std::int64_t bytes = available.is_array()
                                   ? available[static_cast<std::size_t>(i)].get<std::int64_t>()
                                   : available.get<std::int64_t>();
    least =
        std::min(least, bytes / groups.BlockBytes(layers * i / stages, layers * (i + 1) / stages));
  }
  return least;
}

void CompareFit(const KvPlan& plan, std::int64_t blocks, const Json& expected, Comparer& c) {
  const KvGroups& groups = plan.groups;
  const std::int64_t longest = plan.rules.max_model_len;
  c.Equal("num_blocks", blocks, expected["num_blocks"]);
  const double concurrency =
      static_cast<double>(blocks) / static_cast<double>(groups.Planned(longest, plan.rules));
  c.Equal("max_concurrency", concurrency,
          std::stod(expected["max_concurrency"].get<std::string>()));
  c.Equal("kv_cache_size_tokens",
          static_cast<std::int64_t>(concurrency * static_cast<double>(longest)),
          expected["kv_cache_size_tokens"]);
  c.Equal("cache_block_size", groups.cache_block, expected["cache_block_size"]);
  if (plan.rules.prefix_caching) {  // else they have no meaning
    c.Equal("scheduler_block_size", groups.scheduler_block, expected["scheduler_block_size"]);
    c.Equal("hash_block_size", groups.hash_block, expected["hash_block_size"]);
  }
  for (const auto& [tokens, needed] : expected["admission_blocks"].items()) {
    const std::int64_t asked = groups.Asked(std::stoll(tokens), plan.rules);
    c.Equal("admission_blocks of " + tokens, asked, needed);
    c.Equal("requests_admitted_when_empty of " + tokens,
            (blocks - 1) / std::max<std::int64_t>(1, asked),
            expected["requests_admitted_when_empty"][tokens]);
  }
}

std::string Difference(const Json& golden) {
  const Json &settings = golden["settings"], &expected = golden["result"];
  KvPlan plan = HybridPlanOf(golden["layers"], settings);
  const auto layers = static_cast<std::int64_t>(plan.groups.layers.size());
  const std::int64_t stages = Or(settings, "pipeline_parallel", 1);
  Comparer c;
  c.Equal("block_size", plan.groups.attention_block, expected["resolved"]["block_size"]);
  const std::int64_t blocks = BlocksOf(settings, plan.groups);
  const std::int64_t fits = plan.groups.Longest(blocks, plan.rules.max_model_len, plan.rules);
  const bool refused = fits < plan.rules.max_model_len;
  if (expected.contains("error")) {
    c.Equal("refused", refused, true);
    const Json& estimated = expected["estimated_max_model_len"];
    c.Equal("estimated_max_model_len", fits,
            estimated.is_null() ? 0 : estimated.get<std::int64_t>());
    const double needed =
        static_cast<double>(plan.groups.Planned(plan.rules.max_model_len, plan.rules) *
                            plan.groups.BlockBytes(0, layers)) /
        (1 << 30);
    c.Equal("needed_gib", fmt::format("{:.2f}", needed), expected["needed_gib"]);
    return c.difference();
  }
  if (Flag(settings, "auto_fit_max_model_len")) {
    plan.rules.max_model_len = fits;
  } else {
    c.Equal("refused", refused, false);
  }
  c.Equal("max_model_len", plan.rules.max_model_len, expected["max_model_len"]);
  CompareGroups(plan, expected["groups"], layers / stages, c);
  if (stages == 1) {
    c.Equal("bytes_per_block", plan.groups.BlockBytes(0, layers), expected["bytes_per_block"]);
  }
  CompareFit(plan, blocks, expected, c);
  return c.difference();
}

}  // namespace

KvPlan HybridPlanOf(const Json& layers, const Json& settings) {
  std::vector<KvLayer> caches;
  for (const char letter : layers["order"].get<std::string>()) {
    caches.push_back(CacheOf(layers["specs"][std::string(1, letter)], settings));
  }
  const KvRules rules = RulesOf(layers, settings);
  return {rules, GroupLayers(std::move(caches), rules)};
}

bool IsHybridSet(const std::string& folder) {
  const std::optional<std::string> text = ReadFile(folder + "/manifest.json");
  const Json manifest = Json::parse(text.value_or(""), nullptr, false);
  return manifest.is_object() && TextOr(manifest, "format", "") == "vllm-hybrid-golden-1";
}

std::int64_t HybridStateBlock(const Json& settings) {
  std::int64_t block = 0;
  bool states = false;
  for (const Json& group : settings["groups"]) {
    if (group["kind"] == "mamba") {
      states = true;
    } else {
      block = group["block_size"];
    }
  }
  return states ? block : 0;
}

ModelSpec HybridModelOf(const Json& layers, const Json& settings) {
  ModelSpec m;
  m.name = TextOr(settings, "model", "layers");
  m.hidden_size = m.intermediate_size = 64;
  m.vocab_size = 100;
  m.max_position_embeddings = settings["max_model_len"];
  m.num_key_value_heads = Or(layers, "kv_heads", 0);
  m.head_dim = Or(layers, "head_size", 0);
  for (const char letter : layers["order"].get<std::string>()) {
    const Json& spec = layers["specs"][std::string(1, letter)];
    Described d = DescribedBy(spec);
    if (d.model.kv_lora_rank > 0) {
      m.kv_lora_rank = d.model.kv_lora_rank;
      m.qk_rope_head_dim = d.model.qk_rope_head_dim;
    }
    if (spec["kind"] == "full") {  // the model's own heads
      if (m.num_key_value_heads == 0) m.num_key_value_heads = d.layer.num_key_value_heads;
      if (m.head_dim == 0) m.head_dim = d.layer.head_dim;
    }
    // Where nothing says them: what makes the recorded block.
    d.layer.state_chunk = Or(layers, "mamba_chunk_size", HybridStateBlock(settings));
    const bool indexed = !m.layers.empty() && m.layers.back().kind == "sparse_latent" &&
                         m.layers.back().index_topk == 0;
    if (indexed && d.layer.kind == "latent") {  // the indexer's cache came before
      m.layers.back().index_topk = 2048;
      m.layers.back().index_n_heads = 64;
      continue;
    }
    m.layers.push_back(d.layer);
  }
  m.num_hidden_layers = static_cast<std::int64_t>(m.layers.size());
  if (m.num_key_value_heads == 0)
    m.num_key_value_heads = std::max<std::int64_t>(1, m.layers[0].num_key_value_heads);
  if (m.head_dim == 0) m.head_dim = std::max<std::int64_t>(64, m.layers[0].head_dim);
  m.num_attention_heads = m.num_key_value_heads;
  return m;
}

std::optional<std::vector<PlanComparison>> ComparePlans(const std::string& folder) {
  const std::optional<std::string> text = ReadFile(folder + "/kv_cache_config/cases.json");
  if (!text) return std::nullopt;
  const Json cases = Json::parse(*text, nullptr, false);
  if (!cases.is_array()) return std::nullopt;
  std::vector<PlanComparison> compared;
  for (const Json& golden : cases) {
    compared.push_back({golden["id"].get<std::string>() + " " + golden["model"].get<std::string>(),
                        Difference(golden)});
  }
  return compared;
}

}  // namespace servecast::testing
