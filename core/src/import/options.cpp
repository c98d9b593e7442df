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

// What benchmarks call requests that decode nothing.
constexpr std::string_view kPools[] = {"embedding", "pooling",  "rerank",
                                       "ranking",   "classify", "/score"};

bool IsOption(std::string_view word) {
  if (word.size() < 2 || word[0] != '-') return false;
  const bool number = (word[1] >= '0' && word[1] <= '9') || word[1] == '.';
  return !number && word.find_first_not_of('-') != std::string_view::npos;
}

// "--model" from a page that made one dash of two, a longer one.
bool HasAnotherDash(std::string_view word) {
  for (const std::string_view dash : {"\u2010", "\u2011", "\u2012", "\u2013", "\u2014", "\u2212"}) {
    if (word.substr(0, dash.size()) == dash) return true;
  }
  return false;
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

// The one option that begins so: Python's argparse takes abbreviations. nullptr: none, or several.
const Option* FindAbbreviated(std::string_view plain, std::span<const Option> table) {
  constexpr std::size_t kShortest = 8;
  if (plain.size() < kShortest) return nullptr;
  const Option* found = nullptr;
  for (const Option& option : table) {
    if (option.name.substr(0, plain.size()) != plain) continue;
    if (found != nullptr) return nullptr;
    found = &option;
  }
  return found;
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
  if (given.option == nullptr) given.option = FindAbbreviated(plain, table);
  return given;
}

bool IsChoice(std::string_view choices, std::string_view word) {
  const std::string lower = LowerCase(word.substr(0, kShown));
  while (!choices.empty()) {
    const std::size_t end = std::min(choices.find('|'), choices.size());
    if (choices.substr(0, end) == lower) return true;
    choices.remove_prefix(std::min(end + 1, choices.size()));
  }
  return false;
}

// Why the value of a known option cannot be read; "" where it can.
std::string_view Unreadable(const GivenOption& given) {
  const Option& option = *given.option;
  const std::string_view value = given.value ? std::string_view(*given.value) : "";
  const bool none = value.find_first_not_of(' ') == std::string_view::npos;
  const bool variable = value.find('$') == 0;
  constexpr std::string_view kUnset = "the text does not say what that is";
  switch (option.value) {
    case OptionValue::kName:
      return none ? "found nothing behind it" : "";
    case OptionValue::kFlag:
    case OptionValue::kSwitch:
      if (!given.value || TruthIn(value)) return "";
      return variable ? kUnset : "found neither true nor false behind it";
    case OptionValue::kText:
    case OptionValue::kWords:
      if (none) return "found nothing behind it";
      if (variable) return kUnset;
      return option.choices.empty() || IsChoice(option.choices, value) ? "" : kNotModelled;
    case OptionValue::kCount:
    case OptionValue::kNumber:
      break;
  }
  if (variable) return kUnset;
  const bool count = option.value == OptionValue::kCount;
  const auto number = NumberIn(value, count);
  if (IsChoice(option.choices, value) || (number && (!count || *number == std::floor(*number))))
    return "";
  return count ? "found no whole number behind it" : "found no number behind it";
}

// The value for a scenario, or what is wrong with it.
std::optional<Json> ValueOf(const GivenOption& given) {
  switch (given.option->value) {
    case OptionValue::kFlag:
    case OptionValue::kSwitch:
      return Json(!given.negated);
    case OptionValue::kText:
    case OptionValue::kName:
    case OptionValue::kWords:
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

std::string PlainName(std::string_view written) {
  std::string name(written.substr(std::min(written.find_first_not_of('-'), written.size())));
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string GivenOption::Words() const {
  return value && !value->empty() ? name + " " + *value : name;
}

void GivenOptions::LeaveUnread(std::size_t used, bool traffic, Draft& draft) {
  const auto unread = [&draft, traffic](const GivenOption& given) {
    // What has no effect is said of it whatever its value is.
    if (given.option == nullptr || !given.option->why.empty()) return false;
    const std::string_view why = Unreadable(given);
    if (why.empty()) return false;
    const std::string_view path = given.option->path;
    // How many GPUs there are changes a forecast as much as its traffic does.
    static constexpr std::string_view kRanks[] = {"data-parallel-size",
                                                  "dp-size",
                                                  "ep-size",
                                                  "expert-parallel-size",
                                                  "intra-node-data-parallel-size",
                                                  "prefill",
                                                  "decode",
                                                  "static-backends",
                                                  "worker-urls"};
    const bool gpus =
        path.substr(0, 5) == "pool." ||
        std::find(std::begin(kRanks), std::end(kRanks), given.option->name) != std::end(kRanks);
    draft.Unread(given.Words(), why, path.empty() ? "" : draft.ServerPath(path),
                 given.option->otherwise, traffic || gpus);
    return true;
  };
  options.erase(std::remove_if(options.begin(), options.end(), unread), options.end());
  for (std::size_t i = used; i < positionals.size(); ++i) {
    const std::string& word = positionals[i];
    const bool variable = word.find('$') == 0, dash = HasAnotherDash(word);
    const std::string_view why = variable ? "the text does not say what that is"
                                 : dash   ? "is no option: it begins with a longer dash than -"
                                          : "is no option, and says nothing here";
    draft.Ignore(word, why);
    // Any option may be behind these.
    if (variable || dash) draft.Warn(Format("{}: {}", ShownText(word, kShown), why));
  }
  positionals.resize(std::min(used, positionals.size()));
}

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

namespace {

// vLLM's "--speculative-config.method mtp": members of an option's JSON, one each. They are one
// option of all of them.
void JoinDotted(GivenOptions& given, std::span<const Option> table) {
  std::vector<std::pair<const Option*, Json>> joined;
  const auto is_part = [&](const GivenOption& each) {
    const std::size_t dot = each.name.find('.');
    if (each.option != nullptr || dot == std::string::npos || !each.value) return false;
    const Option* option = FindOption("", PlainName(each.name.substr(0, dot)), table);
    if (option == nullptr || option->value != OptionValue::kText) return false;
    auto found = std::find_if(joined.begin(), joined.end(),
                              [option](const auto& one) { return one.first == option; });
    if (found == joined.end()) found = joined.insert(found, {option, Json::object()});
    const auto number = NumberIn(*each.value);
    found->second[each.name.substr(dot + 1)] = number ? NumberJson(*number) : Json(*each.value);
    return true;
  };
  auto& options = given.options;
  options.erase(std::remove_if(options.begin(), options.end(), is_part), options.end());
  for (const auto& [option, value] : joined) {
    GivenOption whole;
    whole.option = option;
    whole.name = "--" + std::string(option->name);
    whole.value = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    options.push_back(std::move(whole));
  }
}

}  // namespace

GivenOptions ReadOptions(std::span<const std::string> words, std::span<const Option> table) {
  GivenOptions given;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!IsOption(words[i])) {
      given.positionals.push_back(words[i]);
      continue;
    }
    GivenOption option = ReadOne(words[i], table);
    if (i + 1 < words.size() && TakesNext(option, words[i + 1])) option.value = words[++i];
    if (option.value) option.all.push_back(*option.value);
    const bool several = option.option != nullptr && option.option->value == OptionValue::kWords;
    while (several && i + 1 < words.size() && !IsOption(words[i + 1])) {
      option.all.push_back(words[++i]);
      *option.value += " " + words[i];
    }
    if (option.option != nullptr && option.option->value == OptionValue::kSwitch && option.value) {
      const bool truth = TruthIn(*option.value).value_or(true);
      option.negated = option.negated == truth;
    }
    // A flag that is said not to be there is not there.
    const bool off = option.option != nullptr && option.option->value == OptionValue::kFlag &&
                     option.value && TruthIn(*option.value) == false;
    if (off && option.option->why.empty()) continue;
    given.options.push_back(std::move(option));
  }
  JoinDotted(given, table);
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
      if (each.option->why == kEncodersApart) {
        draft.Warn(Format("{}: {}", ShownText(each.Words(), 80), kEncodersApart));
      }
      continue;
    }
    const std::optional<Json> value = ValueOf(each);
    if (value) draft.Take(draft.ServerPath(each.option->path), *value, each.Words());
  }
}

