// See axes.h.
#include "io/axes.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "io/json_document.h"
#include "io/presets.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kEveryPool = "cluster.pools.*.";

std::size_t PoolsOf(const Json& document) {
  const Json* at = &document;
  for (const char* key : {"cluster", "pools"}) {
    if (!at->is_object() || !at->contains(key)) return 1;
    at = &(*at)[key];
  }
  return at->is_array() && !at->empty() ? at->size() : 1;
}

}  // namespace

std::optional<Axis> AxisOf(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) return std::nullopt;
  Axis axis{std::string(text.substr(0, equals)), {""}};
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = equals + 1; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\' && i + 1 < text.size()) {
      axis.values.back() += c;
      axis.values.back() += text[++i];
      continue;
    }
    if (c == '"') quoted = !quoted;
    if (!quoted) depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    if (c == ',' && depth == 0 && !quoted) {
      axis.values.emplace_back();
    } else {
      axis.values.back() += c;
    }
  }
  const bool whole = std::none_of(axis.values.begin(), axis.values.end(),
                                  [](const std::string& value) { return value.empty(); });
  return whole ? std::optional(std::move(axis)) : std::nullopt;
}

void WriteAxisValue(const std::string& value, JsonWriter& out) {
  const Result<Json> json = ParseJson(value);
  const bool number = json.ok() && json.value().is_number();
  number ? out.Number(json.value().get<double>()) : out.Text(value);
}

std::string PresetOf(std::string_view document, std::string_view section) {
  const Result<Json> json = ParseJson(document);
  if (!json.ok() || !json.value().is_object()) return "";
  const auto of = json.value().find(section);
  if (of == json.value().end() || !of->is_object()) return "";
  const auto preset = of->find("preset");
  return preset != of->end() && preset->is_string() ? preset->get<std::string>() : "";
}

Result<std::string> WithValue(const std::string& document, const std::string& path,
                              const std::string& value) {
  if (path == "hardware.preset") {
    if (PresetOf(document, "hardware") == value) return document;
    return ApplyOverrides(document, {"hardware={\"preset\":" + CompactJson(Json(value)) + "}"});
  }
  if (path.rfind(kEveryPool, 0) != 0) return ApplyOverrides(document, {path + "=" + value});
  const Result<Json> json = ParseJson(document);
  if (!json.ok()) return Issues(json.issues());
  std::vector<std::string> changes;
  const std::string member = path.substr(kEveryPool.size());
  for (std::size_t i = 0; i < PoolsOf(json.value()); ++i) {
    changes.push_back(Format("cluster.pools.{}.{}={}", i, member, value));
  }
  return ApplyOverrides(document, changes);
}

std::vector<std::string> PricedGpus() {
  std::vector<std::string> ids;
  for (const std::string_view id : PresetIds("hardware")) {
    const Json* document = FindPresetDocument("hardware", id);
    if (document != nullptr && document->contains("price_per_gpu_hour")) ids.emplace_back(id);
  }
  return ids;
}

}  // namespace servecast
