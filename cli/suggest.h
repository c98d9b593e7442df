// What somebody meant by a word that is close to what there is: members of a scenario, presets.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "servecast/result.h"

namespace servecast {

// A member of a scenario as --set has it: "slo.0.limit_ms" for the members of every element.
struct Member {
  std::string path;
  std::vector<std::string> choices;  // of a choice
};
// "/slo/-/limit_ms" of the catalogue as such a path.
std::string SetPath(const std::string& pointer);
// All of them, from the catalogue. O(the catalogue): 0.5 MB of JSON.
std::vector<Member> Members();

// The ids of all presets of one kind ("scenarios", "models", "hardware", "engines", "workloads").
std::vector<std::string> PresetIds(const std::string& kind);

// An issue of a "path=value" that names a member or a preset in another way than scenarios do, with
// what is meant: "rate=5", "hardware.preset=H100". nullopt where nothing is known of it.
std::optional<Issue> Suggestion(const std::string& change);

}  // namespace servecast
