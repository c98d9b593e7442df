// Text of Prometheus: what a vLLM server says at /metrics, and NVIDIA's DCGM exporter of GPUs.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace servecast {

// Where the names of vLLM's metrics begin; DCGM's power of a GPU, W.
inline constexpr std::string_view kVllmMetric = "vllm:", kDcgmPower = "DCGM_FI_DEV_POWER_USAGE";

using PrometheusLabels = std::map<std::string, std::string, std::less<>>;

// 'name{a="b",c="d"} value [time]'. Views of the line.
struct PrometheusLine {
  std::string_view name;
  PrometheusLabels labels;  // the first 64
  bool closed = true;       // false: the labels have no end, and what is behind them was not read
  std::string_view text;    // of the value
  std::optional<double> value;    // infinite for "+Inf"; nullopt: no number
  std::optional<double> time_ms;  // since 1970

  std::string Label(std::string_view label) const;  // "": none
};
PrometheusLine PrometheusLineIn(std::string_view line);

// What a vLLM server says, added up over its engines and models. Names are without "vllm:", as
// vllm/v1/metrics/loggers.py has them.
struct VllmMetrics {
  std::map<std::string, double, std::less<>> sums;
  std::map<std::string, std::map<double, double>, std::less<>> buckets;  // by their upper bounds
  std::set<std::string> engines;
  PrometheusLabels cache;           // of cache_config_info
  std::string model;                // the first
  double start_s = 0, time_ms = 0;  // of the process, of the text; 0: not said
  bool any = false;

  void Add(const PrometheusLine& line);
  double Sum(std::string_view name) const;  // 0: none
};

// Whether a text is metrics, with the headers of its answer or without.
bool IsPrometheus(std::string_view text);
bool HasVllmMetrics(std::string_view text);  // in a line of theirs
// Whether a line of the text begins with DCGM's power, and none with vLLM's metrics.
bool IsDcgmPower(std::string_view text);

}  // namespace servecast
