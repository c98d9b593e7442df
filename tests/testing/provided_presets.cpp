// As WebAssembly the engine begins with the presets of the page's menus. The tests bring the others
// from the source tree before the first of them runs; the page fetches them (tests/wasm).
#include <cstdio>
#include <cstdlib>
#include <string>

#include "io/embedded_presets.h"
#include "io/presets.h"
#include "testing/data_files.h"

namespace servecast::testing {
namespace {

bool ProvideAll() {
  for (int i = 0; i < kEmbeddedPresetCount; ++i) {
    const EmbeddedPreset& preset = kEmbeddedPresets[i];
    if (preset.text != nullptr) continue;
    const std::string file = std::string("presets/") + preset.kind + "/" + preset.id + ".json";
    const auto text = ReadFile(std::string(SERVECAST_SOURCE_DIR "/") + file);
    if (text && ProvidePreset(file, *text).empty()) continue;
    std::fprintf(stderr, "%s is not the file that was built in\n", file.c_str());
    std::abort();
  }
  return true;
}

}  // namespace

extern const bool kAllPresetsAreHere;
const bool kAllPresetsAreHere = ProvideAll();

}  // namespace servecast::testing
