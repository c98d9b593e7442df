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
#include "servecast/report.h"
#include "servecast/scenario.h"
#include "serving/hooks.h"
#include "serving/policy.h"
#include "workload/request_table.h"

namespace servecast::testing {

// What windows take of the pool beside a request's blocks: a group of them at every `every`-th
// block, as long as its window is not full.
struct ReferenceWindows {
  std::int64_t groups = 0, every = 1;
  std::int64_t most = 0, most_admitted = 0;  // blocks that fill it; at an admission
};

struct ReferenceInput {
  const RequestTable& requests;  // arrivals that follow: -1; see ReferenceOutput::requests
  EngineSpec engine;
  SchedulerSpec scheduler;
  std::int64_t pool_blocks = 0;    // with the reserved one: usable blocks are one fewer
  std::int64_t model_max_len = 0;  // what the model takes, prompt and output together
  const LatencyModel& latency;
  std::optional<TimeNs> horizon;                       // no step starts at or after it
  std::int64_t kv_block_bytes = 0;                     // of the one GPU
  const std::vector<PipelineStage>* stages = nullptr;  // instead of `latency` for the steps
  std::int64_t seed = 1;                               // of the draws of accepted drafts
  ReferenceWindows windows = {};
  std::int64_t most_image_tokens = 0;  // embeds of the largest image that the model can have
  // The replica fails then: a step that would end later never ends, and who is there is lost.
  std::optional<TimeNs> dies_at = {};
  SlowdownSpec slowdowns = {};
  std::int32_t number = 0;  // of the replica, for its slow periods
};

// How much of the rules a run exercised: tests assert that they are not hollow.
struct ReferenceCoverage {
  std::int64_t resumes = 0;                 // admissions after a preemption
  std::int64_t self_preemptions = 0;        // the request that asked for a block was the victim
  std::int64_t prefill_preemptions = 0;     // the victim was prefilling or recomputing
  std::int64_t unscheduled_victims = 0;     // the victim was in the step already
  std::int64_t empty_calls = 0;             // preempted, and nothing was left to compute
  std::int64_t refused_by_watermark = 0;    // schedule calls whose first refusal was by it alone
  std::int64_t refused_by_full_prompt = 0;  // as above: the first chunk would have fitted
  std::int64_t refused_by_unused_hits = 0;  // as above: but for the hit blocks that nobody holds
  std::int64_t refused_unchunked = 0;       // a prefill beyond the rest of the budget
  std::int64_t enqueued_on_step_end = 0;
  std::int64_t reordered = 0;           // enqueued before a request that arrived earlier
  std::int64_t skipped = 0;             // running requests without a token as the budget was spent
  std::int64_t last_in_flight = 0;      // running requests passed over by rule 22
  std::int64_t hits_on_held = 0;        // blocks hit that another request holds
  std::int64_t hits_on_unused = 0;      // blocks hit that nobody holds
  std::int64_t full_hits = 0;           // all was cached, and the last block is computed again
  std::int64_t same_call_hits = 0;      // blocks hit that this very step computes
  std::int64_t duplicates = 0;          // blocks registered although another holds the same
  std::int64_t late_registrations = 0;  // completed by a token in flight
  std::int64_t stale_tokens = 0;        // delivered to a preempted request
  std::int64_t turns = 0;               // requests that followed another
  std::int64_t timed_out_running = 0;   // by where they were
  std::int64_t timed_out_queued = 0;
  std::int64_t timed_out_in_flight = 0;  // running ones that a step in flight computes
  std::int64_t timed_out_in_the_last_step = 0;
  std::int64_t timed_out_on_the_way = 0;
  std::int64_t refused_by_reserve = 0;  // as by the watermark: the prompt would have fitted
  std::int64_t gc_for_running = 0;      // garbage collections, by who was short of blocks
  std::int64_t gc_for_admission = 0;
  std::int64_t preempted_after_gc = 0;     // nothing was left to collect
  std::int64_t steps_of_many_buckets = 0;  // whose prefills are of several length buckets
  std::int64_t not_offloaded = 0;          // overwritten while less of the pool was in use
  std::int64_t offloaded_again = 0;        // some tier had the content already
  std::int64_t lost_by_tiers = 0;          // blocks that fell out of the last one
  std::int64_t hits_of_both_tiers = 0;     // admissions that load from host memory and from disk
  std::int64_t disk_loads = 0;             // blocks
  std::int64_t behind_gpu_hits = 0;  // admissions that load what goes on where the GPU's hit ends
  std::int64_t waits_for_front_end = 0;  // taken up later than alone
  std::int64_t arrivals_under_load = 0;  // whose delay before the queue depends on it
  std::int64_t arrivals_at_a_cache = 0;  // likewise, on what it has of the prompt
  std::int64_t loop_starts = 0;          // closed loop: sessions that waited for a client
  std::int64_t loop_dues = 0;            // a client that was free waited for what was not yet due
  std::int64_t loop_drops = 0;           // of them dropped
  std::int64_t loop_timeouts = 0;        // time-outs in the queue or running that freed a client
  std::int64_t interfered = 0;           // steps that prefills made longer for decodes
  std::int64_t sat_out = 0;              // steps that a request ran through without a token
  std::int64_t overlapping = 0;          // steps that start while another is in flight
  std::int64_t waits_for_stage = 0;      // a batch was done with one stage, and the next was busy
  std::int64_t waits_for_token = 0;      // running requests passed over, their token in flight
  std::int64_t chunks_in_flight = 0;     // prefills that go on while a chunk of theirs is in flight
  std::int64_t victims_in_flight = 0;
  std::int64_t victims_passed = 0;     // at the head of the queue, with a step in flight
  std::int64_t victims_timed_out = 0;  // queued, with a token in flight
  // Drafts (S1 to S31).
  std::int64_t verified = 0;              // members with drafts
  std::int64_t cut_drafts = 0;            // of them with fewer than waited
  std::int64_t lost_drafts = 0;           // by a preemption
  std::int64_t kept_drafts = 0;           // a request was not reached
  std::int64_t padded = 0;                // admissions
  std::int64_t padding_waits = 0;         // admissions that end for it
  std::int64_t dropped_hits = 0;          // last blocks found that do not count
  std::int64_t cut_outputs = 0;           // accepted tokens beyond a request's end
  std::int64_t unneeded = 0;              // members of requests that had ended
  std::int64_t ended_in_queue = 0;        // victims, by a step in flight
  std::int64_t refused_by_lookahead = 0;  // admissions that pass the test of the whole prompt
  std::int64_t adapters_without_seat = 0;
  std::int64_t rejected_by_requests = 0;  // by the caps of the queue (S32, S33)
  std::int64_t rejected_by_tokens = 0;
  std::int64_t retries = 0;           // of attempts that timed out
  std::int64_t retries_rejected = 0;  // that were turned away
  std::int64_t last_attempts = 0;     // that failed
  std::int64_t over_budget = 0;       // retries that were not sent
  std::int64_t window_blocks = 0;
  std::int64_t full_windows = 0;  // a decode that needs a block, and its windows none
  std::int64_t refused_by_windows = 0;
  std::int64_t encoded_images = 0, image_hits = 0, evicted_images = 0;
  std::int64_t cut_before_images = 0;   // chunks
  std::int64_t waits_for_encoder = 0;   // running requests without a token for an image
  std::int64_t refused_by_encoder = 0;  // admissions likewise
  std::int64_t unencoded_victims = 0;   // images of victims that the step had already
};

struct ReferenceOutput {
  RequestTable requests;  // the input's, with the arrivals of later turns
  RequestResults results;
  PrefixCacheReport prefix_cache;
  SchedulerCounts counts;
  KvOffloadReport kv_offload;
  std::vector<StepRecord> steps;
  std::vector<RequestTimes> times;  // by row; of the completed
  std::int64_t preemptions = 0;
  std::int64_t dropped = 0;
  std::int64_t timed_out = 0;
  std::int64_t rejected = 0;
  std::int64_t length_capped = 0;
  std::map<TimeNs, std::int64_t> itl;  // gap between two tokens of a request -> how often
  std::int64_t peak_kv_blocks = 0;     // after a schedule call
  std::int64_t allocation_failures = 0;
  std::int64_t peak_kv_unused = 0;  // tokens, of the blocks' room, likewise
  __int128 kv_unused_ns = 0;
  // From the end of a request's step to the start of its next -> how often.
  std::map<TimeNs, std::int64_t> step_delays;

  // Integrals over time until `end`, in units times nanoseconds. Of the batches: the level right
  // after the schedule call, while the batch is on the device. Of the queue: as it changes.
  __int128 running_ns = 0;  // requests in the running list
  __int128 waiting_ns = 0;  // requests in the queue
  __int128 kv_block_ns = 0;
  __int128 batch_token_ns = 0;  // tokens of the step in execution
  // What the steps have to do.
  __int128 tokens = 0, decode_keys = 0, prefill_keys = 0, prefill_pairs = 0;
  std::int64_t steps_without_head = 0;
  TimeNs busy_ns = 0;
  TimeNs end = 0;

  ReferenceCoverage coverage;
};

// Runs the scenario to its end. O(steps * requests in the system).
ReferenceOutput RunReference(const ReferenceInput& input);

}  // namespace servecast::testing
