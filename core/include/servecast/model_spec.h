// A model as a scenario has it: its layers, and what their weights are stored as.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace servecast {

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

// What turns images into tokens before the prompt: a vision transformer over patches, of which
// merge_size^2 become one token of the model, in the words of Hugging Face's vision_config.
struct VisionSpec {
  std::int64_t num_hidden_layers = 0;  // 0: the model reads text only
  std::int64_t hidden_size = 0, num_attention_heads = 0, intermediate_size = 0;
  std::int64_t mlp_matrices = 2;  // 3: with a gate
  std::int64_t patch_size = 14;   // pixels of a side
  std::int64_t merge_size = 2;    // patches of a side that become one token
  std::int64_t num_mergers = 1;   // that make such tokens, of several layers
  // Every image is made so large, pixels of a side; 0: images keep their size.
  std::int64_t image_size = 0;
  // An image is cut into tiles of image_size, of the grid of so many at most that fits it best, and
  // with several of them it is once more there as one; 0: it is one.
  std::int64_t max_tiles = 0;
  // Of one image: smaller ones are made larger, larger ones smaller.
  std::int64_t min_image_tokens = 1, max_image_tokens = 16384;
  // Layers of which each patch sees a window of so many pixels a side, but for so many of them.
  std::int64_t window_size = 0, num_full_layers = 0;

  bool On() const { return num_hidden_layers > 0; }
  friend bool operator==(const VisionSpec&, const VisionSpec&) = default;
};

// Tokens of the model that an image of so many pixels becomes, at most max_image_tokens; 0 without
// an encoder. As Qwen2-VL's smart_resize: sides are rounded to whole tokens, halves to the even
// one; where there would be too many both shrink and are rounded down, where too few both grow and
// are rounded up. With tiles as Llama 4's processor: all of each tile's, one that separates or ends
// a row behind each but the whole image's, and three around them.
std::int64_t ImageTokens(const VisionSpec& vision, std::int64_t width, std::int64_t height);
// Of these, those that the encoder makes: others separate tiles, or stand around the image.
std::int64_t ImageEmbeds(const VisionSpec& vision, std::int64_t width, std::int64_t height);
// Of the largest image.
std::int64_t MostImageTokens(const VisionSpec& vision);

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
  VisionSpec vision = {};
};

}  // namespace servecast
