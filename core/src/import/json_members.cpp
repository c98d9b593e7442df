// See json_members.h.
#include "import/json_members.h"

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

const Json* MemberIn(const Json& of, const char* key) {
  if (!of.is_object()) return nullptr;
  const auto at = of.find(key);
  return at == of.end() ? nullptr : &*at;
}

}  // namespace

const Json* ObjectIn(const Json& of, const char* key) {
  const Json* member = MemberIn(of, key);
  return member != nullptr && member->is_object() ? member : nullptr;
}

const Json* ObjectAt(const Json& of, std::initializer_list<const char*> keys) {
  const Json* at = &of;
  for (const char* key : keys) {
    at = ObjectIn(*at, key);
    if (at == nullptr) return nullptr;
  }
  return at;
}

const Json& ListIn(const Json& of, const char* key) {
  static const Json kEmpty = Json::array();
  const Json* member = MemberIn(of, key);
  return member != nullptr && member->is_array() ? *member : kEmpty;
}

std::string TextOf(const Json& value) {
  if (value.is_string()) return *value.get_ptr<const std::string*>();
  if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
  return value.is_number() ? NumberText(value.get<double>()) : "";
}

std::string TextIn(const Json& of, const char* key) {
  const Json* member = MemberIn(of, key);
  return member == nullptr ? "" : TextOf(*member);
}

CommandWords WordsIn(const Json& of, const char* key) {
  CommandWords words;
  for (const Json& word : ListIn(of, key)) words.push_back(TextOf(word));
  const Json* member = MemberIn(of, key);
  if (member == nullptr || !member->is_string()) return words;
  // A word before it keeps a command of one word.
  const std::string text = "x " + *member->get_ptr<const std::string*>();
  for (const CommandWords& command : CommandsIn(text)) {
    words.insert(words.end(), command.begin() + (words.empty() ? 1 : 0), command.end());
  }
  return words;
}

CommandWords WordsIn(const Json& of, const char* key, const Variables& variables) {
  CommandWords words = WordsIn(of, key);
  for (std::string& word : words) {
    for (const auto& [variable, value] : variables) {
      const std::string name = "$(" + variable + ")";
      std::size_t at = name.size() > 3 ? word.find(name) : std::string::npos;
      for (; at != std::string::npos && word.size() < 10'000; at = word.find(name, at)) {
        word.replace(at, name.size(), value);
        at += value.size();
      }
    }
  }
  return words;
}

Variables EnvironmentIn(const Json& container) {
  Variables environment;
  for (const Json& variable : ListIn(container, "env")) {
    // Of secrets and fields of the pod nothing says the value.
    if (MemberIn(variable, "value") == nullptr) continue;
    environment[TextIn(variable, "name")] = TextIn(variable, "value");
  }
  return environment;
}

}  // namespace servecast
