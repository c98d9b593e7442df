// Step time from physics: each part of a step takes the longer of its arithmetic and its memory
// traffic, at efficiencies <= 1, so no step is faster than the GPU's data sheet allows.
//
//   matrices   max( FLOPs (M + kHalfTokens) / (peak eff), bytes / (bandwidth eff) ): small products
//              do not fill the GPU; kHalfTokens is the M at which half of eff is reached. A mixture
//              of experts reads the experts that M tokens touch, E (1 - (1 - k/E)^M) expected.
//   LM head    the same for the sampled tokens only
//   attention  prefill chunk [c0, c0+n): 4 h d (n c0 + n(n+1)/2) FLOPs a layer, or its KV reads;
//              decode: the same over all contexts, nearly always their KV reads
//   collective two all-reduces a layer in a tensor-parallel group (ring: 2 (tp-1)/tp of the bytes)
//   host       per step and per sequence; launch of the kernels, eager or as a captured graph
//
// docs/model.md has the derivation, docs/fidelity.md what it gets wrong.
#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "base/text.h"
#include "cost/model_cost.h"
#include "serving/policy.h"

namespace servecast {
namespace {

// GEMM tokens at half efficiency: puts the A100-PCIe decode steps at batch 32 to 256 of the
// yosyp/inference-simulator benchmarks (vLLM 0.20.1) between -8 and +10 %.
constexpr double kHalfTokens = 32;
// Share of the GEMM efficiency that prefill attention reaches: the A100-PCIe prefill curve from
// 8,192 to 114,688 tokens of the same benchmarks.
constexpr double kAttentionShare = 0.9;

// `kOptions`: launch and overlap count. A type of its own, as a price is asked for at every step.
template <bool kOptions>
class Analytic final : public LatencyModel {
 public:
  Analytic(const Scenario& s, const ModelCost& cost)
      : cost_(cost),
        flop_ns_(1e9 / (s.hardware.peak_bf16_tflops * 1e12 * s.hardware.compute_efficiency)),
        attention_flop_ns_(flop_ns_ / kAttentionShare),
        byte_ns_(1.0 / (s.hardware.memory_bandwidth_gb_s * s.hardware.bandwidth_efficiency)),
        step_ns_(s.engine.step_overhead_us * 1e3),
        sequence_ns_(s.engine.sequence_overhead_us * 1e3),
        overlap_(s.engine.overlap_scheduling),
        enqueue_delay_(static_cast<TimeNs>(std::nearbyint(s.engine.request_overhead_ms * 1e6))) {
    const EngineSpec& e = s.engine;
    if (e.cuda_graphs != CudaGraphs::kImplied) eager_ns_ = e.launch_eager_us * 1e3;
    if (e.cuda_graphs == CudaGraphs::kCaptured) {
      replay_ns_ = e.launch_replay_us * 1e3;
      captured_ = e.cuda_graph_max_bs;
      while (CaptureSize(captured_) != captured_) --captured_;
    }
    const auto tp = static_cast<double>(cost.tensor_parallel);
    if (cost.tensor_parallel > 1) {
      const double all_reduces = 2 * static_cast<double>(cost.layers);
      collective_ns_ = all_reduces * s.hardware.interconnect_latency_us * 1e3;
      collective_token_ns_ = all_reduces * cost.collective_bytes_per_token * 2 * (tp - 1) / tp /
                             s.hardware.interconnect_gb_s;
    }
    if (cost.experts > cost.experts_per_token) {
      log_untouched_ =
          Log(1 - static_cast<double>(cost.experts_per_token) / static_cast<double>(cost.experts));
    }
  }

