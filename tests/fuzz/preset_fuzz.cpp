// Fuzz target: presets by name, and members laid over them. The first line is "SECTION ID", the
// rest is the section's other members, as JSON would have them after a comma.
#include <algorithm>
#include <string>

#include "base/base.h"
#include "fuzz/inputs.h"

namespace servecast::fuzz {
namespace {

constexpr const char* kSections[][2] = {
    {"model", "llama-3.1-8b"}, {"hardware", "h100-sxm"}, {"engine", "vllm"}, {"workload", "chat"}};

void ReadPreset(std::string_view input) {
  const std::size_t line = std::min(input.find('\n'), input.size());
  const std::string_view head = input.substr(0, line);
  const std::string members(input.substr(std::min(line + 1, input.size())));
  const std::size_t space = std::min(head.find(' '), head.size());
  const std::string_view named = head.substr(0, space);
  const std::string id(head.substr(std::min(space + 1, head.size())));

  std::string document = "{\"schema\": 1";
  for (const auto& [section, usual] : kSections) {
    document += std::string(", \"") + section + "\": {\"preset\": \"";
    document += named == section ? id + "\"" + (members.empty() ? "" : ", ") + members
                                 : usual + std::string("\"");
    document += "}";
  }
  CheckRead(ParseScenario(document + "}"));

  const auto preset = ScenarioPreset(id);
  if (preset) {
    const Result<Scenario> scenario = ParseScenario(*preset);
    SERVECAST_CHECK(scenario.ok(), "a preset is a scenario");
    SERVECAST_CHECK(NearestScenarioPreset(id) == id, "a preset is the nearest to itself");
  } else {
    const std::string nearest = NearestScenarioPreset(id);
    SERVECAST_CHECK(nearest.empty() || ScenarioPreset(nearest), "the nearest preset is one");
  }
}

}  // namespace
}  // namespace servecast::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  servecast::fuzz::ReadPreset(servecast::fuzz::TextOf(data, size));
  return 0;
}
