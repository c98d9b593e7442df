// See pack.h.
#include "calibrate/pack.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/text.h"
#include "calibrate/server.h"
#include "io/issues.h"
#include "io/json_document.h"

namespace servecast {

using Json = nlohmann::json;

namespace {
using Ordered = nlohmann::ordered_json;

Ordered OffJson(const CalibrationError::Off& off) {
  return {{"mape", PackNumber(off.mean)},
          {"rmse", PackNumber(off.rms)},
          {"median", PackNumber(off.median)},
          {"max", PackNumber(off.most)}};
}

std::string EngineTitle(const Scenario& s) {
  return s.engine.name.empty() ? "vLLM" : s.engine.name;
}

// Members of a pack; each that cannot be is an issue.
class PackReader {
 public:
  explicit PackReader(const Json& root) : root_(root) {}

  void Refuse(const std::string& path, const Json* found, std::string_view allowed) {
    issues_.push_back(
        {path, Format("{}, allowed {}", found == nullptr ? "missing" : "found " + ShortJson(*found),
                      allowed)});
  }
  static const Json* Find(const Json& of, const char* key) {
    if (!of.is_object()) return nullptr;
    const auto at = of.find(key);
    return at == of.end() ? nullptr : &*at;
  }
  std::string Text(const Json& of, const char* key, const std::string& path) {
    const Json* value = Find(of, key);
    if (value != nullptr && value->is_string()) return value->get<std::string>();
    Refuse(path + "/" + key, value, "a text");
    return "";
  }
  double Number(const Json& of, const char* key, const std::string& path, double low, double high) {
    const Json* value = Find(of, key);
    const bool good = value != nullptr && value->is_number() && value->get<double>() >= low &&
                      value->get<double>() <= high;
    if (good) return value->get<double>();
    Refuse(path + "/" + key, value,
           Format("a number from {} to {}", NumberText(low), NumberText(high)));
    return low;
  }
  const Json& Object(const char* key) {
    static const Json kNone = Json::object();
    const Json* value = Find(root_, key);
    if (value != nullptr && value->is_object()) return *value;
    Refuse(std::string("/") + key, value, "an object");
    return kNone;
  }
  Issues& issues() { return issues_; }

