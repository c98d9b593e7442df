// See scaled_times.h.
#include "experiment/scaled_times.h"

#include <algorithm>
#include <utility>

namespace servecast {
namespace {

TimeNs TimesFactor(TimeNs time, double factor) {
  return NearestNs(static_cast<double>(time) * factor);
}

class ScaledModel final : public LatencyModel {
 public:
  ScaledModel(std::shared_ptr<const LatencyModel> model, const ErrorFactors& factors)
      : model_(std::move(model)), factors_(factors) {}

  StepPrice Price(const BatchShape& shape) const override {
    if (shape.images > 0) return PriceEncoding(shape);
    StepPrice price = model_->Price(shape);
    double ns = static_cast<double>(price.duration);
    if (shape.prefill.empty()) {
      ns *= factors_.step;
    } else if (shape.decode_seqs == 0 && shape.drafted.empty()) {
      ns *= factors_.prompt;
    } else {
      BatchShape decodes = shape;
      decodes.prefill = {};
      const double alone = std::min(static_cast<double>(model_->Price(decodes).duration), ns);
      ns = alone * factors_.step + (ns - alone) * factors_.prompt;
    }
    const auto most = static_cast<double>(kMaxStepNs);
    price.duration = std::max<TimeNs>(NearestNs(std::min(ns, most)), 1);
    return price;
  }
  HostTimes TakeUpTimes(std::int64_t prompt_tokens) const override {
    const HostTimes times = model_->TakeUpTimes(prompt_tokens);
    return {TimesFactor(times.work, factors_.prompt), TimesFactor(times.wait, factors_.prompt)};
  }
  bool DelayByLoad() const override { return model_->DelayByLoad(); }
  TimeNs DelayUnder(std::int64_t prompt_tokens, const EngineLoad& load) const override {
    return TimesFactor(model_->DelayUnder(prompt_tokens, load), factors_.prompt);
  }
  bool DelayByCache() const override { return model_->DelayByCache(); }
  double PreemptionWeight() const override { return model_->PreemptionWeight(); }
  bool PricesTransfers() const override { return model_->PricesTransfers(); }
  bool PricesLongest() const override { return model_->PricesLongest(); }
  TimeNs OutputTokenDelay() const override {
    return TimesFactor(model_->OutputTokenDelay(), factors_.step);
  }
  TimeNs DeliveryDelay() const override {
    return TimesFactor(model_->DeliveryDelay(), factors_.prompt);
  }
  StallTimes Stalls() const override { return model_->Stalls(); }
  TimeNs PostDecodeDelay() const override { return model_->PostDecodeDelay(); }

 private:
  StepPrice PriceEncoding(const BatchShape& shape) const {
    BatchShape without = shape;
    without.images = 0;
    StepPrice price = model_->Price(shape);
    const TimeNs encode = price.duration - model_->Price(without).duration;
    price.duration =
        std::min(Price(without).duration + TimesFactor(encode, factors_.encode), kMaxStepNs);
    return price;
  }

  std::shared_ptr<const LatencyModel> model_;
  ErrorFactors factors_;
};

}  // namespace

std::unique_ptr<const LatencyModel> Scaled(std::shared_ptr<const LatencyModel> model,
                                           const ErrorFactors& factors) {
  return std::make_unique<const ScaledModel>(std::move(model), factors);
}

Result<std::shared_ptr<Deployment>> DeployScaled(Scenario scenario, const ErrorFactors& factors) {
  if (scenario.cluster.pools.size() == 1) scenario.UsePool(0);
  Result<Deployment> deployment = Deploy(scenario, false);
  if (!deployment.ok()) return Issues(deployment.issues());
  for (Pool& pool : deployment.value().pools) {
    pool.latency = Scaled(std::move(pool.latency), factors);
    for (PipelineStage& stage : pool.stages) {
      stage.latency = Scaled(std::move(stage.latency), factors);
    }
  }
  return std::make_shared<Deployment>(std::move(deployment.value()));
}

}  // namespace servecast
