// See mcp_arguments.h.
#include "mcp_arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "io/json_document.h"
#include "servecast/scenario.h"
#include "suggest.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

void Type(std::string_view type, JsonWriter& out) { out.Key("type"), out.Text(type); }

void WriteChoices(const Words& choices, JsonWriter& out) {
  out.Key("enum"), out.BeginArray();
  for (const std::string& choice : choices) out.Text(choice);
  out.EndArray();
}

void WriteItems(std::string_view type, JsonWriter& out) {
  Type("array", out);
  out.Key("minItems"), out.Integer(1);
  out.Key("items"), out.BeginObject();
  Type(type, out);
  out.EndObject();
}

void WriteType(const ToolArgument& argument, JsonWriter& out) {
  switch (argument.takes) {
    case Takes::kScenario:
      out.Key("anyOf"), out.BeginArray();
      out.BeginObject();
      Type("string", out);
      WriteChoices(PresetIds("scenarios"), out);
      out.EndObject();
      out.BeginObject();
      Type("object", out);
      out.EndObject();
      out.EndArray();
      return;
    case Takes::kChanges:
      return Type("object", out);
    case Takes::kVariants:
      return WriteItems("object", out);
    case Takes::kFlag:
      return Type("boolean", out);
    case Takes::kNumber:
      return Type("number", out);
    case Takes::kNumbers:
      return WriteItems("number", out);
    case Takes::kText:
      return Type("string", out);
    case Takes::kTexts:
      return WriteItems("string", out);
    case Takes::kChoice:
      Type("string", out);
      return WriteChoices(argument.choices, out);
  }
}

// Whether each key can be what stands before the first "=" of --set.
bool ArePaths(const Json& changes) {
  const auto items = changes.items();
  return std::all_of(items.begin(), items.end(), [](const auto& item) {
    return !item.key().empty() && item.key().find('=') == std::string::npos;
  });
}

// What is wrong with a value, or "".
std::string NotOfType(const Json& value, Takes takes) {
  const auto all = [&value](auto is) {
    return value.is_array() && !value.empty() && std::all_of(value.begin(), value.end(), is);
  };
  const auto object = [](const Json& each) {
    return each.is_object() && !each.empty() && ArePaths(each);
  };
  const auto number = [](const Json& each) { return each.is_number(); };
  const auto text = [](const Json& each) { return each.is_string(); };
  const auto say = [](bool is, const char* allowed) { return is ? "" : allowed; };
  switch (takes) {
    case Takes::kScenario:
      return say(value.is_string() || value.is_object(), "a preset's name or a document");
    case Takes::kChanges:
      return say(value.is_object() && ArePaths(value),
                 "an object of values by path, such as \"seed\": 7");
    case Takes::kVariants:
      return say(all(object), "an array of objects of values by path, none empty");
    case Takes::kFlag:
      return say(value.is_boolean(), "true or false");
    case Takes::kNumber:
      return say(value.is_number(), "a number");
    case Takes::kNumbers:
      return say(all(number), "an array of numbers");
    case Takes::kTexts:
      return say(all(text), "an array of texts");
    case Takes::kText:
    case Takes::kChoice:
      return say(value.is_string(), "a text");
  }
  return "";
}

std::string NumberWord(const Json& value) { return NumberText(value.get<double>()); }

// As --set takes it: a text stands as it is, unless it reads as JSON.
std::string ChangeTo(const Json& value) {
  if (!value.is_string()) return CompactJson(value);
  const std::string& text = value.get_ref<const std::string&>();
  return LooseJson(text).is_discarded() ? text : CompactJson(value);
}

void AddChanges(const Json& changes, std::string first, const std::string& others, Words& words) {
  for (const auto& [path, value] : changes.items()) {
    words.push_back(std::exchange(first, others));
    words.push_back(path + "=" + ChangeTo(value));
  }
}

