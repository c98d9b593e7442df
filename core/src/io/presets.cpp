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
  Json file, document;
  std::string document_text;
};

const EmbeddedPreset* Find(std::string_view kind, std::string_view id) {
  for (int i = 0; i < kEmbeddedPresetCount; ++i) {
    const EmbeddedPreset& preset = kEmbeddedPresets[i];
    if (kind == preset.kind && id == preset.id) return &preset;
  }
  return nullptr;
}

void AppendIds(std::string_view kind, bool in_menu, std::vector<std::string_view>& ids) {
  for (int i = 0; i < kEmbeddedPresetCount; ++i) {
    const EmbeddedPreset& preset = kEmbeddedPresets[i];
    if (kind == preset.kind && preset.in_menu == in_menu) ids.emplace_back(preset.id);
  }
}

std::string FileOf(const EmbeddedPreset& preset) {
  return Format("presets/{}/{}.json", std::string_view(preset.kind), std::string_view(preset.id));
}

// Texts that were not embedded and have been handed in.
std::map<const EmbeddedPreset*, std::string>& Provided() {
  static std::map<const EmbeddedPreset*, std::string> provided;
  return provided;
}

// "": it is not here.
std::string_view TextOf(const EmbeddedPreset& preset) {
  const auto provided = Provided().find(&preset);
  if (provided != Provided().end()) return provided->second;
  return preset.text != nullptr ? preset.text : std::string_view();
}

// With its sources.
bool IsWhole(const EmbeddedPreset& preset) {
  return TextOf(preset).size() == static_cast<std::size_t>(preset.size);
}

// Files are parsed when first asked for: a page opens with one scenario, not with all.
const Parsed* Parse(const EmbeddedPreset* preset) {
  static std::map<const EmbeddedPreset*, Parsed> cache;
  if (preset == nullptr) return nullptr;
  const auto cached = cache.find(preset);
  if (cached != cache.end()) return &cached->second;
  const std::string_view text = TextOf(*preset);
  if (text.empty()) return nullptr;
  Result<Json> file = ParseJson(text);
  SERVECAST_CHECK(file.ok(), "a preset is JSON");
  Parsed parsed;
  parsed.file = std::move(file.value());
  if (const auto document = parsed.file.find("document"); document != parsed.file.end()) {
    parsed.document = *document;
  }
  if (const auto like = parsed.file.find("like"); like != parsed.file.end()) {
    const Json* other = FindPresetDocument(preset->kind, like->get<std::string>());
    SERVECAST_CHECK(other != nullptr, "what a preset is like is in the menu, so always here");
    Json whole = *other;
    // What was measured, and what has that price, is the other one.
    for (const char* others :
         {"auto_backend", "operators", "compared_as", "price_per_gpu_hour", "price_basis", "idle_w",
          "power_cap_w", "busy_w", "compute_w", "memory_w", "power_error", "energy_error"}) {
      whole.erase(others);
    }
    whole.update(parsed.document);
    parsed.document = std::move(whole);
  }
  parsed.document_text = CompactJson(parsed.document);
  return &(cache[preset] = std::move(parsed));
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
  AppendIds(kind, true, ids);
  return ids;
}

std::vector<std::string_view> AllPresetIds(std::string_view kind) {
  std::vector<std::string_view> ids;
  AppendIds(kind, true, ids);
  AppendIds(kind, false, ids);
  return ids;
}

PresetName NameOfPreset(std::string_view kind, std::string_view id) {
  const EmbeddedPreset* preset = Find(kind, id);
  return preset == nullptr ? PresetName{}
                           : PresetName{preset->kind, preset->id, preset->name, preset->in_menu};
}

const Json* FindPreset(std::string_view kind, std::string_view id) {
  const Parsed* parsed = Parse(Find(kind, id));
  return parsed == nullptr ? nullptr : &parsed->file;
}

const Json* FindPresetDocument(std::string_view kind, std::string_view id) {
  const Parsed* parsed = Parse(Find(kind, id));
  return parsed == nullptr ? nullptr : &parsed->document;
}

std::string NextGpu(std::string_view name) {
  for (const std::string_view id : AllPresetIds("hardware")) {
    if (NameOfPreset("hardware", id).name != name) continue;
    const Json* file = FindPreset("hardware", id);
    return file == nullptr ? "" : file->value("next", "");
  }
  return "";
}

std::string_view HostMeasuredWith(std::string_view hardware, std::string_view engine) {
  for (const std::string_view id : PresetIds("hosts")) {
    const Json& with = FindPreset("hosts", id)->at("measured_with");
    if (with.at("hardware") == hardware && with.at("engine") == engine) return id;
  }
  return "";
}

std::string_view PresetText(std::string_view kind, std::string_view id) {
  const EmbeddedPreset* preset = Find(kind, id);
  return preset == nullptr ? std::string_view() : TextOf(*preset);
}

Issues MissingPreset(std::string_view kind, std::string_view id) {
  const EmbeddedPreset* preset = Find(kind, id);
  if (preset == nullptr || !TextOf(*preset).empty()) return {};
  return {{FileOf(*preset), "is needed but not here", "missing_file"}};
}

Issues MissingSources(std::string_view kind, std::string_view id) {
  const EmbeddedPreset* preset = Find(kind, id);
  if (preset == nullptr || IsWhole(*preset)) return {};
  return {{FileOf(*preset), "is needed with its sources", "missing_file"}};
}

Issues ProvidePreset(std::string_view file, std::string_view text) {
  for (int i = 0; i < kEmbeddedPresetCount; ++i) {
    const EmbeddedPreset& preset = kEmbeddedPresets[i];
    if (file != FileOf(preset)) continue;
    if (IsWhole(preset)) return {};
    if (text.size() != static_cast<std::size_t>(preset.size) || !ParseJson(text).ok()) {
      return {{std::string(file), Format("found {} bytes, allowed the {} of this version's file",
                                         text.size(), preset.size)}};
    }
    Provided()[&preset] = text;
    return {};
  }
  return {{std::string(file), "is not a file of presets/"}};
}

std::string NearestScenarioPreset(std::string_view id) {
  return NearestWord(id, PresetIds("scenarios"));
}

std::optional<std::string_view> ScenarioPreset(std::string_view id) {
  const Parsed* parsed = Parse(Find("scenarios", id));
  if (parsed == nullptr) return std::nullopt;
  return parsed->document_text;
}

}  // namespace servecast
