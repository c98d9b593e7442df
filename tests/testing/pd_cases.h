// Small random clusters of pools that differ in scheduler, pipeline stages and engine, where in
// most cases some replicas prefill and others decode, behind any routers, and their runs: by the
// engine, and compared with the reference's. A case is a function of its seed, on every platform.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serving/replica/scheduler_setup.h"
#include "testing/pd_reference.h"
#include "testing/random_cases.h"

namespace servecast::testing {

struct PdCase {
  std::uint64_t seed = 0;
  RandomCase base;  // requests, order, horizon
  std::vector<PdPool> pools;
  std::vector<std::unique_ptr<LatencyModel>> latencies;  // of the pools
  std::vector<std::unique_ptr<std::vector<PipelineStage>>> stages;
  DisaggregationSpec disaggregation;
  RouterChoice router, decode_router;
  std::optional<FailureSpec> failures = {};

  bool Apart() const;  // prefill and decode
  bool HasBatchScheduler() const;
  std::int64_t MaxLen() const;
  PdInput Input() const;
};

// nullopt where the seed's requests are those of a closed loop, which the reference does not know.
std::optional<PdCase> MakePdCase(std::uint64_t seed);

// The same with scalers of most pools, which act within the run of the case without them; nullopt
// also where nobody is served.
std::optional<PdCase> MakeScaledPdCase(std::uint64_t seed);

// Likewise with Dynamo's planner for one pool, or for one that prefills and one that decodes.
std::optional<PdCase> MakePlannedPdCase(std::uint64_t seed);

// Replicas that fail, or are cut off as they drain, with or without scalers and clients that try
// again; likewise.
std::optional<PdCase> MakeFailingPdCase(std::uint64_t seed);

struct PdRun {
  RequestTable requests;
  RequestResults results;
  std::vector<std::vector<StepRecord>> steps;  // by replica
  std::int64_t completed = 0, timed_out = 0, lost = 0, output_tokens = 0, preemptions = 0;
  ScalingReport scaling;
  TimeNs now = 0;
};

// Without an observer other schedulers make many batches of decodes at once.
PdRun RunPdCase(const PdCase& pd_case, std::int64_t slice = INT64_MAX, bool observe = true);

// The first difference between the engine and the reference, in words; with other schedulers than
// vLLM's of the engine observed and not.
std::optional<std::string> FirstPdMismatch(const PdCase& pd_case, const PdOutput& reference,
                                           std::int64_t slice = INT64_MAX);

}  // namespace servecast::testing
