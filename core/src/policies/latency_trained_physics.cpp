// BLIS's default model (since April 2026): a roofline without a maximum, in which ten trained
// factors weigh the parts of a step. Only with BLIS's rules, to compare with BLIS: its factor for
// prefill arithmetic is 0.152, so that it bills prefill at 6.6 times the peak of the GPU.
//
// All of a step's parts are in us at the peaks (L layers, H hidden, n_h and n_kv heads, d = H/n_h,
// whatever head_dim says, dKV = n_kv d, b and w bytes of activations and weights, T prefill tokens,
// D decodes, C their contexts; prompt i with S_i tokens computes t_i):
//
//   prefill arithmetic  [ L 2T H(2H+2dKV)/tp + L sum 4(n_h/tp) t_i (S_i + t_i/2) d + MLP ] / peak
//   decode arithmetic   the same with D for T, and L 4(n_h/tp) C d
//   KV                  L 2(dKV/tp) 2 B for each of T, or C + D, / bandwidth
//   weights             all of them, all experts, every step, / bandwidth
//   all-reduce          2(tp-1)/tp H b a token, layer and kind, / bandwidth (of the memory)
#include <algorithm>

#include "serving/microseconds.h"
#include "serving/policy.h"

namespace servecast::latency_trained_physics {
namespace {

class TrainedPhysics final : public LatencyModel {
 public:
  explicit TrainedPhysics(const Scenario& s)
      : compat_(s.engine.compat), alpha_(s.latency.physics_alpha), beta_(s.latency.physics_beta) {
    const ModelSpec& m = s.model;
    const LatencySpec& l = s.latency;
    const auto number = [](std::int64_t value) { return static_cast<double>(value); };
    const double tp = number(s.cluster.pool().tensor_parallel);
    const bool fp8 = l.weight_bytes == 1 && l.peak_fp8_tflops > 0;
    flop_us_ = (fp8 ? l.peak_fp8_tflops : s.hardware.peak_bf16_tflops) * 1e6;
    byte_us_ = s.hardware.memory_bandwidth_gb_s * 1e3;
    layers_ = number(m.num_hidden_layers);
    const double hidden = number(m.hidden_size), heads = number(m.num_attention_heads);
    const double dim = hidden / heads, kv = number(m.num_key_value_heads) * dim;
    const bool experts = m.num_local_experts >= 2;
    const bool interleaved = experts && l.interleave_moe_layer_step >= 1;
    const double moe =
        !experts ? 0
                 : number(interleaved ? m.num_hidden_layers / (l.interleave_moe_layer_step + 1)
                                      : m.num_hidden_layers);
    const double dense = layers_ - moe;
    const double share = number(m.mlp_matrices) / 3;  // of BLIS's three matrices
    const double width = number(m.intermediate_size) * share;
    const double dense_width =
        l.intermediate_size_mlp > 0 ? number(l.intermediate_size_mlp) * share : width;
    const double attention = hidden * (2 * hidden + 2 * kv);
    token_flops_ = layers_ * 2 * attention / tp +
                   moe * (number(m.num_experts_per_tok) / tp) * 6 * hidden * width +
                   dense * 6 * hidden * dense_width / tp;
    pair_flops_ = layers_ * 4 * (heads / tp) * dim;
    kv_bytes_ = layers_ * 2 * (kv / tp) * 2;
    const double weight = number(l.weight_bytes);
    weights_us_ = (layers_ * attention * weight / tp +
                   moe * (number(m.num_local_experts) / tp) * 3 * hidden * width * weight +
                   dense * 3 * hidden * dense_width * weight / tp) /
                  byte_us_;
    const double reduces = layers_ + dense + (tp > 1 ? moe : 0);
    collective_bytes_ = reduces * hidden * number(BytesPerValue(m.torch_dtype)) * 2 * (tp - 1) / tp;
    moe_us_ = interleaved ? beta_[7] * moe : 0;
  }

  StepPrice Price(const BatchShape& shape) const override {
    double prefill = 0, pairs = 0;
    for (const PrefillChunk& chunk : shape.prefill) {
      const auto tokens = static_cast<double>(chunk.tokens);
      prefill += tokens;
      // The whole prompt, also of what is yet to come.
      pairs += tokens * (static_cast<double>(chunk.prompt) + tokens / 2);
    }
    const auto decodes = static_cast<double>(shape.decode_seqs);
    const auto context = static_cast<double>(shape.decode_context_tokens);
    const double prefill_flops = (token_flops_ * prefill + pair_flops_ * pairs) / flop_us_;
    const double decode_flops = (token_flops_ * decodes + pair_flops_ * context) / flop_us_;
    const double prefill_kv = kv_bytes_ * prefill / byte_us_;
    const double decode_kv = kv_bytes_ * (context + decodes) / byte_us_;
    const double compute = beta_[0] * prefill_flops, memory = beta_[9] * decode_kv;
    const double collectives = collective_bytes_ * (prefill + decodes) / byte_us_;
    const double requests = decodes + static_cast<double>(shape.prefill.size());
    double us = (compute + beta_[8] * prefill_kv) + (beta_[1] * decode_flops + memory);
    us += beta_[2] * weights_us_;
    us += beta_[3] * collectives;
    us += beta_[4] * layers_;
    us += beta_[5] * requests;
    us += beta_[6];
    us += moe_us_;
    const double reads = beta_[2] * weights_us_ + memory;
    const StepBound bound = 2 * compute > us ? StepBound::kCompute
                            : 2 * reads > us ? StepBound::kBandwidth
                                             : StepBound::kOverhead;
    return {StepTimeOf(us, compat_), bound};
  }

  HostTimes TakeUpTimes(std::int64_t) const override { return {0, TimeOf(alpha_[0], compat_)}; }
  TimeNs PostDecodeDelay() const override { return TimeOf(alpha_[1], compat_); }
  TimeNs OutputTokenDelay() const override { return TimeOf(alpha_[2], compat_); }

 private:
  Compat compat_;
  std::vector<double> alpha_, beta_;
  double flop_us_, byte_us_;  // FLOPs and bytes in a microsecond
  double layers_, token_flops_, pair_flops_, kv_bytes_, weights_us_, collective_bytes_, moe_us_;
};

std::unique_ptr<LatencyModel> Make(const Scenario& s, const ModelCost&) {
  return std::make_unique<TrainedPhysics>(s);
}

LatencyLabel Label(const Scenario&) {
  return {
      "trained_physics", "coefficients",
      "BLIS's trained model, as published; bills prefill faster than the GPU's arithmetic "
      "allows",
      "Prompts of about 1,000 tokens and more take less than the physical minimum (Llama-3.1-8B, "
      "H100: a quarter of it at 8,192), so it is for comparisons with BLIS only."};
}

}  // namespace

extern const LatencyEntry kEntry = {
    .name = "trained_physics",
    .help = "BLIS's trained model, impossibly fast in prefill; with compat blis only",
    .make = OfWholeEngine(Make),
    .label = OfWholeEngine(Label),
    .has = {Feature::kQuantized, Feature::kLatentAttention, Feature::kSharedExperts,
            Feature::kDenseLayers},
    .lacks = kPlainStepsLack,
    .needs = {Feature::kBlisPrices},
};

}  // namespace servecast::latency_trained_physics
