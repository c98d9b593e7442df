// The golden traces of SGLang's real scheduler (their README has format and rules): reads a folder
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
#include "testing/sglang_reference.h"
#include "workload/request_table.h"

namespace servecast::testing {

struct SglangCase {
  std::string name;  // with the subfolder, as "given/basic"
  SglangSettings settings;
  RequestTable requests;              // with contents, priorities and limits
  std::vector<std::int64_t> max_new;  // as clients ask
  std::vector<SglangStep> steps;
  std::vector<SglangResult> results;
};

// Every case of every folder that `folder`'s manifest.json names.
Result<std::vector<SglangCase>> LoadSglangCases(const std::string& folder);

// Their closed-form step time, in nanoseconds (exact: all its terms are).
class SglangGoldenLatency : public LatencyModel {
 public:
  StepPrice Price(const BatchShape& shape) const override;
  HostTimes TakeUpTimes(std::int64_t /*prompt_tokens*/) const override { return {}; }
};

// The same for the engine. What it has in whole pages is rounded down.
EngineCase EngineCaseOf(const SglangCase& golden);

// The engine's records as rows; what they do not say of requests is derived from the rows.
std::vector<SglangStep> StepsOf(const SglangCase& golden, const std::vector<StepRecord>& records);

// The first difference, as a sentence; nullopt when they agree. All but times exactly, these within
// 1 us.
std::optional<std::string> FirstDifference(const SglangCase& golden,
                                           const std::vector<SglangStep>& steps);
std::optional<std::string> FirstDifference(const SglangCase& golden,
                                           const std::vector<SglangResult>& results);
// Of what a run reports of its requests.
std::optional<std::string> FirstDifference(const SglangCase& golden, const RequestResults& results);

}  // namespace servecast::testing
