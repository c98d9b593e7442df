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
    const bool worker = words[i] == "dynamo.vllm" && i > 0 && words[i - 1] == "-m";
    if (word && (worker || Contains(words[i], "vllm.entrypoints") ||
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
      const std::string_view value = equals != std::string::npos
                                         ? std::string_view(words[i]).substr(equals + 1)
                                     : i + 1 < words.size() ? std::string_view(words[i + 1])
                                                            : "";
      if (name == "--entrypoint") found.entrypoint = value;
      if (name == "-p" || name == "--publish") found.port = value.substr(0, value.find(':'));
      i += alone ? 1 : 2;
    }
    if (i < words.size()) found.image = words[i];
    found.arguments = i + 1;
    return found;
  }
  return found;
}

namespace {

constexpr std::size_t kMostCompared = 16;  // servers; more are a fleet

// Commands that start different servers on one port of one machine are alternatives of a guide: the
// first is meant until somebody says another one. Equal ones are replicas, and so are those with
// roles.
class Alternatives {
 public:
  using Read = bool (*)(const CommandWords&, ServerContext, Draft&);
  Alternatives(const ServerContext& context, Read read) : context_(context), read_(read) {}

  bool Skip(const CommandWords& words) {
    Draft alone;
    if (!read_(words, context_, alone) || alone.Find("cluster.pools.0.role") != nullptr) {
      return false;
    }
    const std::string place = PlaceOf(words);
    for (const auto& [where, server] : first_) {
      if (where != place) continue;
      if (server.SaysTheSame(alone)) return false;
      ++skipped_;
      return true;
    }
    first_.emplace_back(place, std::move(alone));
    return false;
  }

  void Say(Draft& draft) const {
    if (skipped_ == 0) return;
    draft.Warn(
        Format("{} more command{} start{} another server on the same port: taken as alternatives, "
               "of which the first counts; paste the one that is meant",
               skipped_, skipped_ == 1 ? "" : "s", skipped_ == 1 ? "s" : ""));
  }

 private:
  // The machine, where ssh names one, the GPUs and the port.
  static std::string PlaceOf(const CommandWords& words) {
    std::string place(ContainedIn(words).port);
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      const std::size_t equals = words[i].find('=');
      const std::string name = words[i].substr(0, equals);
      const std::string& value = equals == std::string::npos ? words[i + 1] : words[i];
      if (name == "--port" || name == "--host" || name == "CUDA_VISIBLE_DEVICES" || name == "ssh") {
        place += " " + value;
      }
    }
    return place;
  }

  const ServerContext& context_;
  Read read_;
  std::vector<std::pair<std::string, Draft>> first_;
  std::size_t skipped_ = 0;
};

}  // namespace

namespace {

// GPUs of its machine that a command says, "--gpus device=0" or CUDA_VISIBLE_DEVICES=0 before it;
// none of another machine.
std::vector<std::string> DevicesOfCommand(const CommandWords& words) {
  std::vector<std::string> devices;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (BaseName(words[i]) == "ssh" || BaseName(words[i]) == "srun") return {};
    constexpr std::string_view kVariable = "CUDA_VISIBLE_DEVICES=";
    if (words[i].find(kVariable) == 0 && devices.empty()) {
      devices = DevicesIn(std::string_view(words[i]).substr(kVariable.size()));
    }
    const bool gpus = words[i].find("device=") != std::string::npos &&
                      (words[i].find("--gpus=") == 0 || (i > 0 && words[i - 1] == "--gpus"));
    if (gpus) return DevicesIn(words[i]);
  }
  return devices;
}

}  // namespace

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
  Alternatives alternatives(context, read);
  for (const bool later : {false, true}) {
    for (const CommandWords& words : commands) {
      if (is_later(words) != later) continue;
      if (!later && draft.servers() < kMostCompared && alternatives.Skip(words)) continue;
      const std::size_t before = draft.servers();
      any = read(words, context, draft) || any;
      if (draft.servers() == before || later) continue;
      draft.TakeDevices(Format("server {}", draft.servers()), DevicesOfCommand(words));
    }
  }
  alternatives.Say(draft);
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
  if (!begin && StartsRouter(words)) return false;
  if (image && context.version.empty()) {
    context.version = VersionOfImage(container.image);
    context.image = container.image;
  }
  if (container.gpus > 0) context.gpus = container.gpus;
  if (!begin) begin = container.arguments;
  // "--entrypoint vllm IMAGE serve MODEL".
  const bool serves =
      BaseName(container.entrypoint) == "vllm" && *begin < words.size() && words[*begin] == "serve";
  if (serves) ++*begin;
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
