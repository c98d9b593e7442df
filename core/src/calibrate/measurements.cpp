// See measurements.h.
#include "calibrate/measurements.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "calibrate/readers.h"
#include "formats/benchmarks.h"
#include "formats/prometheus.h"
#include "io/json_document.h"
#include "io/physics_coefficients.h"

namespace servecast {
namespace {

// Takes in what the other says, and says where they differ.
void MergeName(const char* what, const std::string& other, std::string& name,
               std::vector<std::string>& warnings) {
  if (name.empty()) {
    name = other;
  } else if (!other.empty() && other != name && !SameName(other, name)) {
    warnings.push_back(Format("files name two of a {}: {} and {}", what, name, other));
  }
}

void MergeCount(const char* what, std::optional<std::int64_t> other,
                std::optional<std::int64_t>& count, std::vector<std::string>& warnings) {
  if (!count) {
    count = other;
  } else if (other && *other != *count) {
    warnings.push_back(Format("files say {} is {} and {}", what, *count, *other));
  }
}

}  // namespace

const char* WordOf(PointForm form) {
  return form == PointForm::kPrompt ? "prompt" : form == PointForm::kDecodeStep ? "step" : "run";
}

const char* WordOf(Figure figure) {
  return figure == Figure::kTtft ? "ttft" : figure == Figure::kTpot ? "tpot" : "e2e";
}

namespace {

constexpr const char* kForms =
    "a result of vllm bench serve, GuideLLM, aiperf or inference-perf, the metrics of a vLLM "
    "server, "
    "power by nvidia-smi or DCGM, or a table of CSV";

Result<Measurements> ReadJson(std::string_view text, const std::string& name) {
  constexpr std::size_t kSmall = std::size_t{4} << 20;  // what ParseJson takes
  nlohmann::json json;
  if (text.size() <= kSmall) {
    Result<nlohmann::json> parsed = ParsePythonJson(text);
    if (!parsed.ok()) {
      Issues issues = parsed.issues();
      for (Issue& issue : issues) issue.path = name + (issue.path.empty() ? "" : ", " + issue.path);
      return issues;
    }
    json = std::move(parsed.value());
  } else {
    json = LooseJson(text);
    if (json.is_discarded()) return Issue{name, "found no JSON, allowed a document of JSON"};
  }
  if (json.is_object()) {
    if (IsServingBench(json)) return ReadBench(json, name);
    if (IsGuideLlm(json)) return ReadGuideLlm(json, name);
    if (IsAiperf(json)) return ReadAiperf(json, name);
    if (IsInferencePerf(json)) return ReadInferencePerf(json, name);
  }
  return Issue{name, Format("found JSON of no known form, allowed {}", kForms)};
}

}  // namespace

Result<Measurements> ReadMeasurements(std::string_view text, const std::string& name) {
  std::string_view begin = text;
  if (begin.substr(0, 3) == "\xEF\xBB\xBF") begin.remove_prefix(3);
  const std::size_t at = begin.find_first_not_of(" \t\r\n");
  if (at == std::string_view::npos) return Issue{name, Format("found nothing, allowed {}", kForms)};
  if (begin[at] == '{' || begin[at] == '[') return ReadJson(begin, name);
  if (IsPower(begin)) return ReadPower(begin, name);
  return IsPrometheus(begin) ? ReadPrometheus(begin, name) : ReadTable(text, name);
}

namespace {

// Of a result whose last requests judge the fit, one.
std::shared_ptr<const RunLoad> OnlyRunOf(const Measurements& read) {
  std::shared_ptr<const RunLoad> only;
  for (const CalibrationPoint& point : read.points) {
    if (point.form != PointForm::kRun) return nullptr;
    if (point.run->from > 0) continue;
    if (only != nullptr) return nullptr;
    only = point.run;
  }
  return only;
}

}  // namespace

void AddMeasurements(Measurements more, Measurements& all) {
  for (MeasuredPower& power : more.power) {
    power.run = all.last_run;
    all.power.push_back(std::move(power));
  }
  if (!more.points.empty()) all.last_run = OnlyRunOf(more);
  all.points.insert(all.points.end(), more.points.begin(), more.points.end());
  all.found.insert(all.found.end(), more.found.begin(), more.found.end());
  all.warnings.insert(all.warnings.end(), more.warnings.begin(), more.warnings.end());
  MeasuredServer& s = all.server;
  const MeasuredServer& m = more.server;
  MergeName("model", m.model, s.model, all.warnings);
  MergeName("GPU", m.gpu, s.gpu, all.warnings);
  MergeName("engine", m.engine, s.engine, all.warnings);
  MergeName("version", m.engine_version, s.engine_version, all.warnings);
  MergeCount("tp", m.tensor_parallel, s.tensor_parallel, all.warnings);
  MergeCount("replicas", m.replicas, s.replicas, all.warnings);
  MergeCount("max_num_seqs", m.max_num_seqs, s.max_num_seqs, all.warnings);
  MergeCount("max_num_batched_tokens", m.max_num_batched_tokens, s.max_num_batched_tokens,
             all.warnings);
  MergeCount("kv_tokens", m.kv_tokens, s.kv_tokens, all.warnings);
  MergeCount("block_size", m.block_size, s.block_size, all.warnings);
}

}  // namespace servecast
