// See compared.h.
#include "cost/compared.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/text.h"

namespace servecast {
namespace {

constexpr std::string_view kFigures[] = {"TPOT", "E2E", "TTFT", "p99 TTFT"};
// From this error on it is said whether predictions are too fast or too slow.
constexpr float kFar = 0.15F;

bool Has(std::string_view list, std::string_view word) {
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(", ", at), list.size());
    if (list.substr(at, end - at) == word) return true;
    at = end + 2;
  }
  return false;
}

// "a, b and c"
std::string Listed(const std::vector<std::string>& items) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    text += i == 0 ? "" : i + 1 == items.size() ? " and " : ", ";
    text += items[i];
  }
  return text;
}

std::string Percent(float share) {
  const double percent = 100 * static_cast<double>(share);
  return ShortNumber(percent < 10 ? std::nearbyint(percent * 10) / 10 : std::nearbyint(percent)) +
         " %";
}

// "the median error of TPOT was 1.2 % and of TTFT 1.7 %"
std::string ErrorsText(const Compared& run) {
  std::vector<std::string> errors;
  for (std::size_t i = 0; i < run.errors.size(); ++i) {
    if ((run.measured >> i & 1) == 0) continue;
    const ComparedError& e = run.errors[i];
    std::string text = errors.empty() ? std::string(run.runs > 1 ? "the median error" : "the error")
                                      : std::string();
    text += Format("{}of {} {}{}", text.empty() ? "" : " ", kFigures[i],
                   errors.empty() ? "was " : "", Percent(e.median));
    if (e.median > kFar) text += e.bias < 0 ? " (too fast)" : " (too slow)";
    errors.push_back(std::move(text));
  }
  std::string text = Listed(errors);
  if (errors.size() == 1 && run.runs >= 10) {
    for (std::size_t i = 0; i < run.errors.size(); ++i) {
      if ((run.measured >> i & 1) == 0) continue;
      text += Format(", and nine of ten were within {}", Percent(run.errors[i].p90));
    }
  }
  return text;
}

// "; hardware.compute_efficiency was changed since, so ...", or "".
std::string ChangedText(const Scenario& s) {
  constexpr std::size_t kMostNamed = 3;
  const PoolSpec& pool = s.cluster.pools[0];
  const bool alone =
      pool.tensor_parallel * pool.attention_data_parallel * pool.pipeline_parallel == 1;
  std::vector<std::string> names;
  for (const std::string& name : s.hardware.changed) {
    if (alone && name.rfind("interconnect", 0) == 0) continue;  // no link is used
    names.push_back("hardware." + name);
  }
  for (const std::string& name : s.engine.changed) names.push_back("engine." + name);
  if (names.empty()) return "";
  const bool one = names.size() == 1;
  if (names.size() > kMostNamed) {
    const std::size_t more = names.size() - kMostNamed + 1;
    names.resize(kMostNamed - 1);
    names.push_back(Format("{} more", more));
  }
  return Format("; {} {} changed since, so this does not apply as it stands", Listed(names),
                one ? "was" : "were");
}

// What the scenario has and `run` has not.
std::vector<std::string> Missing(const Scenario& s, const Compared& run) {
  std::vector<std::string> missing;
  for (const std::string_view feature : ComparedFeatures(s)) {
    if (!Has(run.with, feature)) missing.emplace_back(feature);
  }
  const std::int64_t gpus = s.cluster.pools[0].tensor_parallel;
  if (gpus > run.most_gpus) missing.push_back(Format("{} GPUs in a group", gpus));
  return missing;
}

}  // namespace

std::vector<std::string_view> ComparedFeatures(const Scenario& s) {
  constexpr std::string_view kWeights[] = {"16-bit weights", "FP8 weights", "INT4 weights",
                                           "NVFP4 weights", "MXFP4 weights"};
  const ModelSpec& m = s.model;
  const EngineSpec& e = s.engine;
  const PoolSpec& pool = s.cluster.pools[0];
  std::vector<std::string_view> features = {
      m.torch_dtype == DType::kFloat32 ? "32-bit weights"
                                       : kWeights[static_cast<std::size_t>(m.quantization)]};
  const auto add = [&features](bool has, std::string_view name) {
    if (has) features.push_back(name);
  };
  add(e.kv_cache_dtype == KvCacheDType::kFp8, "an 8-bit KV cache");
  add(m.num_local_experts > 0, "experts");
  add(m.num_sliding_layers > 0, "sliding windows");
  add(m.kv_lora_rank > 0, "latent attention");
  add(e.cuda_graphs != CudaGraphs::kImplied || e.overlap_scheduling, "launch options");
  add(e.compat != Compat::kNone || s.scheduler.policy != "vllm", "rules other than vLLM's");
  add(pool.pipeline_parallel > 1, "pipeline stages");
  add(e.enable_expert_parallel || pool.attention_data_parallel > 1, "expert parallelism");
  return features;
}

std::string KnownError(const Scenario& s, std::string_view model) {
  const Compared* nearest = nullptr;
  std::vector<std::string> missing;  // of the nearest
  bool of_gpu = false;
  for (const Compared& run : ComparedRuns()) {
    if (run.model != model || run.gpu != s.hardware.compared_as) continue;
    of_gpu = true;
    if (run.engine != s.engine.compared_as) continue;
    std::vector<std::string> lacks = Missing(s, run);
    if (nearest != nullptr && lacks.size() >= missing.size()) continue;
    nearest = &run;
    missing = std::move(lacks);
  }
  if (nearest == nullptr) {
    return of_gpu
               ? "No server with this engine was measured on this GPU, so the error is not known."
               : "No server with this GPU was measured, so the error is not known.";
  }
  const std::string runs = nearest->runs == 1 ? Format("one {}", nearest->what)
                                              : Format("{} {}", nearest->runs, nearest->what);
  const std::string errors = ErrorsText(*nearest) + ChangedText(s);
  if (missing.empty()) return Format("In {} on this GPU {}.", runs, errors);
  return Format("No server with this GPU and engine was measured with {}. In the nearest, {}, {}.",
                Listed(missing), runs, errors);
}

}  // namespace servecast
