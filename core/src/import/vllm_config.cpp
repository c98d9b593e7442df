// The file of `vllm serve --config`: options by their names, at the top of a YAML document.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "import/json_members.h"
#include "import/kinds.h"
#include "import/member_options.h"

namespace servecast {
namespace {

using ConfigJson = nlohmann::json;

bool IsOptionOfVllm(const std::string& member) {
  std::string name = OptionName(member);
  if (name.substr(0, 3) == "no-") name.erase(0, 3);
  const std::span<const Option> options = VllmOptions();
  return std::any_of(options.begin(), options.end(),
                     [&name](const Option& option) { return option.name == name; });
}

// Members that no other YAML has: "port" and "model" alone are anybody's.
bool IsTelling(const std::string& member) {
  return IsOptionOfVllm(member) && member.find_first_of("-_") != std::string::npos;
}

bool IsVllmConfig(const ConfigJson& document) {
  if (!document.is_object() || document.contains("kind") || document.contains("services")) {
    return false;
  }
  std::size_t telling = 0, others = 0;
  for (const auto& [member, value] : document.items()) {
    telling += IsTelling(member) ? 1 : 0;
    others += IsOptionOfVllm(member) ? 0 : 1;
  }
  const bool model = document.contains("model") || document.contains("model_tag");
  return telling + (model ? 1 : 0) >= 2 && others <= telling;
}

}  // namespace

bool MayBeVllmConfig(std::string_view text) {
  std::size_t telling = 0, lines = 0;
  for (const std::string_view line : LinesIn(text.substr(0, 20'000))) {
    if (line[0] == ' ' || line[0] == '\t' || line[0] == '#' || line[0] == '-') continue;
    const std::size_t end = line.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_");
    if (end == 0 || end == std::string_view::npos || line[end] != ':') return false;
    const std::string member(line.substr(0, end));
    telling += IsTelling(member) || member == "model" ? 1 : 0;
    ++lines;
  }
  return telling >= 2 && lines >= 2;
}

void ReadVllmConfig(const ImportSource& source, Draft& draft) {
  for (const ConfigJson& document : source.manifests) {
    if (!IsVllmConfig(document)) continue;
    ServerContext context;
    context.from = "a config file of vLLM";
    ReadVllmServer(OptionWords(document), context, draft);
  }
}

}  // namespace servecast
