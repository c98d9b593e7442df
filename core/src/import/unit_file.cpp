// Files that start a container or a program: a Dockerfile, a unit of systemd, Podman's quadlet.
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/text.h"
#include "import/json_members.h"
#include "import/kinds.h"
#include "import/pod.h"
#include "io/json_document.h"

namespace servecast {
namespace {

using UnitJson = nlohmann::json;

// Lines with those that they go on in, without comments.
std::vector<std::string> WholeLines(std::string_view text) {
  std::vector<std::string> whole;
  bool open = false;
  for (const std::string_view line : LinesIn(text)) {
    std::string_view bare = Stripped(line);
    if (bare.empty() || bare[0] == '#') continue;
    const bool more = bare.back() == '\\';
    if (more) bare.remove_suffix(1);
    if (open) {
      whole.back() += " ";
      whole.back() += bare;
    } else {
      whole.emplace_back(bare);
    }
    open = more;
  }
  return whole;
}

bool IsList(std::string_view text) { return !text.empty() && text[0] == '['; }

// ["vllm", "serve"] as it is; anything else as a shell cuts it.
UnitJson WordsOfLine(std::string_view text) {
  if (IsList(text)) {
    Result<UnitJson> list = ParseJson(text);
    if (list.ok()) return std::move(list.value());
  }
  return WordsIn(UnitJson{{"words", std::string(text)}}, "words");
}

void AddVariables(std::string_view text, UnitJson& container) {
  for (const auto& [name, value] : AssignedIn("export " + std::string(text))) {
    container["env"].push_back({{"name", name}, {"value", value}});
  }
}

// What Docker runs: a list as it is, anything else by a shell, which knows ENV.
UnitJson WordsOfDocker(std::string_view text) {
  if (IsList(text)) return WordsOfLine(text);
  return UnitJson::array({"/bin/sh", "-c", std::string(text)});
}

// FROM, ENV, ENTRYPOINT and CMD; of several stages the last counts.
UnitJson ContainerOfDockerfile(std::string_view text) {
  UnitJson container = UnitJson::object();
  bool shell = false;
  for (const std::string& line : WholeLines(text)) {
    const std::size_t blank = std::min(line.find_first_of(" \t"), line.size());
    const std::string word = line.substr(0, blank);
    const std::string rest(Stripped(std::string_view(line).substr(blank)));
    if (word == "FROM") container = {{"image", rest.substr(0, rest.find(' '))}};
    if (word == "ENTRYPOINT") container["command"] = WordsOfDocker(rest);
    if (word == "CMD") container["args"] = WordsOfDocker(rest), shell = !IsList(rest);
    if (word == "ENV") AddVariables(rest, container);
  }
  // "ENTRYPOINT []" leaves that of the image out.
  const bool none = container.contains("command") ? container["command"].empty() : shell;
  if (none && container.contains("args")) container["command"] = std::move(container["args"]);
  if (none) container.erase("args");
  return container;
}

// Image=, Exec= and Environment= of a quadlet's [Container].
UnitJson ContainerOfQuadlet(const std::vector<std::string>& lines) {
  UnitJson container = UnitJson::object();
  for (const std::string& line : lines) {
    const std::size_t equals = std::min(line.find('='), line.size());
    const std::string name = line.substr(0, equals);
    const std::string rest = line.substr(std::min(equals + 1, line.size()));
    if (name == "Image") container["image"] = rest;
    if (name == "Exec") container["args"] = WordsOfLine(rest);
    if (name == "Environment") AddVariables(rest, container);
  }
  return container;
}

void ReadService(const std::vector<std::string>& lines, Draft& draft) {
  Variables environment;
  for (const std::string& line : lines) {
    if (line.find("Environment=") != 0) continue;
    for (auto& [name, value] : AssignedIn("export " + line.substr(12))) environment[name] = value;
  }
  ServerContext context;
  context.environment = &environment;
  for (const std::string& line : lines) {
    if (line.find("ExecStart=") != 0) continue;
    const std::vector<CommandWords> commands = CommandsIn(line.substr(10), environment);
    for (const auto read : {ReadSglangLaunch, ReadTrtllmLaunch, ReadVllmLaunch}) {
      if (ReadLaunches(commands, context, draft, read)) break;
    }
    ImportSource others;
    others.commands = commands;
    for (const ImportReader read : {ReadRouterCommand, ReadBenchCommand, ReadBenchPrograms}) {
      read(others, draft);
    }
  }
}

}  // namespace

bool MayBeUnitFile(std::string_view text) {
  const bool starts = text.find("\nCMD") != std::string_view::npos ||
                      text.find("\nENTRYPOINT") != std::string_view::npos;
  for (const std::string_view line : LinesIn(text.substr(0, 20'000))) {
    const std::string_view bare = Stripped(line);
    if (bare.empty() || bare[0] == '#') continue;
    if (bare == "[Container]" || bare == "[Service]") return true;
    if (bare.substr(0, 5) == "FROM " || bare.substr(0, 4) == "ARG ") return starts;
    if (bare[0] != '[' && bare.find('=') == std::string_view::npos) return false;
  }
  return false;
}

void ReadUnitFile(const ImportSource& source, Draft& draft) {
  if (source.json != nullptr || draft.servers() > 0) return;
  const std::string_view text = source.text;
  PodContext context;
  if (text.find("[Container]") != std::string_view::npos) {
    context.server.from = "a quadlet of Podman";
    ReadContainer(ContainerOfQuadlet(WholeLines(text)), context, draft);
  } else if (text.find("[Service]") != std::string_view::npos) {
    ReadService(WholeLines(text), draft);
  } else if (text.find("FROM ") != std::string_view::npos) {
    context.server.from = "a Dockerfile";
    ReadContainer(ContainerOfDockerfile(text), context, draft);
  }
}

}  // namespace servecast
