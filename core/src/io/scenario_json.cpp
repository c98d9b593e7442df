// Scenario documents: text -> presets merged -> fields read, every issue collected -> Scenario with
// its canonical and resolved text. The fields themselves are described in fields.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/hash.h"
#include "base/text.h"
#include "io/embedded_presets.h"
#include "io/fields.h"
#include "io/json_document.h"
#include "io/presets.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

constexpr const char* kDefaultEngine = "vllm";

// What was found, short and printable.
std::string Found(const Json& value) {
  std::string text = CompactJson(value);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

std::string RangeText(const FieldSpec& spec) {
  const std::string unit = *spec.unit != '\0' && std::string_view(spec.unit) != "1"
                               ? std::string(" ") + spec.unit
                               : std::string();
  return fmt::format("{} to {}{}", NumberText(spec.min), NumberText(spec.max), unit);
}

std::string Listed(const Choices& choices) {
  std::string text;
  for (const std::string_view choice : choices)
    text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ", choice);
  return text;
}

// JSON pointer escape (RFC 6901).
std::string Escaped(std::string_view key) {
  std::string out;
  for (const char c : key) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

// Reads the members of one JSON object into the fields that visit it.
class ObjectReader final : public FieldVisitor {
 public:
  ObjectReader(const Json& object, std::string path, Issues& issues)
      : object_(object), path_(std::move(path)), issues_(issues) {}

  void Integer(const FieldSpec& spec, std::optional<std::int64_t>& value,
               const std::optional<std::int64_t>& base) override {
    const Json* found = Member(spec);
    if (found == nullptr || Unset(*found, base.has_value(), value)) return;
    const double number = found->is_number() ? found->get<double>() : std::nan("");
    if (!(number >= spec.min && number <= spec.max) || std::nearbyint(number) != number) {
      Add(spec,
          fmt::format("found {}, allowed a whole number from {}", Found(*found), RangeText(spec)));
      return;
    }
    value = static_cast<std::int64_t>(number);
  }

  void Number(const FieldSpec& spec, std::optional<double>& value,
              const std::optional<double>& base) override {
    const Json* found = Member(spec);
    if (found == nullptr || Unset(*found, base.has_value(), value)) return;
    const double number = found->is_number() ? found->get<double>() : std::nan("");
    if (!(number >= spec.min && number <= spec.max)) {
      Add(spec, fmt::format("found {}, allowed {}", Found(*found), RangeText(spec)));
      return;
    }
    value = number;
  }

  void Boolean(const FieldSpec& spec, bool& value, bool) override {
    const Json* found = Member(spec);
    if (found == nullptr) return;
    if (!found->is_boolean()) {
      Add(spec, fmt::format("found {}, allowed true or false", Found(*found)));
      return;
    }
    value = found->get<bool>();
  }

  void Text(const FieldSpec& spec, std::string& value, const std::string&) override {
    const Json* found = Member(spec);
    if (found == nullptr) return;
    const std::string* text = found->get_ptr<const std::string*>();
    if (text == nullptr || text->size() > 2000) {
      Add(spec, fmt::format("found {}, allowed text of at most 2000 bytes", Found(*found)));
      return;
    }
    value = *text;
  }

  void Choice(const FieldSpec& spec, const Choices& choices, std::string& value,
              const std::string&) override {
    const Json* found = Member(spec);
    if (found == nullptr) return;
    const std::string* text = found->get_ptr<const std::string*>();
    for (const std::string_view choice : choices) {
      if (text != nullptr && *text == choice) {
        value = *text;
        return;
      }
    }
    const std::string near = text == nullptr ? "" : NearestWord(*text, choices);
    Add(spec,
        fmt::format("found {}, allowed {}{}", Found(*found), Listed(choices), DidYouMean(near)));
  }

  void Numbers(const FieldSpec& spec, std::vector<double>& value,
               const std::vector<double>& base) override {
    const Json* found = Member(spec);
    if (found == nullptr) return;
    std::vector<double> numbers;
    for (std::size_t i = 0; found->is_array() && i < found->size(); ++i) {
      const double number = (*found)[i].is_number() ? (*found)[i].get<double>() : std::nan("");
      if (number >= spec.min && number <= spec.max) numbers.push_back(number);
    }
    if (!found->is_array() || found->size() != base.size() || numbers.size() != base.size()) {
      Add(spec, fmt::format("found {}, allowed a list of {} numbers from {}", Found(*found),
                            base.size(), RangeText(spec)));
      return;
    }
    value = numbers;
  }

  void Quantiles(const FieldSpec& spec, std::vector<std::vector<double>>& value,
                 const std::vector<std::vector<double>>&) override {
    const Json* found = Member(spec);
    if (found == nullptr) return;
    std::vector<std::vector<double>> rows;
    bool good = found->is_array() && found->size() >= 2 && found->size() <= 10000;
    for (std::size_t i = 0; good && i < found->size(); ++i) {
      const Json& row = (*found)[i];
      good = row.is_array() && row.size() == 2 && row[0].is_number() && row[1].is_number();
      if (!good) break;
      rows.push_back({row[0].get<double>(), row[1].get<double>()});
      good =
          rows[i][1] >= spec.min && rows[i][1] <= spec.max &&
          (i == 0 ? rows[i][0] == 0 : rows[i][0] > rows[i - 1][0] && rows[i][1] >= rows[i - 1][1]);
    }
    if (!good || rows.back()[0] != 1) {
      Add(spec,
          fmt::format("found {}, allowed 2 to 10000 pairs [probability, tokens], both ascending, "
                      "probability from 0 to 1, tokens from {}",
                      Found(*found), RangeText(spec)));
      return;
    }
    value = rows;
  }

  void Object(const FieldSpec& spec, const std::function<void(FieldVisitor&)>& fields) override {
    static const Json kEmpty = Json::object();
    const Json* found = Member(spec);
    if (found != nullptr && !found->is_object()) {
      Add(spec, fmt::format("found {}, allowed an object", Found(*found)));
      return;
    }
    ObjectReader inner(found == nullptr ? kEmpty : *found, path_ + "/" + spec.name, issues_);
    fields(inner);
    inner.ReportUnknown();
  }

  void List(const FieldSpec& spec, ListField& list) override {
    const Json* found = Member(spec);
    if (found == nullptr) return;
    const auto size = static_cast<double>(found->size());
    if (!found->is_array() || size < spec.min || size > spec.max) {
      Add(spec, fmt::format("found {}, allowed a list of {} to {} objects", Found(*found), spec.min,
                            spec.max));
      return;
    }
    list.resize(found->size());
    for (std::size_t i = 0; i < found->size(); ++i) {
      const std::string path = fmt::format("{}/{}/{}", path_, spec.name, i);
      if (!(*found)[i].is_object()) {
        issues_.push_back({path, fmt::format("found {}, allowed an object", Found((*found)[i]))});
        continue;
      }
      ObjectReader inner((*found)[i], path, issues_);
      list.describe(inner, i);
      inner.ReportUnknown();
    }
  }

  void When(std::string_view field, const Choices& values, bool active,
            const std::function<void(FieldVisitor&)>& fields) override {
    if (active) {
      fields(*this);
      return;
    }
    // Only the names, so that a stray one can be told from an unknown one.
    const bool collecting = elsewhere_ != nullptr;
    const std::string reason = fmt::format("only applies when {} is {}", field, Listed(values));
    if (!collecting) elsewhere_ = &reason;
    fields(*this);
    if (!collecting) elsewhere_ = nullptr;
  }

  void Accept(const char* name) { known_.insert(name); }

  void ReportUnknown() {
    for (const auto& [key, value] : object_.items()) {
      if (known_.count(key) > 0) continue;
      const std::string path = path_ + "/" + Escaped(key);
      const auto other = inactive_.find(key);
      if (other != inactive_.end()) {
        issues_.push_back({path, fmt::format("\"{}\" {}", key, other->second)});
        continue;
      }
      const std::string near = NearestWord(key, known_);
      std::string keys;
      for (const std::string& k : known_) keys += (keys.empty() ? "" : ", ") + k;
      issues_.push_back(
          {path, fmt::format("unknown key{}; known here: {}", DidYouMean(near), keys)});
    }
  }

 private:
  static std::string DidYouMean(const std::string& near) {
    return near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near);
  }

  // The member of that name; nullptr when there is none, which is an issue for a required one.
  const Json* Member(const FieldSpec& spec) {
    if (elsewhere_ != nullptr) {
      inactive_.emplace(spec.name, *elsewhere_);
      return nullptr;
    }
    known_.insert(spec.name);
    const auto found = object_.find(spec.name);
    if (found != object_.end()) return &*found;
    if (spec.required) {
      std::string allowed = spec.max > spec.min ? ", allowed " + RangeText(spec) : "";
      Add(spec, fmt::format("missing: {}{}", spec.help, allowed));
    }
    return nullptr;
  }

  // null takes an optional member away; anything else must say a number.
  template <class T>
  static bool Unset(const Json& found, bool base_has_value, std::optional<T>& value) {
    if (!found.is_null()) return false;
    if (base_has_value && value.has_value()) value.reset();
    return true;
  }

  void Add(const FieldSpec& spec, std::string message) {
    issues_.push_back({path_ + "/" + spec.name, std::move(message)});
  }

  const Json& object_;
  std::string path_;
  Issues& issues_;
  std::set<std::string> known_;
  std::map<std::string, std::string> inactive_;
  const std::string* elsewhere_ = nullptr;
};

// Writes fields as JSON: all of them, or those that differ from their base.
class ObjectWriter final : public FieldVisitor {
 public:
  enum class What { kAll, kChanged, kAllButLabels };
  explicit ObjectWriter(What what) : what_(what) {}

  void Integer(const FieldSpec& spec, std::optional<std::int64_t>& value,
               const std::optional<std::int64_t>& base) override {
    Put(spec, value, base);
  }
  void Number(const FieldSpec& spec, std::optional<double>& value,
              const std::optional<double>& base) override {
    Put(spec, value, base);
  }
  void Boolean(const FieldSpec& spec, bool& value, bool base) override {
    PutValue(spec, value, value != base);
  }
  void Text(const FieldSpec& spec, std::string& value, const std::string& base) override {
    PutValue(spec, value, value != base);
  }
  void Choice(const FieldSpec& spec, const Choices&, std::string& value,
              const std::string& base) override {
    PutValue(spec, value, value != base || spec.required);
  }
  void Numbers(const FieldSpec& spec, std::vector<double>& value,
               const std::vector<double>& base) override {
    PutValue(spec, value, value != base);
  }
  void Quantiles(const FieldSpec& spec, std::vector<std::vector<double>>& value,
                 const std::vector<std::vector<double>>& base) override {
    PutValue(spec, value, value != base);
  }
  void Object(const FieldSpec& spec, const std::function<void(FieldVisitor&)>& fields) override {
    ObjectWriter inner(what_);
    fields(inner);
    if (what_ == What::kChanged && inner.json.empty()) return;
    json[spec.name] = std::move(inner.json);
  }
  void List(const FieldSpec& spec, ListField& list) override {
    Json items = Items(list.size(), list.describe);
    if (what_ == What::kChanged && items == Items(list.base_size, list.describe_base)) return;
    json[spec.name] = std::move(items);
  }
  void When(std::string_view, const Choices&, bool active,
            const std::function<void(FieldVisitor&)>& fields) override {
    if (active) fields(*this);
  }

  Json json = Json::object();

 private:
  template <class T>
  void Put(const FieldSpec& spec, const std::optional<T>& value, const std::optional<T>& base) {
    if (value) {
      PutValue(spec, *value, value != base);
    } else if (base && what_ == What::kChanged) {
      json[spec.name] = nullptr;
    }
  }
  template <class T>
  void PutValue(const FieldSpec& spec, const T& value, bool changed) {
    if (what_ == What::kChanged && !changed) return;
    if (what_ == What::kAllButLabels && spec.label) return;
    json[spec.name] = value;
  }
  Json Items(std::size_t size,
             const std::function<void(FieldVisitor&, std::size_t)>& describe) const {
    Json items = Json::array();
    for (std::size_t i = 0; i < size; ++i) {
      ObjectWriter inner(what_);
      describe(inner, i);
      items.push_back(std::move(inner.json));
    }
    return items;
  }

  What what_;
};

Json WriteScenario(Scenario& s, const Scenario& base, ObjectWriter::What what) {
  ObjectWriter writer(what);
  DescribeScenario(writer, s, base);
  writer.json["schema"] = kScenarioSchema;
  return std::move(writer.json);
}

// `patch` over `base`, member by member; an object that chooses another variant (distribution,
// process) replaces the base's, whose members mean nothing to it.
Json Merged(const Json& base, const Json& patch) {
  if (!base.is_object() || !patch.is_object()) return patch;
  for (const char* variant : {"distribution", "process"}) {
    if (patch.contains(variant) && base.contains(variant) && patch[variant] != base[variant])
      return patch;
  }
  Json merged = base;
  for (const auto& [key, value] : patch.items()) {
    merged[key] = merged.contains(key) ? Merged(merged[key], value) : value;
  }
  return merged;
}

struct Section {
  const char* name;
  const char* kind;
};
constexpr Section kSections[] = {{"model", "models"},
                                 {"hardware", "hardware"},
                                 {"engine", "engines"},
                                 {"workload", "workloads"}};

// Replaces {"preset": id, ...} by the preset's document with the other members over it. Returns
// the id; "" when the section names none.
std::string MergePreset(const Section& section, Json& document, Issues& issues) {
  const bool engine = std::string_view(section.name) == "engine";
  if (!document.contains(section.name) && engine) document["engine"] = Json::object();
  const auto found = document.find(section.name);
  if (found == document.end() || !found->is_object()) return "";
  const std::string path = fmt::format("/{}/preset", section.name);
  std::string id = engine ? kDefaultEngine : "";
  if (found->contains("preset")) {
    const std::string* named = (*found)["preset"].get_ptr<const std::string*>();
    if (named == nullptr) {
      issues.push_back(
          {path, fmt::format("found {}, allowed the name of a preset", Found((*found)["preset"]))});
      found->erase("preset");
      return "";
    }
    id = *named;
    found->erase("preset");
  }
  if (id.empty()) return "";
  const Json* preset = FindPresetDocument(section.kind, id);
  if (preset == nullptr) {
    const Choices ids = PresetIds(section.kind);
    const std::string near = NearestWord(id, ids);
    issues.push_back(
        {path, fmt::format("found \"{}\", allowed {}{}", id.substr(0, 60), Listed(ids),
                           near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near))});
    // Read on with the first preset, so that the rest of the document is checked too.
    preset = FindPresetDocument(section.kind, ids[0]);
  }
  *found = Merged(*preset, *found);
  return id;
}

