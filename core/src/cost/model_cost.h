// What a model costs on one GPU of a tensor-parallel group: bytes to hold, bytes to read and
// floating-point operations to do per token, and the KV blocks that are left room for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cost/kv_groups.h"
#include "cost/layers/layer_kind.h"
#include "servecast/report.h"
#include "servecast/result.h"
#include "servecast/scenario.h"

namespace servecast {

// What a matrix product is computed in.
enum class MatrixType { k16, k8, k4, k32, kInt8 };

std::int64_t ExpertLayers(const ModelSpec& m);
bool Latent(const ModelSpec& m);  // its cache holds a latent (MLA)

// All figures are per GPU of the tensor-parallel group. FLOPs count a multiply-add as two. With
// pipeline stages work is that of all of them, memory that of the stage with the least room.
struct ModelCost {
  std::int64_t tensor_parallel = 1;
  std::int64_t layers = 0;
  double layer_share = 1;         // of the model's layers: of a stage, less than 1
  double weight_bytes = 0;        // all that is resident: layers, embedding, LM head, norms
  double kv_bytes_per_token = 0;  // K and V, or the latent, of all layers

  // Weight matrices of all layers, read by a step and multiplied with its tokens. A step reads of
  // the experts those that its tokens touch.
  double dense_bytes = 0;  // attention, dense MLP, shared experts, router
  double dense_flops_per_token = 0;
  double expert_bytes = 0;            // all experts, or those it holds; 0 when dense
  double expert_flops_per_token = 0;  // of the active ones
  MatrixType dense_type = MatrixType::k16, expert_type = MatrixType::k16;
  double lm_head_bytes = 0;
  double lm_head_flops_per_token = 0;  // per sampled token
  // Per (query, key) pair, all layers: 4 * heads * head_dim; another number for the decodes of
  // latent attention, which work on the latent.
  double attention_flops_per_pair = 0, decode_flops_per_pair = 0;
  double window_share = 0, window = 0;  // of the layers; tokens
  // Of a model with a list of layers: what mixes tokens, sums over layers that are alike. The
  // figures by pair above are then those of full attention alone.
  std::vector<LayerWork> mixers;
  // Reads and writes between the matrix products of all layers: norms, rotary embedding, KV write,
  // activation function.
  double activation_bytes_per_token = 0;
  double collective_bytes_per_token = 0;  // one all-reduce of a hidden state; 2 per layer

  // Of a LoRA adapter of max_lora_rank: what is read of each that a step has, and done for a token.
  double adapter_bytes = 0, adapter_flops_per_token = 0;

  std::int64_t experts = 0, experts_per_token = 0;
  std::int64_t expert_parallel = 1;  // GPUs over which whole experts are spread
  // Replicas whose tokens meet at one set of experts, and layers that have experts.
  std::int64_t expert_replicas = 1, expert_layers = 0;

  // Memory, GiB per GPU.
  double total_gib = 0, usable_gib = 0, weights_gib = 0, overhead_gib = 0, kv_gib = 0;
  std::int64_t pool_blocks = 0;    // vLLM's pool: one of them is reserved and never used
  std::int64_t usable_blocks = 0;  // pool_blocks - 1
  std::int64_t kv_tokens = 0;      // that the server logs as the size of its cache
  KvWindows windows;  // what they take of the pool, where they are counted and not kept
  std::shared_ptr<const KvPlan> kv_plan;  // nullptr: one table of blocks a request

  // What a request of so many tokens leaves others less room for: these, and its windows.
  std::int64_t RoomOf(std::int64_t tokens, std::int64_t block_size) const {
    return tokens + windows.Held(CeilDiv(tokens, block_size)) * block_size;
  }
};

// By the data sheet.
inline double PeakTflops(const HardwareSpec& hardware, MatrixType type) {
  return type == MatrixType::k4      ? hardware.peak_fp4_tflops
         : type == MatrixType::k8    ? hardware.peak_fp8_tflops
         : type == MatrixType::kInt8 ? hardware.peak_int8_tops
         : type == MatrixType::k32   ? hardware.peak_fp32_tflops
                                     : hardware.peak_bf16_tflops;
}

// Whether layers keep blocks in several tables of a request, or one of another kind than full
// attention's: vLLM's rules by group (serving/kv/grouped_kv.h).
bool KvByGroups(const Scenario& scenario);
// The same, whether or not the scenario asks for what the rules by group lack.
bool NeedsKvGroups(const Scenario& scenario);
// Tokens of a KV block: engine.block_size, or what the kernels of the model's layers take at least.
std::int64_t KvBlockSize(const Scenario& scenario);

// Of the share of the peak that products of 16 bits reach, what those of dense layers reach whose
// weights have fewer bits and are unpacked to 16 as they are multiplied. Qwen3-14B and 8B on an
// A100 serve 4 to 22 % fewer tokens with weights in FP8 or AWQ than in 16 bits (vLLM, ShareGPT
// lengths, GPUStack's performance lab).
inline constexpr double kUnpackedShare = 0.78;

// Dense layers' weights are stored in fewer bits than PlainType.
inline bool DenseUnpacked(const ModelSpec& model) {
  return model.quantization != Quantization::kNone && model.quantization != Quantization::kMxfp4;
}

// What is not quantized: PyTorch multiplies float32 in full unless it is told to use TF32.
inline MatrixType PlainType(const ModelSpec& model) {
  return model.torch_dtype == DType::kFloat32 ? MatrixType::k32 : MatrixType::k16;
}

// CUDA graphs: the captured size that a decode batch of `sequences` is padded to. SFLLM's list: 1,
// 2, 3, 4, then even ones to 16, then multiples of 4.
inline std::int64_t CaptureSize(std::int64_t sequences) {
  if (sequences <= 4) return sequences;
  return sequences <= 16 ? sequences + sequences % 2 : (sequences + 3) / 4 * 4;
}

// Issues when heads do not divide over the GPUs, or when weights and one block do not fit: then
// with the numbers, and the smallest tensor parallelism that would.
Result<ModelCost> ComputeModelCost(const Scenario& scenario);

// What does not fit, of the scenario's only pool; none: all fits, or heads do not divide.
std::optional<Unfit> UnfitOf(const Scenario& scenario);

// Layers of each pipeline stage, in their order. As in vLLM (get_pp_indices) those that do not
// divide go one each to the stages before the last, from the back. Requires: 1 <= stages <= layers.
std::vector<std::int64_t> StageLayers(const ModelSpec& model, std::int64_t stages);

// One pipeline stage as a model of its own, for a latency model: its layers, and no vocabulary
// where nothing is sampled. Require: ComputeModelCost has no issue.
Scenario StageScenario(const Scenario& scenario, std::int64_t stage);
// The drafter as a model of its own, for a latency model: its passes cost the host
// `draft_overhead_us`. Requires: the scenario's engine has one.
Scenario DrafterScenario(const Scenario& scenario);
// What it has to do; no memory is planned in it.
ModelCost WorkOf(const Scenario& scenario);

// Of the whole model, on one GPU.
struct ModelFigures {
  double parameters = 0, active = 0;  // active: those that a token goes through
  double kv_bytes_per_token = 0;      // in a cache of the model's own type, by all layers
  double state_bytes = 0;             // of a request, whatever its length
};
ModelFigures FiguresOf(const ModelSpec& model);

// Parameters of the whole model. Exact for the architectures that ModelSpec can say.
double ParameterCount(const ModelSpec& model);

}  // namespace servecast
