// Whether a latency model with its coefficients can be physically true: no coefficient of a sign
// that nature does not have, and no step faster than the data sheet's peaks allow. For the command.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cost/model_cost.h"
#include "serving/policy.h"

namespace servecast {

// The longer of a step's FLOPs at the peak and its bytes at the peak bandwidth, ns; per GPU.
double LeastStepNs(const Scenario& scenario, const ModelCost& cost, const BatchShape& shape);

struct LightCheck {
  std::int64_t batches = 0, faster = 0;
  std::int64_t shorter =
      0;                   // that take less time with one more decode, or 16 tokens more to prefill
  double least_share = 0;  // the shortest price as a share of what is possible
  std::string fastest;     // that batch, in words
};

// And whether more work takes longer. Over a grid of batches that the engine may form.
LightCheck CheckSpeedOfLight(const Scenario& scenario, const ModelCost& cost,
                             const LatencyModel& model);

// Of the coefficients of "physics": those that cannot be, in words.
std::vector<std::string> ImplausibleSigns(const LatencySpec& latency);

}  // namespace servecast
