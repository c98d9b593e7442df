// See pack.h.
#include "calibrate/pack.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/text.h"
#include "calibrate/pack_json.h"
#include "calibrate/server.h"
#include "cost/calibrated.h"
#include "cost/compared.h"
#include "import/names.h"
#include "io/issues.h"
#include "io/json_document.h"
#include "io/presets.h"

namespace servecast {

using Json = nlohmann::json;

namespace {
using Ordered = nlohmann::ordered_json;

constexpr std::size_t kMostErrors = 32, kMostName = 200, kMostKinds = 400;
constexpr double kMostPoints = 1e9, kMostPercent = 1e9;
constexpr std::string_view kSeen[] = {"prompt_tokens", "batch",      "context_tokens",
                                      "output_tokens", "rate_per_s", "concurrency"};

Ordered OffJson(const CalibrationError::Off& off) {
  return {{"mape", PackNumber(off.mean)},
          {"rmse", PackNumber(off.rms)},
          {"median", PackNumber(off.median)},
          {"max", PackNumber(off.most)}};
}

std::vector<double> PackNumbers(std::vector<double> values) {
  for (double& value : values) value = PackNumber(value);
  return values;
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
  std::string Word(const Json& of, const char* key, const std::string& path,
                   std::initializer_list<std::string_view> words) {
    const Json* value = Find(of, key);
    std::string allowed;
    for (const std::string_view word : words) {
      if (value != nullptr && *value == word) return std::string(word);
      allowed += Format("{}\"{}\"", allowed.empty() ? "one of " : ", ", word);
    }
    Refuse(path + "/" + key, value, allowed);
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
    CalibrationSpec::Parameter read;
    read.path = parameter->path;
    read.value = in.Number(value, "value", path, parameter->low, parameter->high);
    read.low = in.Number(value, "low", path, parameter->low, parameter->high);
    read.high = in.Number(value, "high", path, parameter->low, parameter->high);
    if (const std::string unit = in.Text(value, "unit", path); unit != parameter->unit) {
      if (!unit.empty()) {
        in.Refuse(path + "/unit", PackReader::Find(value, "unit"),
                  Format("\"{}\"", parameter->unit));
      }
    }
    pack.overrides.push_back(Format("{}={}", parameter->path, NumberText(read.value)));
    pack.spec.parameters.push_back(std::move(read));
  }
}

// Of the card's power law: no step reads them, and so the scenario does not carry where they are
// from.
void ReadPowerConstants(PackReader& in, CalibrationPack& pack) {
  const Json* constants = PackReader::Find(in.Object("power"), "parameters");
  if (constants == nullptr || !constants->is_object()) {
    in.Refuse("/power/parameters", constants, "an object");
    return;
  }
  for (const auto& [name, value] : constants->items()) {
    const std::string path = "/power/parameters/" + ShownPointerToken(name);
    const bool known =
        std::any_of(std::begin(kPowerConstants), std::end(kPowerConstants),
                    [&name = name](const PowerConstant& c) { return name == c.name; });
    if (!known) {
      in.issues().push_back({path, "not a constant of power, allowed busy_w, compute_w, memory_w"});
      continue;
    }
    const double watts = in.Number(value, "value", path, 0, kMostConstantW);
    pack.overrides.push_back(Format("hardware.{}={}", name, NumberText(watts)));
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
    if (std::find(std::begin(kSeen), std::end(kSeen), name) == std::end(kSeen)) continue;
    pack.spec.seen.push_back({name, value[0].get<double>(), value[1].get<double>()});
  }
}

// Errors of a fit, after it. A pack of an older version need not have the median.
void ReadErrors(PackReader& in, const Json& root, CalibrationSpec& spec) {
  const Json* list = PackReader::Find(root, "errors");
  if (list == nullptr || !list->is_array() || list->size() > kMostErrors) {
    in.Refuse("/errors", list, Format("a list of at most {} objects", kMostErrors));
    return;
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    const Json& each = (*list)[i];
    const std::string path = Format("/errors/{}", i);
    CalibrationSpec::Error error;
    error.of = in.Word(each, "of", path, {"prompt", "step", "run"});
    error.figure = in.Word(each, "figure", path, {"ttft", "tpot", "e2e"});
    const Json* held_out = PackReader::Find(each, "held_out");
    error.held_out = held_out != nullptr && *held_out == true;
    error.points = static_cast<std::int64_t>(in.Number(each, "points", path, 0, kMostPoints));
    const Json* after = PackReader::Find(each, "after");
    if (after == nullptr || !after->is_object()) {
      in.Refuse(path + "/after", after, "an object");
      continue;
    }
    const char* median = after->contains("median") ? "median" : "mape";
    error.median = in.Number(*after, median, path + "/after", 0, kMostPercent);
    error.max = in.Number(*after, "max", path + "/after", 0, kMostPercent);
    spec.errors.push_back(std::move(error));
  }
}

// Of a training: of step times what was fitted and what was held out (training.h).
void ReadTrainingErrors(PackReader& in, CalibrationSpec& spec) {
  const Json* beta = PackReader::Find(in.Object("training"), "beta");
  const Json* list = beta == nullptr ? nullptr : PackReader::Find(*beta, "errors");
  if (list == nullptr || !list->is_array()) {
    in.Refuse("/training/beta/errors", list, "a list");
    return;
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string path = Format("/training/beta/errors/{}", i);
    const std::string of = in.Text((*list)[i], "of", path);
    if (of != "fitted" && of != "held out") continue;
    CalibrationSpec::Error error;
    error.of = error.figure = "step";
    error.held_out = of == "held out";
    error.points =
        static_cast<std::int64_t>(in.Number((*list)[i], "samples", path, 0, kMostPoints));
    error.median = in.Number((*list)[i], "mape", path, 0, kMostPercent);
    spec.errors.push_back(std::move(error));
  }
}

// "a.csv: 5 single prompts" and "b.json: 90 requests of vllm bench serve: all of it under load" are
// "5 single prompts; 90 requests of vllm bench serve": names of files are nobody else's business.
std::string KindsOf(const std::vector<std::string>& found) {
  std::string kinds;
  for (const std::string& line : found) {
    const std::size_t name = line.find(": ");
    if (name == std::string::npos) continue;
    const std::string kind = line.substr(name + 2, line.find(": ", name + 2) - name - 2);
    if (kinds.size() + kind.size() > kMostKinds) return kinds + "; and more";
    kinds += (kinds.empty() ? "" : "; ") + kind;
  }
  return kinds;
}

void ReadOrigin(PackReader& in, CalibrationSpec& spec) {
  constexpr const char* kAt = "/provenance";
  const Json& origin = in.Object("provenance");
  spec.model = Printable(in.Text(origin, "model", kAt));
  spec.gpu = Printable(in.Text(origin, "gpu", kAt));
  spec.engine = Printable(in.Text(origin, "engine", kAt));
  spec.tensor_parallel =
      static_cast<std::int64_t>(in.Number(origin, "tensor_parallel", kAt, 1, 1e6));
  // Packs of before carry less.
  const auto has = [&origin](const char* key) { return PackReader::Find(origin, key) != nullptr; };
  if (has("with")) spec.with = Printable(in.Text(origin, "with", kAt));
  if (has("date")) spec.date = Printable(in.Text(origin, "date", kAt));
  if (has("measurements")) {
    spec.measurements =
        static_cast<std::int64_t>(in.Number(origin, "measurements", kAt, 0, kMostPoints));
  }
  if (const Json* files = PackReader::Find(origin, "files")) {
    std::vector<std::string> lines;
    for (const Json& line : *files) {
      if (line.is_string()) lines.push_back(Printable(line.get<std::string>()));
    }
    if (!files->is_array() || lines.size() != files->size()) {
      in.Refuse("/provenance/files", files, "a list of texts");
    }
    spec.files = KindsOf(lines);
  }
  spec.stated = Format("{} on {}, {}", spec.model, spec.gpu, spec.engine);
  for (const auto& [key, text] : {std::pair("model", &spec.model), std::pair("gpu", &spec.gpu),
                                  std::pair("engine", &spec.engine), std::pair("with", &spec.with),
                                  std::pair("date", &spec.date)}) {
    if (text->size() <= kMostName) continue;
    in.issues().push_back(
        {Format("{}/{}", kAt, key), Format("found {} bytes, allowed {}", text->size(), kMostName)});
  }
}

// "vllm 0.20.1" is the preset "vLLM 0.20".
bool SameEngine(const std::string& measured, const Scenario& scenario) {
  return LowerCase(measured).find(LowerCase(EngineTitle(scenario))) == 0 ||
         LowerCase(EngineTitle(scenario)).find(LowerCase(measured)) == 0;
}

std::string NameOf(std::string_view kind, const std::string& preset) {
  return preset.empty() ? std::string() : std::string(NameOfPreset(kind, preset).name);
}

// The measured server by the scenario's names where it is that one, else by those of the presets
// that are meant: names are compared to the letter from here on.
void TakeNames(const Scenario* scenario, CalibrationSpec& spec) {
  const auto same = [scenario](auto member, const std::string& name) {
    MeasuredServer server;
    server.*member = name;
    return scenario != nullptr && ServerMismatches(server, *scenario).empty();
  };
  const auto take = [](std::string& name, bool is_scenarios, const std::string& ours,
                       const std::string& preset) {
    name = is_scenarios ? ours : preset.empty() ? name : preset;
  };
  take(spec.model, same(&MeasuredServer::model, spec.model), scenario ? scenario->model.name : "",
       NameOf("models", ModelPresetOf(spec.model)));
  take(spec.gpu, same(&MeasuredServer::gpu, spec.gpu), scenario ? scenario->hardware.name : "",
       NameOf("hardware", HardwarePresetOf(spec.gpu)));
  const std::size_t space = spec.engine.find(' ');
  const EngineName engine =
      EnginePresetOf(spec.engine.substr(0, space),
                     space == std::string::npos ? std::string() : spec.engine.substr(space + 1));
  take(spec.engine, scenario != nullptr && SameEngine(spec.engine, *scenario),
       scenario ? scenario->engine.name : "", NameOf("engines", engine.preset));
}

// As the member `calibration` of a document.
std::string SpecJson(const CalibrationSpec& spec) {
  Json json = {{"spec_version", spec.spec_version},
               {"model", spec.model},
               {"gpu", spec.gpu},
               {"engine", spec.engine},
               {"stated", spec.stated},
               {"backend", spec.backend},
               {"measurements", spec.measurements},
               {"tensor_parallel", spec.tensor_parallel}};
  for (const auto& [key, text] :
       {std::pair("with", &spec.with), std::pair("date", &spec.date),
        std::pair("files", &spec.files), std::pair("coefficients", &spec.coefficients)}) {
    if (!text->empty()) json[key] = *text;
  }
  for (const CalibrationSpec::Parameter& p : spec.parameters) {
    json["parameters"].push_back(
        {{"path", p.path}, {"value", p.value}, {"low", p.low}, {"high", p.high}});
  }
  for (const CalibrationSpec::Range& range : spec.seen) {
    json["seen"].push_back({{"of", range.of}, {"low", range.low}, {"high", range.high}});
  }
  for (const CalibrationSpec::Error& e : spec.errors) {
    json["errors"].push_back({{"of", e.of},
                              {"figure", e.figure},
                              {"held_out", e.held_out},
                              {"points", e.points},
                              {"median", e.median},
                              {"max", e.max}});
  }
  return CompactJson(json);
}

}  // namespace

double PackNumber(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  double scale = 1;
  while (std::fabs(value) * scale < 1e5 && scale < 1e30) scale *= 10;
  return std::nearbyint(value * scale) / scale;
}

PackOrigin OriginOf(const Scenario& scenario, const Measurements& measurements,
                    const std::string& date) {
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
  origin.tensor_parallel = server.tensor_parallel.value_or(scenario.cluster.pool().tensor_parallel);
  origin.with = FeaturesText(scenario);
  origin.date = date;
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
  Ordered pack = PackHead(calibration.latency.backend);
  pack["parameters"] = std::move(parameters);
  pack["errors"] = std::move(errors);
  pack["seen"] = std::move(seen);
  pack["warnings"] = calibration.warnings;
  pack["provenance"] = OriginJson(origin);
  if (calibration.latency.backend == "blackbox") {
    pack["latency"] = {{"backend", "blackbox"},
                       {"alpha", PackNumbers(calibration.latency.alpha)},
                       {"beta", PackNumbers(calibration.latency.beta)}};
  }
  for (const FittedPower& p : calibration.power.fitted) {
    pack["power"]["parameters"][p.constant->name] = {{"value", PackNumber(p.value)},
                                                     {"low", PackNumber(p.low)},
                                                     {"high", PackNumber(p.high)},
                                                     {"unit", "W"},
                                                     {"before", PackNumber(p.before)}};
  }
  for (const PowerRow& row : calibration.power.rows) {
    pack["power"]["rows"].push_back(
        {{"of", Printable(row.label)},
         {"held_out", row.held_out},
         {"measured_w", PackNumber(row.measured_w)},
         {"before_w", row.before_w ? Ordered(PackNumber(*row.before_w)) : Ordered()},
         {"after_w", PackNumber(row.after_w)}});
  }
  for (const RunReplay& replay : calibration.replays) {
    pack["replays"].push_back({{"of", Printable(replay.label)},
                               {"held_out", replay.held_out},
                               {"figures", ReplayJson(replay.before, replay.after)}});
  }
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
  pack.spec.spec_version = kCalibrationSpecVersion;
  pack.spec.backend = backend;
  if (backend == "physics" || backend == "blackbox") {
    ReadLatency(in, backend, pack);
    // Without a training it was fitted through the simulator.
    if (backend == "blackbox" && !root.contains("training")) {
      ReadErrors(in, root, pack.spec);
    } else {
      ReadTrainingErrors(in, pack.spec);
    }
  } else if (backend == "analytic" || !in.issues().empty()) {
    pack.overrides.emplace_back("latency.backend=analytic");
    ReadParameters(in, pack);
    ReadErrors(in, root, pack.spec);
  } else {
    in.Refuse("/backend", PackReader::Find(root, "backend"),
              "\"analytic\", \"physics\" or \"blackbox\"");
  }
  if (root.contains("power")) ReadPowerConstants(in, pack);
  ReadSeen(in, pack);
  ReadOrigin(in, pack.spec);
  if (!in.issues().empty()) return Bounded(std::move(in.issues()));
  return pack;
}

Result<std::string> CalibratedDocument(const std::string& document, const CalibrationPack& pack) {
  Result<std::string> text = ApplyOverrides(document, pack.overrides);
  if (!text.ok()) return text;
  const Result<Scenario> scenario = ParseScenario(text.value());
  if (!scenario.ok()) {
    // A file to be fetched is another matter than a document that is wrong anyhow.
    Issues missing = scenario.issues();
    std::erase_if(missing, [](const Issue& issue) { return issue.kind != "missing_file"; });
    if (!missing.empty()) return missing;
  }
  CalibrationSpec spec = pack.spec;
  TakeNames(scenario.ok() ? &scenario.value() : nullptr, spec);
  if (scenario.ok() && spec.backend != "analytic") {
    spec.coefficients = CoefficientsHash(scenario.value().latency);
  }
  return ApplyOverrides(text.value(), {"calibration=" + SpecJson(spec)});
}

std::vector<std::string> CalibrationWarnings(const Scenario& scenario) {
  if (!scenario.calibration.On()) return {};
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < scenario.cluster.pools.size(); ++i) {
    Scenario alone = scenario;
    alone.UsePool(i);
    for (std::string& line : CalibrationMismatches(alone)) {
      if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
    }
  }
  const std::vector<std::string> beyond = BeyondCalibration(scenario);
  lines.insert(lines.end(), beyond.begin(), beyond.end());
  return lines;
}

}  // namespace servecast
