// The files of presets/, embedded when the engine is built (cmake/embed_presets.cmake).
#pragma once

namespace servecast {

struct EmbeddedPreset {
  // "models", "hardware", "engines", "workloads" or "scenarios"; in the command "measured_models"
  // and "measured_hardware", too
  const char* kind;
  const char* id;
  const char* text;  // JSON: name, description, sources, document
};

// Sorted by kind, then id.
extern const EmbeddedPreset kEmbeddedPresets[];
extern const int kEmbeddedPresetCount;

}  // namespace servecast
