// The engine, run by tests in two ways: as everybody runs it (Simulation), and one level deeper
// (Replica), where what a report shows as doubles can be read as the integers that it is made of.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/base.h"
#include "metrics/recorder.h"
#include "servecast/result.h"
#include "servecast/scenario.h"
#include "servecast/simulation.h"
#include "servecast/trace.h"
#include "serving/hooks.h"
#include "serving/policy.h"
#include "testing/random_cases.h"
#include "testing/vllm_golden.h"
#include "workload/request_table.h"

namespace servecast::testing {

// What distinguishes one run of a test from another; it views what it is made of. The model and the
// GPU never matter, as the KV pool is given and so is the step time.
struct EngineCase {
  const RequestTable& requests;
  EngineSpec engine;  // num_gpu_blocks_override is set
  SchedulerSpec scheduler;
  std::int64_t model_max_len = 0;
  std::optional<TimeNs> horizon;
  std::vector<RandomStage> stages = {};  // of a pipeline; empty: one
  RandomWindows windows = {};
  std::optional<ModelSpec> model = {};  // instead of one without figures
  std::int64_t most_image_tokens = 0;
  SlowdownSpec slowdowns = {};
  std::int64_t number = 0;  // of the replica
  std::int64_t ranks = 1;   // in lock step, with the scheduler trtllm
};

EngineCase EngineCaseOf(const RandomCase& random_case);
EngineCase EngineCaseOf(const GoldenCase& golden);

// Its requests are of three classes in turn, whatever the case: no rule of a replica asks for them.
inline constexpr std::size_t kTestClasses = 3;
Scenario MakeScenario(const EngineCase& engine_case);

// A simulation of the case's table; `hooks` may have more.
Result<Simulation> MakeSimulation(const EngineCase& engine_case, SimulationHooks hooks);

class StepCollector : public StepObserver {
 public:
  void OnStep(const StepRecord& step) override { steps.push_back(step); }
  std::vector<StepRecord> steps;
};

struct EngineRun {
  std::vector<StepRecord> steps;  // empty without an observer
  Report report;
};

struct RunOptions {
  std::int64_t slice = INT64_MAX;  // steps per call of Advance
  bool observe = true;
};

Result<EngineRun> RunEngine(const EngineCase& engine_case, std::unique_ptr<LatencyModel> latency,
                            const RunOptions& options);

// The per-request columns of a report, back in nanoseconds. `enqueue` is not among them. `requests`
// has the arrivals of later turns, too.
RequestResults ResultsOf(const Report& report, const RequestTable& requests);

// A finished run of one replica; the names are ReferenceOutput's.
struct ReplicaRun {
  RequestTable requests;   // with the arrivals of later turns
  RequestResults results;  // times and counts; states of arrivals are the simulation's business
  PrefixCacheReport prefix_cache;
  SchedulerCounts counts;
  KvOffloadReport kv_offload;
  std::vector<StepRecord> steps;
  Work work;  // in all
  std::int64_t preemptions = 0, length_capped = 0, timed_out = 0;
  std::map<TimeNs, std::int64_t> itl;
  std::int64_t peak_kv_blocks = 0, peak_kv_unused = 0, allocation_failures = 0;
  std::map<TimeNs, std::int64_t> step_delays;
  __int128 kv_unused_ns = 0;
  __int128 running_ns = 0, waiting_ns = 0, kv_block_ns = 0, batch_token_ns = 0;
  TimeNs busy_ns = 0;
  TimeNs now = 0;
  std::int64_t kv_blocks_used = 0, running = 0;
  std::int64_t output_tokens = 0, step_count = 0;
};

// From the end of a request's step to the start of its next -> how often.
std::map<TimeNs, std::int64_t> StepDelaysOf(const Recorder& recorder);

// `end`: until when the integrals go.
ReplicaRun RunReplica(const EngineCase& engine_case, const LatencyModel& latency, TimeNs end);

}  // namespace servecast::testing
