// See coefficients.h.
#include "io/coefficients.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "io/field_reader.h"
#include "io/json_document.h"
#include "io/physics_coefficients.h"
#include "io/presets.h"

namespace servecast {

namespace {

using Json = nlohmann::json;

}  // namespace

Result<std::vector<CoefficientSet>> ReadCoefficientSets(std::string_view file) {
  Result<Json> parsed = ParseJson(file);
  if (!parsed.ok()) return Issues(parsed.issues());
  const Json& document = parsed.value();
  if (!document.is_object() || !document.contains("sets") || !document["sets"].is_array()) {
    return Issue{"/sets", "missing, allowed a list of coefficient sets"};
  }
  std::vector<CoefficientSet> sets;
  for (const Json& row : document["sets"]) {
    const bool whole = row.is_object() && row.contains("id") && row["id"].is_string() &&
                       row.contains("alpha") && row.contains("beta");
    if (!whole) {
      return Issue{Format("/sets/{}", sets.size()), "allowed an object of id, alpha and beta"};
    }
    CoefficientSet set;
    set.id = row["id"].get<std::string>();
    set.latency =
        CompactJson(Json{{"backend", "blackbox"}, {"alpha", row["alpha"]}, {"beta", row["beta"]}});
    const auto multiple = row.find("prefill_time_over_peak");
    if (multiple != row.end() && multiple->is_number()) {
      set.prefill_time_over_peak = multiple->get<double>();
    }
    sets.push_back(std::move(set));
  }
  return sets;
}

Result<std::vector<CoefficientSet>> PublishedCoefficientSets() {
  constexpr std::string_view kKind = "coefficients", kId = "blis-blackbox";
  if (Issues missing = MissingPreset(kKind, kId); !missing.empty()) return missing;
  return ReadCoefficientSets(PresetText(kKind, kId));
}

Result<CoefficientSet> FindCoefficientSet(std::string_view id) {
  Result<std::vector<CoefficientSet>> sets = PublishedCoefficientSets();
  if (!sets.ok()) return Issues(sets.issues());
  std::vector<std::string_view> ids;
  for (CoefficientSet& set : sets.value()) {
    if (set.id == id) return std::move(set);
    ids.emplace_back(set.id);
  }
  return Issue{"--coefficients", Format("found \"{}\", allowed an id that servecast "
                                        "coefficients lists{}",
                                        id, DidYouMean(id, ids))};
}

// Its id: model/gpu or gpu-memory/tpN/engine.
bool IsSetOf(const CoefficientSet& set, const Scenario& s) {
  const std::size_t gpu = set.id.find('/') + 1, tp = set.id.find('/', gpu) + 1;
  const std::string_view id = set.id;
  const std::string_view hardware = id.substr(gpu, tp - 1 - gpu);
  const std::string group = Format("tp{}/", s.cluster.pool().tensor_parallel);
  bool same = gpu > 0 && tp > 0 && id.compare(tp, group.size(), group) == 0 &&
              SameName(id.substr(0, gpu - 1), s.model.name);
  for (std::string_view rest = hardware; same && !rest.empty();) {
    const std::size_t dash = rest.find('-');
    same = SameName(rest.substr(0, dash), s.hardware.name);
    rest.remove_prefix(dash == std::string_view::npos ? rest.size() : dash + 1);
  }
  return same;
}

std::string WarningOf(const CoefficientSet& set) {
  if (!set.FasterThanLight()) return "";
  return Format(
      "coefficients {} bill prefill at {} of the least time that the GPU's arithmetic allows",
      set.id, ShortNumber(set.prefill_time_over_peak));
}

namespace {

// Of a set that is one of `latency` alone.
Json RowOf(const std::string& id, const std::string& latency, bool fits,
           std::vector<std::string> warnings) {
  Result<Json> section = ParseJson(latency);
  return {{"id", id},
          {"latency", section.ok() ? section.value() : Json()},
          {"fits", fits},
          {"faster_than_light", false},
          {"warnings", std::move(warnings)}};
}

// A file of "physics" holds one set.
Result<Json> PhysicsRow(std::string_view file, const Result<Scenario>& scenario) {
  const Result<PhysicsCoefficients> read = ReadPhysicsCoefficients(file);
  if (!read.ok()) return Issues(read.issues());
  const PhysicsProvenance& p = read.value().trained_on;
  std::vector<std::string> warnings;
  if (scenario.ok()) warnings = Mismatches(p, scenario.value());
  const std::string id =
      Format("{}/{}/tp{}/{}, {}", p.model, p.hardware, p.tp, p.engine_version, p.training_date);
  const bool fits = warnings.empty();
  return RowOf(id, read.value().latency, fits, std::move(warnings));
}

}  // namespace

std::string CoefficientsJson(std::string_view document, std::string_view file) {
  const Result<Scenario> scenario = ParseScenario(document);
  Json rows = Json::array(), others = Json::array();
  Issues issues;
  Result<std::vector<CoefficientSet>> sets =
      file.empty() ? PublishedCoefficientSets() : ReadCoefficientSets(file);
  if (sets.ok()) {
    for (const CoefficientSet& set : sets.value()) {
      std::vector<std::string> warnings;
      if (set.FasterThanLight()) warnings.push_back(WarningOf(set));
      const bool fits = scenario.ok() && IsSetOf(set, scenario.value());
      Json row = RowOf(set.id, set.latency, fits, std::move(warnings));
      row["faster_than_light"] = set.FasterThanLight();
      (fits ? rows : others).push_back(std::move(row));
    }
    rows.insert(rows.end(), others.begin(), others.end());
  } else if (Result<Json> physics = PhysicsRow(file, scenario); !file.empty() && physics.ok()) {
    rows.push_back(std::move(physics.value()));
  } else {
    // A file that speaks of physics means to be one of it.
    const bool is_physics = file.find("\"physics_coefficients\"") != std::string_view::npos;
    issues = is_physics ? physics.issues() : sets.issues();
  }
  Json out = {{"sets", std::move(rows)}, {"issues", Json::array()}};
  for (const Issue& issue : issues) {
    Json row = {{"path", issue.path}, {"message", issue.message}};
    if (!issue.kind.empty()) row["kind"] = issue.kind;
    out["issues"].push_back(std::move(row));
  }
  return CompactJson(out);
}

}  // namespace servecast
