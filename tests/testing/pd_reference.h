// The slow, obvious reference of a cluster of pools that differ, and of one where some prefill and
// others decode, behind any routers, each by vLLM's rules or another scheduler's, with pipeline
// stages or without: every block, request and transfer an object, one event after the other. It
// shares nothing with the engine but types, the request table and the latency model's interface,
// and nothing with reference_sim, which knows one replica; of that one's rules it leaves out
// priorities, tiers of memory, garbage collection and closed loops. A replica's scheduler is in
// pd_reference_vllm.cpp or pd_reference_scheduled.cpp, how a gateway chooses in reference_rules.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/base.h"
#include "servecast/scenario.h"
#include "serving/hooks.h"
#include "serving/policy.h"
#include "testing/pd_reference_members.h"
#include "testing/router_choice.h"
#include "workload/request_table.h"

namespace servecast::testing {

struct PdPool {
  PoolRole role = PoolRole::kMixed;
  std::int64_t replicas = 1;
  EngineSpec engine;
  std::int64_t pool_blocks = 0;
  std::int64_t block_bytes = 0, gpus = 1;
  const LatencyModel* latency = nullptr;
  std::string scheduler = "vllm";
  const std::vector<PipelineStage>* stages = nullptr;  // nullptr: one
  SlowdownSpec slowdowns = {};                         // of one stage
  // With any of them routers are round_robin, random or least_outstanding, without parameters.
  std::optional<PdScaling> scaling = {};
  TimeNs grace = kNever;  // how long a replica drains at most
};

struct PdInput {
  const RequestTable& requests;
  std::string order = "fcfs";  // or sjf
  std::vector<PdPool> pools;   // in the order of their replicas' numbers
  std::int64_t max_len = 0;
  RouterChoice router, decode_router;
  DisaggregationSpec disaggregation;
  std::optional<TimeNs> horizon;
  std::int64_t front_end_servers = 1;
  std::optional<FailureSpec> failures = {};  // with the router's seed; of vLLM's rules, one stage
};

struct PdCoverage {
  std::int64_t transfers = 0, shared_transfers = 0;    // shared: with another under way
  std::int64_t empty_transfers = 0, local_blocks = 0;  // blocks that the decode side had
  std::int64_t waited_for_blocks = 0, waited_for_a_seat = 0;
  std::int64_t slept = 0, lost_tokens = 0, decode_preemptions = 0, served_whole = 0;
  std::int64_t gave_up_queued = 0, gave_up_under_way = 0, gave_up_arrived = 0;
  std::int64_t prefill_waited_for_transfers = 0;
  // At gateways: placed with old signals; held, before prefills and before decodes.
  std::int64_t stale = 0, held = 0, held_to_decode = 0, gave_up_held = 0, gave_up_to_decode = 0;
  std::int64_t looks = 0;
  std::int64_t victims_in_flight = 0, lost_fresh = 0, left_in_flight = 0;
  // Replicas that start and drain; that drained with nothing but KV for others.
  std::int64_t started = 0, drained = 0, kept_kv = 0, held_for_none = 0;
  // With a replica: that prefills, or decodes, or whole requests' alone. Of requests whose KV was
  // to come: at the moment of the hand-over, at the gateway, in the queue, on its way.
  std::int64_t lost_prefills = 0, lost_decodes = 0, lost_as_handed_over = 0, lost_held = 0,
               lost_queued = 0, lost_under_way = 0;
  std::int64_t refused = 0, refused_to_decode = 0, freed_by_failures = 0, links_shared_again = 0;
  std::int64_t cut = 0, cut_with_kv = 0, died_draining = 0, ended_in_time = 0, retries = 0;
  std::int64_t blocks_back = 0;                          // of clients that gave up before
  std::int64_t batches_in_flight = 0, kept_waiting = 0;  // beside others; decodes by prompts
};

struct PdOutput {
  RequestTable requests;
  RequestResults results;
  std::vector<RequestTimes> times;             // by row; of the completed
  std::vector<std::vector<StepRecord>> steps;  // by replica
  std::int64_t output_tokens = 0;
  std::optional<PdMembers> members;
  PdCoverage coverage;
};

PdOutput RunPdReference(const PdInput& input);

}  // namespace servecast::testing
