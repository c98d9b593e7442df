// See prometheus.h.
#include "formats/prometheus.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "io/json_document.h"
#include "io/trace_lines.h"

namespace servecast {
namespace {

// "inf" and "+Inf" are infinite, "NaN" is none.
std::optional<double> ValueIn(std::string_view text) {
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  return LowerCase(text) == "inf" ? std::numeric_limits<double>::infinity() : NumberOf(text);
}

// 'a="b",c="d"'.
PrometheusLabels LabelsIn(std::string_view text) {
  PrometheusLabels labels;
  while (labels.size() < 64) {
    const std::size_t equals = text.find("=\"");
    if (equals == std::string_view::npos) break;
    const std::string name(Trimmed(text.substr(0, equals)));
    std::string value;
    std::size_t at = equals + 2;
    for (; at < text.size() && text[at] != '"'; ++at) {
      if (text[at] == '\\' && at + 1 < text.size()) ++at;
      value += text[at];
    }
    labels[name] = std::move(value);
    text.remove_prefix(std::min(at + 1, text.size()));
    const std::size_t comma = text.find(',');
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return labels;
}

bool HasLineOf(std::string_view text, std::string_view name) {
  return text.substr(0, name.size()) == name ||
         text.find(Format("\n{}", name)) != std::string_view::npos;
}

}  // namespace

std::string PrometheusLine::Label(std::string_view label) const {
  const auto at = labels.find(label);
  return at == labels.end() ? "" : at->second;
}

PrometheusLine PrometheusLineIn(std::string_view line) {
  PrometheusLine read;
  const std::size_t end = std::min(line.find_first_of("{ "), line.size());
  read.name = line.substr(0, end);
  std::string_view rest = line.substr(end);
  if (!rest.empty() && rest[0] == '{') {
    const std::size_t close = rest.rfind('}');
    read.closed = close != std::string_view::npos;
    if (!read.closed) return read;
    read.labels = LabelsIn(rest.substr(1, close - 1));
    rest.remove_prefix(close + 1);
  }
  rest = Trimmed(rest);
  read.text = rest.substr(0, rest.find(' '));
  read.value = ValueIn(read.text);
  read.time_ms = NumberOf(Trimmed(rest.substr(read.text.size())));
  return read;
}

void VllmMetrics::Add(const PrometheusLine& line) {
  if (!line.value) return;
  if (line.name == "process_start_time_seconds") start_s = *line.value;
  if (line.name.substr(0, kVllmMetric.size()) != kVllmMetric || sums.size() > 1000) return;
  const std::string name(line.name.substr(kVllmMetric.size()));
  any = true;
  time_ms = std::max(time_ms, line.time_ms.value_or(0));
  if (model.empty()) model = line.Label("model_name");
  if (const std::string engine = line.Label("engine"); !engine.empty() && engines.size() < 1024)
    engines.insert(engine);
  if (name == "cache_config_info") {
    cache = line.labels;
  } else if (const std::string bound = line.Label("le"); !bound.empty()) {
    const auto most = ValueIn(bound);
    if (most && buckets.size() < 100) buckets[name][*most] += *line.value;
  } else if (std::isfinite(*line.value)) {
    sums[name] += *line.value;
  }
}

double VllmMetrics::Sum(std::string_view name) const {
  const auto at = sums.find(name);
  return at == sums.end() ? 0 : at->second;
}

bool IsPrometheus(std::string_view text) {
  for (const std::string_view begin : {"HTTP/", "# HELP ", "# TYPE ", "vllm:"}) {
    if (text.substr(0, begin.size()) == begin) return !IsDcgmPower(text);
  }
  return false;
}

bool HasVllmMetrics(std::string_view text) { return HasLineOf(text, kVllmMetric); }

bool IsDcgmPower(std::string_view text) {
  return HasLineOf(text, kDcgmPower) && !HasVllmMetrics(text);
}

}  // namespace servecast
