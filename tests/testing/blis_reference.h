// The simulator BLIS, said the naive way a second time: per token and per block, with a list of
// tokens in every block and a look at every request in every step. What
// serving/blis/blis_replica.cpp computes by rules of its own reading must be what this one
// computes; the differential test says so. Written from the description of BLIS alone; it shares no
// engine code but the public types, the request table and the interface of the latency models.
//
// Two eras, as Compat has them: of February 2026 (git 98073225) and of today (f90a1e3a).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "servecast/scenario.h"
#include "serving/policy.h"
#include "testing/blis_reference_kv.h"
#include "workload/request_table.h"

namespace servecast::testing {

struct BlisReferenceInput {
  const RequestTable& requests;  // without a closed loop
  EngineSpec engine;             // its compat is an era
  SchedulerSpec scheduler;
  std::int64_t blocks = 0;
  std::int64_t model_max_len = 0;  // of prompt and output together, unless the engine has one
  const LatencyModel& latency;
  std::optional<TimeNs> horizon;
  std::int64_t most_steps = INT64_MAX;  // BLIS may go on for ever
  BlisHost host = {};
};

// What a run went through: tests assert that they are not hollow.
struct BlisCoverage {
  std::int64_t preemptions_of_who_asked = 0, preemptions_of_prefills = 0;
  std::int64_t preemptions_not_of_the_tail = 0;
  std::int64_t victims_given_tokens =
      0;                             // February: a preempted request got tokens in that very step
  std::int64_t parallel_chains = 0;  // February: steps while another was on its way already
  std::int64_t out_of_budget = 0;    // steps that had no tokens for all who run
  std::int64_t all_cached = 0;       // admitted without a token to compute
  std::int64_t empty_steps = 0;
  std::int64_t overlaps = 0;  // steps that began before the end of the one before
  std::int64_t timed_out_running = 0, timed_out_queued = 0, timed_out_before = 0;
  std::int64_t dropped_too_long = 0, dropped_too_big = 0;
  std::int64_t final_slot_refused = 0;
  std::int64_t turns = 0;
};

struct BlisReferenceOutput {
  bool february = false;  // its rules
  bool endless = false;   // stopped after most_steps
  RequestTable requests;  // the input's, with the arrivals of later turns
  // As RequestResults has it, in ns. `first_scheduled` is the last admission, as BLIS has it.
  RequestResults results;
  std::map<TimeNs, std::int64_t> gaps;  // between two tokens -> how often; of completed requests
  std::int64_t steps = 0, steps_with_members = 0, preemptions = 0, length_capped = 0;
  BlisReferenceKv::Counts kv;
  std::int64_t input_tokens = 0, output_tokens = 0;  // as BLIS counts them
  std::int64_t used_blocks = 0;                      // in the end
  std::int64_t allocation_failures = 0;
  std::int64_t peak_unused = 0;  // tokens for which used blocks have room, in a step at most
  std::map<TimeNs, std::int64_t> step_delays;  // between two steps of a request -> how often
  TimeNs end = 0;
  BlisCoverage coverage;
};

BlisReferenceOutput RunBlisReference(const BlisReferenceInput& input);

}  // namespace servecast::testing
