// Step time and delay before the queue as dot products of physical features with coefficients:
// cost/physics_features.h. The coefficients that a scenario has unless it brings its own are units,
// not a fit: a step then takes its features that are seconds, added up, as they are.
//
// One feature says nothing here: nothing is read from host memory in place, as what is loaded is
// loaded first (kv_tiers.h).
#include <algorithm>

#include "cost/model_cost.h"
#include "cost/physics_features.h"
#include "serving/microseconds.h"
#include "serving/policy.h"

namespace servecast::latency_physics {
namespace {

template <std::size_t n>
std::array<double, n> Weights(const std::vector<double>& coefficients) {
  std::array<double, n> weights{};
  std::copy_n(coefficients.begin(), n, weights.begin());
  return weights;
}

class Physics final : public LatencyModel {
 public:
  Physics(const Scenario& s, const ModelCost& cost)
      : constants_(
            MakePhysicsConstants(PhysicsConfigOf(s, static_cast<double>(cost.usable_blocks)))),
        alpha_(Weights<kAlphaFeatures>(s.latency.alpha_coefficients)),
        beta_(Weights<kBetaFeatures>(s.latency.beta_coefficients)),
        gamma_(s.latency.preemption_gamma),
        share_(cost.layer_share) {
    // At rest all but the cost of the prompt (3) and the bias (4) are 0.
    for (std::size_t i = 0; i < alpha_.size(); ++i) by_load_ |= i != 2 && i != 3 && alpha_[i] != 0;
  }

  StepPrice Price(const BatchShape& shape) const override {
    BetaInput in;
    for (const PrefillChunk& chunk : shape.prefill) {
      const auto n = static_cast<double>(chunk.tokens);
      const auto before = static_cast<double>(chunk.context);
      in.prefill_tokens += n;
      in.prefill_sampled += chunk.samples ? 1 : 0;
      in.prefill_attention_work += (before + n) * n;
      in.prefill_pairs += n * before + n * (n + 1) / 2;
      in.prefill_keys += before + n;
    }
    in.prefill_requests = static_cast<double>(shape.prefill.size());
    in.decode_tokens = in.decode_requests = static_cast<double>(shape.decode_seqs);
    in.decode_context_tokens = static_cast<double>(shape.decode_context_tokens + shape.decode_seqs);
    in.decode_kv_blocks = static_cast<double>(shape.decode_kv_blocks);
    in.transfer_blocks = static_cast<double>(shape.transfer_blocks);
    in.preemption_ema = shape.preemption_ema;
    std::array<double, kBetaFeatures> f = BetaFeatures(constants_, in);
    // Those that know no layers are spread evenly over pipeline stages.
    for (const std::size_t i : {5u, 6u, 7u, 9u, 10u, 11u, 14u, 15u}) f[i] *= share_;
    double us = 0;
    for (std::size_t i = 0; i < f.size(); ++i) us += beta_[i] * f[i];
    const double compute = beta_[0] * f[0] + beta_[1] * f[1] + beta_[3] * f[3];
    const double memory = beta_[2] * f[2] + beta_[4] * f[4];
    const StepBound bound = 2 * compute > us  ? StepBound::kCompute
                            : 2 * memory > us ? StepBound::kBandwidth
                                              : StepBound::kOverhead;
    return {StepTimeOf(std::max(0.0, us), Compat::kNone), bound};
  }

  HostTimes TakeUpTimes(std::int64_t prompt_tokens) const override {
    return {0, DelayUnder(prompt_tokens, {})};
  }
  bool DelayByLoad() const override { return by_load_; }
  TimeNs DelayUnder(std::int64_t prompt_tokens, const EngineLoad& load) const override {
    const double blocks = std::max(1.0, constants_.config.gpu_blocks);
    const auto used = static_cast<double>(load.kv_blocks_used);
    AlphaInput in;
    in.running_depth = static_cast<double>(load.running);
    in.waiting_depth = static_cast<double>(load.waiting);
    in.kv_usage_ratio = used / blocks;
    in.prompt_tokens = static_cast<double>(prompt_tokens);
    in.kv_free_bytes = (blocks - used) * constants_.BlockBytes();
    in.preemption_ema = load.preemption_ema;
    in.prefix_hit_ratio = static_cast<double>(load.cached_tokens) / std::max(1.0, in.prompt_tokens);
    const std::array<double, kAlphaFeatures> f = AlphaFeatures(constants_, in);
    double us = 0;
    for (std::size_t i = 0; i < f.size(); ++i) us += alpha_[i] * f[i];
    return TimeOf(std::max(0.0, us), Compat::kNone);
  }
  bool DelayByCache() const override { return alpha_[6] != 0; }
  double PreemptionWeight() const override { return gamma_; }
  bool PricesTransfers() const override { return true; }

 private:
  PhysicsConstants constants_;
  std::array<double, kAlphaFeatures> alpha_;
  std::array<double, kBetaFeatures> beta_;
  double gamma_, share_;
  bool by_load_ = false;
};

std::unique_ptr<LatencyModel> Make(const Scenario& s, const ModelCost& cost) {
  return std::make_unique<Physics>(s, cost);
}

LatencyLabel Label(const Scenario& s) {
  const bool units =
      s.latency.beta_coefficients == std::vector<double>(kPhysicsBeta.begin(), kPhysicsBeta.end());
  return {"physics", units ? "datasheet" : "coefficients",
          std::string("Physics-normalized features (") + s.latency.variant + ") " +
              (units ? "at the peaks of the data sheet, added up; nothing fitted"
                     : "weighed by the scenario's coefficients"),
          units ? "It adds up ideal times and leaves out the host; analytic is the calibrated one."
                : "The error is that of the coefficients, which is not known here."};
}

}  // namespace

extern const LatencyEntry kEntry = {
    .name = "physics",
    .help = "Dot product of 16 physical features of a step with coefficients",
    .make = OfWholeEngine(Make),
    .label = OfWholeEngine(Label),
    .has = {},
    .lacks = kPlainStepsLack,
    .needs = {Feature::kPreemptionMean},
};

}  // namespace servecast::latency_physics
