// A result of vllm bench serve --save-result: the traffic that was sent. What it measured is named,
// to stand beside a forecast.
#include "import/bench_result.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "formats/benchmarks.h"
#include "import/json_members.h"
#include "import/kinds.h"
#include "import/traffic.h"
#include "io/json_document.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

std::optional<double> NumberOf(const Json& of, const char* key) {
  const auto at = of.find(key);
  if (at == of.end()) return std::nullopt;
  if (at->is_string()) return RateIn(TextOf(*at));
  return at->is_number() ? std::optional<double>(at->get<double>()) : std::nullopt;
}

// As NumberOf, of what was measured: a member that is there and no number is named.
std::optional<double> MeasuredOf(const Json& of, const std::string& key, Draft& draft) {
  const std::optional<double> value = NumberOf(of, key.c_str());
  if (!value && of.contains(key) && !of[key].is_null()) {
    draft.Ignore(Format("{} = {}", key, ShortJson(of[key])), "no number");
  }
  return value;
}

// Positive numbers of a list; those of requests that failed are 0. Of requests that were answered
// with nothing, which are among the `completed`, it is the shortest that there is.
std::vector<double> Positive(const Json& list, double completed) {
  std::vector<double> numbers;
  for (const Json& number : list) {
    if (number.is_number() && number.get<double>() > 0) numbers.push_back(number.get<double>());
  }
  while (!numbers.empty() && static_cast<double>(numbers.size()) < completed &&
         numbers.size() < list.size()) {
    numbers.push_back(1);
  }
  return numbers;
}

void TakeResultLengths(const Json& json, double completed, Draft& draft) {
  const std::vector<double> inputs = Positive(ListIn(json, "input_lens"), 0),
                            outputs = Positive(ListIn(json, "output_lens"), completed);
  const auto input = NumberOf(json, "total_input_tokens"),
             output = NumberOf(json, "total_output_tokens");
  if (!inputs.empty() && !outputs.empty()) {
    TakeLengths(LengthsOf(inputs), LengthsOf(outputs), "input_lens and output_lens", draft);
  } else if (input && output && *input >= completed && *output > 0 && completed > 0) {
    TakeLengths(FixedLength(*input / completed), FixedLength(*output / completed),
                "total_input_tokens and total_output_tokens", draft);
    draft.Measure("prompt_tokens_mean", *input / completed, "total_input_tokens");
    draft.Measure("output_tokens_mean", *output / completed, "total_output_tokens");
    draft.Remark(
        "the result has no lengths of its requests (--save-detailed): all have the mean here");
  }
}

void TakeResultArrivals(const Json& json, double completed, Draft& draft) {
  BenchTraffic traffic;
  const auto rate = NumberOf(json, "request_rate");
  if (rate && *rate > 0) traffic.rate_per_s = *rate;
  if (rate && !(*rate > 0)) {
    draft.Warn(Format("request_rate = {}: no rate; read as inf, all requests at once",
                      ShortNumber(*rate)));
  }
  if (const auto shape = NumberOf(json, "burstiness"); shape && *shape > 0)
    traffic.burstiness = *shape;
  if (const auto users = NumberOf(json, "max_concurrency"); users && *users >= 1 && *users <= 1e7) {
    traffic.concurrency = static_cast<std::int64_t>(*users);
  }
  const auto from = NumberOf(json, "ramp_up_start_rps"), to = NumberOf(json, "ramp_up_end_rps");
  if (from && to) {
    traffic.ramp = Ramp{*from, *to, TextIn(json, "ramp_up_strategy") == "exponential"};
    TakeArrivals(traffic, "ramp_up_start_rps and ramp_up_end_rps", draft);
  } else if (rate || traffic.concurrency) {
    TakeArrivals(traffic, "request_rate, burstiness and max_concurrency", draft);
  } else if (const auto duration = NumberOf(json, "duration");
             duration && *duration > 0 && completed > 0) {
    traffic.rate_per_s = completed / *duration;
    TakeArrivals(traffic, "completed / duration", draft);
  }
}

