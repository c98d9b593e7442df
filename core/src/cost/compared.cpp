// See compared.h.
#include "cost/compared.h"

#include <bit>
#include <iterator>

namespace servecast {
namespace {

constexpr int kFigures = 11, kHostFigures = 3;

// Of the presets, in the order of ComparedGpu and ComparedEngine.
constexpr float kGpus[][kFigures] = {
    {989.5F, 1979, 3350, 0.75F, 0.62F, 0.89F, 0.93F, 26, 1, 450, 5},
    {989.5F, 1979, 4800, 0.75F, 0.62F, 0.846F, 0.92F, 26, 1, 450, 5},
    {2250, 4500, 8000, 0.68F, 0.54F, 0.815F, 0.9F, 26, 1, 900, 5},
    {312, 0, 1555, 0.55F, 0.48F, 0.86F, 0, 40, 120, 32, 13},
    {312, 0, 2039, 0.8F, 0.56F, 0.775F, 0.8F, 40, 120, 300, 5},
    {503.8F, 1007.6F, 1792, 0.81F, 0.41F, 0.85F, 0.84F, 26, 69, 63, 13},
};
constexpr float kEngines[][kHostFigures] = {
    {650, 4, 0.18F}, {1700, 44, 0.04F}, {450, 12, 0.05F}, {800, 6, 0.15F}};

// Their times before and behind the steps, which each had on its host: of request_overhead_ms,
// prompt_token_overhead_us and delivery_overhead_us.
constexpr double kHosts[][3] = {{3.6, 5, 45}, {17, 6, 140}};

bool HostIsKnown(const EngineSpec& e) {
  for (const auto& [request, token, delivery] : kHosts) {
    if (e.request_overhead_ms == request && e.prompt_token_overhead_us == token &&
        e.delivery_overhead_us == delivery) {
      return true;
    }
  }
  return false;
}

// In the order of the bits of Features.
constexpr const char* kNames[] = {
    "16-bit weights", "FP8 weights",     "INT4 weights",       "NVFP4 weights",    "MXFP4 weights",
    "8-bit KV cache", "experts",         "sliding windows",    "latent attention", "launch options",
    "other rules",    "pipeline stages", "expert parallelism", "so many GPUs"};

unsigned Features(const Scenario& s) {
  const ModelSpec& m = s.model;
  const EngineSpec& e = s.engine;
  const bool others[] = {
      e.kv_cache_dtype == KvCacheDType::kFp8,
      m.num_local_experts > 0,
      m.num_sliding_layers > 0,
      m.kv_lora_rank > 0,
      e.cuda_graphs != CudaGraphs::kImplied || e.overlap_scheduling,
      e.compat != Compat::kNone || s.scheduler.policy != "vllm",
      s.cluster.pools[0].pipeline_parallel > 1,
      e.enable_expert_parallel || s.cluster.pools[0].attention_data_parallel > 1};
  unsigned features = 1U << static_cast<unsigned>(m.quantization), bit = kWithKv8;
  for (const bool other : others) {
    features |= other ? bit : 0;
    bit *= 2;
  }
  return features;
}
constexpr unsigned kGroup = 1U << (std::size(kNames) - 1);

// The row that is `figures`, or -1.
template <std::size_t kRows, std::size_t kColumns>
int Find(const float (&rows)[kRows][kColumns], const double (&figures)[kColumns]) {
  for (std::size_t i = 0; i < kRows; ++i) {
    std::size_t equal = 0;
    while (equal < kColumns && rows[i][equal] == static_cast<float>(figures[equal])) ++equal;
    if (equal == kColumns) return static_cast<int>(i);
  }
  return -1;
}

// The row of kGpus, or -1.
int GpuOf(const HardwareSpec& h) {
  return Find(kGpus, {h.peak_bf16_tflops, h.peak_fp8_tflops, h.memory_bandwidth_gb_s,
                      h.compute_efficiency, h.attention_efficiency, h.bandwidth_efficiency,
                      h.kv_bandwidth_efficiency, h.layer_latency_us, h.mixed_attention_rows,
                      h.interconnect_gb_s, h.interconnect_latency_us});
}

}  // namespace

bool OperatorsWereNearer(const Scenario& s) {
  const int gpu = GpuOf(s.hardware);
  return s.model.torch_dtype != DType::kFloat32 && s.engine.compat == Compat::kNone &&
         !s.engine.enable_expert_parallel &&
         (gpu == static_cast<int>(ComparedGpu::kA100Sxm) ||
          gpu == static_cast<int>(ComparedGpu::kRtxPro6000));
}

std::string KnownError(const Scenario& s, std::span<const Compared> runs) {
  if (s.model.torch_dtype == DType::kFloat32) return "not compared with a server: 32-bit weights";
  const int gpu = GpuOf(s.hardware);
  const int engine = Find(kEngines, {s.engine.step_overhead_us, s.engine.sequence_overhead_us,
                                     s.engine.sampler_ns_per_logit});
  const unsigned features = Features(s);
  unsigned missing = 0;  // of the run that has most of them
  for (const Compared& run : runs) {
    if (!HostIsKnown(s.engine)) break;
    if (static_cast<int>(run.gpu) != gpu || static_cast<int>(run.engine) != engine) continue;
    const bool larger = s.cluster.pools[0].tensor_parallel > run.most_gpus;
    const unsigned lacks = (features & ~unsigned{run.with}) | (larger ? kGroup : 0);
    if (lacks == 0) return run.error;
    if (missing == 0 || std::popcount(lacks) < std::popcount(missing)) missing = lacks;
  }
  if (gpu < 0) return "not compared with a server: GPUs of these figures";
  if (!HostIsKnown(s.engine)) return "not compared with a server: a host of these times";
  std::string what;
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if ((missing >> i & 1) != 0) what += (what.empty() ? "" : ", ") + std::string(kNames[i]);
  }
  return "not compared with a server on this GPU: " + (what.empty() ? "this engine" : what);
}

}  // namespace servecast
