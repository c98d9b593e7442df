// Scenario documents: text -> presets merged -> fields read, every issue collected -> Scenario with
// its canonical and resolved text. The fields themselves are described in fields.cpp.
#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/hash.h"
#include "base/text.h"
#include "cost/layers/layer_kind.h"
#include "io/epp_config.h"
#include "io/field_reader.h"
#include "io/field_writer.h"
#include "io/issues.h"
#include "io/json_document.h"
#include "io/pool_checks.h"
#include "io/presets.h"
#include "io/sglang_names.h"
#include "io/variants.h"
#include "io/workload_checks.h"
#include "servecast/scenario.h"
#include "servecast/workload_spec.h"
#include "serving/cluster/router.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

constexpr const char* kHost = "host";  // the engine's member that names a preset of "hosts"

// `patch` over `base`, member by member. Where the patch chooses another variant, what only the
// base's variant has goes.
Json Merged(Json base, const Json& patch) {
  if (!base.is_object() || !patch.is_object()) return patch;
  for (const auto& [key, value] : patch.items()) {
    if (IsVariantKey(key)) DropInapplicable(base, key, value);
  }
  for (const auto& [key, value] : patch.items()) {
    Json& member = base[key];
    member = Merged(std::move(member), value);
  }
  return base;
}

// A price of one's own has not the terms of the preset's.
void DropBasis(Json& hardware) {
  const bool own = hardware.contains("price_per_gpu_hour") && !hardware.contains("price_basis");
  if (own) hardware["price_basis"] = "";
}

// An engine's own scheduler, where its preset names one, unless the document has another.
void TakeScheduler(std::string_view engine, Json& document) {
  const Json* file = FindPreset("engines", engine);
  if (file == nullptr || !file->contains("scheduler")) return;
  Json& own = document["scheduler"];
  if (own.is_string()) own = Json{{"policy", own}};
  if (own.is_null()) own = Json::object();
  if (!own.is_object()) return;
  const auto policy = own.find("policy");
  if (policy == own.end() || *policy == (*file)["scheduler"]["policy"]) {
    own = Merged((*file)["scheduler"], own);
  }
}

// An engine's members on the host that `naming` names, whose constants lie over them.
Json OnHost(Json engine, const Json& naming) {
  const auto host = naming.is_object() ? naming.find(kHost) : naming.end();
  if (host == naming.end() || !host->is_string()) return engine;
  const Json* constants = FindPresetDocument("hosts", host->get<std::string>());
  return constants == nullptr ? engine : Merged(std::move(engine), *constants);
}

// One host serves all pools: an engine of a pool is on the scenario's, and may say that one alone.
void TakeHost(const Json& document, const std::string& path, Json& own, Issues& issues) {
  const auto engine = document.find(kDefaultedSection);
  const bool named = engine != document.end() && engine->is_object() && engine->contains(kHost);
  const Json host = named ? (*engine)[kHost] : Json(EngineSpec().host);
  const auto said = own.find(kHost);
  if (said != own.end() && *said != host) {
    issues.push_back({Format("{}/{}", path, kHost),
                      Format("found {}, allowed the scenario's {}: one host serves all pools",
                             ShortJson(*said), ShortJson(host))});
  }
  own[kHost] = host;
}

