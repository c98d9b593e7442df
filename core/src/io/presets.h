// Embedded presets by kind and id.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

namespace servecast {

// Of a kind ("models", "hardware", "engines", "workloads", "scenarios"), ascending. Never empty.
std::vector<std::string_view> PresetIds(std::string_view kind);

// The whole file, and its "document"; nullptr when there is none. Parsed once per program.
const nlohmann::json* FindPreset(std::string_view kind, std::string_view id);
const nlohmann::json* FindPresetDocument(std::string_view kind, std::string_view id);

}  // namespace servecast
