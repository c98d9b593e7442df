// See member_options.h.
#include "import/member_options.h"

#include <nlohmann/json.hpp>

#include "import/draft.h"
#include "import/json_members.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostDepth = 16;

Json Typed(const Json& value, std::size_t depth) {
  if (depth > kMostDepth) return nullptr;
  if (value.is_object() || value.is_array()) {
    Json typed = value;
    for (Json& each : typed) each = Typed(each, depth + 1);
    return typed;
  }
  if (!value.is_string()) return value;
  const std::string text = TextOf(value);
  if (text == "true" || text == "True") return true;
  if (text == "false" || text == "False") return false;
  const auto number = NumberIn(text);
  return number ? NumberJson(*number) : value;
}

}  // namespace

std::string OptionName(std::string_view member) {
  std::string name;
  for (const char c : member.substr(0, 100)) {
    const bool capital = c >= 'A' && c <= 'Z';
    if (capital && !name.empty() && name.back() != '-') name += '-';
    name += capital ? static_cast<char>(c - 'A' + 'a') : c == '_' ? '-' : c;
  }
  return name;
}

CommandWords OptionWords(const Json& members) {
  CommandWords words;
  if (!members.is_object()) return words;
  for (const auto& [member, value] : members.items()) {
    const std::string name = "--" + OptionName(member);
    if (value.is_null() || value == "None" || value == "null") continue;
    if (value.is_array()) {
      words.push_back(name);
      for (const Json& each : value) words.push_back(TextOf(each));
    } else if (value.is_object()) {
      const Json typed = WithTypes(value);
      words.push_back(name + "=" + typed.dump(-1, ' ', false, Json::error_handler_t::replace));
    } else {
      words.push_back(name + "=" + TextOf(value));
    }
  }
  return words;
}

Json WithTypes(const Json& value) { return Typed(value, 0); }

}  // namespace servecast