// The scenario that counts as default for a document that names these presets.
Scenario BaseOf(const std::map<std::string, std::string>& presets) {
  Json document = Json::object();
  for (const Section& section : kSections) {
    const auto preset = presets.find(section.name);
    if (preset == presets.end()) continue;
    document[section.name] = *FindPresetDocument(section.kind, preset->second);
  }
  Scenario base;
  Issues ignored;  // sections without a preset lack their required members
  ObjectReader reader(document, "", ignored);
  DescribeScenario(reader, base, Scenario{});
  return base;
}

void CheckLengths(const LengthSpec& l, const std::string& path, Issues& issues) {
  if (l.distribution == LengthDistribution::kLognormal && l.p99 < l.median) {
    issues.push_back({path + "/p99", fmt::format("found {}, allowed from the median {} up",
                                                 NumberText(l.p99), NumberText(l.median))});
  }
  const bool bounded = l.distribution == LengthDistribution::kLognormal ||
                       l.distribution == LengthDistribution::kUniform;
  if (bounded && l.max && *l.max < l.min) {
    issues.push_back(
        {path + "/max", fmt::format("found {}, allowed from min {} up", *l.max, l.min)});
  }
}

// What no single field can say.
void CheckTogether(const Scenario& s, Issues& issues) {
  const EngineSpec& e = s.engine;
  if (e.max_num_batched_tokens < e.max_num_seqs) {
    issues.push_back({"/engine/max_num_batched_tokens",
                      fmt::format("found {}, allowed from max_num_seqs {} up: every running "
                                  "request needs a token in each step",
                                  e.max_num_batched_tokens, e.max_num_seqs)});
  }
  if (e.enable_prefix_caching) {
    issues.push_back({"/engine/enable_prefix_caching",
                      "found true, allowed false: prefix caching is not modelled yet"});
  }
  if ((s.model.num_local_experts == 0) != (s.model.num_experts_per_tok == 0) ||
      s.model.num_experts_per_tok > s.model.num_local_experts) {
    issues.push_back(
        {"/model/num_experts_per_tok",
         fmt::format("found {}, allowed 1 to num_local_experts {}, or 0 for a dense model",
                     s.model.num_experts_per_tok, s.model.num_local_experts)});
  }
  CheckLengths(s.workload.prompt_tokens, "/workload/prompt_tokens", issues);
  CheckLengths(s.workload.output_tokens, "/workload/output_tokens", issues);
}

