// See prices.h.
#include "io/prices.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "io/json_document.h"
#include "io/presets.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kLists = "prices";
constexpr const char* kPrice = "price_per_gpu_hour";
constexpr const char* kBasis = "price_basis";

// A section that may begin with a preset, and where it is.
struct GpuSection {
  std::string path;
  Json* hardware = nullptr;
  std::string preset;
};

void AddSection(Json& of, const std::string& path, std::vector<GpuSection>& sections) {
  if (!of.is_object() || !of.contains("hardware")) return;
  Json& hardware = of["hardware"];
  if (hardware.is_string()) hardware = Json{{"preset", hardware}};
  if (!hardware.is_object() || !hardware.contains("preset")) return;
  const Json& preset = hardware["preset"];
  if (preset.is_string()) sections.push_back({path, &hardware, preset.get<std::string>()});
}

std::vector<GpuSection> SectionsOf(Json& document) {
  std::vector<GpuSection> sections;
  AddSection(document, "/hardware", sections);
  if (!document.is_object() || !document.contains("cluster")) return sections;
  Json& cluster = document["cluster"];
  if (!cluster.is_object() || !cluster.contains("pools") || !cluster["pools"].is_array()) {
    return sections;
  }
  for (std::size_t i = 0; i < cluster["pools"].size(); ++i) {
    AddSection(cluster["pools"][i], Format("/cluster/pools/{}/hardware", i), sections);
  }
  return sections;
}

Issues NoSuchList(const std::string& list) {
  std::string allowed;
  for (const std::string_view id : PresetIds(kLists)) {
    allowed += (allowed.empty() ? "" : " or ") + std::string(id);
  }
  return {{"", Format("prices: found {}, allowed {}", ShownText(list), allowed)}};
}

}  // namespace

Result<std::string> WithPrices(const std::string& document, const std::string& list) {
  if (NameOfPreset(kLists, list).id.empty()) return NoSuchList(list);
  if (Issues missing = MissingPreset(kLists, list); !missing.empty()) return missing;
  const Json& prices = *FindPresetDocument(kLists, list);
  Result<Json> json = ParseJson(document);
  if (!json.ok()) return Issues(json.issues());
  for (const GpuSection& section : SectionsOf(json.value())) {
    Json& hardware = *section.hardware;
    if (hardware.contains(kPrice)) continue;
    const auto found = prices.find(section.preset);
    hardware[kPrice] = found == prices.end() ? Json() : (*found)[kPrice];
    if (found != prices.end()) hardware[kBasis] = (*found)[kBasis];
  }
  return CompactJson(json.value());
}

Issues Unpriced(const std::string& document, const std::string& list) {
  Issues issues;
  Result<Json> json = ParseJson(document);
  if (!json.ok()) return issues;
  for (const GpuSection& section : SectionsOf(json.value())) {
    const auto price = section.hardware->find(kPrice);
    if (price == section.hardware->end() || !price->is_null()) continue;
    issues.push_back({section.path + "/" + kPrice,
                      Format("found no price of {} in the list {}, allowed one that is typed",
                             ShownText(section.preset), list)});
  }
  return issues;
}

}  // namespace servecast
