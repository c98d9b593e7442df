// Prometheus text of a vLLM server (/metrics): its settings by cache_config_info, its traffic by
// histograms and counters.
#include "formats/prometheus.h"
#include "base/text.h"
#include "import/kinds.h"
#include "import/traffic.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

void TakeCacheConfig(const VllmMetrics& metrics, Draft& draft) {
  const auto text = [&metrics](std::string_view name) {
    const auto at = metrics.cache.find(name);
    return at == metrics.cache.end() || at->second == "None" ? std::string() : at->second;
  };
  const std::string from = "cache_config_info";
  if (const auto size = ParseCount(text("block_size")))
    draft.Take("engine.block_size", *size, from);
  if (const auto share = NumberIn(text("gpu_memory_utilization")))
    draft.Take("engine.gpu_memory_utilization", *share, from);
  const std::string caching = text("enable_prefix_caching"), type = text("cache_dtype");
  if (!caching.empty())
    draft.Take("engine.enable_prefix_caching", LowerCase(caching) == "true", from);
  if (!type.empty())
    draft.Take("engine.kv_cache_dtype", type.find("fp8") == 0 ? "fp8" : "auto", from);
  const std::string blocks = text("num_gpu_blocks");
  if (const auto count = ParseCount(blocks); count && *count >= 2) {
    draft.Take("engine.num_gpu_blocks_override", *count, from + ", num_gpu_blocks");
    if (const auto size = ParseCount(text("block_size")))
      draft.Measure("kv_tokens", static_cast<double>(*count * *size), from);
    draft.Remark(
        "engine.num_gpu_blocks_override is what that server has; without it the blocks follow the "
        "GPU and the model");
  }
}

Json LengthsOfMetric(const VllmMetrics& metrics, const char* name) {
  const auto at = metrics.buckets.find(std::string(name) + "_bucket");
  if (at != metrics.buckets.end()) {
    Json lengths = LengthsOfHistogram({at->second.begin(), at->second.end()});
    if (!lengths.is_null()) return lengths;
  }
  const double count = metrics.Sum(std::string(name) + "_count");
  return count > 0 ? FixedLength(metrics.Sum(std::string(name) + "_sum") / count) : Json();
}

// Requests over the time since the server's start, where the text says when it was written; else by
// Little's law of those that are there.
void TakeRate(const VllmMetrics& metrics, Draft& draft) {
  const double done = metrics.Sum("request_success_total");
  const double time_s = metrics.time_ms / 1000, since = time_s - metrics.start_s;
  const double e2e = metrics.Sum("e2e_request_latency_seconds_sum"),
               count = metrics.Sum("e2e_request_latency_seconds_count");
  const double there = metrics.Sum("num_requests_running") + metrics.Sum("num_requests_waiting");
  BenchTraffic traffic;
  if (time_s > 0 && metrics.start_s > 0 && since > 0 && done > 0) {
    traffic.rate_per_s = done / since;
    TakeArrivals(traffic, "request_success_total over the time since the start", draft);
    draft.Remark("the rate is the mean since the server's start");
  } else if (there > 0 && e2e > 0 && count > 0) {
    traffic.rate_per_s = there / (e2e / count);
    TakeArrivals(traffic, "requests that run or wait / mean latency", draft);
    draft.Remark(
        Format("the text has no time: the rate is {} requests that run or wait over a mean latency "
               "of {} s (Little's law), of one moment",
               ShortNumber(there), ShortNumber(e2e / count)));
  } else {
    draft.Remark("the text has no time, and no requests run: it says no rate");
  }
}

void TakeMeasured(const VllmMetrics& metrics, Draft& draft) {
  struct Histogram {
    std::string_view name, word, report;
  };
  constexpr std::string_view kFrom = "metrics of a vLLM server";
  std::string text;
  // Until vLLM 0.11 time_per_output_token_seconds is a sample a token: ITL by another name.
  constexpr Histogram kMetrics[] = {
      {"time_to_first_token_seconds", "TTFT", "ttft_ms.mean"},
      {"time_per_output_token_seconds", "ITL", "itl_ms.mean"},
      {"request_time_per_output_token_seconds", "TPOT", "tpot_ms.mean"},
      {"inter_token_latency_seconds", "ITL", "itl_ms.mean"},
      {"e2e_request_latency_seconds", "E2E", "e2e_ms.mean"},
      {"request_queue_time_seconds", "queue", ""}};
  for (const auto& [name, word, report] : kMetrics) {
    const double count = metrics.Sum(std::string(name) + "_count");
    if (count <= 0) continue;
    const double mean = 1000 * metrics.Sum(std::string(name) + "_sum") / count;
    text += Format("{}{} mean {} ms", text.empty() ? "" : "; ", word, ShortNumber(mean));
    if (!report.empty()) draft.Measure(report, mean, kFrom);
  }
  const double queries = metrics.Sum("prefix_cache_queries_total");
  if (queries > 0) {
    draft.Measure("prefix_hit_share", metrics.Sum("prefix_cache_hits_total") / queries, kFrom);
    text += Format("{}{} % of prompt tokens from the prefix cache", text.empty() ? "" : "; ",
                   ShortNumber(100 * metrics.Sum("prefix_cache_hits_total") / queries));
  }
  if (const double preempted = metrics.Sum("num_preemptions_total"); preempted > 0) {
    text += Format("{}{} preemptions", text.empty() ? "" : "; ", ShortNumber(preempted));
  }
  if (!text.empty()) draft.Remark("measured: " + text);
}

}  // namespace

void ReadPrometheus(const ImportSource& source, Draft& draft) {
  if (source.json != nullptr || source.text.find(kVllmMetric) == std::string_view::npos) return;
  VllmMetrics metrics;
  for (const std::string_view line : LinesIn(source.text)) {
    if (line.size() <= 4000) metrics.Add(PrometheusLineIn(Stripped(line)));
  }
  if (!metrics.any) return;
  if (!draft.BeginServer("metrics of a vLLM server")) return;
  if (!metrics.model.empty()) draft.TakeModelName(metrics.model, "model_name");
  if (!metrics.cache.empty()) {
    draft.Take("engine.preset", "vllm", "metrics of a vLLM server");
    TakeCacheConfig(metrics, draft);
  }
  if (metrics.engines.size() > 1) {
    draft.Take("cluster.pools.0.replicas", metrics.engines.size(), "the label engine");
    draft.TakeDataParallel(static_cast<std::int64_t>(metrics.engines.size()));
  }
  Json prompt = LengthsOfMetric(metrics, "request_prompt_tokens"),
       output = LengthsOfMetric(metrics, "request_generation_tokens");
  if (!prompt.is_null() && !output.is_null()) {
    TakeLengths(std::move(prompt), std::move(output), "histograms of prompt and generation tokens",
                draft);
  }
  TakeRate(metrics, draft);
  TakeMeasured(metrics, draft);
}

}  // namespace servecast