void WriteTexts(Scenario& s, const std::map<std::string, std::string>& presets) {
  Json canonical = WriteScenario(s, BaseOf(presets), ObjectWriter::What::kChanged);
  for (const auto& [section, id] : presets) {
    if (section == "engine" && id == kDefaultEngine) continue;
    canonical[section]["preset"] = id;
  }
  s.canonical_text = CompactJson(canonical);
  s.resolved_text = CompactJson(WriteScenario(s, Scenario{}, ObjectWriter::What::kAll));
  Hasher id;
  id.Add(std::string_view(s.canonical_text));
  s.id = id.Finish();
  Hasher content;
  content.Add(std::string_view(
      CompactJson(WriteScenario(s, Scenario{}, ObjectWriter::What::kAllButLabels))));
  s.content_hash = content.Finish();
}

}  // namespace

Result<Scenario> ParseScenario(std::string_view text) {
  Result<Json> parsed = ParseJson(text);
  if (!parsed.ok()) return Issues(parsed.issues());
  Json& document = parsed.value();
  if (!document.is_object()) {
    return Issue{"",
                 fmt::format("found {}, allowed a scenario document, an object", Found(document))};
  }
  const auto schema = document.find("schema");
  if (schema == document.end() || !schema->is_number_integer() || *schema != kScenarioSchema) {
    return Issue{"/schema", fmt::format("found {}, allowed {}",
                                        schema == document.end() ? "nothing" : Found(*schema),
                                        kScenarioSchema)};
  }
  Issues issues;
  std::map<std::string, std::string> presets;
  for (const Section& section : kSections) {
    const std::string id = MergePreset(section, document, issues);
    if (!id.empty()) presets[section.name] = id;
  }
  Scenario scenario;
  ObjectReader reader(document, "", issues);
  reader.Accept("schema");
  for (const Section& section : kSections) {
    if (document.contains(section.name)) continue;
    issues.push_back(
        {fmt::format("/{}", section.name), "missing: name a preset or give its members"});
    // Read on with some preset, so that the rest of the document is checked too.
    document[section.name] = *FindPresetDocument(section.kind, PresetIds(section.kind)[0]);
    if (section.name == std::string_view("workload")) {
      document["workload"]["arrivals"] = Json::object();
    }
  }
  DescribeScenario(reader, scenario, Scenario{});
  reader.ReportUnknown();
  if (issues.empty()) CheckTogether(scenario, issues);
  if (!issues.empty()) return issues;
  WriteTexts(scenario, presets);
  return scenario;
}

