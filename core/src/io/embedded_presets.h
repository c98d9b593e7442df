// The files of presets/, embedded when the engine is built (cmake/embed_presets.cmake).
#pragma once

namespace servecast {

struct EmbeddedPreset {
  const char* kind;  // the folder: "models", "operators" ...
  const char* id;    // the file's name without .json
  const char* name;
  bool in_menu;      // of what a visit of the page begins with (presets/menu.json)
  int size;          // of the file, in bytes
  const char* text;  // JSON: name, description, sources, document; nullptr: not embedded
};

// Sorted by kind, then id.
extern const EmbeddedPreset kEmbeddedPresets[];
extern const int kEmbeddedPresetCount;

}  // namespace servecast
