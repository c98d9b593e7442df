// The slow, obvious reference simulator: what the engine must compute, said the naive way -
// objects, plain loops, every request touched in every step. The differential tests say that both
// agree, and a reader who wants to know what the engine means reads this one.
//
// It shares no engine code: only the public headers, the request table, the latency model's
// interface and the step record. Rules are quoted by the numbers of the vLLM golden traces' README.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/base.h"
#include "servecast/scenario.h"
#include "serving/hooks.h"
#include "serving/policy.h"
#include "workload/request_table.h"

namespace servecast::testing {

struct ReferenceInput {
  const RequestTable& requests;
  EngineSpec engine;
  std::int64_t pool_blocks = 0;    // with the reserved one: usable blocks are one fewer
  std::int64_t model_max_len = 0;  // what the model takes, prompt and output together
  const LatencyModel& latency;
  std::optional<TimeNs> horizon;  // no step starts at or after it
};

struct ReferenceOutput {
  RequestResults results;
  std::vector<StepRecord> steps;
  std::int64_t preemptions = 0;
  std::int64_t dropped = 0;
  std::int64_t length_capped = 0;
  std::map<TimeNs, std::int64_t> itl;  // gap between two tokens of a request -> how often
  std::int64_t peak_kv_blocks = 0;     // after a schedule call

  // Integrals over time until `end`, in units times nanoseconds.
  __int128 running_ns = 0;  // requests in the running list
  __int128 waiting_ns = 0;  // requests in the queue
  __int128 kv_block_ns = 0;
  __int128 batch_token_ns = 0;  // tokens of the step in execution
  TimeNs busy_ns = 0;
  TimeNs end = 0;

  // How much of the rules the run exercised; tests assert that they are not hollow.
  std::int64_t resumes = 0;            // admissions after a preemption
  std::int64_t skipped_decoders = 0;   // decodes that got no token as the budget was spent
  std::int64_t passed_over_steps = 0;  // schedule calls that found work and could do none of it
};

// Runs the scenario to its end. O(steps * requests in the system).
ReferenceOutput RunReference(const ReferenceInput& input);

}  // namespace servecast::testing
