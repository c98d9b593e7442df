// Changes to a scenario document in words, "path.to.member=value", and links made of them.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "io/field_reader.h"
#include "io/issues.h"
#include "io/json_document.h"
#include "io/presets.h"
#include "io/variants.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

// The member that a section has for its name alone, "preset" of "model": "qwen3-32b" and "policy"
// of "scheduler": "sglang"; "" for what no name stands for. The section is that of the first
// `count` keys, of the scenario or of a pool.
std::string_view MemberOfName(const std::vector<std::string>& keys, std::size_t count) {
  const bool pool = count == 4 && keys[0] == "cluster" && keys[1] == "pools";
  if (count != 1 && !pool) return "";
  const std::string& section = keys[count - 1];
  if (section == "scheduler") return "policy";
  const bool own = !pool || section == "hardware" || section == kDefaultedSection;
  return own && !PresetKind(section).empty() ? "preset" : "";
}

// The object or list that holds the last key of a path; those on the way are made when missing.
// nullptr, and an issue, when the path leads through something else.
Json* Holder(Json& document, const std::vector<std::string>& keys, Issues& issues) {
  Json* at = &document;
  std::string pointer;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string& key = keys[i];
    pointer += "/" + ShownPointerToken(key);
    const bool last = i + 1 == keys.size();
    if (at->is_array()) {
      const auto index = ParseCount(key);
      const auto size = static_cast<std::int64_t>(at->size());
      if (!index || *index > size) {
        issues.push_back(
            {pointer, Format("found {}, allowed an index from 0 to {}", ShortJson(key), size)});
        return nullptr;
      }
      if (*index == size) at->push_back(Json::object());
      if (!last) at = &(*at)[static_cast<std::size_t>(*index)];
    } else if (at->is_object()) {
      if (last) break;
      const bool list = ParseCount(keys[i + 1]).has_value();
      Json& member = (*at)[key];
      const std::string_view name = MemberOfName(keys, i + 1);
      if (member.is_string() && !name.empty()) member = Json{{name, member}};
      if (member.is_null()) member = list ? Json::array() : Json::object();
      at = &member;
    } else {
      issues.push_back({pointer, "this is not inside an object"});
      return nullptr;
    }
  }
  if (!at->is_structured()) {
    issues.push_back({pointer, "this is not inside an object"});
    return nullptr;
  }
  return at;
}

void Apply(Json& document, const std::string& change, Issues& issues) {
  const std::size_t equals = change.find('=');
  const std::vector<std::string_view> parts =
      Split(std::string_view(change).substr(0, equals), ".");
  const std::vector<std::string> keys(parts.begin(), parts.end());
  const bool empty_key = std::find(keys.begin(), keys.end(), "") != keys.end();
  if (equals == std::string::npos || empty_key) {
    issues.push_back({"", Format("found {}, allowed path.to.member=value", ShortJson(change))});
    return;
  }
  if (keys.size() > kMostJsonLevels) {  // no document is that deep, and the stack is not either
    issues.push_back(
        {"", Format("found a path of {} members, allowed {}", keys.size(), kMostJsonLevels)});
    return;
  }
  Json* holder = Holder(document, keys, issues);
  if (holder == nullptr) return;
  const std::string text = change.substr(equals + 1);
  const Result<Json> json = ParseJson(text);
  Json value = json.ok() ? json.value() : Json(text);
  const std::string_view name = MemberOfName(keys, keys.size());
  if (value.is_string() && !name.empty()) value = Json{{name, value}};
  const std::string& key = keys.back();
  if (holder->is_array()) {
    (*holder)[static_cast<std::size_t>(*ParseCount(key))] = value;
    return;
  }
  if (IsVariantKey(key)) DropInapplicable(*holder, key, value);
  (*holder)[key] = value;
}

// %XX of a link; anything else stays.
std::string PercentDecoded(std::string_view part) {
  const auto digit = [](char c) {
    const auto at = std::string_view("0123456789abcdef").find(static_cast<char>(c | 0x20));
    return at == std::string_view::npos ? -1 : static_cast<int>(at);
  };
  std::string out;
  for (std::size_t i = 0; i < part.size(); ++i) {
    const bool escaped =
        part[i] == '%' && i + 2 < part.size() && digit(part[i + 1]) >= 0 && digit(part[i + 2]) >= 0;
    out += escaped ? static_cast<char>(digit(part[i + 1]) * 16 + digit(part[i + 2])) : part[i];
    if (escaped) i += 2;
  }
  return out;
}

}  // namespace

Result<std::string> ApplyOverrides(std::string_view text,
                                   const std::vector<std::string>& overrides) {
  Result<Json> document = ParseJson(text);
  if (!document.ok()) return Issues(document.issues());
  Issues issues;
  for (const std::string& change : overrides) Apply(document.value(), change, issues);
  if (!issues.empty()) return Bounded(std::move(issues));
  return CompactJson(document.value());
}

Result<std::string> ParseReadableLink(std::string_view fragment) {
  std::string preset;
  std::vector<std::string> overrides;
  for (const std::string_view escaped : Split(fragment, "&")) {
    const std::string part = PercentDecoded(escaped);
    if (part.rfind("p=", 0) == 0) {
      preset = part.substr(2);
    } else if (!part.empty()) {
      overrides.push_back(part);
    }
  }
  const auto text = ScenarioPreset(preset);
  if (!text) {
    const Choices ids = PresetIds("scenarios");
    return Issue{"", Format("found the preset {}, allowed {}{}", ShortJson(preset), QuotedList(ids),
                            DidYouMean(preset, ids))};
  }
  return ApplyOverrides(*text, overrides);
}

}  // namespace servecast
