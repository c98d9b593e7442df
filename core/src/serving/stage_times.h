// Step times of pipeline stages: each stage has its share of the layers, and sends what it computed
// to the next one.
#pragma once

#include <cstdint>
#include <memory>

#include "serving/policy.h"

namespace servecast {

class StageTimes {
 public:
  virtual ~StageTimes() = default;
  // Of a batch in a stage (from 0), sending it on included. Pure.
  virtual StepPrice Price(const BatchShape& shape, std::int64_t stage) const = 0;
};

// With `whole`, which outlives it. `by_layers`: it is the scenario's latency model, which prices
// the layers of a stage: host work once, in the first, LM head and sampler in the last, and every
// stage as the longest. Other models know only whole steps: each stage takes an equal part. Sending
// takes the link's latency and the hidden states of the tokens over its bandwidth.
std::unique_ptr<StageTimes> MakeStageTimes(const Scenario& scenario, const ModelCost& cost,
                                           const LatencyModel& whole, bool by_layers);

}  // namespace servecast
