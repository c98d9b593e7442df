// The parameters of a model's layers as bytes and values of one GPU of a tensor-parallel group
// `tp`: what model_cost.cpp (work of a step) and memory_plan.cpp (room for KV) are both made of.
#pragma once

#include <cstdint>

#include "cost/layers/layer_kind.h"
#include "cost/model_cost.h"
#include "servecast/scenario.h"

namespace servecast {

inline double D(std::int64_t x) { return static_cast<double>(x); }

// Parameters of all layers.
struct LayerParameters {
  double split = 0;   // attention, MLP and shared experts: divided over a tensor-parallel group
  double whole = 0;   // on each GPU: the projection to the latent
  double router = 0;  // on each GPU, never quantised; norms likewise
  double norms = 0;
  double experts = 0;  // all of them
};
LayerParameters ParametersOf(const ModelSpec& m, std::int64_t tp);

inline LayerInput InputOf(const ModelSpec& m, const LayerSpec& layer, std::int64_t tp,
                          KvCacheDType dtype = KvCacheDType::kAuto) {
  return {m, layer, tp, dtype == KvCacheDType::kFp8 ? 1 : BytesPerValue(m.torch_dtype)};
}
// The MLP of layer `i` of a model with a list of layers.
LayerMlp MlpOf(const ModelSpec& m, const LayerSpec& layer, std::int64_t i);

// Bytes of a weight with its scales: of the dense matrices, of the experts'.
double DenseBytes(const ModelSpec& m);
double ExpertBytes(const ModelSpec& m);
Quantization ExpertQuantization(const ModelSpec& m);
// What a step reads and writes for a weight of `stored` bytes.
double MovedBytes(Quantization quantization, double stored);
MatrixType ComputedIn(Quantization quantization, const HardwareSpec& h);

// Of all experts, what one of `gpus` holds: a slice of each, or the most whole ones.
double ExpertShare(const ModelSpec& m, const EngineSpec& e, std::int64_t gpus);
// Weights of one GPU. `tables`: of the size of the vocabulary.
double WeightBytes(const ModelSpec& m, std::int64_t tp, int tables, double expert_share);
// KV of a token in `layers` layers.
double KvBytes(const ModelSpec& m, KvCacheDType dtype, std::int64_t tp, std::int64_t layers);
// Values that a token reads and writes in all layers between the matrix products.
double ActivationsPerToken(const ModelSpec& m, std::int64_t tp);
// Weights of the vision encoder: its layers, and the mergers, each two matrices.
struct VisionParameters {
  double layers = 0, merger = 0;
};
VisionParameters VisionParametersOf(const ModelSpec& m);
// Of what the encoder makes of a token: as wide as the model, and as often there as it has mergers.
std::int64_t EmbedBytes(const ModelSpec& m);
// Values of one LoRA adapter.
double AdapterValues(const ModelSpec& m, std::int64_t rank, std::int64_t tp);
// Whether heads and states divide over `tp` GPUs.
bool Divides(const ModelSpec& m, std::int64_t tp);

}  // namespace servecast
