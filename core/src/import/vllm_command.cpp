// Commands that start a server of vLLM: vllm serve, python -m vllm.entrypoints.openai.api_server,
// and docker run of an image of vLLM.
#include <algorithm>
#include <optional>

#include "base/text.h"
#include "import/kinds.h"

namespace servecast {
namespace {

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Of docker run, those without a value.
bool IsDockerFlag(std::string_view word) {
  static constexpr std::string_view kFlags[] = {
      "-d",         "-i",   "-t",           "-it",           "-ti",
      "-dit",       "--rm", "-itd",         "--init",        "--detach",
      "--tty",      "-P",   "--privileged", "--interactive", "--publish-all",
      "--read-only"};
  return std::find(std::begin(kFlags), std::end(kFlags), word) != std::end(kFlags);
}

// "all" is 0; "2" is 2; "device=0,1" (with quotes of its own) is 2.
std::int64_t GpusOf(std::string_view text) {
  const std::size_t device = text.find("device=");
  if (device == std::string_view::npos) return ParseCount(text).value_or(0);
  return 1 + std::count(text.begin() + static_cast<std::ptrdiff_t>(device), text.end(), ',');
}

// Behind "vllm serve" or "-m vllm.entrypoints.openai.api_server"; nullopt: none of these.
std::optional<std::size_t> ServerArguments(const CommandWords& words, std::size_t from) {
  for (std::size_t i = from; i < words.size(); ++i) {
    if (BaseName(words[i]) == "vllm" && i + 1 < words.size() && words[i + 1] == "serve")
      return i + 2;
    // A script in one word is cut again by itself.
    const bool word = words[i].find(' ') == std::string::npos;
    if (word && (Contains(words[i], "vllm.entrypoints") ||
                 Contains(words[i], "vllm/entrypoints/openai/api_server")))
      return i + 1;
  }
  return std::nullopt;
}

}  // namespace

Contained ContainedIn(const CommandWords& words) {
  static constexpr std::string_view kPrograms[] = {"docker", "podman", "nerdctl"};
  Contained found;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const bool program = std::find(std::begin(kPrograms), std::end(kPrograms),
                                   BaseName(words[i])) != std::end(kPrograms);
    if (!program || words[i + 1] != "run") continue;
    for (i += 2; i < words.size() && !words[i].empty() && words[i][0] == '-';) {
      const std::size_t equals = words[i].find('=');
      const std::string name = words[i].substr(0, equals);
      const bool alone = equals != std::string::npos || IsDockerFlag(name);
      if (name == "--gpus") {
        found.gpus = GpusOf(equals != std::string::npos ? words[i].substr(equals + 1)
                            : i + 1 < words.size()      ? words[i + 1]
                                                        : "");
      }
      i += alone ? 1 : 2;
    }
    if (i < words.size()) found.image = words[i];
    found.arguments = i + 1;
    return found;
  }
  return found;
}

bool ReadLaunches(std::span<const CommandWords> commands, const ServerContext& context,
                  Draft& draft, bool (*read)(const CommandWords&, ServerContext, Draft&)) {
  const auto is_later = [](const CommandWords& words) {
    static constexpr std::string_view kRanks[] = {
        "node-rank", "r", "data-parallel-start-rank", "dpr", "data-parallel-rank", "dpn"};
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i].empty() || words[i][0] != '-') continue;
      const std::size_t equals = words[i].find('=');
      const std::string name = PlainName(words[i].substr(0, equals));
      if (name == "headless") return true;
      const std::string value = equals != std::string::npos ? words[i].substr(equals + 1)
                                : i + 1 < words.size()      ? words[i + 1]
                                                            : "";
      const bool rank = std::find(std::begin(kRanks), std::end(kRanks), name) != std::end(kRanks);
      if (rank && NumberIn(value).value_or(0) > 0) return true;
    }
    return false;
  };
  bool any = false;
  for (const bool later : {false, true}) {
    for (const CommandWords& words : commands) {
      if (is_later(words) == later) any = read(words, context, draft) || any;
    }
  }
  return any;
}

std::optional<CommandWords> VllmArguments(const CommandWords& words) {
  const std::optional<std::size_t> begin = ServerArguments(words, 0);
  if (!begin) return std::nullopt;
  return CommandWords(words.begin() + static_cast<std::ptrdiff_t>(*begin), words.end());
}

bool ReadVllmLaunch(const CommandWords& words, ServerContext context, Draft& draft) {
  const Contained container = ContainedIn(words);
  const bool image = Contains(container.image, "vllm") || Contains(container.image, "llm-d");
  std::optional<std::size_t> begin =
      ServerArguments(words, container.image.empty() ? 0 : container.arguments);
  if (!begin && !(image && container.arguments < words.size())) return false;
  if (image && context.version.empty()) {
    context.version = VersionOfImage(container.image);
    context.image = container.image;
  }
  if (container.gpus > 0) context.gpus = container.gpus;
  if (!begin) begin = container.arguments;
  context.from =
      context.from.empty() ? (image ? "docker run of vLLM" : "a command of vLLM") : context.from;
  ReadVllmServer(std::span<const std::string>(words).subspan(*begin), context, draft);
  return true;
}

void ReadVllmCommand(const ImportSource& source, Draft& draft) {
  if (source.commands.empty()) return;
  const Variables environment = AssignedIn(source.text);
  ServerContext context;
  context.environment = &environment;
  ReadLaunches(source.commands, context, draft, ReadVllmLaunch);
}

}  // namespace servecast