Result<std::string> ApplyOverrides(std::string_view text,
                                   const std::vector<std::string>& overrides) {
  Result<Json> parsed = ParseJson(text);
  if (!parsed.ok()) return Issues(parsed.issues());
  Json& document = parsed.value();
  Issues issues;
  for (const std::string& override_text : overrides) {
    const std::size_t equals = override_text.find('=');
    const std::string path = override_text.substr(0, equals);
    if (equals == std::string::npos || path.empty() || path.front() == '.' || path.back() == '.') {
      issues.push_back({override_text.substr(0, 80), "found no path.to.member=value"});
      continue;
    }
    const std::string value_text = override_text.substr(equals + 1);
    const Result<Json> value = ParseJson(value_text);
    Json* target = &document;
    std::string walked;
    for (std::size_t start = 0; target != nullptr && start <= path.size();) {
      const std::size_t dot = std::min(path.find('.', start), path.size());
      const std::string key = path.substr(start, dot - start);
      walked += "/" + Escaped(key);
      const bool last = dot == path.size();
      start = dot + 1;
      if (target->is_array()) {
        const auto index = ParseCount(key);
        if (!index || *index > static_cast<std::int64_t>(target->size()) || *index > 1000) {
          issues.push_back({walked, fmt::format("found \"{}\", allowed an index from 0 to {}", key,
                                                target->size())});
          target = nullptr;
          break;
        }
        if (*index == static_cast<std::int64_t>(target->size())) target->push_back(Json::object());
        target = &(*target)[static_cast<std::size_t>(*index)];
      } else if (target->is_object() || target->is_null()) {
        if (target->is_null()) *target = Json::object();
        // Another variant: the members of the former one mean nothing to it.
        if (last && (key == "distribution" || key == "process")) *target = Json::object();
        const bool list = !target->contains(key) && (key == "slo" || key == "pools") && !last;
        Json& member = (*target)[key];
        if (list) member = Json::array();
        target = &member;
      } else {
        issues.push_back({walked, "this is not inside an object"});
        target = nullptr;
      }
    }
    if (target == nullptr) continue;
    *target = value.ok() ? value.value() : Json(value_text);
  }
  if (!issues.empty()) return issues;
  return CompactJson(document);
}

