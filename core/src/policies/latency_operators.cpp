// Step time composed from measured latencies of operators (cost/operator_step.h): matrix products
// by shape, attention of prefill and of decode, experts, all-reduces; beside them the host's time,
// from the engine preset as in the analytic model. docs/model.md has the composition.
#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "base/text.h"
#include "cost/compared.h"
#include "cost/operator_step.h"
#include "serving/policy.h"

namespace servecast {
namespace {

constexpr double kMostly = 0.1;  // extrapolated share of a step from which its label says so

class Operators final : public LatencyModel {
 public:
  Operators(const Scenario& s, const ModelCost& cost)
      : step_(s, cost),
        step_ns_(s.engine.step_overhead_us * 1e3),
        sequence_ns_(s.engine.sequence_overhead_us * 1e3),
        sample_ns_(s.model.top_p_by_default
                       ? s.engine.sampler_ns_per_logit * static_cast<double>(s.model.vocab_size)
                       : 0),
        request_ns_(s.engine.request_overhead_ms * 1e6),
        prompt_token_ns_(s.engine.prompt_token_overhead_us * 1e3),
        delivery_(static_cast<TimeNs>(std::nearbyint(s.engine.delivery_overhead_us * 1e3))),
        overlap_(s.engine.overlap_scheduling) {
    const EngineSpec& e = s.engine;
    if (e.cuda_graphs != CudaGraphs::kImplied)
      eager_ns_ = e.launch_eager_us * 1e3 * cost.layer_share;
    if (e.cuda_graphs == CudaGraphs::kCaptured) {
      replay_ns_ = e.launch_replay_us * 1e3;
      captured_ = e.cuda_graph_max_bs;
      while (CaptureSize(captured_) != captured_) --captured_;
    }
  }

  StepPrice Price(const BatchShape& shape) const override {
    const std::int64_t decodes = shape.decode_seqs;
    const bool replayed = decodes <= captured_ && shape.prefill.empty();
    std::int64_t tokens = replayed ? CaptureSize(decodes) : decodes;  // with its padding
    std::int64_t sampled = tokens;
    const std::int64_t padding = tokens - decodes;
    AttentionWork work;
    work.decodes = decodes;
    work.contexts = shape.decode_context_tokens + decodes;
    for (const PrefillChunk& chunk : shape.prefill) {
      tokens += chunk.tokens;
      sampled += chunk.samples ? 1 : 0;
      step_.Add(chunk.tokens, chunk.context, work);
    }
    const double attention = step_.Attention(work);
    const double matrices = step_.Tokens(tokens) + step_.Head(sampled);
    const auto sequences = static_cast<double>(decodes) + static_cast<double>(shape.prefill.size());
    const double host = step_ns_ + sequence_ns_ * sequences;
    const double sampler = sample_ns_ * static_cast<double>(sampled - padding);
    const double launch = replayed ? replay_ns_ : eager_ns_;
    const double device = matrices + attention + sampler + launch;
    const double total = overlap_ ? std::max(host, device) : host + device;
    const bool compute = tokens >= step_.ComputeBoundFrom();
    StepPrice price;
    price.duration = std::max<TimeNs>(
        1, static_cast<TimeNs>(RoundHalfEven(std::min(total, static_cast<double>(kMaxStepNs)))));
    // Attention of prompts computes, that of decodes reads.
    const bool prompts = !shape.prefill.empty();
    const double compute_ns = (prompts ? attention : 0) + (compute ? matrices : 0);
    const double memory_ns = (prompts ? 0 : attention) + (compute ? 0 : matrices);
    const double other_ns = host + sampler + launch;
    price.bound = other_ns > compute_ns && other_ns > memory_ns ? StepBound::kOverhead
                  : compute_ns > memory_ns                      ? StepBound::kCompute
                                                                : StepBound::kBandwidth;
    return price;
  }

  TimeNs EnqueueDelay(std::int64_t prompt_tokens) const override {
    return static_cast<TimeNs>(
        std::nearbyint(request_ns_ + prompt_token_ns_ * static_cast<double>(prompt_tokens)));
  }
  TimeNs DeliveryDelay() const override { return delivery_; }

