// See options.h.
#include "import/options.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/printable.h"
#include "base/text.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

// "--max_num_seqs" -> max-num-seqs.
std::string PlainName(std::string_view written) {
  std::string name(written.substr(std::min(written.find_first_not_of('-'), written.size())));
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

bool IsOption(std::string_view word) {
  if (word.size() < 2 || word[0] != '-') return false;
  const bool number = (word[1] >= '0' && word[1] <= '9') || word[1] == '.';
  return !number && word.find_first_not_of('-') != std::string_view::npos;
}

bool SameName(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return x == y || (x == '_' && y == '-') || (x == '-' && y == '_');
         });
}

std::optional<bool> TruthIn(std::string_view word) {
  const std::string lower = LowerCase(word.substr(0, 8));
  if (lower == "true" || lower == "1") return true;
  if (lower == "false" || lower == "0") return false;
  return std::nullopt;
}

const Option* FindOption(std::string_view written, std::string_view plain,
                         std::span<const Option> table) {
  for (const Option& option : table) {
    const bool alias = !written.empty() && option.alias == written;
    if (alias || SameName(option.name, plain)) return &option;
  }
  return nullptr;
}

// Whether the next word belongs to the option.
bool TakesNext(const GivenOption& given, std::string_view next) {
  if (given.value || IsOption(next)) return false;
  if (given.option == nullptr) return true;
  switch (given.option->value) {
    case OptionValue::kFlag:
      return false;
    case OptionValue::kSwitch:
      return TruthIn(next).has_value();
    default:
      return true;
  }
}

GivenOption ReadOne(const std::string& word, std::span<const Option> table) {
  GivenOption given;
  const std::size_t equals = word.find('=');
  given.name = word.substr(0, equals);
  if (equals != std::string::npos) given.value = word.substr(equals + 1);
  const std::string plain = PlainName(given.name);
  given.option = FindOption(given.name, plain, table);
  if (given.option == nullptr && plain.substr(0, 3) == "no-") {
    const Option* opposite = FindOption("", plain.substr(3), table);
    if (opposite != nullptr && opposite->value == OptionValue::kSwitch) {
      given.option = opposite;
      given.negated = true;
    }
  }
  return given;
}

// The value for a scenario, or what is wrong with it.
std::optional<Json> ValueOf(const GivenOption& given) {
  switch (given.option->value) {
    case OptionValue::kFlag:
    case OptionValue::kSwitch:
      return Json(!given.negated);
    case OptionValue::kText:
      return given.value ? std::optional<Json>(*given.value) : std::nullopt;
    case OptionValue::kCount:
    case OptionValue::kNumber:
      break;
  }
  const bool count = given.option->value == OptionValue::kCount;
  const auto number = given.value ? NumberIn(*given.value, count) : std::nullopt;
  if (!number || (count && *number != std::floor(*number))) return std::nullopt;
  return NumberJson(*number);
}

}  // namespace

std::string GivenOption::Words() const { return value ? name + " " + *value : name; }

const GivenOption* GivenOptions::Find(std::string_view name) const {
  const GivenOption* found = nullptr;
  for (const GivenOption& given : options) {
    if (given.option != nullptr && SameName(given.option->name, name)) found = &given;
  }
  return found;
}

std::string GivenOptions::Text(std::string_view name) const {
  const GivenOption* given = Find(name);
  return given == nullptr ? "" : given->value.value_or("");
}

std::optional<double> GivenOptions::Number(std::string_view name) const {
  return NumberIn(Text(name), true);
}

GivenOptions ReadOptions(std::span<const std::string> words, std::span<const Option> table) {
  GivenOptions given;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!IsOption(words[i])) {
      given.positionals.push_back(words[i]);
      continue;
    }
    GivenOption option = ReadOne(words[i], table);
    if (i + 1 < words.size() && TakesNext(option, words[i + 1])) option.value = words[++i];
    if (option.option != nullptr && option.option->value == OptionValue::kSwitch && option.value) {
      const bool truth = TruthIn(*option.value).value_or(true);
      option.negated = option.negated == truth;
    }
    given.options.push_back(std::move(option));
  }
  return given;
}

void TakeOptions(const GivenOptions& given, std::span<const std::string_view> apart, Draft& draft) {
  for (const GivenOption& each : given.options) {
    if (each.option == nullptr) {
      draft.Ignore(each.Words(), "is not known here");
      continue;
    }
    if (std::find(apart.begin(), apart.end(), each.option->name) != apart.end()) continue;
    if (each.option->path.empty()) {
      draft.Ignore(each.Words(), each.option->why);
      continue;
    }
    const std::optional<Json> value = ValueOf(each);
    if (value) {
      draft.Take(draft.ServerPath(each.option->path), *value, each.Words());
    } else {
      draft.Ignore(each.Words(), each.option->value == OptionValue::kNumber
                                     ? "found no number behind it"
                                     : "found no whole number behind it");
    }
  }
}

}  // namespace servecast
