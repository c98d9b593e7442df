// The golden traces of TensorRT-LLM's scheduler (their README has format and rules): reads a folder
// of them, prices steps as they were priced there, and names the first row that a run has
// otherwise. A file that cannot be read or parsed is an issue, never an empty case.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/base.h"
#include "servecast/result.h"
#include "serving/hooks.h"
#include "serving/policy.h"
#include "testing/engine_run.h"
#include "testing/trtllm_reference.h"
#include "workload/request_table.h"

namespace servecast::testing {

struct TrtllmCase {
  std::string name;
  TrtllmSettings settings;
  RequestTable requests;              // with contents, priorities and limits
  std::vector<std::int64_t> max_new;  // as clients ask
  std::vector<TrtllmStep> steps;
  std::vector<TrtllmResult> results;

  // No scenario has drafts beside this scheduler: such a case is the reference's alone.
  bool OfEngine() const { return settings.draft_len == 0; }
};

Result<std::vector<TrtllmCase>> LoadTrtllmCases(const std::string& folder);

// Their closed-form step time, in nanoseconds (exact: all its terms are).
class TrtllmGoldenLatency : public LatencyModel {
 public:
  StepPrice Price(const BatchShape& shape) const override;
  HostTimes TakeUpTimes(std::int64_t /*prompt_tokens*/) const override { return {}; }
};

// The same for the engine. REQUIRES: OfEngine.
EngineCase EngineCaseOf(const TrtllmCase& golden);

// The engine's records as rows, and what follows from them for requests.
std::vector<TrtllmStep> TrtllmStepsOf(const std::vector<StepRecord>& records);
std::vector<TrtllmResult> ResultsOf(const TrtllmCase& golden,
                                    const std::vector<StepRecord>& records,
                                    const RequestResults& results);

// The first difference, as a sentence; nullopt when they agree. All but times exactly, these within
// 1 us.
std::optional<std::string> FirstDifference(const TrtllmCase& golden,
                                           const std::vector<TrtllmStep>& steps);
std::optional<std::string> FirstDifference(const TrtllmCase& golden,
                                           const std::vector<TrtllmResult>& results);

// Of a whole case: by the engine, or by the reference where no scenario has it.
std::optional<std::string> FirstDifference(const TrtllmCase& golden);

}  // namespace servecast::testing