 private:
  OperatorStep step_;
  double step_ns_, sequence_ns_, sample_ns_, request_ns_, prompt_token_ns_;
  TimeNs delivery_;
  double eager_ns_ = 0, replay_ns_ = 0;
  std::int64_t captured_ = 0;  // largest decode batch that is replayed
  bool overlap_;
};

std::unique_ptr<LatencyModel> Make(const Scenario& s, const ModelCost& cost) {
  return std::make_unique<Operators>(s, cost);
}

// Runs of docs/fidelity.md; nothing was fitted to any of them.
constexpr Compared kRuns[] = {
    {ComparedGpu::kH100, ComparedEngine::kVllm, 2, kWith16Bits | kWithFp8 | kWithExperts,
     "26 serving runs of seven models on H100, median: TPOT 3 %, E2E 3 %, TTFT 5 %, p99 TTFT 10 %"},
    {ComparedGpu::kH100, ComparedEngine::kVllm, 8, kWithFp8,
     "closed loops of Llama-3.1-70B: TPOT 3 % in the median, 7 % for nine of ten"},
    {ComparedGpu::kH100, ComparedEngine::kVllm011, 2,
     kWith16Bits | kWithMxfp4 | kWithExperts | kWithWindows,
     "decode batches at saturation: 5 % in the median"},
    {ComparedGpu::kH100, ComparedEngine::kVllm011, 8, kWith16Bits,
     "closed loops of Qwen3-32B: TPOT 5 %"},
    {ComparedGpu::kH100, ComparedEngine::kSglang, 8, kWith16Bits,
     "closed loops of Qwen3-32B: TPOT 9 % in the median, 30 % for nine of ten"},
    {ComparedGpu::kH100, ComparedEngine::kTrtllm, 8, kWith16Bits | kWithFp8 | kWithKv8,
     "closed loops of two models: TPOT 10 % in the median, 25 % for nine of ten"},
    {ComparedGpu::kH200, ComparedEngine::kVllm, 8, kWithFp8,
     "closed loops of Llama-3.1-70B: TPOT 4 % in the median, 9 % for nine of ten"},
    {ComparedGpu::kH200, ComparedEngine::kSglang, 8, kWithFp8,
     "closed loops of Llama-3.1-8B: TPOT 6 % in the median, 17 % for nine of ten"},
    {ComparedGpu::kH200, ComparedEngine::kTrtllm, 8, kWithFp8 | kWithKv8,
     "closed loops of Llama-3.1-70B: TPOT 23 % in the median, 35 % for nine of ten"},
    {ComparedGpu::kB200, ComparedEngine::kVllm, 4, kWithNvfp4 | kWithKv8,
     "multi-turn runs of Llama-3.3-70B come out three times too fast"},
    {ComparedGpu::kA100Sxm, ComparedEngine::kVllm, 1, kWith16Bits,
     "two serving runs of Llama-3.1-8B: TPOT 1 %, TTFT 2 %, p99 TTFT 6 %"},
    {ComparedGpu::kRtxPro6000, ComparedEngine::kVllm, 1, kWith16Bits,
     "one serving run of Llama-3.1-8B: TPOT 0.6 %, TTFT 0.5 %, p99 TTFT 1.5 %"},
};

LatencyLabel Label(const Scenario& s) {
  const Result<ModelCost> cost = ComputeModelCost(s);
  if (!cost.ok()) return {};
  const OperatorStep step(s, cost.value());
  const std::string share = ShortNumber(std::round(100 * step.ExtrapolatedShare()));
  std::string text =
      "Latencies of operators measured on " + step.Set().name + " (" + step.Set().source + ")";
  std::string names;
  for (const std::string& name : step.Extrapolated()) names += (names.empty() ? "" : ", ") + name;
  if (!step.Exact()) {
    text += ", scaled to the data sheet of " + s.hardware.name + ": extrapolated";
  } else if (!names.empty()) {
    text += "; " + share + " % of a typical step's time extrapolated (" + names + ")";
  }
  const bool measured = step.Exact() && step.ExtrapolatedShare() < kMostly;
  return {"operators", measured ? "interpolated" : "extrapolated", text,
          measured && names.find("all_reduce") == std::string::npos
              ? KnownError(s, kRuns)
              : "not stated where so much is extrapolated"};
}

// Where servers came out nearer by it than by `analytic`, and tables cover the model.
bool Best(const Scenario& s) {
  if (!OperatorsWereNearer(s)) return false;
  const Result<ModelCost> cost = ComputeModelCost(s);
  return cost.ok() && OperatorStep(s, cost.value()).ExtrapolatedShare() < kMostly;
}

// Where auto may be this model, which one it is hangs on the tables, too.
std::string Missing(const Scenario& s) {
  const std::string& backend = s.latency.backend;
  if (backend != "operators" && (backend != "auto" || !OperatorsWereNearer(s))) return "";
  const NearestOperators nearest = FindOperators(s.hardware);
  return nearest.set != nullptr ? "" : Format("presets/operators/{}.json", nearest.id);
}

}  // namespace

extern const LatencyEntry kLatencyOperators;
const LatencyEntry kLatencyOperators = {
    "operators", "Measured latencies of each operator on the GPU, added up, plus host time",
    Make,        Label,
    Best,        Missing};

}  // namespace servecast
