// The readers of one form each, for ReadMeasurements. Those of JSON are told apart by members that
// only their form has.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "calibrate/measurements.h"
#include "servecast/result.h"

namespace servecast {

Result<Measurements> ReadTable(std::string_view text, const std::string& name);

// A result of vllm bench serve --save-result, with --save-detailed or without.
bool IsBench(const nlohmann::json& json);
Result<Measurements> ReadBench(const nlohmann::json& json, const std::string& name);

// benchmarks.json of GuideLLM: a run each.
bool IsGuideLlm(const nlohmann::json& json);
Result<Measurements> ReadGuideLlm(const nlohmann::json& json, const std::string& name);

// profile_export_aiperf.json.
bool IsAiperf(const nlohmann::json& json);
Result<Measurements> ReadAiperf(const nlohmann::json& json, const std::string& name);

// stage_N_lifecycle_metrics.json of inference-perf, and its summary over stages.
bool IsInferencePerf(const nlohmann::json& json);
Result<Measurements> ReadInferencePerf(const nlohmann::json& json, const std::string& name);

// What a vLLM server says of itself at /metrics, twice, each with the date of the answer.
Result<Measurements> ReadPrometheus(std::string_view text, const std::string& name);

// Power of GPUs: nvidia-smi's rows or table, DCGM's metrics.
bool IsPower(std::string_view text);
Result<Measurements> ReadPower(std::string_view text, const std::string& name);

}  // namespace servecast
