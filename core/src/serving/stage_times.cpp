#include "serving/stage_times.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "cost/model_cost.h"

namespace servecast {
namespace {

TimeNs Sum(TimeNs a, TimeNs b) { return std::min(a + b, kMaxStepNs); }

std::int64_t TokensOf(const BatchShape& shape) {
  std::int64_t tokens = shape.decode_seqs;
  for (const PrefillChunk& chunk : shape.prefill) tokens += chunk.tokens;
  return tokens;
}

class Stages final : public StageTimes {
 public:
  Stages(const Scenario& s, const ModelCost& cost, const LatencyModel& whole, bool by_layers)
      : whole_(whole), stages_(cost.pipeline_parallel) {
    latency_ns_ = s.hardware.interconnect_latency_us * 1e3;
    if (s.hardware.interconnect_gb_s > 0) {
      token_ns_ = cost.collective_bytes_per_token / s.hardware.interconnect_gb_s;
    }
    if (!by_layers || stages_ == 1) return;
    const LatencyEntry& entry = FindLatencyModel(s.latency.backend);
    for (std::int64_t stage = 0; stage < stages_; ++stage) {
      Scenario part = s;
      ModelCost part_cost = cost;
      if (stage > 0) part.engine.step_overhead_us = part.engine.sequence_overhead_us = 0;
      if (stage + 1 < stages_) {
        part.engine.sampler_ns_per_logit = 0;
        part_cost.lm_head_bytes = part_cost.lm_head_flops_per_token = 0;
      }
      parts_.push_back(entry.make(part, part_cost));
    }
  }

  StepPrice Price(const BatchShape& shape, std::int64_t stage) const override {
    if (stages_ == 1) return whole_.Price(shape);
    StepPrice price = parts_.empty() ? whole_.Price(shape)
                                     : parts_[static_cast<std::size_t>(stage)]->Price(shape);
    if (parts_.empty()) price.duration = CeilDiv(price.duration, stages_);
    if (stage + 1 == stages_) return price;
    const double send = latency_ns_ + token_ns_ * static_cast<double>(TokensOf(shape));
    const double most = std::min(send, static_cast<double>(kMaxStepNs));
    price.duration = Sum(price.duration, static_cast<TimeNs>(std::nearbyint(most)));
    return price;
  }

 private:
  const LatencyModel& whole_;
  std::int64_t stages_;
  double latency_ns_ = 0, token_ns_ = 0;
  std::vector<std::unique_ptr<LatencyModel>> parts_;  // by stage
};

}  // namespace

std::unique_ptr<StageTimes> MakeStageTimes(const Scenario& scenario, const ModelCost& cost,
                                           const LatencyModel& whole, bool by_layers) {
  return std::make_unique<Stages>(scenario, cost, whole, by_layers);
}

}  // namespace servecast
