// See benchmarks.h. GuideLLM, aiperf and inference-perf by memory of their versions 0.2 to 0.4.
#include "formats/benchmarks.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "io/json_document.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

bool Has(const Json& of, const char* key, bool (Json::*is)() const noexcept) {
  const auto at = of.find(key);
  return at != of.end() && ((*at).*is)();
}

std::string WithoutInfinity(std::string_view text) {
  static constexpr std::pair<std::string_view, std::string_view> kNumbers[] = {
      {"-Infinity", "\"-inf\""}, {"Infinity", "\"inf\""}, {"NaN", "null"}};
  std::string out;
  out.reserve(text.size());
  bool quoted = false;
  for (std::size_t i = 0; i < text.size();) {
    if (!quoted && (text[i] == '-' || text[i] == 'I' || text[i] == 'N')) {
      const auto found = std::find_if(
          std::begin(kNumbers), std::end(kNumbers),
          [&](const auto& each) { return text.substr(i, each.first.size()) == each.first; });
      if (found != std::end(kNumbers)) {
        out += found->second;
        i += found->first.size();
        continue;
      }
    }
    if (quoted && text[i] == '\\' && i + 1 < text.size()) {
      out += text[i++];
    } else if (text[i] == '"') {
      quoted = !quoted;
    }
    out += text[i++];
  }
  return out;
}

}  // namespace

Result<Json> ParsePythonJson(std::string_view text) {
  Result<Json> read = ParseJson(text);
  if (read.ok()) return read;
  Result<Json> plain = ParseJson(WithoutInfinity(text));
  if (plain.ok()) return plain;
  return read;
}

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