Result<std::string> ParseReadableLink(std::string_view fragment) {
  std::string preset;
  std::vector<std::string> overrides;
  const auto decode = [](std::string_view part) {
    std::string out;
    const auto hex = [](char c) {
      return c >= '0' && c <= '9'                 ? c - '0'
             : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                  : -1;
    };
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (part[i] == '%' && i + 2 < part.size() && hex(part[i + 1]) >= 0 && hex(part[i + 2]) >= 0) {
        out += static_cast<char>(hex(part[i + 1]) * 16 + hex(part[i + 2]));
        i += 2;
      } else {
        out += part[i];
      }
    }
    return out;
  };
  for (std::size_t start = 0; start <= fragment.size();) {
    const std::size_t end = std::min(fragment.find('&', start), fragment.size());
    const std::string part = decode(fragment.substr(start, end - start));
    start = end + 1;
    if (part.rfind("p=", 0) == 0) {
      preset = part.substr(2);
    } else if (!part.empty()) {
      overrides.push_back(part);
    }
  }
  const auto text = ScenarioPreset(preset);
  if (!text) {
    const Choices ids = PresetIds("scenarios");
    const std::string near = NearestWord(preset, ids);
    return Issue{
        "", fmt::format("found the preset \"{}\", allowed {}{}", preset.substr(0, 60), Listed(ids),
                        near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near))};
  }
  return ApplyOverrides(*text, overrides);
}

std::string HashText(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

}  // namespace servecast
