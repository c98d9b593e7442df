// See presets.h.
#include "io/presets.h"

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/base.h"
#include "base/text.h"
#include "io/embedded_presets.h"
#include "io/json_document.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

struct Parsed {
  Json file;
  std::string document_text;
};

// Files are parsed when first asked for: a page opens with one scenario, not with all.
const Parsed* Find(std::string_view kind, std::string_view id) {
  static std::map<int, Parsed> cache;
  for (int i = 0; i < kEmbeddedPresetCount; ++i) {
    const EmbeddedPreset& preset = kEmbeddedPresets[i];
    if (kind != preset.kind || id != preset.id) continue;
    const auto cached = cache.find(i);
    if (cached != cache.end()) return &cached->second;
    Result<Json> file = ParseJson(preset.text);
    SERVECAST_CHECK(file.ok() && file.value().contains("document"), "an embedded preset is JSON");
    Parsed& parsed = cache[i];
    parsed.file = std::move(file.value());
    parsed.document_text = CompactJson(parsed.file["document"]);
    return &parsed;
  }
  return nullptr;
}

}  // namespace

std::span<const PresetSection> PresetSections() {
  static constexpr PresetSection kSections[] = {{"model", "models"},
                                                {"hardware", "hardware"},
                                                {"engine", "engines"},
                                                {"workload", "workloads"}};
  return kSections;
}

std::string_view PresetKind(std::string_view section) {
  for (const PresetSection& s : PresetSections()) {
    if (s.name == section) return s.kind;
  }
  return "";
}

std::vector<std::string_view> PresetIds(std::string_view kind) {
  std::vector<std::string_view> ids;
  for (int i = 0; i < kEmbeddedPresetCount; ++i) {
    if (kind == kEmbeddedPresets[i].kind) ids.emplace_back(kEmbeddedPresets[i].id);
  }
  return ids;
}

const Json* FindPreset(std::string_view kind, std::string_view id) {
  const Parsed* parsed = Find(kind, id);
  return parsed == nullptr ? nullptr : &parsed->file;
}

const Json* FindPresetDocument(std::string_view kind, std::string_view id) {
  const Parsed* parsed = Find(kind, id);
  return parsed == nullptr ? nullptr : &parsed->file["document"];
}

std::string NearestScenarioPreset(std::string_view id) {
  return NearestWord(id, PresetIds("scenarios"));
}

std::optional<std::string_view> ScenarioPreset(std::string_view id) {
  const Parsed* parsed = Find("scenarios", id);
  if (parsed == nullptr) return std::nullopt;
  return parsed->document_text;
}

}  // namespace servecast
