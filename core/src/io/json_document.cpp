// See json_document.h.
#include "io/json_document.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/printable.h"
#include "base/text.h"
#include "io/issues.h"
#include "io/json_events.h"
#include "io/json_writer.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostBytes = std::size_t{4} << 20;

// Builds the value from parser events, so that duplicate keys are seen and nothing throws.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(std::string_view text) : text_(text) {}

  bool null() override { return Put(nullptr); }
  bool boolean(bool value) override { return Put(value); }
  bool number_integer(number_integer_t value) override { return Put(value); }
  bool number_unsigned(number_unsigned_t value) override { return Put(value); }
  bool number_float(number_float_t value, const string_t&) override { return Put(value); }
  bool string(string_t& value) override { return Put(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return Enter(Json::object()); }
  bool end_object() override { return Leave(); }
  bool start_array(std::size_t) override { return Enter(Json::array()); }
  bool end_array() override { return Leave(); }
  bool key(string_t& value) override {
    Level& level = levels_.back();
    if (level.value->contains(value) && ++twice_ <= kMostIssues) {
      issues.push_back(
          {Path() + "/" + ShownPointerToken(value), "this key stands twice in its object"});
    }
    level.key = std::move(value);
    return true;
  }
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception& error) override {
    std::size_t line = 1, column = 1;
    for (std::size_t i = 0; i + 1 < position && i < text_.size(); ++i) {
      column = text_[i] == '\n' ? 1 : column + 1;
      line += text_[i] == '\n' ? 1 : 0;
    }
    const bool range =
        std::string_view(error.what()).find("out of range") != std::string_view::npos ||
        std::string_view(error.what()).find("number overflow") != std::string_view::npos;
    issues.push_back({"", Format("not JSON at line {}, column {}: {} \"{}\"", line, column,
                                 range ? "a number beyond the range of a double," : "unexpected",
                                 ShownText(token, 40))});
    return false;
  }

  // Everything that was wrong. Requires: the text has been read.
  Issues Found() {
    if (twice_ > kMostIssues) issues.push_back(Unlisted(twice_ - kMostIssues));
    return Bounded(std::move(issues));
  }

  Json root;
  Issues issues;

 private:
  struct Level {
    Json* value;
    std::string key;  // of an object: where the next value goes
  };

  template <class T>
  bool Put(T&& value) {
    Insert(Json(std::forward<T>(value)));
    return true;
  }

  Json* Insert(Json&& value) {
    if (levels_.empty()) {
      root = std::move(value);
      return &root;
    }
    Level& level = levels_.back();
    if (level.value->is_array()) {
      level.value->push_back(std::move(value));
      return &level.value->back();
    }
    Json& member = (*level.value)[level.key];
    member = std::move(value);
    return &member;
  }

  bool Enter(Json&& container) {
    if (levels_.size() == kMostJsonLevels) {
      issues.push_back({"", Format("nested deeper than {} levels", kMostJsonLevels)});
      return false;
    }
    Json* inserted = Insert(std::move(container));
    levels_.push_back({inserted, ""});
    return true;
  }

  bool Leave() {
    levels_.pop_back();
    return true;
  }

  std::string Path() const {
    std::string path;
    for (std::size_t i = 0; i + 1 < levels_.size(); ++i) {
      path += levels_[i].value->is_array() ? "/" + std::to_string(levels_[i].value->size() - 1)
                                           : "/" + ShownPointerToken(levels_[i].key);
    }
    return path;
  }

  std::string_view text_;
  std::vector<Level> levels_;
  std::size_t twice_ = 0;  // keys
};

void Write(const Json& value, JsonWriter& out) {
  switch (value.type()) {
    case Json::value_t::object:
      out.BeginObject();
      for (const auto& [key, member] : value.items()) {
        out.Key(key);
        Write(member, out);
      }
      out.EndObject();
      break;
    case Json::value_t::array:
      out.BeginArray();
      for (const Json& item : value) Write(item, out);
      out.EndArray();
      break;
    case Json::value_t::string:
      out.Text(*value.get_ptr<const Json::string_t*>());
      break;
    case Json::value_t::boolean:
      out.Boolean(value.get<bool>());
      break;
    case Json::value_t::number_integer:
      out.Integer(value.get<std::int64_t>());
      break;
    case Json::value_t::number_unsigned:  // may be beyond int64
      out.Raw(fmt::to_string(value.get<std::uint64_t>()));
      break;
    case Json::value_t::number_float:
      out.Number(value.get<double>());
      break;
    default:
      out.Null();
  }
}

// As JSON writes a number: a digit before the point and one behind it. The library's from_chars of
// doubles is missing in WebAssembly's.
std::string AsJson(std::string_view text) {
  std::string number;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&text](std::size_t at) { return at < text.size() && IsDigit(text[at]); };
    if (text[i] != '.') {
      number += text[i];
      continue;
    }
    const bool before = i > 0 && digit(i - 1), behind = digit(i + 1);
    if (!before && !behind) return "";
    number += Format("{}.{}", before ? "" : "0", behind ? "" : "0");
  }
  // Leading zeros are none in JSON.
  std::size_t at = number.empty() || number[0] != '-' ? 0 : 1;
  while (at + 1 < number.size() && number[at] == '0' && IsDigit(number[at + 1])) {
    number.erase(at, 1);
  }
  return number;
}

}  // namespace

Result<Json> ParseJson(std::string_view text) {
  if (text.size() > kMostBytes) {
    return Issue{"", Format("found {} bytes of text, allowed {}", text.size(), kMostBytes)};
  }
  Builder builder(text);
  const bool ok = ReadJsonEvents(text, builder);
  if (!builder.issues.empty()) return builder.Found();
  if (!ok) return Issue{"", "not JSON"};
  return std::move(builder.root);
}

Json LooseJson(std::string_view text) {
  return Json::parse(text.begin(), text.end(), nullptr, false);
}

std::optional<double> NumberOf(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  if (text.empty() || text.find_first_not_of("0123456789.eE+-") != std::string_view::npos) {
    return std::nullopt;
  }
  const auto json = LooseJson(AsJson(text));
  if (!json.is_number()) return std::nullopt;
  const auto value = json.get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::string CompactJson(const Json& value) {
  JsonWriter out(false);
  Write(value, out);
  return out.Take();
}

std::string ShortJson(const Json& value) { return ShownText(CompactJson(value)); }

std::string PointerToken(std::string_view key) {
  std::string out;
  for (const char c : key) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

std::string ShownPointerToken(std::string_view key) {
  constexpr std::size_t kEnough = 200;  // more is cut off in any case
  return ShownText(PointerToken(key.substr(0, kEnough)));
}

}  // namespace servecast