// Replaces {"preset": id, ...} by the preset's document with the other members over it. Returns
// the id; "" when the section names none.
std::string MergePreset(const PresetSection& section, Json& document, Issues& issues,
                        const std::string& above = "") {
  const bool engine = section.name == kDefaultedSection;
  if (!document.contains(section.name) && engine) document[section.name] = Json::object();
  const auto found = document.find(section.name);
  if (found == document.end() || !found->is_object()) return "";
  const std::string path = Format("{}/{}/preset", above, section.name);
  std::string id(engine ? kDefaultEngine : "");
  const bool names_one = found->contains("preset");
  if (names_one) {
    const std::string* named = (*found)["preset"].get_ptr<const std::string*>();
    if (named == nullptr) {
      issues.push_back(
          {path, Format("found {}, allowed the name of a preset", ShortJson((*found)["preset"]))});
      found->erase("preset");
      return "";
    }
    id = *named;
    found->erase("preset");
  }
  if (!names_one && !engine) return "";
  const Json* preset = FindPresetDocument(section.kind, id);
  if (preset == nullptr) {
    const Choices ids = PresetIds(section.kind), all = AllPresetIds(section.kind);
    const Issues missing = MissingPreset(section.kind, id);
    if (missing.empty()) {
      const std::size_t others = all.size() - ids.size();
      issues.push_back(
          {path, Format("found {}, allowed {}{}{}", ShortJson(id), QuotedList(ids),
                        others == 0 ? "" : Format(", {} others (servecast catalog)", others),
                        DidYouMean(id, all))});
    }
    issues.insert(issues.end(), missing.begin(), missing.end());
    // What the section's members mean hangs on the preset: go on with some preset as it is, so
    // that the rest of the document is checked.
    *found = *FindPresetDocument(section.kind, ids[0]);
    return "";
  }
  if (section.name == "hardware") DropBasis(*found);
  *found = Merged(engine ? OnHost(*preset, *found) : *preset, *found);
  if (engine) TakeScheduler(id, document);
  return id;
}

// A pool's section starts from the scenario's, but one that names a preset is a thing of its own: a
// member that the preset leaves to its default has that, not what another GPU has. The scenario's
// optional members (memory behind the GPU) stay, but for another GPU's price.
void KeepOwnDefaults(const Json& scenarios, const std::string& section, Json& own) {
  const bool another = scenarios.value("name", Json()) != own.value("name", Json());
  constexpr const char* kPerHour = "price_per_gpu_hour";
  if (section == "hardware" && another && !own.contains(kPerHour)) own[kPerHour] = nullptr;
  Scenario none;
  const Json written = WriteScenario(none, none, FieldsWritten::kAll);
  for (const auto& [key, value] : written[section].items()) {
    if (scenarios.contains(key) && !own.contains(key) && !value.is_object()) own[key] = value;
  }
}

// What a pool says of its hardware, its engine and its scheduler: over the preset that it names, or
// that is all it says, else over the scenario's.
void MergePools(Json& document, Issues& issues) {
  const auto cluster = document.find("cluster");
  if (cluster == document.end() || !cluster->is_object()) return;
  const auto pools = cluster->find("pools");
  if (pools == cluster->end() || !pools->is_array()) return;
  for (std::size_t i = 0; i < pools->size(); ++i) {
    Json& pool = (*pools)[i];
    for (const PresetSection& section : PresetSections()) {
      if (section.name != "hardware" && section.name != kDefaultedSection) continue;
      const auto own = pool.is_object() ? pool.find(section.name) : pool.end();
      if (own == pool.end()) continue;
      if (own->is_string()) *own = Json{{"preset", *own}};
      const std::string path = Format("/cluster/pools/{}", i);
      if (own->is_object() && section.name == kDefaultedSection) {
        TakeHost(document, Format("{}/{}", path, section.name), *own, issues);
      }
      if (own->is_object() && own->contains("preset")) {
        MergePreset(section, pool, issues, path);
        const auto scenarios = document.find(section.name);
        if (scenarios == document.end() || !scenarios->is_object()) continue;
        KeepOwnDefaults(*scenarios, std::string(section.name), pool[section.name]);
      } else if (own->is_object() && document.contains(section.name)) {
        if (section.name == "hardware") DropBasis(*own);
        *own = Merged(document[section.name], *own);
      }
    }
    const auto scaling = pool.is_object() ? pool.find("scaling") : pool.end();
    if (scaling != pool.end() && scaling->is_string()) *scaling = Json{{"policy", *scaling}};
    const auto scheduler = pool.is_object() ? pool.find("scheduler") : pool.end();
    if (scheduler == pool.end()) continue;
    if (scheduler->is_string()) *scheduler = Json{{"policy", *scheduler}};
    if (scheduler->is_object() && document.contains("scheduler")) {
      *scheduler = Merged(document["scheduler"], *scheduler);
    }
  }
}

