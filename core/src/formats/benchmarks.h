// Results in JSON of the programs that load a server: who wrote one, and where versions differ.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "servecast/result.h"

namespace servecast {

// As Python writes it, which has numbers that JSON has not: outside of texts Infinity is "inf" and
// NaN null. Issues are those of ParseJson.
Result<nlohmann::json> ParsePythonJson(std::string_view text);

// `json`: an object. Of each result one of these is true.
// vllm bench serve --save-result, with --save-detailed or without; sglang.bench_serving.
bool IsServingBench(const nlohmann::json& json);
// benchmarks.json: a run each.
bool IsGuideLlm(const nlohmann::json& json);
// profile_export_aiperf.json.
bool IsAiperf(const nlohmann::json& json);
// stage_N_lifecycle_metrics.json, and its summary over stages.
bool IsInferencePerf(const nlohmann::json& json);

// How the requests of one of GuideLLM's benchmarks came, where 0.2 to 0.4 have it; nullptr:
// nowhere.
const nlohmann::json* GuideLlmStrategy(const nlohmann::json& benchmark);

// Milliseconds in one of a figure's "unit"; nullopt: no unit of time, or none.
std::optional<double> AiperfUnitMs(const nlohmann::json& figure);

}  // namespace servecast
