#include "serving/cluster/epp/settings.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/text.h"

namespace servecast::epp {
namespace {

using Kind = SettingSpec::Kind;

bool IsIndex(std::string_view part) {
  return !part.empty() && part.size() <= 3 &&
         std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Whether the path is one of the spec's, whose parts "*" stand for any index.
bool Matches(std::string_view spec, std::string_view path) {
  while (true) {
    const std::size_t in_spec = spec.find('.'), in_path = path.find('.');
    const std::string_view want = spec.substr(0, in_spec), have = path.substr(0, in_path);
    if (want == "*" ? !IsIndex(have) : want != have) return false;
    if (in_spec == std::string_view::npos || in_path == std::string_view::npos) {
      return in_spec == in_path;
    }
    spec.remove_prefix(in_spec + 1);
    path.remove_prefix(in_path + 1);
  }
}

const SettingSpec* SpecOf(std::span<const SettingSpec> specs, std::string_view path) {
  const auto spec = std::find_if(specs.begin(), specs.end(), [&](const SettingSpec& candidate) {
    return Matches(candidate.path, path);
  });
  return spec == specs.end() ? nullptr : &*spec;
}

const SettingSpec& Find(std::span<const SettingSpec> specs, std::string_view path) {
  const SettingSpec* spec = SpecOf(specs, path);
  SERVECAST_CHECK(spec != nullptr, "a plugin reads parameters that it names");
  return *spec;
}

bool IsWord(std::string_view words, std::string_view text) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == text) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

std::string WrongNumber(const SettingSpec& spec, const EppValue& value) {
  const double* number = std::get_if<double>(&value);
  if (number == nullptr) return "must be a number";
  if (spec.kind == Kind::kWhole && *number != std::floor(*number)) return "must be a whole number";
  if (*number >= spec.least && *number <= spec.most) return "";
  return "must be " + NumberText(spec.least) + " to " + NumberText(spec.most);
}

std::string Wrong(const SettingSpec& spec, const EppValue& value) {
  const std::string* text = std::get_if<std::string>(&value);
  switch (spec.kind) {
    case Kind::kReal:
    case Kind::kWhole:
      return WrongNumber(spec, value);
    case Kind::kFlag:
      return std::holds_alternative<bool>(value) ? "" : "must be true or false";
    case Kind::kDuration:
      if (text != nullptr && DurationNs(*text)) return "";
      return "must be a duration, for example \"200ms\"";
    case Kind::kText:
      break;
  }
  if (text == nullptr) return "must be text";
  if (spec.words.empty() || IsWord(spec.words, *text)) return "";
  return "must be one of: " + std::string(spec.words);
}

}  // namespace

std::optional<TimeNs> DurationNs(std::string_view text) {
  constexpr struct {
    std::string_view unit;
    TimeNs ns;
  } kUnits[] = {{"ns", 1},      {"us", 1000},        {"ms", kNsPerMs},
                {"s", kNsPerS}, {"m", 60 * kNsPerS}, {"h", 3600 * kNsPerS}};
  if (text == "0") return 0;
  TimeNs sum = 0;
  bool any = false;
  while (!text.empty()) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
    const std::string_view number = text.substr(0, digits);
    text.remove_prefix(digits);
    const std::size_t letters = std::min(text.find_first_of("0123456789."), text.size());
    const auto* unit = std::find_if(std::begin(kUnits), std::end(kUnits), [&](const auto& known) {
      return known.unit == text.substr(0, letters);
    });
    if (unit == std::end(kUnits)) return std::nullopt;
    const std::optional<TimeNs> part = ParseDecimalNs(number, unit->ns);
    if (!part || *part > kClockEnd / 2 - sum) return std::nullopt;
    text.remove_prefix(letters);
    sum += *part;
    any = true;
  }
  return any ? std::optional(sum) : std::nullopt;
}

std::vector<std::string> WrongSettings(std::span<const SettingSpec> specs,
                                       const EppParameters& parameters) {
  std::vector<std::string> wrong;
  for (const auto& [path, value] : parameters) {
    const SettingSpec* spec = SpecOf(specs, path);
    const std::string reason = spec == nullptr ? "not a parameter" : Wrong(*spec, value);
    if (!reason.empty()) wrong.push_back(path + ": " + reason);
  }
  return wrong;
}

double Settings::Real(std::string_view path) const {
  const auto value = given_.find(path);
  if (value == given_.end()) return Find(specs_, path).fallback;
  if (const bool* flag = std::get_if<bool>(&value->second)) return *flag ? 1 : 0;
  return std::get<double>(value->second);
}

TimeNs Settings::Duration(std::string_view path) const {
  const auto value = given_.find(path);
  if (value == given_.end()) return NearestNs(Find(specs_, path).fallback);
  return DurationNs(std::get<std::string>(value->second)).value_or(0);
}

std::string_view Settings::Text(std::string_view path) const {
  const auto value = given_.find(path);
  if (value != given_.end()) return std::get<std::string>(value->second);
  const std::string_view words = Find(specs_, path).words;
  return words.substr(0, words.find(' '));
}

}  // namespace servecast::epp