// The scenario that counts as default for a document that names these presets.
Scenario BaseOf(const std::map<std::string_view, std::string>& presets) {
  Json document = Json::object();
  for (const PresetSection& section : PresetSections()) {
    const auto preset = presets.find(section.name);
    if (preset == presets.end()) continue;
    Json& its = document[section.name] = *FindPresetDocument(section.kind, preset->second);
    if (section.name != kDefaultedSection) continue;
    const auto host = presets.find(kHost);
    if (host != presets.end()) its = OnHost(std::move(its), Json{{kHost, host->second}});
    TakeScheduler(preset->second, document);
  }
  Scenario base;
  ReadSections(document, base);
  return base;
}

// Targets of a class.
void CheckSlo(const Scenario& s, Issues& issues) {
  for (std::size_t i = 0; i < s.slo.size(); ++i) {
    const SloSpec& slo = s.slo[i];
    const std::string path = Format("/slo/{}", i);
    if (slo.metric == SloMetric::kAttainment && LimitsOf(slo).empty()) {
      issues.push_back({path + "/ttft_ms",
                        "found none, and no tpot_ms and e2e_ms; allowed one at least with metric "
                        "\"attainment\""});
    }
    if (slo.of_class.empty()) continue;
    const std::vector<ClassSpec>& classes = s.workload->classes;
    if (std::none_of(classes.begin(), classes.end(),
                     [&slo](const ClassSpec& c) { return c.name == slo.of_class; })) {
      issues.push_back({path + "/class", Format("found {}, allowed the name of a class of the "
                                                "workload",
                                                ShortJson(slo.of_class))});
    } else if (slo.metric == SloMetric::kItl) {
      issues.push_back({path + "/metric",
                        "found \"itl\", allowed ttft, tpot or e2e with a class: "
                        "gaps between tokens are not kept apart by class"});
    }
  }
}

// Lists of a calibration: a thing once, and intervals that are none.
template <class Item, class Name>
void CheckIntervals(const char* list, const std::vector<Item>& items, Name Item::*name,
                    const char* named, Issues& issues) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Item& item = items[i];
    const std::string path = Format("/calibration/{}/{}/", list, i);
    if (item.low > item.high) {
      issues.push_back({path + "high", Format("found {}, allowed from low {} up",
                                              NumberText(item.high), NumberText(item.low))});
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (items[j].*name != item.*name) continue;
      issues.push_back(
          {path + named, Format("found {} again, allowed once", ShortJson(item.*name))});
      break;
    }
  }
}

void CheckCalibration(const CalibrationSpec& c, Issues& issues) {
  if (c == CalibrationSpec{}) return;
  if (c.spec_version != kCalibrationSpecVersion) {
    // What the constants mean differs between versions.
    issues.push_back(
        {"/calibration/spec_version",
         Format("found {}, allowed \"{}\"", ShortJson(c.spec_version), kCalibrationSpecVersion)});
  }
  CheckIntervals("parameters", c.parameters, &CalibrationSpec::Parameter::path, "path", issues);
  CheckIntervals("seen", c.seen, &CalibrationSpec::Range::of, "of", issues);
}

// Scores that all weigh nothing choose nothing.
void CheckRouter(const char* field, const std::string& policy, const ParamMap& params,
                 Issues& issues) {
  if (policy != "weighted") return;
  for (const ParamSpec& param : FindRouter(policy).params) {
    const bool weight = param.name != std::string_view(kStaleness.name);
    if (weight && ParamValues({&param, 1}, params)[0] > 0) return;
  }
  issues.push_back({Format("/cluster/{}/prefix_weight", field),
                    "found 0, and no other weight above 0; allowed one at least"});
}

