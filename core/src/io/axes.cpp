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

// nullptr: the document has no list of them.
Json* PoolsOf(Json& document) {
  Json* at = &document;
  for (const char* key : {"cluster", "pools"}) {
    if (!at->is_object() || !at->contains(key)) return nullptr;
    at = &(*at)[key];
  }
  return at->is_array() && !at->empty() ? at : nullptr;
}

// The document with the GPUs that pools have of their own left out; nullopt: there are none.
std::optional<std::string> WithoutOwnGpus(const std::string& document) {
  Result<Json> json = ParseJson(document);
  Json* pools = json.ok() ? PoolsOf(json.value()) : nullptr;
  std::size_t left_out = 0;
  for (std::size_t i = 0; pools != nullptr && i < pools->size(); ++i) {
    Json& pool = (*pools)[i];
    if (pool.is_object()) left_out += pool.erase("hardware");
  }
  if (left_out == 0) return std::nullopt;
  return CompactJson(json.value());
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
    const std::optional<std::string> shared = WithoutOwnGpus(document);
    if (!shared && PresetOf(document, "hardware") == value) return document;
    return ApplyOverrides(shared.value_or(document),
                          {"hardware={\"preset\":" + CompactJson(Json(value)) + "}"});
  }
  if (path.rfind(kEveryPool, 0) != 0) return ApplyOverrides(document, {path + "=" + value});
  Result<Json> json = ParseJson(document);
  if (!json.ok()) return Issues(json.issues());
  const Json* pools = PoolsOf(json.value());
  std::vector<std::string> changes;
  const std::string member = path.substr(kEveryPool.size());
  for (std::size_t i = 0; i < (pools == nullptr ? 1 : pools->size()); ++i) {
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
