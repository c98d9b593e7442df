// The readers of one form each, for ReadMeasurements.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "calibrate/measurements.h"
#include "servecast/result.h"

namespace servecast {

Result<Measurements> ReadTable(std::string_view text, const std::string& name);

// JSON; formats/benchmarks.h tells whose it is.
Result<Measurements> ReadBench(const nlohmann::json& json, const std::string& name);
Result<Measurements> ReadGuideLlm(const nlohmann::json& json, const std::string& name);
Result<Measurements> ReadAiperf(const nlohmann::json& json, const std::string& name);
Result<Measurements> ReadInferencePerf(const nlohmann::json& json, const std::string& name);

// What a vLLM server says of itself at /metrics, twice, each with the date of the answer.
Result<Measurements> ReadPrometheus(std::string_view text, const std::string& name);

// Power of GPUs: nvidia-smi's rows or table, DCGM's metrics.
bool IsPower(std::string_view text);
Result<Measurements> ReadPower(std::string_view text, const std::string& name);

}  // namespace servecast