// What a kind of layers needs.
void CheckLayers(const ModelSpec& model, Issues& issues) {
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const LayerSpec& layer = model.layers[i];
    const LayerKindEntry& kind = FindLayerKind(layer.kind);
    if (kind.lacks == nullptr) continue;  // the whole module is asked, too
    if (const std::string missing = kind.lacks({model, layer}); !missing.empty()) {
      issues.push_back(
          {Format("/model/layers/{}", i),
           Format("found 0 as {}, allowed from 1 up with kind \"{}\"", missing, layer.kind)});
    }
    const bool experts = layer.mlp == LayerMlp::kExperts && model.num_local_experts == 0;
    if (experts) {
      issues.push_back({Format("/model/layers/{}/mlp", i),
                        "found \"experts\", allowed with model.num_local_experts from 1 up"});
    }
    if (layer.state_key_heads > 0 && layer.state_heads % layer.state_key_heads != 0) {
      issues.push_back({Format("/model/layers/{}/state_heads", i),
                        Format("found {}, allowed a multiple of state_key_heads {}",
                               layer.state_heads, layer.state_key_heads)});
    }
  }
}

// What no single field can say.
void CheckTogether(const Scenario& s, Issues& issues) {
  CheckLayers(s.model, issues);
  if ((s.model.num_local_experts == 0) != (s.model.num_experts_per_tok == 0) ||
      s.model.num_experts_per_tok > s.model.num_local_experts) {
    issues.push_back({"/model/num_experts_per_tok",
                      Format("found {}, allowed 1 to num_local_experts {}, or 0 for a dense model",
                             s.model.num_experts_per_tok, s.model.num_local_experts)});
  }
  if (s.model.quantization == Quantization::kMxfp4 && s.model.num_local_experts == 0) {
    issues.push_back(
        {"/model/quantization",
         "found \"mxfp4\", which is of experts alone, allowed \"mxfp4_all\" for a model "
         "without: or nothing would be quantized"});
  }
  const bool by_bytes = s.latency.backend == "roofline" || s.latency.backend == "trained_physics";
  if (by_bytes && s.model.quantization != Quantization::kNone && s.latency.weight_bytes > 1) {
    issues.push_back({"/latency/weight_bytes",
                      Format("found {}, allowed 1 with model.quantization: {} knows weights by it "
                             "alone",
                             s.latency.weight_bytes, s.latency.backend)});
  }
  const std::vector<double>& beta = s.latency.beta;
  if (s.latency.backend == "blackbox" && !beta.empty() &&
      *std::max_element(beta.begin(), beta.end()) <= 0) {
    issues.push_back(
        {"/latency/beta",
         "found %, allowed one above 0 at least: blackbox needs the times of a step in us, "
         "[constant, per prefill token, per decode token]"});
  }
  CheckRouter("router", s.cluster.router, s.cluster.router_params, issues);
  CheckRouter("decode_router", s.cluster.decode_router, s.cluster.decode_router_params, issues);
  CheckRouter("encode_router", s.cluster.encode_router, s.cluster.encode_router_params, issues);
  CheckWorkload(*s.workload, issues);
  CheckSlo(s, issues);
  CheckCalibration(s.calibration, issues);
}

// The value at a path of it; nullptr: none.
const Json* ValueAt(const Json& document, const std::string& path) {
  const Json* at = &document;
  for (std::size_t start = 1; start <= path.size() && at != nullptr;) {
    const std::size_t end = std::min(path.find('/', start), path.size());
    const std::string key = path.substr(start, end - start);
    if (at->is_array()) {
      at = &(*at)[static_cast<std::size_t>(*ParseCount(key))];
    } else {
      const auto member = at->find(key);
      at = member == at->end() ? nullptr : &*member;
    }
    start = end + 1;
  }
  return at;
}

