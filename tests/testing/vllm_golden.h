// The golden traces of the real vLLM scheduler (their README has format and rules): reads a folder
// of them, prices steps as they were priced there, and names the first row that a run has
// otherwise. A file that cannot be read or parsed is an issue, never an empty case.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/base.h"
#include "servecast/result.h"
#include "servecast/scenario.h"
#include "serving/hooks.h"
#include "serving/policy.h"
#include "workload/request_table.h"

namespace servecast::testing {

// A row of requests_<case>.csv beyond what a RequestTable has.
struct GoldenExtras {
  std::int64_t prefix_group = -1;  // -1: none
  std::int64_t prefix_tokens = 0;
  std::int64_t parent =
      -1;  // hybrid: a request whose tokens are the first `prefix_tokens`; -1: none
};

struct GoldenStep {
  StepRecord record;  // index, members, lists and levels; its times are not set
  double sched_s = 0, start_s = 0, end_s = 0;
  std::int64_t t = 0, k = 0;  // the sums of the step time
  double q = 0;
  std::string held;  // hybrid: blocks by class of groups, a member each
  std::int64_t evicted_total = -1;
};

// A row of <case>.requests.csv.
struct GoldenRequest {
  double arrival_s = 0, first_scheduled_s = 0, first_token_s = 0, finish_s = 0;
  std::int64_t preemptions = 0;
  std::int64_t cached_at_first_schedule = 0, cached_on_resumes = 0;
  std::int64_t first_step = 0, finish_step = 0;
  std::string rejected;     // empty: it was served
  bool unfinished = false;  // vLLM hung before its end
};

struct GoldenCase {
  std::string name;  // with the subfolder, as "v2025_12/mixed_1"
  // As the manifest has them, values as text: true, false, 16, 0.0701, fcfs.
  std::map<std::string, std::string> settings;
  EngineSpec engine;  // num_gpu_blocks_override and max_model_len are set
  SchedulerSpec scheduler;
  std::optional<ModelSpec> model;      // hybrid: its layers
  std::int64_t most_image_tokens = 0;  // encoder: of the largest image that the model can have
  RequestTable requests;               // with content and priorities
  std::vector<GoldenExtras> extras;    // one per request
  std::vector<GoldenStep> steps;
  std::vector<GoldenRequest> results;  // by request id

  std::int64_t PoolBlocks() const { return *engine.num_gpu_blocks_override; }
  std::int64_t MaxModelLen() const { return *engine.max_model_len; }
};

// Every schedule of a set of hybrid cases (form vllm-hybrid-golden-1).
Result<std::vector<GoldenCase>> LoadHybridSchedules(const std::string& folder);

// Those of its runs with images that a scenario can ask for: KV in one table, the encoder's budget
// and cache as vLLM sets them, and no prompt that is what another request still makes.
Result<std::vector<GoldenCase>> LoadEncoderCases(const std::string& folder);
// All with that budget and cache, by the scheduler of groups.
Result<std::vector<GoldenCase>> LoadGroupedEncoderCases(const std::string& folder);

// Every case of `folder`'s manifest.json and of its direct subfolders' manifests. Inputs of a case
// are looked up where the manifest says, in its folder, then in the parent of it.
Result<std::vector<GoldenCase>> LoadGoldenCases(const std::string& folder);

// The closed-form step time of the golden traces, in nanoseconds (exact there: all its terms are).
class GoldenLatency : public LatencyModel {
 public:
  StepPrice Price(const BatchShape& shape) const override;
  HostTimes TakeUpTimes(std::int64_t /*prompt_tokens*/) const override { return {}; }
};

// The first difference between a run and what vLLM did, as a sentence; nullopt when they agree.
// Integers and lists exactly, times within 1 us. Per-request rows are derived from the steps.
std::optional<std::string> FirstDifference(const GoldenCase& golden,
                                           const std::vector<StepRecord>& steps);

// As above for what a run reports of its requests.
std::optional<std::string> FirstDifference(const GoldenCase& golden, const RequestResults& results);

// "0.0139" -> 13,900,000: exact decimal arithmetic, halves of a nanosecond to even. nullopt: not a
// number, or out of range.
std::optional<TimeNs> DecimalSecondsToNs(const std::string& text);

}  // namespace servecast::testing