// "TTFT mean 43.2, p99 110 ms", and each of them by its name in reports.
void TakeMeasured(const Json& json, std::string_view what, Draft& draft) {
  struct Metric {
    const char *key, *name, *report;
  };
  std::string text;
  constexpr Metric kMetrics[] = {{"ttft", "TTFT", "ttft_ms"},
                                 {"tpot", "TPOT", "tpot_ms"},
                                 {"itl", "ITL", "itl_ms"},
                                 {"e2el", "E2E", "e2e_ms"}};
  for (const Metric& metric : kMetrics) {
    std::string of;
    double least = 0;  // of a percentile: the one before
    for (const std::string_view which : {"mean", "median", "p90", "p95", "p99"}) {
      const auto value = MeasuredOf(json, Format("{}_{}_ms", which, metric.key), draft);
      const std::string name = Format("{}.{}", metric.report, which == "median" ? "p50" : which);
      if (value && which != "mean" && *value < least) {
        draft.Ignore(Format("{}_{}_ms = {}", which, metric.key, ShortNumber(*value)),
                     "less than a lower percentile");
        continue;
      }
      if (!value || !draft.Measure(name, *value, what)) continue;
      if (which != "mean") least = *value;
      of += Format("{}{} {}", of.empty() ? "" : ", ", which, ShortNumber(*value));
    }
    if (!of.empty()) text += Format("{}{} {} ms", text.empty() ? "" : "; ", metric.name, of);
  }
  constexpr Metric kRates[] = {{"request_throughput", "requests/s", "requests_per_s"},
                               {"output_throughput", "output tokens/s", "output_tokens_per_s"}};
  for (const Metric& rate : kRates) {
    const auto value = MeasuredOf(json, rate.key, draft);
    if (!value || !draft.Measure(rate.report, *value, what)) continue;
    text += Format("{}{} {}", text.empty() ? "" : "; ", ShortNumber(*value), rate.name);
  }
  const auto most = MeasuredOf(json, "max_concurrent_requests", draft);
  if (most) draft.Measure("concurrency_peak", *most, what);
  if (!text.empty()) draft.Remark("measured: " + text);
}

}  // namespace

void ReadBenchFigures(const Json& json, std::string_view what, bool traffic, Draft& draft) {
  draft.Found(std::string(what));
  const double completed = NumberOf(json, "completed").value_or(0);
  const double asked = NumberOf(json, "num_prompts").value_or(completed);
  if (completed > asked) {
    draft.Warn(Format("{} requests are completed of {} that were sent", ShortNumber(completed),
                      ShortNumber(asked)));
  }
  if (const std::string model = TextIn(json, "model_id"); !model.empty())
    draft.TakeModelName(model, "model_id");
  if (const auto failed = NumberOf(json, "failed"); failed && *failed > 0) {
    draft.Remark(
        Format("{} requests failed and are left out of what was measured", NumberText(*failed)));
  }
  TakeMeasured(json, what, draft);
  if (!traffic) return;
  if (asked >= 1 && asked <= 5e6) {
    draft.Take("workload.requests", NumberJson(std::max(asked, 1.0)), "num_prompts");
  }
  TakeResultLengths(json, completed, draft);
  TakeResultArrivals(json, completed, draft);
  TakeSampling({}, "vllm bench serve", draft);
}

void ReadBenchResult(const ImportSource& source, Draft& draft) {
  if (source.json == nullptr || !source.json->is_object() || !IsServingBench(*source.json)) return;
  const Json& json = *source.json;
  const auto number = [&json](const char* key) {
    const auto at = json.find(key);
    return at != json.end() && at->is_number();
  };
  // SGLang's has the latency of whole requests by another name.
  Json figures = json;
  bool sglang = false;
  for (const char* which : {"mean", "median", "p99"}) {
    const std::string key = Format("{}_e2e_latency_ms", which);
    if (!number(key.c_str())) continue;
    figures[Format("{}_e2el_ms", which)] = json[key];
    sglang = true;
  }
  ReadBenchFigures(figures,
                   sglang ? "a result of sglang.bench_serving" : "a result of vllm bench serve",
                   true, draft);
}

}  // namespace servecast