// "found %" of an issue names the value at its path, which one of the documents has.
void NameFound(const Json& resolved, const Json& changed, Issue& issue) {
  const std::size_t mark = issue.message.find("found %");
  if (mark == std::string::npos) return;
  const Json* value = ValueAt(resolved, issue.path);
  if (value == nullptr) value = ValueAt(changed, issue.path);
  const bool whole = value != nullptr && value->is_object();  // its members are not to blame
  issue.message.replace(mark + 6, 1,
                        value == nullptr ? "a value"
                        : whole          ? "one"
                                         : ShortJson(*value));
}

// Adds what fields say together, but where a field beside them is wrong already: what it would be
// compared with is not what the document meant.
void AddTogether(Scenario& scenario, Issues& issues) {
  Issues together;
  const std::vector<PoolSpec>& pools = scenario.cluster.pools;
  CheckPools(scenario, together);
  CheckEpp(scenario.cluster, together);
  for (std::size_t i = 0; i <= pools.size(); ++i) {  // then all as the scenario has it
    const bool all = i == pools.size();
    if (all ? pools.size() == 1 : pools.size() > 1 && !pools[i].engine && !pools[i].scheduler) {
      continue;
    }
    Scenario alone = scenario;
    if (!all) {
      alone.UsePool(i);
      alone.cluster.pool().replicas = scenario.cluster.Replicas();
    }
    Issues of_pool;
    CheckTogether(alone, of_pool);
    for (Issue& issue : of_pool) {
      // A compat of its own is refused already.
      if (alone.engine.compat != scenario.engine.compat && pools.size() > 1) break;
      if (!all) issue.path = PathIn(pools[i], i, issue.path);
      if (pools.size() > 1) {
        AddOnce(std::move(issue), together);
      } else {
        together.push_back(std::move(issue));
      }
    }
  }
  if (together.empty()) return;
  const Json resolved = WriteScenario(scenario, Scenario{}, FieldsWritten::kAll);
  const Json changed = WriteScenario(scenario, Scenario{}, FieldsWritten::kChanged);
  const std::size_t own = issues.size();
  for (Issue& issue : together) {
    NameFound(resolved, changed, issue);
    const std::string section = issue.path.substr(0, issue.path.rfind('/'));
    const bool doubtful = std::any_of(
        issues.begin(), issues.begin() + static_cast<std::ptrdiff_t>(own), [&](const Issue& other) {
          return other.path.rfind(section, 0) == 0 || section.rfind(other.path, 0) == 0;
        });
    if (!doubtful) issues.push_back(std::move(issue));
  }
}

// Which figures of `s` are not those of the presets that it was compared as.
void FindChanged(Scenario& s) {
  const std::string &gpu = s.hardware.compared_as, &engine = s.engine.compared_as;
  const bool has_gpu = gpu != "none", has_engine = engine != "none";
  if (!has_gpu && !has_engine) return;
  Scenario base;
  if (has_gpu) ReadSection("hardware", *FindPresetDocument("hardware", gpu), base);
  if (has_engine) {
    ReadSection("engine", *FindPresetDocument("engines", engine), base);
    const Json* host = FindPresetDocument("hosts", HostMeasuredWith(gpu, engine));
    if (host != nullptr) ReadSection("engine", *host, base);
  }
  const Json changed = WriteScenario(s, base, FieldsWritten::kCompared);
  const auto names = [&](const char* section, bool has, std::vector<std::string>& out) {
    out.clear();
    if (!has || !changed.contains(section)) return;
    for (const auto& [name, value] : changed[section].items()) out.push_back(name);
  };
  names("hardware", has_gpu, s.hardware.changed);
  names("engine", has_engine, s.engine.changed);
}

// The same of each pool.
void FindChangedOfPools(Scenario& s) {
  for (std::size_t i = 0; i < s.cluster.pools.size(); ++i) {
    PoolSpec& pool = s.cluster.pools[i];
    if (!pool.hardware && !pool.engine) continue;
    Scenario alone = s;
    alone.UsePool(i);
    FindChanged(alone);
    if (pool.hardware) pool.hardware->changed = alone.hardware.changed;
    if (pool.engine) pool.engine->changed = alone.engine.changed;
  }
}

