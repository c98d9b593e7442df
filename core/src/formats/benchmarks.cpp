// See benchmarks.h. GuideLLM, aiperf and inference-perf by memory of their versions 0.2 to 0.4.
#include "formats/benchmarks.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace servecast {
namespace {

using Json = nlohmann::json;

bool Has(const Json& of, const char* key, bool (Json::*is)() const noexcept) {
  const auto at = of.find(key);
  return at != of.end() && ((*at).*is)();
}

}  // namespace

bool IsServingBench(const Json& json) {
  return json.contains("mean_ttft_ms") || json.contains("ttfts") ||
         Has(json, "request_throughput", &Json::is_number) ||
         Has(json, "total_input_tokens", &Json::is_number);
}

bool IsGuideLlm(const Json& json) {
  return Has(json, "benchmarks", &Json::is_array) && !json["benchmarks"].empty() &&
         Has(json["benchmarks"][0], "metrics", &Json::is_object);
}

bool IsAiperf(const Json& json) {
  return Has(json, "request_throughput", &Json::is_object) ||
         (Has(json, "request_latency", &Json::is_object) &&
          json["request_latency"].contains("avg"));
}

bool IsInferencePerf(const Json& json) {
  return json.contains("load_summary") && json.contains("successes");
}

const Json* GuideLlmStrategy(const Json& benchmark) {
  for (const char* place : {"config", "scheduler", "args"}) {
    if (Has(benchmark, place, &Json::is_object) &&
        Has(benchmark[place], "strategy", &Json::is_object)) {
      return &benchmark[place]["strategy"];
    }
  }
  return nullptr;
}

std::optional<double> AiperfUnitMs(const Json& figure) {
  constexpr std::pair<const char*, double> kUnits[] = {
      {"ms", 1}, {"s", 1e3}, {"sec", 1e3}, {"us", 1e-3}, {"ns", 1e-6}};
  for (const auto& [name, ms] : kUnits) {
    if (Has(figure, "unit", &Json::is_string) && figure["unit"] == name) return ms;
  }
  return std::nullopt;
}

}  // namespace servecast
