// See compared.h.
#include "cost/compared.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/text.h"
#include "cost/all_reduce.h"

namespace servecast {
namespace {

constexpr std::string_view kFigures[] = {"TPOT", "E2E", "TTFT", "p99 TTFT"};
// From this error on it is said whether predictions are too fast or too slow.
constexpr float kFar = 0.15F;
// Beyond this median error of TPOT no verdict would hold: limits are passed or kept by less.
constexpr float kKnownBad = 0.25F;

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
  const PoolSpec& pool = s.cluster.pool();
  const bool alone =
      pool.tensor_parallel * pool.attention_data_parallel * pool.pipeline_parallel == 1;
  std::vector<std::string> names;
  for (const std::string& name : s.hardware.changed) {
    if (alone && name.rfind("interconnect", 0) == 0) continue;  // no link is used
    names.push_back("hardware." + name);
  }
  for (const std::string& name : s.engine.changed) {
    if (s.model.num_local_experts == 0 && name.find("expert") != std::string::npos) continue;
    names.push_back("engine." + name);
  }
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

// Features beside which runs of others still say something. All others make a kind: precision,
// experts, attention, expert parallelism.
constexpr std::string_view kBesides[] = {"launch options",
                                         "rules other than vLLM's",
                                         "rules other than SGLang's",
                                         "rules other than TensorRT-LLM's",
                                         "pipeline stages",
                                         "LoRA adapters"};

bool IsKind(std::string_view feature) {
  return std::find(std::begin(kBesides), std::end(kBesides), feature) == std::end(kBesides);
}

// Whether both are of one kind, and the scenario has all that `run` has.
bool IsOfItsKind(const Scenario& s, const Compared& run) {
  std::size_t shared = 0;
  for (const std::string_view feature : ComparedFeatures(s)) {
    const bool both = Has(run.with, feature);
    if (!both && IsKind(feature)) return false;
    shared += both ? 1 : 0;
  }
  return shared == 1 + static_cast<std::size_t>(std::count(run.with.begin(), run.with.end(), ','));
}

// "a dense model, FP8 weights, a 16-bit KV cache, full attention".
std::string KindText(const Scenario& s) {
  const std::vector<std::string_view> features = ComparedFeatures(s);
  const auto has = [&features](std::string_view feature) {
    return std::find(features.begin(), features.end(), feature) != features.end();
  };
  const bool experts = has("experts");
  return Format("{}, {}, {}, {}{}", experts ? "a mixture of experts" : "a dense model", features[0],
                has("an 8-bit KV cache") ? "an 8-bit KV cache" : "a KV cache at full precision",
                has("latent attention")  ? "latent attention"
                : has("sliding windows") ? "sliding windows"
                                         : "full attention",
                !experts                    ? ""
                : has("expert parallelism") ? ", expert parallelism"
                                            : ", no expert parallelism");
}

// What the scenario has beside its kind and `run` has not.
std::vector<std::string> Missing(const Scenario& s, const Compared& run) {
  std::vector<std::string> missing;
  for (const std::string_view feature : ComparedFeatures(s)) {
    if (!Has(run.with, feature)) missing.emplace_back(feature);
  }
  const std::int64_t gpus = s.cluster.pool().tensor_parallel;
  if (gpus > run.most_gpus) missing.push_back(Format("{} GPUs in a group", gpus));
  return missing;
}

// Whether requests are scheduled as the engine that runs are compared with schedules them, and the
// feature that a scenario has if not.
std::pair<bool, std::string_view> RulesOf(const Scenario& s) {
  if (s.engine.compared_as == "sglang") {
    return {s.scheduler.Sglang() != nullptr, "rules other than SGLang's"};
  }
  if (s.engine.compared_as == "trtllm") {
    return {s.scheduler.Trtllm() != nullptr, "rules other than TensorRT-LLM's"};
  }
  return {s.scheduler.IsVllm(), "rules other than vLLM's"};
}

}  // namespace

std::vector<std::string_view> ComparedFeatures(const Scenario& s) {
  constexpr std::string_view kWeights[] = {
      "16-bit weights",      "FP8 weights",   "INT4 weights",
      "NVFP4 weights",       "MXFP4 weights", "INT8 weights",
      "INT8 weights, W8A16", "NF4 weights",   "MXFP4 weights of all layers"};
  const ModelSpec& m = s.model;
  const EngineSpec& e = s.engine;
  const PoolSpec& pool = s.cluster.pool();
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
  const auto [own, other] = RulesOf(s);
  add(e.compat != Compat::kNone || !own, other);
  add(pool.pipeline_parallel > 1, "pipeline stages");
  add(e.max_loras > 0, "LoRA adapters");
  const bool experts = m.num_local_experts > 0;
  add((experts && e.enable_expert_parallel) || pool.attention_data_parallel > 1,
      "expert parallelism");
  return features;
}

std::string FeaturesText(const Scenario& s) {
  std::string text;
  for (const std::string_view feature : ComparedFeatures(s)) {
    text += text.empty() ? "" : ", ";
    text += feature;
  }
  return text;
}

namespace {

// Of the rows of the scenario's kind the first that lacks least of what else it has.
struct Nearest {
  const Compared* run = nullptr;
  std::vector<std::string> missing;
  bool of_gpu = false, of_engine = false;  // some server with this GPU was measured; and engine
};

bool IsBad(const Compared& run) { return run.errors[0].median > kKnownBad; }

Nearest NearestOf(const Scenario& s, std::string_view model) {
  Nearest found;
  for (const Compared& run : ComparedRuns()) {
    if (run.model != model || run.gpu != s.hardware.compared_as) continue;
    found.of_gpu = true;
    if (run.engine != s.engine.compared_as) continue;
    found.of_engine = true;
    if (!IsOfItsKind(s, run)) continue;
    std::vector<std::string> lacks = Missing(s, run);
    if (found.run != nullptr && lacks.size() >= found.missing.size()) continue;
    found.run = &run;
    found.missing = std::move(lacks);
  }
  return found;
}

std::string RunsText(const Compared& run) {
  return run.runs == 1 ? Format("one {}", run.what) : Format("{} {}", run.runs, run.what);
}

// "TPOT of 3 multi-turn runs on this GPU came out 68 % too short".
std::string BadText(const Compared& run) {
  const ComparedError& tpot = run.errors[0];
  return Format("TPOT of {} on this GPU came out {} too {}", RunsText(run),
                Percent(std::fabs(tpot.bias)), tpot.bias < 0 ? "short" : "long");
}

// What a scenario rests on that no server was measured with, whatever its row says.
// `like`: so many runs of servers with all that the scenario has.
std::vector<std::string> WarningsOf(const Scenario& s, std::int64_t like) {
  std::vector<std::string> warnings;
  const PoolSpec& pool = s.cluster.pool();
  // Stages hand their rows on over the same link.
  const std::int64_t group =
      pool.tensor_parallel * pool.attention_data_parallel * pool.pipeline_parallel;
  const HardwareSpec& h = s.hardware;
  if (group > 1 && InterconnectOf(h) != Interconnect::kNvlink) {
    const std::string cards = h.name.empty() ? "cards on PCIe" : h.name;
    warnings.push_back(
        InterconnectIsGuessed(h)
            ? Format("How several {} reach each other is a guess: through the host, as with no "
                     "peer-to-peer. hardware.interconnect says how they do.",
                     cards)
            : Format("No server of several {} on PCIe was measured, only all-reduces.", cards));
  }
  // PCI Express 5.0: 32 GT/s a lane, so 64 GB/s in 16 lanes; 4.0: half.
  if (group > 1 && InterconnectContradictsItsBandwidth(h)) {
    warnings.push_back(Format(
        "Links over PCIe have the bandwidth of NVLink here: hardware.interconnect_gb_s is {} GB/s, "
        "where x16 of PCIe 5.0 has 64 GB/s each way and of 4.0 has 32.",
        ShortNumber(h.interconnect_gb_s)));
  }
  constexpr std::int64_t kMany = 10;
  if (s.model.quantization == Quantization::kFp8 && s.model.num_local_experts > 0 && like < kMany) {
    warnings.emplace_back(
        "Experts in 8 bits with block scales, as of DeepSeek-V3 and Qwen3, run kernels of their "
        "own, of which few were measured.");
  }
  return warnings;
}

const LeftOut* FittedTo(const Compared& run) {
  for (const LeftOut& row : LeftOutRuns()) {
    if (row.model == run.model && row.gpu == run.gpu && row.engine == run.engine &&
        row.what == run.what && row.with == run.with) {
      return &row;
    }
  }
  return nullptr;
}

// Errors of TPOT first, then as of kComparedFigures.
void PutErrors(const Compared& run, const LeftOut* fitted, Evidence& e) {
  e.rows = run.runs;
  e.left_out = fitted == nullptr || fitted->measured != 0;
  for (std::size_t i = 0; i < run.errors.size(); ++i) {
    const auto rounded = [](float share) {
      return std::nearbyint(static_cast<double>(share) * 1e4) / 1e4;
    };
    if (fitted != nullptr && fitted->measured != 0) {
      if ((fitted->measured >> i & 1) != 0) {
        e.errors.push_back({kComparedFigures[i], rounded(fitted->median[i]), std::nullopt});
      }
    } else if ((run.measured >> i & 1) != 0) {
      e.errors.push_back(
          {kComparedFigures[i], rounded(run.errors[i].median),
           run.runs >= 10 ? std::optional(rounded(run.errors[i].p90)) : std::nullopt});
    }
  }
}

std::string CalibratedText(const Compared& run, const LeftOut& fitted) {
  const std::string runs = RunsText(run);
  if (fitted.measured == 0) {
    return Format(
        "Constants were fitted to {} on this GPU, in which {}; what such runs are off that were "
        "left out of the fit is not known, and will be more.",
        runs, ErrorsText(run));
  }
  std::vector<std::string> errors;
  for (std::size_t i = 0; i < fitted.median.size(); ++i) {
    if ((fitted.measured >> i & 1) == 0) continue;
    errors.push_back(
        Format("of {} {}{}", kFigures[i], errors.empty() ? "was " : "", Percent(fitted.median[i])));
  }
  return Format(
      "Constants were fitted to {} on this GPU; in runs that were left out of the fit the median "
      "error {}.",
      runs, Listed(errors));
}

}  // namespace

std::string KnownError(const Scenario& s, std::string_view model) {
  const Nearest nearest = NearestOf(s, model);
  if (!nearest.of_gpu) return "No server with this GPU was measured, so the error is not known.";
  if (!nearest.of_engine) {
    return "No server with this engine was measured on this GPU, so the error is not known.";
  }
  if (nearest.run == nullptr) {
    return Format(
        "No server of this kind was measured with this GPU and engine, so the error is not known: "
        "{}.",
        KindText(s));
  }
  const std::string runs = RunsText(*nearest.run);
  const std::string errors = ErrorsText(*nearest.run) + ChangedText(s);
  if (nearest.missing.empty()) return Format("In {} on this GPU {}.", runs, errors);
  return Format("No server with this GPU and engine was measured with {}. In the nearest, {}, {}.",
                Listed(nearest.missing), runs, errors);
}

Evidence EvidenceOf(const Scenario& s, std::string_view model) {
  Evidence e;
  e.sentence = KnownError(s, model);
  const Nearest nearest = NearestOf(s, model);
  const bool like = nearest.run != nullptr && nearest.missing.empty();
  e.warnings = WarningsOf(s, like ? nearest.run->runs : 0);
  // What is near enough to be named is near enough to refuse.
  if (nearest.run != nullptr && IsBad(*nearest.run)) {
    e.of = EvidenceClass::kKnownBad;
    e.bad = BadText(*nearest.run);
    PutErrors(*nearest.run, nullptr, e);
    return e;
  }
  if (!like || !ChangedText(s).empty() || !e.warnings.empty()) return e;
  const LeftOut* fitted = FittedTo(*nearest.run);
  PutErrors(*nearest.run, fitted, e);
  e.of = fitted != nullptr ? EvidenceClass::kCalibrated : EvidenceClass::kCompared;
  if (fitted != nullptr) e.sentence = CalibratedText(*nearest.run, *fitted);
  return e;
}

}  // namespace servecast
