// The roofline of BLIS: work over peaks, at one share of the peak for prefill and one for decode.
// Two forms (L layers, H hidden, n_h and n_kv heads, d = H/n_h, dKV = n_kv d, b bytes of a value;
// T tokens of one request in the step after p before them, ctx = p + (T-1)/2):
//
//   GEMM(p,T)  L [2T(H^2 + 2H dKV) + 2T H^2] + 4 n_h T ctx d L + 2T m H ff L
//   VEC(p,T)   L (5 n_h T ctx + 2T H)
//   dyn(p,T)   2 L n_kv d b (T + p) + L H b T        bytes of KV and activations
//   weights    [L (H(H + 2dKV) + H^2) + m H ff L] bytes
//
//   as the seed has it (m = 3): each phase the longer of GEMM/(tp peak mfu) + VEC/(tp 0.1 peak) and
//     (weights + dyn)/(tp 0.72 bandwidth); prefill + decode, 20 us a layer, with tensor parallelism
//     40 us more for its all-reduces, and 500 us. Weights are read twice in a mixed step.
//   BLIS today, compat blis (m = 2, though the MLP has three matrices): the longer of all
//     (GEMM + VEC)/(tp peak mfu) and (weights + dyn)/(tp bandwidth); nothing else.
//
// No LM head, no embedding. With experts: top-k of them compute, of E the expected
// E (1 - ((E-k)/E)^T) are read (the seed's form knows dense models only; ours for it is the same).
#include <algorithm>
#include <cmath>

#include "serving/microseconds.h"
#include "serving/policy.h"

namespace servecast::latency_roofline {
namespace {

// x to the power of n >= 0, by multiplication: the same bits everywhere.
double Power(double x, std::int64_t n) {
  double result = 1;
  for (; n > 0; n /= 2, x *= x) {
    if (n % 2 == 1) result *= x;
  }
  return result;
}

class Roofline final : public LatencyModel {
 public:
  explicit Roofline(const Scenario& s)
      : compat_(s.engine.compat), today_(compat_ == Compat::kBlis), alpha_(s.latency.alpha) {
    const ModelSpec& m = s.model;
    const LatencySpec& l = s.latency;
    const auto number = [](std::int64_t value) { return static_cast<double>(value); };
    tp_ = number(s.cluster.pool().tensor_parallel);
    const bool fp8 = l.weight_bytes == 1 && l.peak_fp8_tflops > 0;
    const double peak = (fp8 ? l.peak_fp8_tflops : s.hardware.peak_bf16_tflops) * 1e12;
    prefill_rate_ = peak * l.mfu_prefill.value_or(today_ ? 0.45 : 0.65);
    decode_rate_ = peak * l.mfu_decode.value_or(today_ ? 0.30 : 0.12);
    vector_rate_ = peak * 0.1;
    byte_rate_ = s.hardware.memory_bandwidth_gb_s * 1e9 * (today_ ? 1 : 0.72);
    const double layers = number(m.num_hidden_layers), hidden = number(m.hidden_size);
    const double heads = number(m.num_attention_heads), dim = hidden / heads;
    const double kv = number(m.num_key_value_heads) * dim;
    const double bytes = number(BytesPerValue(m.torch_dtype));
    const double matrices = (today_ ? 2 : 3) * number(m.mlp_matrices) / 3;  // of BLIS's three
    const bool experts = m.num_local_experts >= 2;
    const std::int64_t step = l.interleave_moe_layer_step;
    const double moe =
        !experts ? 0 : number(step >= 1 ? m.num_hidden_layers / (step + 1) : m.num_hidden_layers);
    const double dense = layers - moe;
    const double width = number(m.intermediate_size);
    const double dense_mlp =
        matrices * hidden * (l.intermediate_size_mlp > 0 ? number(l.intermediate_size_mlp) : width);
    const double expert = matrices * hidden * width;
    experts_ = number(m.num_local_experts);
    active_ = number(m.num_experts_per_tok);
    token_flops_ = layers * (2 * (hidden * hidden + 2 * hidden * kv) + 2 * hidden * hidden) +
                   dense * 2 * dense_mlp + moe * 2 * expert * active_;
    pair_flops_ = layers * 4 * heads * dim;
    token_vector_ = layers * 2 * hidden;
    pair_vector_ = layers * 5 * heads;
    kv_bytes_ = 2 * layers * kv * bytes;
    token_bytes_ = kv_bytes_ + layers * hidden * bytes;
    const double weight = number(l.weight_bytes);
    dense_bytes_ =
        (layers * (hidden * (hidden + 2 * kv) + hidden * hidden) + dense * dense_mlp) * weight;
    expert_bytes_ = moe * expert * weight;
    overhead_us_ = today_ ? 0 : 20 * layers + (tp_ > 1 ? 2 * 20 * layers : 0) + 500;
  }