// Of one argument that is there. Returns what is wrong, or "".
std::string Add(const ToolArgument& argument, const Json& value, ToolWords& out) {
  const std::string option(argument.option);
  const auto put = [&](std::string word) {
    if (!option.empty()) out.words.push_back(option);
    out.words.push_back(std::move(word));
  };
  if (std::string allowed = NotOfType(value, argument.takes); !allowed.empty()) {
    return "found " + ShortJson(value) + ", allowed " + allowed;
  }
  switch (argument.takes) {
    case Takes::kScenario: {
      if (value.is_object()) out.document = CompactJson(value);
      const std::string name = value.is_object() ? "-" : value.get<std::string>();
      put(name);
      if (value.is_object() || ScenarioPreset(name)) return "";
      const std::string near = NearestScenarioPreset(name);
      return "found " + ShortJson(value) + ", which is no preset scenario (catalog lists them)" +
             (near.empty() ? "" : "; did you mean " + near + "?");
    }
    case Takes::kChanges:
      AddChanges(value, option, option, out.words);
      return "";
    case Takes::kVariants:
      for (const Json& each : value) AddChanges(each, option, "--and", out.words);
      return "";
    case Takes::kFlag:
      if (value.get<bool>()) out.words.push_back(option);
      return "";
    case Takes::kNumber:
      put(NumberWord(value));
      return "";
    case Takes::kNumbers: {
      std::string list;
      for (const Json& each : value) list += (list.empty() ? "" : ",") + NumberWord(each);
      put(std::move(list));
      return "";
    }
    case Takes::kTexts:
      for (const Json& each : value) out.words.push_back(each.get<std::string>());
      return "";
    case Takes::kChoice: {
      const auto& choices = argument.choices;
      put(value.get<std::string>());
      if (std::find(choices.begin(), choices.end(), out.words.back()) != choices.end()) return "";
      return fmt::format("found {}, allowed {}", ShortJson(value), fmt::join(choices, ", "));
    }
    case Takes::kText:
      put(value.get<std::string>());
      return out.words.back().empty() || out.words.back()[0] == '-'
                 ? "found " + ShortJson(value) + ", allowed a text that begins with no dash"
                 : "";
  }
  return "";
}

}  // namespace

void WriteSchema(const std::vector<ToolArgument>& arguments, JsonWriter& out) {
  out.BeginObject();
  Type("object", out);
  out.Key("properties"), out.BeginObject();
  for (const ToolArgument& argument : arguments) {
    out.Key(argument.name), out.BeginObject();
    WriteType(argument, out);
    out.Key("description"), out.Text(argument.help);
    out.EndObject();
  }
  out.EndObject();
  out.Key("required"), out.BeginArray();
  for (const ToolArgument& argument : arguments) {
    if (argument.required) out.Text(argument.name);
  }
  out.EndArray();
  out.Key("additionalProperties"), out.Boolean(false);
  out.EndObject();
}

Result<ToolWords> ReadToolArguments(const std::vector<ToolArgument>& arguments, const Json& given) {
  if (!given.is_object()) return Issue{"", "found no object of arguments"};
  ToolWords out;
  Issues issues;
  for (const ToolArgument& argument : arguments) {
    const std::string path = "/" + std::string(argument.name);
    const auto found = given.find(argument.name);
    if (found == given.end()) {
      if (argument.required) issues.push_back({path, "is missing"});
      continue;
    }
    std::string problem = Add(argument, *found, out);
    if (!problem.empty()) issues.push_back({path, std::move(problem)});
  }
  for (const auto& [name, value] : given.items()) {
    const bool known = std::any_of(arguments.begin(), arguments.end(),
                                   [&key = name](const auto& each) { return each.name == key; });
    if (known) continue;
    std::vector<std::string> names;
    for (const ToolArgument& argument : arguments) names.emplace_back(argument.name);
    issues.push_back({"/" + ShownPointerToken(name),
                      fmt::format("is no argument, allowed {}", fmt::join(names, ", "))});
  }
  if (!issues.empty()) return issues;
  return out;
}

}  // namespace servecast
