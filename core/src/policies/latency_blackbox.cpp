// Step time from coefficients that were fitted on a server: step = b0 + b1 prefill tokens + b2
// decode tokens; delay before the queue = a0 + a1 prompt tokens; a2 per output token, accumulated
// at the client without holding the GPU (host work that overlaps with the next step). The form of
// BLIS's default model; whether a set is faster than light is for its author to know.
#include "cost/model_cost.h"
#include "serving/microseconds.h"
#include "serving/policy.h"

namespace servecast::latency_blackbox {
namespace {

class Blackbox final : public LatencyModel {
 public:
  Blackbox(const Scenario& s, const ModelCost& cost)
      : spec_(s.latency), compat_(s.engine.compat), share_(cost.layer_share) {}

  StepPrice Price(const BatchShape& shape) const override {
    double prefill_tokens = 0;
    for (const PrefillChunk& chunk : shape.prefill) {
      prefill_tokens += static_cast<double>(chunk.tokens);
    }
    std::int64_t decoded = shape.decode_seqs;
    for (const DraftedDecodes& decodes : shape.drafted) {
      decoded += decodes.tokens * decodes.sequences;
    }
    const double us = spec_.beta[0] + spec_.beta[1] * prefill_tokens +
                      spec_.beta[2] * static_cast<double>(decoded);
    // A linear form says nothing of what bounds it.
    return {StepTimeOf(us * share_, compat_), StepBound::kOverhead};
  }

  HostTimes TakeUpTimes(std::int64_t prompt_tokens) const override {
    return TakeUpTimesOf(spec_.alpha, prompt_tokens, compat_);
  }

  TimeNs OutputTokenDelay() const override { return TimeOf(spec_.alpha[2], compat_); }

 private:
  LatencySpec spec_;
  Compat compat_;
  double share_;  // of a pipeline stage: it knows no layers, so all is spread evenly over them
};

std::unique_ptr<LatencyModel> Make(const Scenario& s, const ModelCost& cost) {
  return std::make_unique<Blackbox>(s, cost);
}

LatencyLabel Label(const Scenario& s) {
  return {
      "blackbox", "coefficients",
      std::string("Linear in prefill and decode tokens, by the scenario's coefficients; per-token "
                  "host time accumulates at the client") +
          (s.engine.max_loras > 0 ? "; adapters cost what the coefficients have of them" : ""),
      "The error is that of the coefficients, which is not known here."};
}

}  // namespace

extern const LatencyEntry kEntry = {
    .name = "blackbox",
    .help = "Linear coefficients fitted on a server (alpha and beta, microseconds)",
    .make = OfWholeEngine(Make),
    .label = OfWholeEngine(Label),
    .has = kModelForms | Features{Feature::kDrafts, Feature::kAdapters, Feature::kExpertReplicas,
                                  Feature::kFloat32},
    .lacks = kPlainStepsLack,
};

}  // namespace servecast::latency_blackbox
