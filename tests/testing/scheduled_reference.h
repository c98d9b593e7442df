// The schedulers after Vidur and pipeline stages, a second time and the naive way, from
// docs/model.md ("Other schedulers"). Shares no code with the engine but types, the request table
// and the latency model's interface.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/base.h"
#include "servecast/report.h"
#include "servecast/scenario.h"
#include "serving/hooks.h"
#include "testing/scheduled_reference_rules.h"
#include "workload/request_table.h"

namespace servecast::testing {

struct ScheduledReferenceInput {
  RequestTable requests;
  const LatencyModel* latency = nullptr;
  ScheduledSettings settings;  // in_order_of_enqueue and victim_by_priority follow from the spec
  SchedulerSpec scheduler;
  // A stage takes `weight` times what `latency` says, then sends to the next one.
  struct Stage {
    TimeNs weight = 1, send = 0, send_per_token = 0;
  };
  std::vector<Stage> stages = std::vector<Stage>(1);
  TimeNs horizon = kNever;
  std::int64_t front_end_servers = 1;
};

struct ScheduledReferenceOutput {
  RequestTable requests;  // with the arrivals of later turns
  RequestResults results;
  std::vector<StepRecord> steps;
  std::map<TimeNs, std::int64_t> itl;
  std::array<TimeNs, 4> blocked_ns{};  // by BlockedBy
  __int128 running_ns = 0, waiting_ns = 0, block_ns = 0, token_ns = 0;
  std::int64_t output_tokens = 0, preemptions = 0, length_capped = 0, timed_out = 0;
  std::int64_t prefill_tokens = 0, padding_tokens = 0;
  std::int64_t allocation_failures = 0, peak_unused = 0;
  __int128 unused_ns = 0;                      // tokens that KV blocks have room for
  std::map<TimeNs, std::int64_t> step_delays;  // between two batches of a request -> how often
  PrefixCacheReport prefix_cache;
  TimeNs now = 0;
  // What the cases contain.
  std::int64_t self_restarts = 0, partial_restarts = 0, overlapping = 0, chunked = 0;
  std::int64_t aborted_in_flight = 0, overtaken = 0, urgent_restarts = 0;
  std::int64_t from_the_middle = 0;
};

ScheduledReferenceOutput RunScheduledReference(const ScheduledReferenceInput& input);

}  // namespace servecast::testing
