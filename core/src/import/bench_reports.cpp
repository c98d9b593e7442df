// Reports of aiperf, genai-perf and guidellm in JSON, and the config of inference-perf: the traffic
// that was sent. What was measured is named. Members as their programs of 2025 write them.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/printable.h"
#include "base/text.h"
#include "formats/benchmarks.h"
#include "import/bench_result.h"
#include "import/json_members.h"
#include "import/kinds.h"
#include "import/traffic.h"

namespace servecast {
namespace {

using ReportJson = nlohmann::json;

std::optional<double> FigureIn(const ReportJson& of, const char* key) {
  const auto at = of.find(key);
  if (at == of.end() || !(at->is_number() || at->is_string())) return std::nullopt;
  const auto number = NumberIn(TextOf(*at));
  return number && std::isfinite(*number) ? number : std::nullopt;
}

// "time_to_first_token": {"unit": "ms", "avg": 52.1, "p99": 120.4}.
void AddAiperfMetric(const ReportJson& report, const char* metric, const char* name,
                     ReportJson& figures) {
  const ReportJson* of = ObjectIn(report, metric);
  if (of == nullptr) return;
  const double scale = AiperfUnitMs(*of).value_or(1);
  for (const auto& [key, which] : {std::pair("avg", "mean"), std::pair("p50", "median"),
                                   std::pair("p90", "p90"), std::pair("p99", "p99")}) {
    if (const auto value = FigureIn(*of, key)) {
      figures[Format("{}_{}_ms", which, name)] = *value * scale;
    }
  }
}

void AddAiperfLoad(const ReportJson& report, double requests, ReportJson& figures) {
  const ReportJson* load = ObjectAt(report, {"input_config", "loadgen"});
  if (load == nullptr) return;
  for (const auto& [key, member] :
       {std::pair("concurrency", "max_concurrency"), std::pair("request_rate", "request_rate")}) {
    if (const auto value = FigureIn(*load, key)) figures[member] = *value;
  }
  if (const auto count = FigureIn(*load, "request_count"); count && requests == 0) {
    figures["completed"] = *count;
  }
}

void ReadAiperf(const ReportJson& report, Draft& draft) {
  ReportJson figures = ReportJson::object();
  const auto average = [&report](const char* metric) {
    const ReportJson* of = ObjectIn(report, metric);
    return of == nullptr ? std::nullopt : FigureIn(*of, "avg");
  };
  const double requests = average("request_count").value_or(0);
  if (requests > 0) figures["completed"] = requests;
  AddAiperfLoad(report, requests, figures);
  for (const auto& [metric, name] :
       {std::pair("time_to_first_token", "ttft"), std::pair("inter_token_latency", "tpot"),
        std::pair("request_latency", "e2el")}) {
    AddAiperfMetric(report, metric, name, figures);
  }
  if (const auto rate = average("request_throughput")) figures["request_throughput"] = *rate;
  if (const auto rate = average("output_token_throughput")) figures["output_throughput"] = *rate;
  // A load that the report does not name is that of the requests that it counted.
  const bool said = figures.contains("request_rate") || figures.contains("max_concurrency");
  if (!said && figures.contains("request_throughput")) {
    figures["request_rate"] = figures["request_throughput"];
    draft.Warn("the report says no load: arrivals are taken at the measured request_throughput");
  }
  const ReportJson* endpoint = ObjectAt(report, {"input_config", "endpoint"});
  if (endpoint != nullptr && !ListIn(*endpoint, "model_names").empty()) {
    figures["model_id"] = TextOf(ListIn(*endpoint, "model_names")[0]);
  }
  ReadBenchFigures(figures, "a report of aiperf", true, draft);
  const auto length = [&report](const char* metric) -> ReportJson {
    const ReportJson* of = ObjectIn(report, metric);
    const auto mean = of == nullptr ? std::nullopt : FigureIn(*of, "avg");
    if (!mean || *mean < 1) return nullptr;
    return NormalLength(*mean, FigureIn(*of, "std").value_or(0));
  };
  ReportJson input = length("input_sequence_length"), output = length("output_sequence_length");
  if (input.is_null() || output.is_null()) return;
  TakeLengths(std::move(input), std::move(output), "input_ and output_sequence_length", draft);
}

// "metrics": {"requests_per_second": {"successful": {"mean": ..., "percentiles": {"p99": ...}}}}.
void ReadGuidellmReport(const ReportJson& report, Draft& draft) {
  const ReportJson& all = ListIn(report, "benchmarks");
  const ReportJson& one = all[0];
  if (all.size() > 1) {
    draft.Warn(Format("the report has {} benchmarks: the first counts here", all.size()));
  }
  const ReportJson& metrics = one["metrics"];
  const auto successful = [&metrics](const char* name) {
    return ObjectAt(metrics, {name, "successful"});
  };
  ReportJson figures = ReportJson::object();
  // Its time_per_output_token_ms counts the first token, too.
  for (const auto& [metric, name] :
       {std::pair("time_to_first_token_ms", "ttft"), std::pair("inter_token_latency_ms", "tpot")}) {
    const ReportJson* of = successful(metric);
    if (of == nullptr) continue;
    for (const char* which : {"mean", "median"}) {
      if (const auto value = FigureIn(*of, which)) {
        figures[Format("{}_{}_ms", which, name)] = *value;
      }
    }
    const ReportJson* percentiles = ObjectIn(*of, "percentiles");
    if (percentiles == nullptr) continue;
    if (const auto value = FigureIn(*percentiles, "p99")) {
      figures[Format("p99_{}_ms", name)] = *value;
    }
  }
  const auto mean = [&successful](const char* name) {
    const ReportJson* of = successful(name);
    return of == nullptr ? std::nullopt : FigureIn(*of, "mean");
  };
  if (const auto rate = mean("requests_per_second")) figures["request_throughput"] = *rate;
  const ReportJson* total = ObjectIn(metrics, "request_totals");
  const double completed = total == nullptr ? 0 : FigureIn(*total, "successful").value_or(0);
  if (completed > 0) figures["completed"] = completed;
  const auto input = mean("prompt_token_count"), output = mean("output_token_count");
  if (input && output && completed > 0) {
    figures["total_input_tokens"] = *input * completed;
    figures["total_output_tokens"] = *output * completed;
  }
  if (const ReportJson* strategy = GuideLlmStrategy(one); strategy != nullptr) {
    if (const auto rate = FigureIn(*strategy, "rate")) figures["request_rate"] = *rate;
    for (const char* key : {"streams", "max_concurrency"}) {
      if (const auto users = FigureIn(*strategy, key)) figures["max_concurrency"] = *users;
    }
  }
  ReadBenchFigures(figures, "a report of guidellm", true, draft);
}

// min, max, mean and std_dev of inference-perf's distributions; null: not said.
ReportJson LengthOf(const ReportJson& data, const char* key) {
  const ReportJson* of = ObjectIn(data, key);
  const auto mean = of == nullptr ? std::nullopt : FigureIn(*of, "mean");
  if (!mean || *mean < 1) return nullptr;
  ReportJson length = NormalLength(*mean, FigureIn(*of, "std_dev").value_or(0));
  if (length["distribution"] != "normal") return length;
  for (const char* bound : {"min", "max"}) {
    if (const auto value = FigureIn(*of, bound); value && *value >= 1) {
      length[bound] = NumberJson(std::floor(*value));
    }
  }
  return length;
}

void TakeStages(const ReportJson& load, Draft& draft) {
  const ReportJson& stages = ListIn(load, "stages");
  ReportJson factors = ReportJson::array();
  double time = 0, requests = 0;
  for (const ReportJson& stage : stages) {
    const double rate = FigureIn(stage, "rate").value_or(0);
    const double seconds = FigureIn(stage, "duration").value_or(0);
    if (rate <= 0 || seconds <= 0 || rate > 1e6 || seconds > 1e7) continue;
    factors.push_back(ReportJson::array({NumberJson(time), NumberJson(rate)}));
    time += seconds;
    requests += rate * seconds;
  }
  if (factors.empty()) {
    return draft.Warn(
        "load.stages: found no rate and no duration; arrivals are as in the scenario "
        "to begin with");
  }
  ReportJson arrivals = {{"process", TextIn(load, "type") == "poisson" ? "poisson" : "constant"}};
  if (factors.size() == 1) {
    arrivals["rate_per_s"] = factors[0][1];
  } else {
    arrivals["rate_per_s"] = 1;
    arrivals["profile"] = "piecewise";
    arrivals["rate_factors"] = factors;
  }
  draft.Take("workload.requests", NumberJson(std::clamp(std::floor(requests), 1.0, 5e6)),
             "load.stages");
  draft.Take("workload.arrivals", std::move(arrivals), "load.stages");
}

void ReadInferencePerf(const ReportJson& config, Draft& draft) {
  const ReportJson* load = ObjectIn(config, "load");
  const ReportJson* data = ObjectIn(config, "data");
  if (load == nullptr || data == nullptr || ListIn(*load, "stages").empty()) return;
  draft.Found("a config of inference-perf");
  TakeStages(*load, draft);
  ReportJson prompt = LengthOf(*data, "input_distribution"),
             output = LengthOf(*data, "output_distribution");
  if (const ReportJson* shared = ObjectIn(*data, "shared_prefix"); shared != nullptr) {
    const auto number = [shared](const char* key) { return FigureIn(*shared, key).value_or(0); };
    if (number("question_len") >= 1 && number("output_len") >= 1) {
      prompt = FixedLength(number("question_len"));
      output = FixedLength(number("output_len"));
    }
    if (number("num_groups") >= 1 && number("system_prompt_len") >= 1) {
      draft.Take("workload.prefix",
                 {{"groups", NumberJson(number("num_groups"))},
                  {"tokens", NumberJson(number("system_prompt_len"))}},
                 "data.shared_prefix");
    }
  }
  if (prompt.is_null() || output.is_null()) {
    draft.Warn(
        Format("data.type {}: its lengths are not in this text; they are as in the scenario "
               "to begin with",
               ShownText(TextIn(*data, "type"), 40)));
  } else {
    TakeLengths(std::move(prompt), std::move(output), "data", draft);
  }
  if (const ReportJson* server = ObjectIn(config, "server"); server != nullptr) {
    const std::string model = TextIn(*server, "model_name");
    if (!model.empty()) draft.TakeModelName(model, "server.model_name");
  }
}

}  // namespace

void ReadBenchReports(const ImportSource& source, Draft& draft) {
  for (const ReportJson& document : source.manifests) {
    if (TextIn(document, "kind").empty()) ReadInferencePerf(document, draft);
  }
  if (source.json == nullptr || !source.json->is_object()) return;
  const ReportJson& json = *source.json;
  if (IsAiperf(json)) ReadAiperf(json, draft);
  if (IsGuideLlm(json)) ReadGuidellmReport(json, draft);
}

}  // namespace servecast
