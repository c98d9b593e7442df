#include "testing/epp_golden.h"

#include <utility>

#include "fmt/format.h"
#include "testing/data_files.h"
#include "testing/epp_golden_parts.h"

namespace servecast::testing {
namespace {

using epp_golden::Difference;
using epp_golden::Json;

constexpr std::string_view kEnding = ".jsonl.gz", kCycles = "cycles_";

Result<Json> ReadManifest(const std::string& folder) {
  const std::string path = folder + "/manifest.json";
  const std::optional<std::string> text = ReadFile(path);
  if (!text) return Issues{{path, "cannot be read"}};
  Json manifest = Json::parse(*text, nullptr, false);
  if (manifest.is_discarded() || !manifest.contains("files")) {
    return Issues{{path, "is no manifest"}};
  }
  return manifest;
}

Result<std::vector<Json>> ReadRows(const std::string& path) {
  const std::optional<std::string> text = ReadFile(path);
  if (!text) return Issues{{path, "cannot be read"}};
  std::vector<Json> rows;
  for (std::size_t from = 0; from < text->size();) {
    const std::size_t end = std::min(text->find('\n', from), text->size());
    if (end > from) {
      rows.push_back(Json::parse(text->substr(from, end - from), nullptr, false));
      if (rows.back().is_discarded()) {
        return Issues{{path, fmt::format("line {} is not JSON", rows.size())}};
      }
    }
    from = end + 1;
  }
  return rows;
}

Difference Replay(const Json& manifest, const std::string& name, const std::vector<Json>& rows,
                  std::size_t& decisions) {
  using namespace epp_golden;
  if (name.starts_with(kCycles)) {
    return ReplayCycles(manifest, name.substr(kCycles.size()), rows, decisions);
  }
  if (name == "prefix_sequences") return ReplayPrefix(rows, decisions);
  if (name == "loop_sequences") return ReplayLoop(manifest, rows, decisions);
  if (name == "saturation") return ReplaySaturation(rows, decisions);
  if (name == "flow_sequences") return ReplayFlow(rows, decisions);
  return "no file of this name is known";
}

}  // namespace

Result<std::vector<std::string>> EppFiles(const std::string& folder) {
  const Result<Json> manifest = ReadManifest(folder);
  if (!manifest.ok()) return manifest.issues();
  std::vector<std::string> names;
  for (const auto& [file, about] : manifest.value()["files"].items()) {
    if (file.ends_with(kEnding)) names.push_back(file.substr(0, file.size() - kEnding.size()));
  }
  return names;
}

Result<EppFile> ReplayEppFile(const std::string& folder, const std::string& name) {
  const Result<Json> manifest = ReadManifest(folder);
  if (!manifest.ok()) return manifest.issues();
  const Result<std::vector<Json>> rows = ReadRows(folder + "/" + name + std::string(kEnding));
  if (!rows.ok()) return rows.issues();
  EppFile file{.name = name};
  file.difference = Replay(manifest.value(), name, rows.value(), file.rows).value_or("");
  if (file.rows == 0 && file.difference.empty()) file.difference = "has no rows";
  return file;
}

}  // namespace servecast::testing
