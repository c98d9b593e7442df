#include "serving/replica/draft_latency.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cost/model_cost.h"
#include "serving/replica/draft_rules.h"

namespace servecast {
namespace {

class DraftedLatency final : public LatencyModel {
 public:
  DraftedLatency(std::unique_ptr<LatencyModel> model, std::unique_ptr<LatencyModel> drafter,
                 const EngineSpec& engine)
      : model_(std::move(model)),
        drafter_(std::move(drafter)),
        rules_(engine),
        at_once_(engine.speculative.DraftsAtOnce()),
        look_up_(NearestNs(engine.speculative.draft_overhead_us * 1e3)) {}

  StepPrice Price(const BatchShape& shape) const override {
    StepPrice price = model_->Price(shape);
    const TimeNs drafting = drafter_ == nullptr ? look_up_ : Drafting(shape);
    price.duration = std::min(price.duration + drafting, kMaxStepNs);
    return price;
  }

  HostTimes TakeUpTimes(std::int64_t prompt) const override { return model_->TakeUpTimes(prompt); }
  bool DelayByLoad() const override { return model_->DelayByLoad(); }
  TimeNs DelayUnder(std::int64_t prompt, const EngineLoad& load) const override {
    return model_->DelayUnder(prompt, load);
  }
  bool DelayByCache() const override { return model_->DelayByCache(); }
  double PreemptionWeight() const override { return model_->PreemptionWeight(); }
  bool PricesTransfers() const override { return model_->PricesTransfers(); }
  bool PricesLongest() const override { return model_->PricesLongest(); }
  TimeNs OutputTokenDelay() const override { return model_->OutputTokenDelay(); }
  TimeNs DeliveryDelay() const override { return model_->DeliveryDelay(); }
  StallTimes Stalls() const override { return model_->Stalls(); }
  TimeNs PostDecodeDelay() const override { return model_->PostDecodeDelay(); }

 private:
  // One pass over the step's tokens, which its KV cache needs, too, and chooses the first draft of
  // each request; then one for each further draft, of a token a request.
  TimeNs Drafting(const BatchShape& shape) const {
    const std::int64_t drafted = shape.DraftedSequences();
    const std::int64_t drafts =
        rules_.After(shape.decode_seqs + drafted + static_cast<std::int64_t>(shape.prefill.size()));
    if (drafts == 0) return 0;
    BatchShape first = shape;
    passed_.assign(shape.drafted.begin(), shape.drafted.end());
    BatchShape last{
        shape.decode_seqs + drafted, shape.decode_context_tokens + shape.decode_seqs, {}};
    for (DraftedDecodes& decodes : passed_) {
      decodes.logits = 1;
      last.decode_context_tokens += decodes.Keys();
    }
    for (const PrefillChunk& chunk : shape.prefill) {
      if (!chunk.samples) continue;
      ++last.decode_seqs;
      last.decode_context_tokens += chunk.context + chunk.tokens;
    }
    const bool more = drafts > 1 && last.decode_seqs > 0;
    if (at_once_ && more) {  // one pass, with a slot for each
      passed_.push_back({drafts - 1, last.decode_context_tokens, last.decode_seqs});
    }
    first.drafted = passed_;
    TimeNs time = drafter_->Price(first).duration;
    for (std::int64_t draft = 1; draft < drafts && !at_once_ && more; ++draft) {
      time += drafter_->Price(last).duration;
      last.decode_context_tokens += last.decode_seqs;
    }
    return time;
  }

  std::unique_ptr<LatencyModel> model_, drafter_;  // nullptr: nothing that the GPU computes
  DraftRules rules_;
  bool at_once_;
  TimeNs look_up_;
  mutable std::vector<DraftedDecodes> passed_;  // scratch
};

}  // namespace

std::shared_ptr<const LatencyModel> WithDrafter(std::unique_ptr<LatencyModel> model,
                                                const Scenario& s, const LatencyEntry& entry) {
  const SpeculativeSpec& drafts = s.engine.speculative;
  // Coefficients of whole steps have what a drafter took in them.
  if (!drafts.On() || entry.name == "blackbox") return model;
  std::unique_ptr<LatencyModel> drafter;
  if (drafts.HasDrafter()) {
    const Scenario of_drafter = DrafterScenario(s);
    drafter = entry.make(of_drafter, WorkOf(of_drafter));
  }
  return std::make_shared<DraftedLatency>(std::move(model), std::move(drafter), s.engine);
}

}  // namespace servecast