  StepPrice Price(const BatchShape& shape) const override {
    const auto decodes = static_cast<double>(shape.decode_seqs);
    double tokens = decodes;
    const bool replayed = kOptions && shape.decode_seqs <= captured_ && shape.prefill.empty();
    if (replayed) tokens = static_cast<double>(CaptureSize(shape.decode_seqs));  // with its padding
    double sampled = tokens;
    Parts parts;
    const double context_tokens = static_cast<double>(shape.decode_context_tokens) + decodes;
    parts.Add(context_tokens * cost_.attention_flops_per_pair * attention_flop_ns_,
              context_tokens * cost_.kv_bytes_per_token * byte_ns_);
    for (const PrefillChunk& chunk : shape.prefill) {
      const auto n = static_cast<double>(chunk.tokens);
      const auto context = static_cast<double>(chunk.context);
      tokens += n;
      sampled += chunk.samples ? 1 : 0;
      const double pairs = n * context + n * (n + 1) / 2;
      parts.Add(pairs * cost_.attention_flops_per_pair * attention_flop_ns_,
                (context + n) * cost_.kv_bytes_per_token * byte_ns_);
    }
    parts.Add(cost_.dense_flops_per_token * (tokens + kHalfTokens) * flop_ns_,
              cost_.dense_bytes * byte_ns_);
    if (cost_.experts > 0) AddExperts(tokens, parts);
    if (sampled > 0) {
      parts.Add(cost_.lm_head_flops_per_token * (sampled + kHalfTokens) * flop_ns_,
                cost_.lm_head_bytes * byte_ns_);
    }
    const double sequences = decodes + static_cast<double>(shape.prefill.size());
    const double host = step_ns_ + sequence_ns_ * sequences;
    double overhead = host + collective_ns_ + collective_token_ns_ * tokens;
    if (kOptions) {
      overhead += replayed ? replay_ns_ : eager_ns_;
      if (overlap_) {
        const double device = parts.compute + parts.memory + (overhead - host);
        overhead = host > device ? host : overhead - host;
        if (host > device) parts = {};
      }
    }
    return parts.Total(overhead);
  }

  TimeNs EnqueueDelay(std::int64_t) const override { return enqueue_delay_; }

 private:
  struct Parts {
    double compute = 0, memory = 0;  // ns of the parts that each of them bounds

    void Add(double compute_ns, double memory_ns) {
      (compute_ns > memory_ns ? compute : memory) += std::max(compute_ns, memory_ns);
    }
    StepPrice Total(double overhead) const {
      const double total = std::min(compute + memory + overhead, static_cast<double>(kMaxStepNs));
      StepPrice price;
      price.duration = std::max<TimeNs>(1, static_cast<TimeNs>(RoundHalfEven(total)));
      price.bound = overhead > compute && overhead > memory ? StepBound::kOverhead
                    : compute > memory                      ? StepBound::kCompute
                                                            : StepBound::kBandwidth;
      return price;
    }
  };

  void AddExperts(double tokens, Parts& parts) const {
    const auto experts = static_cast<double>(cost_.experts);
    const auto active = static_cast<double>(cost_.experts_per_token);
    const double exponent = std::max(log_untouched_ * tokens, -700.0);
    const double touched =
        cost_.experts > cost_.experts_per_token ? experts * (1 - Exp(exponent)) : experts;
    parts.Add(cost_.expert_flops_per_token * (tokens + kHalfTokens * touched / active) * flop_ns_,
              cost_.expert_bytes * touched / experts * byte_ns_);
  }

  ModelCost cost_;
  double flop_ns_, attention_flop_ns_, byte_ns_, step_ns_, sequence_ns_;
  double collective_ns_ = 0, collective_token_ns_ = 0, log_untouched_ = 0;
  double eager_ns_ = 0, replay_ns_ = 0;
  std::int64_t captured_ = 0;  // largest decode batch that is replayed
  bool overlap_;
  TimeNs enqueue_delay_;
};

std::unique_ptr<LatencyModel> Make(const Scenario& s, const ModelCost& cost) {
  if (s.engine.cuda_graphs != CudaGraphs::kImplied || s.engine.overlap_scheduling) {
    return std::make_unique<Analytic<true>>(s, cost);
  }
  return std::make_unique<Analytic<false>>(s, cost);
}

LatencyLabel Label(const Scenario& s) {
  return {"analytic", "datasheet",
          "Physics bound from the data sheet of " + s.hardware.name + ", scaled to " +
              ShortNumber(100 * s.hardware.compute_efficiency) + " % of its peak arithmetic and " +
              ShortNumber(100 * s.hardware.bandwidth_efficiency) + " % of its bandwidth",
          "against an H100 server (Qwen3-14B, 2 to 8 requests/s) mean TPOT within 2 %, mean TTFT "
          "within 7 %, "
          "p99 TTFT within 12 %; H100 decode batches of 64 and more 18 to 43 % too short; a "
          "power-capped "
          "A100-PCIe up to half too low before its knee, useless beyond; see docs/fidelity.md"};
}

}  // namespace

extern const LatencyEntry kLatencyAnalytic;
const LatencyEntry kLatencyAnalytic = {
    "analytic", "Physics: work over data-sheet peaks at measured efficiencies, plus host time",
    Make, Label};

}  // namespace servecast