namespace {

// The option with another value that it may have; nullopt: it has no other.
std::optional<GivenOption> WithOtherValue(GivenOption given) {
  const Option& option = *given.option;
  if (!given.value) return std::nullopt;
  const bool number = option.value == OptionValue::kCount || option.value == OptionValue::kNumber;
  std::string other = "another-" + *given.value;
  if (number) {
    const auto value = NumberIn(*given.value, true);
    other = value ? NumberText(std::floor(*value * 2) + 1) : "3";
  } else if (!option.choices.empty()) {
    const std::string_view first = option.choices.substr(0, option.choices.find('|'));
    const std::string_view last = option.choices.substr(option.choices.rfind('|') + 1);
    other = first == LowerCase(*given.value) ? last : first;
  }
  given.value = other;
  given.all = {other};
  return given;
}

}  // namespace

void ReadNamingIdle(const GivenOptions& given, Draft& draft,
                    const std::function<void(GivenOptions, Draft&)>& read) {
  constexpr std::size_t kMostOptions = 64, kMostCommands = 16, kMostBytes = 20'000;
  std::size_t bytes = 0;
  for (const GivenOption& each : given.options)
    bytes += each.Words().size() + 100 * each.all.size();
  const bool few = given.options.size() <= kMostOptions && bytes <= kMostBytes &&
                   given.positionals.size() <= kMostOptions && draft.kinds() <= kMostCommands;
  read(given, draft);
  if (!few) return;
  const auto drafted = [&read](const GivenOptions& options) {
    Draft alone;
    read(options, alone);
    return alone;
  };
  const Draft whole = drafted(given);
  for (std::size_t i = 0; i < given.options.size(); ++i) {
    const Option* option = given.options[i].option;
    if (option == nullptr || !option->path.empty() || !option->why.empty()) continue;
    GivenOptions changed = given;
    // That of a default has no effect either, but another one would have.
    if (const auto other = WithOtherValue(given.options[i])) {
      changed.options[i] = *other;
      if (!drafted(changed).ReadsAs(whole)) continue;
    }
    changed.options.erase(changed.options.begin() + static_cast<std::ptrdiff_t>(i));
    if (!drafted(changed).ReadsAs(whole)) continue;
    draft.Ignore(given.options[i].Words(), "has no effect beside the other options");
  }
}

void TakePooled(const GivenOptions& given, std::initializer_list<std::string_view> names,
                Draft& draft) {
  for (const std::string_view name : names) {
    const GivenOption* option = given.Find(name);
    if (option == nullptr) continue;
    const std::string value = LowerCase(option->value.value_or(""));
    const bool pools = std::any_of(
        std::begin(kPools), std::end(kPools),
        [&value](std::string_view part) { return value.find(part) != std::string::npos; });
    if (pools) {
      draft.TakePooling(option->Words());
    } else {
      draft.Ignore(option->Words(), kNoTime);
    }
  }
}

}  // namespace servecast