  StepPrice Price(const BatchShape& shape) const override {
    Work prefill, decode;
    for (const PrefillChunk& chunk : shape.prefill) {
      const auto tokens = static_cast<double>(chunk.tokens);
      const auto before = static_cast<double>(chunk.context);
      prefill.tokens += chunk.tokens;
      prefill.pairs += tokens * (tokens > 1 ? before + (tokens - 1) / 2 : before);
      prefill.context += before;
    }
    decode.tokens = shape.decode_seqs;
    decode.pairs = decode.context = static_cast<double>(shape.decode_context_tokens);
    return today_ ? PriceToday(prefill, decode) : PriceAsTheSeed(prefill, decode);
  }

  HostTimes TakeUpTimes(std::int64_t prompt_tokens) const override {
    return TakeUpTimesOf(alpha_, prompt_tokens, compat_);
  }
  TimeNs OutputTokenDelay() const override { return TimeOf(alpha_[2], compat_); }

 private:
  struct Work {
    std::int64_t tokens = 0;
    double pairs = 0;    // of a token and one before it
    double context = 0;  // tokens before them
  };

  double Gemm(const Work& w) const {
    return static_cast<double>(w.tokens) * token_flops_ + w.pairs * pair_flops_;
  }
  double Vector(const Work& w) const {
    return static_cast<double>(w.tokens) * token_vector_ + w.pairs * pair_vector_;
  }
  double Dynamic(const Work& w) const {
    return static_cast<double>(w.tokens) * token_bytes_ + w.context * kv_bytes_;
  }
  double Weights(std::int64_t tokens) const {
    if (expert_bytes_ == 0) return dense_bytes_;
    return dense_bytes_ +
           expert_bytes_ * experts_ * (1 - Power((experts_ - active_) / experts_, tokens));
  }

  StepPrice PriceToday(const Work& prefill, const Work& decode) const {
    const double compute = (Gemm(prefill) + Vector(prefill)) / tp_ / prefill_rate_ +
                           (Gemm(decode) + Vector(decode)) / tp_ / decode_rate_;
    const double memory = (Weights(prefill.tokens + decode.tokens) / tp_ +
                           (Dynamic(prefill) + Dynamic(decode)) / tp_) /
                          byte_rate_;
    return {StepTimeOf(std::max(compute, memory) * 1e6, compat_),
            compute > memory ? StepBound::kCompute : StepBound::kBandwidth};
  }

  StepPrice PriceAsTheSeed(const Work& prefill, const Work& decode) const {
    double compute_us = 0, memory_us = 0;
    for (const Work* w : {&prefill, &decode}) {
      if (w->tokens == 0) continue;
      const double rate = w == &prefill ? prefill_rate_ : decode_rate_;
      const double compute = Gemm(*w) / (tp_ * rate) + Vector(*w) / (tp_ * vector_rate_);
      const double memory = (Weights(w->tokens) / tp_ + Dynamic(*w) / tp_) / byte_rate_;
      (compute > memory ? compute_us : memory_us) += std::max(compute, memory) * 1e6;
    }
    const double us = compute_us + memory_us + overhead_us_;
    // BLIS rounded this one.
    return {StepTimeOf(!IsBlis(compat_) ? us : std::round(us), compat_),
            BoundOf(compute_us, memory_us, overhead_us_)};
  }

  Compat compat_;
  bool today_;
  std::vector<double> alpha_;
  double tp_, prefill_rate_, decode_rate_, vector_rate_, byte_rate_;  // FLOPs and bytes a second
  double experts_, active_;
  double token_flops_, pair_flops_, token_vector_, pair_vector_;
  double kv_bytes_, token_bytes_, dense_bytes_, expert_bytes_, overhead_us_;
};

std::unique_ptr<LatencyModel> Make(const Scenario& s, const ModelCost&) {
  return std::make_unique<Roofline>(s);
}

LatencyLabel Label(const Scenario& s) {
  return {"roofline", "datasheet",
          "BLIS's roofline from the data sheet of " + s.hardware.name +
              ": fixed shares of its peaks, without LM head",
          "It was not compared with servers; analytic is the calibrated one."};
}

}  // namespace

extern const LatencyEntry kEntry = {
    .name = "roofline",
    .help = "BLIS's roofline: work over data-sheet peaks, by phase",
    .make = OfWholeEngine(Make),
    .label = OfWholeEngine(Label),
    .has = {Feature::kQuantized, Feature::kLatentAttention, Feature::kSharedExperts,
            Feature::kDenseLayers},
    .lacks = kPlainStepsLack,
};

}  // namespace servecast::latency_roofline
