// What coefficients are trained on: features of steps and of requests, beside the times that they
// took. docs/physics-model.md, "Training", says where each feature comes from.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/base.h"
#include "calibrate/step_trace.h"
#include "servecast/result.h"
#include "servecast/scenario.h"

namespace servecast {

// Weights that the moving average of preemptions is tried with.
inline constexpr std::array<double, 3> kGammas = {0.1, 0.3, 0.5};

struct TrainingSample {
  std::vector<double> features;                 // 16 of a step, 11 of a request
  std::array<double, kGammas.size()> smoothed;  // the feature of preemptions, by weight
  double target_us = 0, weight = 1;
  TimeNs at = 0;
  // What errors are told by.
  double batch = 0, context = 0, waiting = 0, running = 0, utilization = 0, kv_usage = 0;
  double tokens = 0, prefill_tokens = 0, preemption = 0;
  double prompt = 0;    // tokens, of a request
  bool behind = false;  // a request that came while another was on its way to the queue
};

// Of one configuration, in order of time.
struct TrainingSamples {
  std::vector<TrainingSample> beta;   // of steps
  std::vector<TrainingSample> alpha;  // of requests: arrived to queued
  std::vector<TrainingSample> wait;   // of requests: queued to scheduled
  std::vector<std::string> found;     // what was used, left out and put in its place
};

// Places of the feature of preemptions.
inline constexpr std::size_t kAlphaPreemption = 8, kBetaPreemption = 11;

// Issues: chunked prefill without snapshots, whose attention no summary tells; a model that does
// not fit. O(steps + members + requests log).
Result<TrainingSamples> SamplesOf(const StepTrace& trace, const Scenario& scenario);

}  // namespace servecast
