// The catalogue: what a scenario may say, from the same descriptions that read one. Form, help and
// documentation are made of it.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "io/fields.h"
#include "io/json_document.h"
#include "io/presets.h"
#include "servecast/report.h"
#include "servecast/scenario.h"
#include "serving/cluster/router.h"
#include "serving/policy.h"
#include "serving/replica/scheduler_entry.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

constexpr const char* kDefaultScenario = "llama-3.1-8b-h100-chat";

// Of presets that stand behind the others in menus.
constexpr const char* kApart = "more";

// What no run accounts for; shown beside every result.
constexpr const char* kNotModelled[] = {
    "beam search, sound and video in prompts, loads of LoRA adapters",
    "experts that are chosen more than others",
    "power and thermal limits of the GPU's clock",
    "network between client and server",
};

class Cataloguer final : public FieldVisitor {
 public:
  Cataloguer(Json& fields, std::string path) : fields_(fields), path_(std::move(path)) {}

  void Integer(const FieldSpec& spec, std::optional<std::int64_t>&,
               const std::optional<std::int64_t>& base) override {
    Json& field = Add(spec, "integer");
    Range(field, spec);
    if (base && !spec.required) field["default"] = *base;
  }
  void Number(const FieldSpec& spec, std::optional<double>&,
              const std::optional<double>& base) override {
    Json& field = Add(spec, "number");
    Range(field, spec);
    if (base && !spec.required) field["default"] = *base;
  }
  void Boolean(const FieldSpec& spec, bool&, bool base) override {
    Add(spec, "boolean")["default"] = base;
  }
  void Text(const FieldSpec& spec, std::string&, const std::string& base) override {
    Add(spec, "text")["default"] = base;
  }
  void Choice(const FieldSpec& spec, const Choices& choices, std::string&,
              const std::string& base) override {
    Json& field = Add(spec, "choice");
    for (const std::string_view choice : choices) field["choices"].push_back(std::string(choice));
    if (!spec.required) field["default"] = base;
  }
  void Numbers(const FieldSpec& spec, std::vector<double>&,
               const std::vector<double>& base) override {
    Json& field = Add(spec, "list");
    Range(field, spec);
    field["default"] = base;
  }
  void Table(const FieldSpec& spec, NumberTable&, const NumberTable& base) override {
    Json& field = Add(spec, "list");
    Range(field, spec);
    if (spec.columns != nullptr && !spec.required) field["default"] = base;
  }
  void Foreign(const FieldSpec& spec, std::string&, const std::string&) override {
    Add(spec, "object");
  }
  void Object(const FieldSpec& spec, AddFields fields) override {
    if (spec.repeats) return;
    Cataloguer inner(fields_, path_ + "/" + spec.name);
    if (path_.empty()) inner.AddPreset(spec.name);
    fields(inner);
  }
  void List(const FieldSpec& spec, ListField& list) override {
    list.Resize(1);
    Cataloguer inner(fields_, path_ + "/" + spec.name + "/-");
    list.Describe(inner, 0);
  }
  void When(std::string_view field, const Choices& values, bool, AddFields fields) override {
    when_ = Json{{"path", path_ + "/" + std::string(field)}, {"values", Json::array()}};
    for (const std::string_view value : values) when_["values"].push_back(std::string(value));
    fields(*this);
    when_ = nullptr;
  }

 private:
  // A section with presets may name the one that it starts from.
  void AddPreset(std::string_view section) {
    const std::string_view kind = PresetKind(section);
    if (kind.empty()) return;
    Json& field =
        Add({.name = "preset", .help = "preset to start from; the other members override it"},
            "choice");
    for (const std::string_view id : AllPresetIds(kind)) {
      field[NameOfPreset(kind, id).in_menu ? "choices" : "others"].push_back(std::string(id));
    }
    if (section == kDefaultedSection) field["default"] = std::string(kDefaultEngine);
  }
  Json& Add(const FieldSpec& spec, const char* type) {
    Json field = {{"path", path_ + "/" + spec.name},
                  {"type", type},
                  {"unit", spec.unit},
                  {"help", spec.help},
                  {"required", spec.required},
                  {"default", nullptr},
                  {"minimum", nullptr},
                  {"maximum", nullptr},
                  {"choices", Json::array()}};
    if (!when_.is_null()) field["when"] = when_;
    fields_.push_back(std::move(field));
    return fields_.back();
  }
  static void Range(Json& field, const FieldSpec& spec) {
    field["minimum"] = spec.min;
    field["maximum"] = spec.max;
  }

  Json& fields_;
  std::string path_;
  Json when_ = nullptr;
};

// Of one whose file is not here, the name.
Json PresetList(const char* kind) {
  Json list = Json::array();
  for (const std::string_view id : AllPresetIds(kind)) {
    const PresetName of = NameOfPreset(kind, id);
    const Json* file = FindPreset(kind, id);
    Json entry =
        file != nullptr ? *file : Json{{"name", std::string(of.name)}, {"description", ""}};
    for (const char* ours : {"like", "measured_with", "next", "peak"}) entry.erase(ours);
    if (file != nullptr) entry["document"] = *FindPresetDocument(kind, id);
    if (!of.in_menu) entry["group"] = kApart;
    entry["id"] = std::string(id);
    list.push_back(std::move(entry));
  }
  return list;
}

