#include "serving/replica/pipeline.h"

#include <algorithm>
#include <cmath>

#include "cost/model_cost.h"
#include "cost/nodes.h"

namespace servecast {

std::vector<PipelineStage> MakeStages(const Scenario& s, const LatencyEntry& entry) {
  std::vector<PipelineStage> stages;
  const std::int64_t count = s.cluster.pool().pipeline_parallel;
  for (std::int64_t i = 0; i < count; ++i) {
    const Scenario part = StageScenario(s, i);
    ModelCost cost = WorkOf(part);
    cost.layer_share = static_cast<double>(part.model.num_hidden_layers) /
                       static_cast<double>(s.model.num_hidden_layers);
    PipelineStage stage;
    stage.latency = entry.make(part, cost);
    if (stage.latency == nullptr) return {};
    if (i + 1 < count) {
      const SendTime send = StageSend(s, i);
      stage.send_ns = send.wait_ns;
      stage.send_ns_per_token = cost.collective_bytes_per_token / send.gb_s;
    }
    stages.push_back(std::move(stage));
  }
  return stages;
}

Pipeline::Pipeline(const std::vector<PipelineStage>& stages)
    : stages_(stages), free_(stages.size(), 0), durations_(stages.size()), spans_(stages.size()) {}

StepPrice Pipeline::Price(const BatchShape& shape, TimeNs* durations) const {
  std::int64_t tokens = shape.decode_seqs;
  for (const PrefillChunk& chunk : shape.prefill) tokens += chunk.tokens;
  StepPrice whole;
  whole.duration = 0;
  TimeNs longest = 0;
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    const PipelineStage& stage = stages_[i];
    const StepPrice price = stage.latency->Price(shape);
    const double send = stage.send_ns + stage.send_ns_per_token * static_cast<double>(tokens);
    const TimeNs duration =
        price.duration +
        static_cast<TimeNs>(std::nearbyint(std::min(send, static_cast<double>(kMaxStepNs))));
    if (duration > longest) whole.bound = price.bound;
    longest = std::max(longest, duration);
    whole.duration += duration;
    if (durations != nullptr) durations[i] = duration;
  }
  return whole;
}

StepPrice Pipeline::Enter(const BatchShape& shape, TimeNs start, TimeNs host) {
  const StepPrice price = Price(shape, durations_.data());
  durations_[0] += host;
  TimeNs ready = start;
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    const TimeNs from = std::max(ready, free_[i]);
    ready = from + durations_[i];
    spans_[i] = {from, ready};
    free_[i] = ready;
    busy_ns_ += durations_[i];
  }
  return price;
}

}  // namespace servecast