 private:
  const Json& root_;
  Issues issues_;
};

void ReadParameters(PackReader& in, CalibrationPack& pack) {
  for (const auto& [name, value] : in.Object("parameters").items()) {
    const std::string path = "/parameters/" + ShownPointerToken(name);
    const CalibrationParameter* parameter = FindCalibrationParameter(name);
    if (parameter == nullptr) {
      std::vector<std::string_view> names;
      for (const CalibrationParameter& known : CalibrationParameters()) names.push_back(known.path);
      const std::string near = NearestWord(name, names);
      in.issues().push_back({path, near.empty() ? "not a parameter of this version"
                                                : "not a parameter; nearest is " + near});
      continue;
    }
    const double number = in.Number(value, "value", path, parameter->low, parameter->high);
    in.Number(value, "low", path, parameter->low, parameter->high);
    in.Number(value, "high", path, parameter->low, parameter->high);
    if (const std::string unit = in.Text(value, "unit", path); unit != parameter->unit) {
      if (!unit.empty()) {
        in.Refuse(path + "/unit", PackReader::Find(value, "unit"),
                  Format("\"{}\"", parameter->unit));
      }
    }
    pack.overrides.push_back(Format("{}={}", parameter->path, NumberText(number)));
  }
}

// The section "latency" of a training, whose values the parser of documents checks.
void ReadLatency(PackReader& in, const std::string& backend, CalibrationPack& pack) {
  static constexpr std::string_view kMembers[] = {
      "backend",           "variant",           "alpha",           "beta", "alpha_coefficients",
      "beta_coefficients", "wait_coefficients", "preemption_gamma"};
  const Json& latency = in.Object("latency");
  for (const auto& [name, value] : latency.items()) {
    if (std::find(std::begin(kMembers), std::end(kMembers), name) == std::end(kMembers)) {
      in.issues().push_back({"/latency/" + ShownPointerToken(name), "not a member of a training"});
    }
  }
  if (in.Text(latency, "backend", "/latency") != backend && in.issues().empty()) {
    in.Refuse("/latency/backend", PackReader::Find(latency, "backend"), Format("\"{}\"", backend));
  }
  if (in.issues().empty()) pack.overrides.push_back("latency=" + CompactJson(latency));
}

void ReadSeen(PackReader& in, CalibrationPack& pack) {
  for (const auto& [name, value] : in.Object("seen").items()) {
    const bool pair = value.is_array() && value.size() == 2 && value[0].is_number() &&
                      value[1].is_number() && value[0].get<double>() <= value[1].get<double>();
    if (!pair) {
      in.Refuse("/seen/" + ShownPointerToken(name), &value, "two numbers, the lower first");
      continue;
    }
    pack.seen.push_back({Printable(name), value[0].get<double>(), value[1].get<double>()});
  }
}

// "vllm 0.20.1" is the preset "vLLM 0.20".
bool SameEngine(const std::string& measured, const Scenario& scenario) {
  return LowerCase(measured).find(LowerCase(EngineTitle(scenario))) == 0 ||
         LowerCase(EngineTitle(scenario)).find(LowerCase(measured)) == 0;
}

// The longest and the shortest of a distribution, as far as it says so.
struct LengthRange {
  double low = 0, high = 0;
  bool known = false;
};
LengthRange RangeOf(const LengthSpec& lengths) {
  switch (lengths.distribution) {
    case LengthDistribution::kFixed:
      return {static_cast<double>(lengths.value), static_cast<double>(lengths.value), true};
    case LengthDistribution::kUniform:
      return {static_cast<double>(lengths.min),
              static_cast<double>(lengths.max.value_or(lengths.min)), true};
    case LengthDistribution::kLognormal:
      return {lengths.median, lengths.p99, true};
    default:
      return {};
  }
}

}  // namespace

double PackNumber(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  double scale = 1;
  while (std::fabs(value) * scale < 1e5 && scale < 1e30) scale *= 10;
  return std::nearbyint(value * scale) / scale;
}

PackOrigin OriginOf(const Scenario& scenario, const Measurements& measurements) {
  const auto or_else = [](const std::string& said, const std::string& ours) {
    return Printable(said.empty() ? ours : said);
  };
  PackOrigin origin;
  const MeasuredServer& server = measurements.server;
  origin.model = or_else(server.model, scenario.model.name);
  origin.gpu = or_else(server.gpu, scenario.hardware.name);
  const std::string engine =
      server.engine_version.empty() ? server.engine : server.engine + " " + server.engine_version;
  origin.engine = or_else(engine, EngineTitle(scenario));
  origin.tensor_parallel = server.tensor_parallel.value_or(
      scenario.cluster.pools.empty() ? 1 : scenario.cluster.pools[0].tensor_parallel);
  for (const std::string& line : measurements.found) origin.files.push_back(Printable(line));
  origin.measurements = static_cast<std::int64_t>(measurements.points.size());
  return origin;
}

std::string PackJson(const Calibration& calibration, const PackOrigin& origin) {
  Ordered parameters = Ordered::object();
  for (const FittedParameter& p : calibration.fitted) {
    parameters[p.parameter->path] = {{"value", PackNumber(p.value)},
                                     {"low", PackNumber(p.low)},
                                     {"high", PackNumber(p.high)},
                                     {"unit", p.parameter->unit},
                                     {"before", PackNumber(p.before)}};
  }
  Ordered errors = Ordered::array();
  for (const CalibrationError& e : calibration.errors) {
    errors.push_back({{"of", WordOf(e.form)},
                      {"figure", WordOf(e.figure)},
                      {"held_out", e.held_out},
                      {"points", e.points},
                      {"before", OffJson(e.before)},
                      {"after", OffJson(e.after)}});
  }
  Ordered seen = Ordered::object();
  for (const SeenRange& range : calibration.seen) {
    seen[range.name] = {PackNumber(range.low), PackNumber(range.high)};
  }
  const Ordered pack = {{"kind", kPackKind},
                        {"schema", kPackSchema},
                        {"spec_version", kCalibrationSpecVersion},
                        {"backend", "analytic"},
                        {"parameters", parameters},
                        {"errors", errors},
                        {"seen", seen},
                        {"warnings", calibration.warnings},
                        {"provenance",
                         {{"model", origin.model},
                          {"gpu", origin.gpu},
                          {"engine", origin.engine},
                          {"tensor_parallel", origin.tensor_parallel},
                          {"files", origin.files},
                          {"measurements", origin.measurements}}}};
  return pack.dump(2, ' ', false, Ordered::error_handler_t::replace);
}

Result<CalibrationPack> ReadPack(std::string_view text) {
  const Result<Json> parsed = ParseJson(text);
  if (!parsed.ok()) return Issues(parsed.issues());
  const Json& root = parsed.value();
  PackReader in(root);
  if (in.Text(root, "kind", "") != kPackKind && in.issues().empty()) {
    in.Refuse("/kind", PackReader::Find(root, "kind"), Format("\"{}\"", kPackKind));
  }
  if (!in.issues().empty()) return in.issues();
  in.Number(root, "schema", "", kPackSchema, kPackSchema);
  if (in.Text(root, "spec_version", "") != kCalibrationSpecVersion && in.issues().empty()) {
    in.Refuse("/spec_version", PackReader::Find(root, "spec_version"),
              Format("\"{}\"", kCalibrationSpecVersion));
  }
  if (!in.issues().empty()) return in.issues();  // what the rest means is not known here
  const std::string backend = in.Text(root, "backend", "");
  CalibrationPack pack;
  if (backend == "physics" || backend == "blackbox") {
    ReadLatency(in, backend, pack);
  } else if (backend == "analytic" || !in.issues().empty()) {
    pack.overrides.emplace_back("latency.backend=analytic");
    ReadParameters(in, pack);
  } else {
    in.Refuse("/backend", PackReader::Find(root, "backend"),
              "\"analytic\", \"physics\" or \"blackbox\"");
  }
  ReadSeen(in, pack);
  const Json& origin = in.Object("provenance");
  pack.origin.model = Printable(in.Text(origin, "model", "/provenance"));
  pack.origin.gpu = Printable(in.Text(origin, "gpu", "/provenance"));
  pack.origin.engine = Printable(in.Text(origin, "engine", "/provenance"));
  pack.origin.tensor_parallel =
      static_cast<std::int64_t>(in.Number(origin, "tensor_parallel", "/provenance", 1, 1e6));
  if (!in.issues().empty()) return Bounded(std::move(in.issues()));
  return pack;
}

Result<std::string> CalibratedDocument(const std::string& document, const CalibrationPack& pack) {
  return ApplyOverrides(document, pack.overrides);
}

std::vector<std::string> PackWarnings(const CalibrationPack& pack, const Scenario& scenario) {
  MeasuredServer server;
  server.model = pack.origin.model;
  server.gpu = pack.origin.gpu;
  server.tensor_parallel = pack.origin.tensor_parallel;
  std::vector<std::string> lines = ServerMismatches(server, scenario);
  if (!SameEngine(pack.origin.engine, scenario)) {
    lines.push_back(Format("measured on engine {}, the scenario has {}", pack.origin.engine,
                           EngineTitle(scenario)));
  }
  const auto check = [&](std::string_view name, const char* what, double low, double high) {
    for (const CalibrationPack::Range& range : pack.seen) {
      if (range.name != name || (low >= range.low && high <= range.high)) continue;
      lines.push_back(Format(
          "{} of {} lie outside of what was measured, {} to {}: there the "
          "calibration is a guess",
          what, low == high ? ShortNumber(low) : ShortNumber(low) + " to " + ShortNumber(high),
          ShortNumber(range.low), ShortNumber(range.high)));
    }
  };
  const WorkloadSpec& w = scenario.workload;
  if (const LengthRange prompt = RangeOf(w.prompt_tokens); prompt.known) {
    check("prompt_tokens", "prompts", prompt.low, prompt.high);
  }
  if (const LengthRange output = RangeOf(w.output_tokens); output.known) {
    check("output_tokens", "outputs", output.low, output.high);
  }
  if (HasRate(w.arrivals.process)) {
    // A lower rate asks nothing new of a server.
    for (const CalibrationPack::Range& range : pack.seen) {
      const double replicas = static_cast<double>(std::max<std::int64_t>(
          1, scenario.cluster.pools.empty() ? 1 : scenario.cluster.Replicas()));
      const double each = w.arrivals.rate_per_s / replicas;
      if (range.name != "rate_per_s" || each <= range.high) continue;
      lines.push_back(
          Format("{} requests/s a replica are more than the {} that were measured: "
                 "there the calibration is a guess",
                 ShortNumber(each), ShortNumber(range.high)));
    }
  }
  return lines;
}

}  // namespace servecast