Json MakeCatalog(const std::vector<Column>& columns) {
  Json catalog;
  catalog["engine_version"] = std::string(kEngineVersion);
  catalog["schema"] = kScenarioSchema;
  catalog["default_scenario"] = kDefaultScenario;
  for (const char* kind : {"models", "hardware", "engines", "hosts", "workloads", "scenarios"}) {
    catalog["presets"][kind] = PresetList(kind);
  }
  Json fields = Json::array();
  Scenario scenario;
  Cataloguer cataloguer(fields, "");
  DescribeScenario(cataloguer, scenario, Scenario{});
  catalog["fields"] = std::move(fields);
  for (const Column& c : columns) {
    catalog["columns"].push_back({{"name", std::string(c.name)},
                                  {"unit", std::string(c.unit)},
                                  {"kind", std::string(c.kind)},
                                  {"help", std::string(c.help)}});
  }
  for (const Definition& d : Definitions()) {
    catalog["definitions"].push_back({{"name", std::string(d.name)},
                                      {"title", std::string(d.title)},
                                      {"text", std::string(d.text)}});
  }
  const auto policy = [&catalog](const char* kind, std::string_view name, std::string_view help) {
    catalog["policies"].push_back(
        {{"kind", kind}, {"name", std::string(name)}, {"help", std::string(help)}});
  };
  for (const LatencyEntry& entry : LatencyModels()) policy("latency", entry.name, entry.help);
  for (const SchedulerEntry& entry : Schedulers()) policy("scheduler", entry.name, entry.help);
  for (const OrderEntry& entry : Orders()) policy("order", entry.name, entry.help);
  for (const PriorityEntry& entry : Priorities()) policy("priority", entry.name, entry.help);
  for (const RouterEntry& entry : Routers()) policy("router", entry.name, entry.help);
  catalog["not_modelled"] = kNotModelled;
  catalog["notices"] = {
      "Quantiles of the Azure LLM inference trace 2023 (conversation): Microsoft, CC-BY 4.0, "
      "github.com/Azure/AzurePublicDataset"};
  return catalog;
}

std::vector<Column> CommandColumns() {
  std::vector<Column> columns = Columns();
  columns.insert(columns.end(), BatchColumns().begin(), BatchColumns().end());
  return columns;
}

std::string TextOf(const Json& value) {
  return value.is_string() ? value.get<std::string>() : CompactJson(value);
}

}  // namespace

std::string CatalogJson() { return CompactJson(MakeCatalog(Columns())); }

std::string CommandCatalogJson() { return CompactJson(MakeCatalog(CommandColumns())); }

std::string CatalogText() {
  const Json catalog = MakeCatalog(CommandColumns());
  std::string out;
  for (const char* kind : {"scenarios", "models", "hardware", "engines", "hosts", "workloads"}) {
    out += Format("{}\n", kind);
    bool grouped = false;
    for (const Json& preset : catalog["presets"][kind]) {
      if (preset.contains("group") && !grouped) {
        out += Format("{} {}\n", kind, TextOf(preset["group"]));
        grouped = true;
      }
      out += fmt::format("  {:<28} {}\n", TextOf(preset["id"]), TextOf(preset["description"]));
    }
  }
  out += "policies\n";
  for (const Json& policy : catalog["policies"]) {
    const std::string name = TextOf(policy["kind"]) + " " + TextOf(policy["name"]);
    out += fmt::format("  {:<28} {}\n", name, TextOf(policy["help"]));
  }
  out += "fields of a scenario\n";
  for (const Json& field : catalog["fields"]) {
    std::string allowed = field["minimum"].is_null() ? ""
                                                     : Format("{} to {}", TextOf(field["minimum"]),
                                                              TextOf(field["maximum"]));
    for (const Json& choice : field["choices"])
      allowed += (allowed.empty() ? "" : "|") + TextOf(choice);
    if (!allowed.empty())
      allowed = " [" + allowed + (field["unit"] == "" ? "" : " ") + TextOf(field["unit"]) + "]";
    const std::string fallback = field["required"] == true ? " required"
                                 : field["default"].is_null() || field["default"] == ""
                                     ? ""
                                     : " default " + TextOf(field["default"]);
    out += fmt::format("  {:<44} {}{}{}\n", TextOf(field["path"]), TextOf(field["help"]), allowed,
                       fallback);
  }
  out += "words\n";
  for (const Json& word : catalog["definitions"]) {
    out += fmt::format("  {:<14} {}: {}\n", TextOf(word["name"]), TextOf(word["title"]),
                       TextOf(word["text"]));
  }
  out += "columns of --requests (request), --batches (batch), --series (series) and --json (cdf)\n";
  for (const Json& column : catalog["columns"]) {
    const std::string unit = TextOf(column["unit"]);
    out +=
        fmt::format("  {:<8} {:<28} {}{}\n", TextOf(column["kind"]), TextOf(column["name"]),
                    TextOf(column["help"]), unit.empty() || unit == "1" ? "" : " [" + unit + "]");
  }
  return out;
}

}  // namespace servecast
