// The files of presets/ by kind and id. Natively all are here. The page begins with those of its
// menus (presets/menu.json); it knows the names of the others and hands their files in when they
// are asked for. What a file says does not depend on when it came: it is the file that the build
// knew.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "servecast/result.h"

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

// Of a kind ("models", "hardware", "engines", "hosts", "workloads", "scenarios") those of the
// menus, ascending. Never empty.
std::vector<std::string_view> PresetIds(std::string_view kind);
// And behind them the models and GPUs that the page fetches when they are chosen.
std::vector<std::string_view> AllPresetIds(std::string_view kind);

// What is known of a file that may not be here; an empty id: there is none.
struct PresetName {
  std::string_view kind, id, name;
  bool in_menu = false;
};
PresetName NameOfPreset(std::string_view kind, std::string_view id);

// The whole file; nullptr when there is none, or it is not here. Parsed once per program.
const nlohmann::json* FindPreset(std::string_view kind, std::string_view id);
// Its "document": of a GPU that says which other it is "like", with what that one has.
const nlohmann::json* FindPresetDocument(std::string_view kind, std::string_view id);
// What to try after the GPU of that name, as its file says: one of the menu; "": nothing.
std::string NextGpu(std::string_view name);
// The host of the servers of that GPU and engine, by their presets, that were measured; "": that of
// the engine's preset.
std::string_view HostMeasuredWith(std::string_view hardware, std::string_view engine);
// The file as it is; "" when there is none, or it is not here.
std::string_view PresetText(std::string_view kind, std::string_view id);

// An issue of kind "missing_file", whose path is the file, when it is known but not here; else
// none.
Issues MissingPreset(std::string_view kind, std::string_view id);
// The same when the file is here without its sources, as the page has it.
Issues MissingSources(std::string_view kind, std::string_view id);
// Takes in "presets/KIND/ID.json". Issues: no such file, or a text that is not the one that the
// build knew. One that is here with its sources stays as it is.
Issues ProvidePreset(std::string_view file, std::string_view text);

}  // namespace servecast
