// See setup_features.h.
#include "evidence/setup_features.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>

#include "base/math.h"
#include "servecast/workload_spec.h"

namespace servecast {
namespace {

// What a difference costs. Fitted to the forecasts of December 2026 with set-ups and laboratories
// left out; only their orders of magnitude are known.
namespace price {
constexpr double kExperts = 0.84, kLaboratory = 0.6, kExpertParallel = 0.21, kGpuFamily = 0.21;
constexpr double kWeights = 0.2, kRun = 0.2, kEngine = 0.14, kVersion = 0.1, kForm = 0.1;
constexpr double kModel = 0.085, kGpu = 0.05;
// A doubling, of so many doublings at most.
constexpr double kTensorParallel = 0.056, kSize = 0.07, kRatio = 0.1, kClients = 0.05;
constexpr double kMostSizes = 3, kMostDoublings = 6;
}  // namespace price

struct Gpu {
  std::string_view begins, family, maker;
};
constexpr Gpu kGpus[] = {{"a100", "ampere", "nvidia"},
                         {"a10", "ampere", "nvidia"},
                         {"h100", "hopper", "nvidia"},
                         {"h200", "hopper", "nvidia"},
                         {"h20", "hopper", "nvidia"},
                         {"gh200", "hopper", "nvidia"},
                         {"b200", "blackwell", "nvidia"},
                         {"b300", "blackwell", "nvidia"},
                         {"gb200", "blackwell", "nvidia"},
                         {"gb300", "blackwell", "nvidia"},
                         {"rtx-pro", "blackwell-rtx", "nvidia"},
                         {"rtx-50", "blackwell-rtx", "nvidia"},
                         {"rtx", "ada", "nvidia"},
                         {"l40", "ada", "nvidia"},
                         {"l4", "ada", "nvidia"},
                         {"mi3", "cdna", "amd"}};

const Gpu* FindGpu(std::string_view name) {
  const auto* found = std::find_if(std::begin(kGpus), std::end(kGpus), [name](const Gpu& gpu) {
    return name.substr(0, gpu.begins.size()) == gpu.begins;
  });
  return found == std::end(kGpus) ? nullptr : found;
}

constexpr double kLn2 = 0.6931471805599453;

// Doublings from one to the other, at most `most`; 0 where one is unknown.
double Doublings(double a, double b, double most) {
  if (a <= 0 || b <= 0) return 0;
  return std::min(std::fabs(Log(a / b)) / kLn2, most);
}

bool Same(std::string_view a, std::string_view b) { return !a.empty() && a == b; }

double ShapeDistance(const SetupFeatures& a, const SetupFeatures& b) {
  const auto ratio = [](const SetupFeatures& s) {
    return s.prompt > 0 && s.output > 0 ? s.prompt / s.output : 0;
  };
  return price::kRatio * Doublings(ratio(a), ratio(b), price::kMostDoublings) +
         price::kClients * Doublings(a.clients / a.gpus, b.clients / b.gpus, price::kMostDoublings);
}

double MeanOf(const NumberTable& quantiles) {
  double mean = 0;
  for (std::size_t i = 1; i < quantiles.size(); ++i) {
    mean += (quantiles[i][0] - quantiles[i - 1][0]) * (quantiles[i][1] + quantiles[i - 1][1]) / 2;
  }
  return mean;
}

// 0: unknown.
double MeanTokens(const LengthSpec& length, double prompt) {
  constexpr double kZ99 = 2.3263478740408408;
  switch (length.distribution) {
    case LengthDistribution::kFixed:
      return static_cast<double>(length.value);
    case LengthDistribution::kUniform:
      return static_cast<double>(length.min + length.max.value_or(length.min)) / 2;
    case LengthDistribution::kNormal:
      return length.mean;
    case LengthDistribution::kLognormal: {
      const double sigma = Log(std::max(length.p99 / length.median, 1.0)) / kZ99;
      return length.median * Exp(sigma * sigma / 2);
    }
    case LengthDistribution::kEmpirical:
      return MeanOf(length.quantiles);
    case LengthDistribution::kRatio:
      return length.ratio > 0 ? prompt / length.ratio : 0;
    default:
      return 0;
  }
}

std::string FormOf(const ModelSpec& m) {
  const bool windows = m.num_sliding_layers > 0;
  if (m.num_local_experts == 0) return windows ? "dense-window" : "dense";
  return m.kv_lora_rank > 0 ? "moe-mla" : windows ? "moe-sink" : "moe";
}

std::string WeightsOf(const ModelSpec& m) {
  constexpr const char* kWeights[] = {"16",   "fp8",        "int4", "nvfp4",    "mxfp4",
                                      "int8", "int8_w8a16", "nf4",  "mxfp4_all"};
  if (m.torch_dtype == DType::kFloat32) return "32";
  return kWeights[static_cast<std::size_t>(m.quantization)];
}

// Of the layers alone, which is near enough for doublings.
double ActiveBillions(const ModelSpec& m) {
  const auto of = [](std::int64_t count) { return static_cast<double>(count); };
  const double hidden = of(m.hidden_size);
  const double attention =
      hidden * of(m.head_dim) * (2 * of(m.num_attention_heads) + 2 * of(m.num_key_value_heads));
  const double width = m.num_local_experts > 0
                           ? of(m.num_experts_per_tok) * of(m.intermediate_size) +
                                 of(m.shared_expert_intermediate_size)
                           : of(m.intermediate_size);
  const double layer = attention + of(m.mlp_matrices) * hidden * width;
  return (of(m.num_hidden_layers) * layer + hidden * of(m.vocab_size)) / 1e9;
}

RunKind RunOf(const WorkloadSpec& workload) {
  const ArrivalSpec& arrivals = workload.arrivals;
  if (workload.sessions.turns > 1) return RunKind::kTurns;
  if (arrivals.process == ArrivalProcess::kClosedLoop) return RunKind::kLoop;
  return arrivals.process == ArrivalProcess::kStatic ? RunKind::kAtOnce : RunKind::kServing;
}

}  // namespace

std::optional<RunKind> RunKindOf(std::string_view name) {
  const auto* found = std::find(std::begin(kRunKindNames), std::end(kRunKindNames), name);
  if (found == std::end(kRunKindNames)) return std::nullopt;
  return static_cast<RunKind>(found - std::begin(kRunKindNames));
}

std::string_view SetupFeatures::EngineFamily() const {
  return std::string_view(engine).substr(0, engine.find('-'));
}

std::string_view SetupFeatures::GpuFamily() const {
  const Gpu* found = FindGpu(gpu);
  return found == nullptr ? std::string_view() : found->family;
}

std::string_view SetupFeatures::GpuMaker() const {
  const Gpu* found = FindGpu(gpu);
  return found == nullptr ? std::string_view() : found->maker;
}

std::string ModelKey(std::string_view name) {
  std::string key;
  for (const char c : name) {
    key += c == ' ' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return key;
}

SetupFeatures FeaturesOf(const Scenario& s) {
  const PoolSpec& pool = s.cluster.pool();
  SetupFeatures f;
  f.model = ModelKey(s.model.name);
  f.form = FormOf(s.model);
  f.weights = WeightsOf(s.model);
  if (s.hardware.compared_as != "none" && s.hardware.changed.empty())
    f.gpu = s.hardware.compared_as;
  if (s.engine.compared_as != "none" && s.engine.changed.empty()) f.engine = s.engine.compared_as;
  f.run = RunOf(*s.workload);
  f.expert_parallel = s.model.num_local_experts > 0 && s.engine.enable_expert_parallel;
  f.tensor_parallel = static_cast<double>(pool.tensor_parallel);
  f.active_billions = ActiveBillions(s.model);
  f.gpus = static_cast<double>(pool.tensor_parallel * pool.attention_data_parallel);
  f.prompt =
      MeanTokens(s.workload->prompt_tokens, 0) + static_cast<double>(s.workload->prefix.tokens);
  f.output = MeanTokens(s.workload->output_tokens, f.prompt);
  if (f.run == RunKind::kLoop) {
    f.clients = static_cast<double>(s.workload->arrivals.concurrency) /
                static_cast<double>(std::max<std::int64_t>(pool.replicas, 1));
  }
  return f;
}

bool SameServer(const SetupFeatures& a, const SetupFeatures& b) {
  return a.run == b.run && Same(a.model, b.model) && a.weights == b.weights && Same(a.gpu, b.gpu) &&
         Same(a.engine, b.engine) && a.tensor_parallel == b.tensor_parallel &&
         a.expert_parallel == b.expert_parallel;
}

bool SameSetup(const SetupFeatures& a, const SetupFeatures& b) {
  return Same(a.laboratory, b.laboratory) && SameServer(a, b);
}

SetupDistance DistanceOf(const SetupFeatures& a, const SetupFeatures& b) {
  double d = 0;
  if (a.Experts() != b.Experts()) d += price::kExperts;
  if (!Same(a.laboratory, b.laboratory)) d += price::kLaboratory;
  if (a.expert_parallel != b.expert_parallel) d += price::kExpertParallel;
  if (!Same(a.GpuFamily(), b.GpuFamily())) d += price::kGpuFamily;
  if (a.weights != b.weights) d += price::kWeights;
  if (a.run != b.run) d += price::kRun;
  if (!Same(a.EngineFamily(), b.EngineFamily())) d += price::kEngine;
  if (!Same(a.engine, b.engine)) d += price::kVersion;
  if (a.form != b.form) d += price::kForm;
  if (!Same(a.model, b.model)) d += price::kModel;
  if (!Same(a.gpu, b.gpu)) d += price::kGpu;
  d += price::kTensorParallel *
       Doublings(a.tensor_parallel, b.tensor_parallel, price::kMostDoublings);
  d += price::kSize * Doublings(a.active_billions, b.active_billions, price::kMostSizes);
  return {d, d + ShapeDistance(a, b)};
}

Nearness NearnessOf(const SetupFeatures& a, const SetupFeatures& b) {
  if (!Same(a.EngineFamily(), b.EngineFamily()) || !Same(a.GpuFamily(), b.GpuFamily()) ||
      a.Experts() != b.Experts()) {
    return Nearness::kFar;
  }
  const bool near = Same(a.gpu, b.gpu) && a.form == b.form && a.weights == b.weights &&
                    a.expert_parallel == b.expert_parallel && a.run == b.run;
  return near ? Nearness::kNear : Nearness::kMiddle;
}

}  // namespace servecast
