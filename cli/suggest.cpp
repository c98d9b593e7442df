// See suggest.h.
#include "suggest.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/printable.h"
#include "import/names.h"
#include "servecast/scenario.h"
#include "text/view.h"

namespace servecast {
namespace {

const ParsedAnswer& Catalogue() {
  static const ParsedAnswer catalogue{CommandCatalogJson()};
  return catalogue;
}

// Members whose own name is `word`, or begins with it: "rate" is "workload.arrivals.rate_per_s".
std::vector<std::string> MembersNamed(const std::string& word) {
  std::vector<std::string> same, longer;
  for (const Member& member : Members()) {
    const std::string name = member.path.substr(member.path.rfind('.') + 1);
    if (name == word) same.push_back(member.path);
    if (name.rfind(word + "_", 0) == 0) longer.push_back(member.path);
  }
  same.insert(same.end(), longer.begin(), longer.end());
  constexpr std::size_t kMostNamed = 3;
  if (same.size() > kMostNamed) same.resize(kMostNamed);
  return same;
}

std::optional<Issue> MemberMeant(const std::string& word) {
  const std::vector<Member> members = Members();
  const bool is = std::any_of(members.begin(), members.end(), [&word](const Member& member) {
    return member.path.substr(0, member.path.find('.')) == word;
  });
  if (is || word == "schema" || word == "calibration") return std::nullopt;
  std::string meant;
  for (const std::string& path : MembersNamed(word)) meant += (meant.empty() ? "" : ", ") + path;
  if (meant.empty()) return std::nullopt;
  return Issue{"/" + word, "unknown key; did you mean " + meant + "?"};
}

std::optional<Issue> PresetMeant(const std::string& path, const std::string& name) {
  const bool model = path == "model.preset";
  if (!model && path != "hardware.preset") return std::nullopt;
  const std::vector<std::string> ids = PresetIds(model ? "models" : "hardware");
  if (std::find(ids.begin(), ids.end(), name) != ids.end()) return std::nullopt;
  const std::string meant = model ? ModelPresetOf(name) : HardwarePresetOf(name);
  if (meant.empty()) return std::nullopt;
  return Issue{model ? "/model/preset" : "/hardware/preset",
               fmt::format("found \"{}\"; did you mean \"{}\"?", name, meant)};
}

}  // namespace

std::string SetPath(const std::string& pointer) {
  std::string path;
  for (const char c : pointer.substr(1)) path += c == '/' ? '.' : c == '-' ? '0' : c;
  return path;
}

std::vector<Member> Members() {
  std::vector<Member> members;
  for (const View field : Catalogue().root()["fields"].Elements()) {
    Member& member = members.emplace_back();
    member.path = SetPath(field["path"].Words());
    for (const char* of : {"choices", "others"}) {
      for (const View choice : field[of].Elements()) member.choices.push_back(choice.Plain());
    }
  }
  return members;
}

std::vector<std::string> PresetIds(const std::string& kind) {
  std::vector<std::string> ids;
  for (const View preset : Catalogue().root()["presets"][kind].Elements()) {
    ids.push_back(preset["id"].Words());
  }
  return ids;
}

std::optional<Issue> Suggestion(const std::string& change) {
  const std::size_t equals = change.find('=');
  if (equals == std::string::npos) return std::nullopt;
  const std::string path = change.substr(0, equals);
  if (path.find('.') == std::string::npos) return MemberMeant(path);
  return PresetMeant(path, change.substr(equals + 1));
}

}  // namespace servecast
