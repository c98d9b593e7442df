// Small random scenarios, made to be nasty: scarce KV, tight budgets, thresholds, bursts, arrivals
// on step ends, horizons, caps and drops; prompts that begin alike, conversations, every order of
// the queue, time-outs. A case is a function of its seed, on every platform.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/base.h"
#include "cost/kv_groups.h"
#include "servecast/scenario.h"
#include "serving/policy.h"
#include "testing/reference_sim.h"
#include "workload/request_table.h"

namespace servecast::testing {

// A step time that looks at every part of the shape, so that a wrong shape shows as a wrong time.
// All in nanoseconds.
struct RandomLatencySpec {
  TimeNs base = 1000;
  TimeNs per_decode = 0;
  TimeNs per_decode_context = 0;
  TimeNs per_chunk_token = 0;    // times 1 for the first chunk, 2 for the second, ...
  TimeNs per_chunk_context = 0;  // likewise
  TimeNs per_chunk_prompt = 0;   // likewise
  TimeNs per_chunk_sample = 0;   // likewise
  TimeNs per_adapter = 0, per_adapter_token = 0;
  TimeNs per_image = 0;
  TimeNs enqueue_base = 0;
  TimeNs enqueue_per_token = 0;
  TimeNs enqueue_scramble = 0;            // up to this much more, by a hash of the prompt length
  std::int64_t enqueue_work_percent = 0;  // of all that, which holds a server of the front end
  TimeNs output_token_delay = 0;
  TimeNs delivery_delay = 0;
  StallTimes stalls;
  TimeNs post_decode_delay = 0;  // by BLIS's rules only
  // The engine's own model "physics" with these coefficients, instead of all but `base`.
  std::optional<LatencySpec> physics;
};

// A stage takes `weight` times what the whole model would.
struct RandomStage {
  TimeNs weight = 1;
  TimeNs send = 0, send_per_token = 0;
};

// Layers of a stage that have a window, beside others. What follows is planned from them.
struct RandomWindows {
  std::int64_t layers = 0, others = 2, window = 0;
  KvWindows held;
  std::int64_t pool_blocks = 0;
};

struct RandomCase {
  std::uint64_t seed = 0;
  RequestTable requests;
  EngineSpec engine;  // num_gpu_blocks_override is set
  SchedulerSpec scheduler;
  std::int64_t model_max_len = 0;
  RandomLatencySpec latency;
  std::optional<TimeNs> horizon;
  std::vector<RandomStage> stages;  // of a pipeline; empty: one
  RandomWindows windows;
  std::int64_t most_image_tokens = 0;  // of the largest image that the model can have; 0: none
  SlowdownSpec slowdowns = {};         // of up to four replicas; one alone is the first

  std::int64_t PoolBlocks() const {
    return windows.layers > 0 ? windows.pool_blocks : *engine.num_gpu_blocks_override;
  }
  // Of the model that every case runs (engine_run.cpp).
  std::int64_t KvBlockBytes() const { return 1024 * engine.block_size; }
};

RandomCase MakeRandomCase(std::uint64_t seed);
// The case, or that with drafts, of a model in which some layers have a window; no KV offload.
RandomCase MakeRandomWindowCase(std::uint64_t seed);
// The case, in one stage, of prompts with images.
RandomCase MakeRandomImageCase(std::uint64_t seed);
// The case, or that with drafts, whose clients try again.
// Rows for retries, as many of each request, behind all.
void SetRetries(RequestTable& requests, const std::vector<TimeNs>& backoff);
RandomCase MakeRandomRetryCase(std::uint64_t seed);

// The case, whose clients hedge.
RandomCase MakeRandomHedgeCase(std::uint64_t seed);

std::unique_ptr<LatencyModel> MakeLatency(const RandomCase& random_case);
// Over `latency`, which outlives them.
std::vector<PipelineStage> MakeStages(const std::vector<RandomStage>& stages,
                                      const LatencyModel& latency);

// `dies_at`, `number`: as ReferenceInput has them.
ReferenceOutput RunReference(const RandomCase& random_case, std::optional<TimeNs> dies_at = {},
                             std::int32_t number = 0);

// The case without the requests [first, first + count) and without the turns that follow them.
// Content segments stay, so that what is left still has in common what it had.
RandomCase WithoutRequests(const RandomCase& random_case, std::int64_t first, std::int64_t count);

// Everything that it takes to see the case without its seed; requests too when there are few.
std::string Describe(const RandomCase& random_case);

}  // namespace servecast::testing
