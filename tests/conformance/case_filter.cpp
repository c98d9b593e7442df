// Terms are resolved against the settings that the loaded cases have: this file knows no names.
#include "conformance/case_filter.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <set>

namespace servecast::testing {
namespace {

// Stands for every value but false, 0 and the empty text.
const char kOn[] = "true";

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::optional<double> Number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') return std::nullopt;
  return value;
}

// "on" = "true" = "1", "0.0" = "0" = "off", "FCFS" = "fcfs".
bool SameValue(std::string wanted, std::string found) {
  wanted = Lower(std::move(wanted));
  found = Lower(std::move(found));
  if (wanted == found) return true;
  if (found == "true") return wanted == "on" || wanted == "1" || wanted == "yes";
  if (found == "false") return wanted == "off" || wanted == "0" || wanted == "no";
  const std::optional<double> a = Number(wanted);
  const std::optional<double> b = Number(found);
  if (b && wanted == "true") return *b != 0;
  if (b && wanted == "false") return *b == 0;
  return a && b && *a == *b;
}

// The setting that `text` names or is a part of the name of; nullopt: none or several.
std::optional<std::string> FindKey(const std::set<std::string>& keys, const std::string& text) {
  if (text.empty()) return std::nullopt;
  if (keys.count(text) > 0) return text;
  std::optional<std::string> found;
  for (const std::string& key : keys) {
    if (key.find(text) == std::string::npos) continue;
    if (found) return std::nullopt;
    found = key;
  }
  return found;
}

bool IsValue(const std::vector<GoldenCase>& cases, const std::string& key,
             const std::string& value) {
  return std::any_of(cases.begin(), cases.end(), [&](const GoldenCase& golden) {
    const auto at = golden.settings.find(key);
    return at != golden.settings.end() && at->second == value;
  });
}

bool IsCase(const std::vector<GoldenCase>& cases, const std::string& name) {
  return IsValue(cases, "name", name) ||
         std::any_of(cases.begin(), cases.end(),
                     [&](const GoldenCase& golden) { return golden.name == name; });
}

}  // namespace

void CaseFilter::Add(const std::string& key, std::string value) {
  for (Setting& setting : settings_) {
    if (setting.key == key) return setting.values.push_back(std::move(value));
  }
  settings_.push_back({key, {std::move(value)}});
}

Result<CaseFilter> CaseFilter::Parse(const std::vector<std::string>& terms,
                                     const std::vector<GoldenCase>& cases) {
  std::set<std::string> keys;
  for (const GoldenCase& golden : cases) {
    for (const auto& [key, value] : golden.settings) keys.insert(key);
  }
  CaseFilter filter;
  Issues issues;
  for (const std::string& term : terms) {
    const std::size_t equals = term.find('=');
    if (equals != std::string::npos) {
      const std::optional<std::string> key = FindKey(keys, term.substr(0, equals));
      if (key) {
        filter.Add(*key, term.substr(equals + 1));
        continue;
      }
    } else if (IsCase(cases, term)) {
      filter.Add("name", term);
      continue;
    } else if (IsValue(cases, "policy", term)) {
      filter.Add("policy", term);
      continue;
    } else if (const std::optional<std::string> key = FindKey(keys, term)) {
      filter.Add(*key, kOn);
      continue;
    } else if (term.rfind("no_", 0) == 0) {
      if (const std::optional<std::string> negated = FindKey(keys, term.substr(3))) {
        filter.Add(*negated, "false");
        continue;
      }
    }
    issues.push_back({"--only " + term, "names no setting, or several, of these cases"});
  }
  if (!issues.empty()) return issues;
  return filter;
}

bool CaseFilter::Accepts(const GoldenCase& golden) const {
  return std::all_of(settings_.begin(), settings_.end(), [&](const Setting& setting) {
    const auto at = golden.settings.find(setting.key);
    return std::any_of(setting.values.begin(), setting.values.end(), [&](const std::string& value) {
      if (setting.key == "name" && value == golden.name) return true;
      return at != golden.settings.end() && SameValue(value, at->second);
    });
  });
}

}  // namespace servecast::testing
