// The kinds of layers that a model may have, each in a file of its own: what a layer keeps of its
// tokens, as vLLM plans it, and what it computes and reads. A new kind is a file here, its entry's
// name in layer_kinds.cpp, and its line in core/CMakeLists.txt.
//
// Figures are of one layer on one GPU of a tensor-parallel group. FLOPs count a multiply-add as
// two.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/whole_engine.h"
#include "cost/kv_groups.h"
#include "servecast/scenario.h"

namespace servecast {

struct LayerInput {
  const ModelSpec& model;
  const LayerSpec& layer;
  std::int64_t tensor_parallel = 1;
  std::int64_t kv_value_bytes = 2;  // 1: the KV cache is in 8 bits

  // The layer's own size, or the model's.
  std::int64_t heads() const { return Or(layer.num_attention_heads, model.num_attention_heads); }
  std::int64_t kv_heads() const { return Or(layer.num_key_value_heads, model.num_key_value_heads); }
  std::int64_t head_dim() const { return Or(layer.head_dim, model.head_dim); }
  std::int64_t v_head_dim() const { return Or(layer.v_head_dim, head_dim()); }
  // Of one GPU: a head is on several where there are fewer heads than GPUs.
  std::int64_t kv_heads_of_gpu() const {
    return std::max<std::int64_t>(1, kv_heads() / tensor_parallel);
  }
  std::int64_t state_value_bytes() const { return layer.float32_state ? 4 : 2; }

 private:
  static std::int64_t Or(std::int64_t own, std::int64_t models) { return own > 0 ? own : models; }
};

// What mixing tokens takes, without the MLP.
struct LayerWork {
  // Parameters that are divided over a tensor-parallel group, and those that each GPU has; and
  // those never quantised: convolutions, decays, norms of heads.
  double split = 0, whole = 0, plain = 0;
  // Attention, by (query, key) pair and by key that is read; of decodes, where they work on
  // something else.
  double pair_flops = 0, decode_pair_flops = 0, key_bytes = 0;
  // Keys that a query sees: all, or the last `reach`; of a chunk, up to `reach`, half on average.
  // Counted in entries where a cache has one for several tokens.
  double reach = 0;
  bool chunked = false;
  double tokens_of_key = 1;
  // An indexer, which sees all keys, and chooses so many for attention.
  double index_pair_flops = 0, index_key_bytes = 0;
  double chosen = 0;
  // A state: read and written once by each sequence of a step, and updated by each token.
  double state_bytes = 0, token_flops = 0;
};

struct LayerKindEntry {
  std::string_view name, help;
  // All three of OfWholeEngine, or none: of a kind that a model names in a list.
  // What has to be above 0 and is not; "": all is there.
  std::string (*lacks)(const LayerInput& input);
  // What a layer caches, in the order in which vLLM meets it; block_size 0: the attention's own.
  std::vector<KvLayer> (*caches)(const LayerInput& input);
  LayerWork (*work)(const LayerInput& input);
  // Its step times were compared with no server: physics alone.
  bool uncompared = true;
  bool all_states = false;  // vLLM can keep a state at the end of each block (mamba_cache_mode all)
  std::int64_t least_block = 16;  // tokens of a block that its kernels take
};

// The registered ones, in the order of menus; see layer_kinds.cpp.
std::span<const LayerKindEntry* const> LayerKinds();
std::vector<std::string_view> LayerKindNames();
const LayerKindEntry& FindLayerKind(std::string_view name);  // requires: a registered name

// Whether the model has layers of several kinds: a list, or windows in some layers.
bool HasLayerKinds(const ModelSpec& model);
// Whether this module can say what its layers cost: the page's first one lacks most kinds, so what
// it checks without the whole one leaves these models out.
bool KnowsLayers(const ModelSpec& model);
// Each layer of the model for itself, in order: its list repeated, or what its other fields say.
std::vector<LayerSpec> LayersOf(const ModelSpec& model);

// The name of the first of these sizes that is 0.
struct NamedSize {
  const char* name;
  std::int64_t size;
};
std::string FirstZero(std::span<const NamedSize> sizes);

}  // namespace servecast
