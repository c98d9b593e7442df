// Embedded presets by kind and id.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>
#include <vector>

namespace servecast {

// The sections of a scenario that may start from a preset, and the kind of preset that each takes.
struct PresetSection {
  std::string_view name, kind;
};
std::span<const PresetSection> PresetSections();
// The section's kind; "" for a section without presets.
std::string_view PresetKind(std::string_view section);

// A scenario that names no engine has this one.
inline constexpr std::string_view kDefaultedSection = "engine";
inline constexpr std::string_view kDefaultEngine = "vllm";

// Of a kind ("models", "hardware", "engines", "workloads", "scenarios"), ascending. Never empty.
std::vector<std::string_view> PresetIds(std::string_view kind);

// The whole file, and its "document"; nullptr when there is none. Parsed once per program.
const nlohmann::json* FindPreset(std::string_view kind, std::string_view id);
const nlohmann::json* FindPresetDocument(std::string_view kind, std::string_view id);

}  // namespace servecast
