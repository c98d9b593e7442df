// See axes.h.
#include "io/axes.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/base.h"
#include "base/text.h"
#include "io/json_document.h"
#include "io/presets.h"
#include "io/prices.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kEveryPool = "cluster.pools.*.";
constexpr std::string_view kSharedExperts = "attention_data_parallel";
constexpr const char* kRoleNames[] = {"aggregated", "disaggregated"};

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

bool HasRole(const Json& pools, const char* role) {
  return std::any_of(pools.begin(), pools.end(), [role](const Json& pool) {
    return pool.is_object() && pool.contains("role") && pool["role"] == role;
  });
}

// As the first pool is, with all the work or the one part of it.
Json PoolAs(const Json& first, const char* role) {
  Json pool = first.is_object() ? first : Json::object();
  pool.erase("name");
  pool.erase("role");
  if (role != nullptr) pool["role"] = role;
  return pool;
}

Result<std::string> WithRoles(const std::string& document, const std::string& value) {
  const bool apart = value == kRoleNames[1];
  if (!apart && value != kRoleNames[0]) {
    return Issue{"", Format("roles: found {}, allowed aggregated or disaggregated", value)};
  }
  Result<Json> json = ParseJson(document);
  if (!json.ok()) return Issues(json.issues());
  if (!json.value().is_object()) return document;  // which reading it says
  Json* known = PoolsOf(json.value());
  const Json pools = known == nullptr ? Json::array({Json::object()}) : *known;
  const bool is_apart = HasRole(pools, "prefill") || HasRole(pools, "decode");
  if (apart == is_apart) return document;
  Json& cluster = json.value()["cluster"];
  if (!cluster.is_object()) cluster = Json::object();
  cluster["pools"] = apart ? Json::array({PoolAs(pools[0], "prefill"), PoolAs(pools[0], "decode")})
                           : Json::array({PoolAs(pools[0], nullptr)});
  if (!apart) cluster.erase("disaggregation"), cluster.erase("decode_router");
  return CompactJson(json.value());
}

// Replicas that share experts do so in whole groups: as many as there are, or the next that can.
std::string InGroups(const Json* pools, std::size_t pool, const std::string& shared) {
  const Result<Json> group = ParseJson(shared);
  if (!group.ok() || !group.value().is_number_integer()) return "";
  const auto of = group.value().get<std::int64_t>();
  std::int64_t replicas = 1;
  if (pools != nullptr && (*pools)[pool].is_object() && (*pools)[pool].contains("replicas")) {
    const Json& given = (*pools)[pool]["replicas"];
    if (!given.is_number_integer()) return "";
    replicas = given.get<std::int64_t>();
  }
  if (of < 1 || of > 1024 || replicas < 1 || replicas > 1024 || replicas % of == 0) return "";
  return Format("cluster.pools.{}.replicas={}", pool, CeilDiv(replicas, of) * of);
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
  if (path == kPricesPath) return WithPrices(document, value);
  if (path == kRolesPath) return WithRoles(document, value);
  if (path.rfind(kEveryPool, 0) != 0) return ApplyOverrides(document, {path + "=" + value});
  Result<Json> json = ParseJson(document);
  if (!json.ok()) return Issues(json.issues());
  const Json* pools = PoolsOf(json.value());
  std::vector<std::string> changes;
  const std::string member = path.substr(kEveryPool.size());
  for (std::size_t i = 0; i < (pools == nullptr ? 1 : pools->size()); ++i) {
    changes.push_back(Format("cluster.pools.{}.{}={}", i, member, value));
    if (member != kSharedExperts) continue;
    if (std::string more = InGroups(pools, i, value); !more.empty()) changes.push_back(more);
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