void WriteTexts(Scenario& s, const std::map<std::string_view, std::string>& presets) {
  Json canonical = WriteScenario(s, BaseOf(presets), FieldsWritten::kChanged);
  for (const auto& [section, id] : presets) {
    if (section == kHost || (section == kDefaultedSection && id == kDefaultEngine)) continue;
    canonical[section]["preset"] = id;
  }
  s.canonical_text = CompactJson(canonical);
  s.resolved_text = CompactJson(WriteScenario(s, Scenario{}, FieldsWritten::kAll));
  Hasher id;
  id.Add(std::string_view(s.canonical_text));
  s.id = id.Finish();
  // Presets inlined; of the fields those that differ from the defaults of scenario.h, so that a new
  // field moves no fingerprint of a scenario that does not use it.
  Hasher content;
  content.Add(std::string_view(CompactJson(WriteScenario(s, Scenario{}, FieldsWritten::kHashed))));
  s.content_hash = content.Finish();
}

// `presets`: those that it names, and its host.
Result<Scenario> ReadDocument(std::string_view text,
                              std::map<std::string_view, std::string>& presets) {
  Result<Json> parsed = ParseJson(text);
  if (!parsed.ok()) return Issues(parsed.issues());
  Json& document = parsed.value();
  if (!document.is_object()) {
    return Issue{"",
                 Format("found {}, allowed a scenario document, an object", ShortJson(document))};
  }
  const auto schema = document.find("schema");
  Issues issues;
  if (schema == document.end()) {
    issues.push_back({"/schema", Format("missing, allowed {}", kScenarioSchema)});
  } else if (!schema->is_number() || schema->get<double>() != kScenarioSchema) {
    // What its members mean is not known here.
    return Issue{"/schema", Format("found {}, allowed {}", ShortJson(*schema), kScenarioSchema)};
  }
  TakeServerNames(document, issues);
  TurnOffAsyncForStages(document);
  for (const PresetSection& section : PresetSections()) {
    const std::string id = MergePreset(section, document, issues);
    if (!id.empty()) presets[section.name] = id;
  }
  Scenario scenario;
  for (const PresetSection& section : PresetSections()) {
    if (document.contains(section.name)) continue;
    issues.push_back({Format("/{}", section.name), "missing: name a preset or give its members"});
    // Read on with some preset, so that the rest of the document is checked too.
    document[section.name] = *FindPresetDocument(section.kind, PresetIds(section.kind)[0]);
    if (section.name == "workload") {
      document["workload"]["arrivals"] = Json::object();
    }
  }
  MergePools(document, issues);
  // What else is wrong is known when they are here.
  Issues missing;
  std::copy_if(issues.begin(), issues.end(), std::back_inserter(missing),
               [](const Issue& issue) { return issue.kind == "missing_file"; });
  if (!missing.empty()) return missing;
  ReadScenario(document, scenario, issues);
  if (scenario.cluster.router == "epp") ReadEpp(scenario.cluster.epp, issues);
  AddTogether(scenario, issues);
  if (!issues.empty()) return Bounded(std::move(issues));
  presets[kHost] = scenario.engine.host;
  FindChanged(scenario);
  FindChangedOfPools(scenario);
  return scenario;
}

}  // namespace

Result<Scenario> ParseScenario(std::string_view text) {
  std::map<std::string_view, std::string> presets;
  Result<Scenario> scenario = ReadDocument(text, presets);
  if (scenario.ok()) WriteTexts(scenario.value(), presets);
  return scenario;
}

Issues IssuesTogether(Scenario scenario) {
  Issues issues;
  AddTogether(scenario, issues);
  return issues;
}

Result<Scenario> ParseToRun(std::string_view text) {
  std::map<std::string_view, std::string> presets;
  return ReadDocument(text, presets);
}

std::string HashText(std::uint64_t hash) {
  std::string text(16, '0');
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, hash >>= 4) {
    *digit = "0123456789abcdef"[hash & 15];
  }
  return text;
}

}  // namespace servecast
