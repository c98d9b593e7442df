// What a steady load does to an engine, in closed form: a few dozen prices and no simulation. For
// the command, which shows it beside what is simulated; nothing of it goes into a simulation.
#pragma once

#include "cost/model_cost.h"
#include "serving/policy.h"

namespace servecast {

struct Demand {
  double requests_per_s = 0;
  double prompt_tokens = 0, output_tokens = 0;  // means
  double prefix_hit_ratio = 0;                  // of the prompts, computed nowhere
};

struct Estimate {
  Demand demand;
  bool overloaded = false;  // then with every seat taken
  double most_requests_per_s = 0;
  double running = 0, waiting = 0;
  double kv_usage = 0;
  double step_ms = 0;
  double host_ms = 0;        // from arrival to the queue
  double delivery_ms = 0;    // of a first token, behind those of its step and stalls of the host
  double regression_ms = 0;  // wait in the queue: wait_coefficients times the features there
  double step_wait_ms = 0;   // until the next step that can take it begins
  double ttft_ms = 0, tpot_ms = 0, e2e_ms = 0;
};

// The state in which as many requests run as Little's law asks for, given the step time that they
// cause: n = rate (outputs - 1) step(n). Overloaded: what grows without end is infinite.
// Requires: a rate and lengths above 0.
Estimate EstimateSteadyState(const Scenario& scenario, const ModelCost& cost,
                             const LatencyModel& model, const Demand& demand);
// Its step_ms alone, for a part of the time.
double SteadyStepMs(const Scenario& scenario, const ModelCost& cost, const LatencyModel& model,
                    const Demand& demand);

}  // namespace servecast
