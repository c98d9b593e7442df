// Commands that start a router before servers: SGLang's (python -m sglang_router.launch_router, smg
// launch, and sglang_router.launch_server, which starts the servers, too), vLLM's, which was made
// from it (vllm-router), and production-stack's (vllm-router, python -m vllm_router.app). Names as
// docs.sglang.ai, "SGLang Router", the README of vllm-project/router, and production-stack's
// src/vllm_router/parsers have them.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/printable.h"
#include "base/text.h"
#include "import/kinds.h"
#include "import/options.h"

namespace servecast {
namespace {

using enum OptionValue;

constexpr std::string_view kRouterAlone = "the router adds no time of its own";
constexpr std::string_view kStatic = "servers are as long as the run is, unless they scale or fail";
constexpr std::string_view kStackSplit = "disaggregated_prefill";
constexpr std::string_view kUncounted = "as many servers as the texts start";

constexpr Option kRouterOptions[] = {
    {"policy", kText, {}, ""},
    {"prefill-policy", kText, {}, ""},
    {"decode-policy", kText, {}, ""},
    {"pd-disaggregation", kFlag, {}, ""},
    {"vllm-pd-disaggregation", kFlag, {}, ""},
    {"worker-urls", kWords, {}, "", {}, {}, kUncounted},
    {"cache-threshold", kNumber, {}, ""},
    {"balance-abs-threshold", kNumber, {}, ""},
    {"balance-rel-threshold", kNumber, {}, ""},
    {"max-tree-size", kNumber, {}, ""},
    {"eviction-interval-secs", kNumber, {}, ""},
    {"eviction-interval", kNumber, {}, ""},
    {"prefill", kWords, {}, "", {}, {}, kUncounted},
    {"decode", kWords, {}, "", {}, {}, kUncounted},
    {"intra-node-data-parallel-size", kCount, {}, "", {}, {}, "as many ranks as the servers say"},
    {"routing-logic", kText, {}, ""},
    {"kv-aware-threshold", kNumber, {}, ""},
    {"static-backends", kText, {}, "", {}, {}, kUncounted},
    {"static-model-labels", kText, {}, ""},
    {"prefill-model-labels", kText, {}, ""},
    {"decode-model-labels", kText, {}, ""},
    {"static-models", kText, {}, "a scenario has one model"},
    {"dp-aware", kFlag, {}, "ranks of a server are replicas behind the router here"},
    {"service-discovery", kText, {}, kStatic},
    {"session-key", kText, {}, "a session is a conversation of the workload"},
    {"max-concurrent-requests", kCount, {}, kNotModelled},
    {"queue-size", kCount, {}, kNotModelled},
    {"request-timeout-secs", kNumber, {}, kNotModelled},
    {"host", kText, {}, kRouterAlone},
    {"port", kText, {}, kRouterAlone},
    {"log-level", kText, {}, kRouterAlone},
};

// Options that are read apart are those without a reason.
std::vector<std::string_view> RouterApart() {
  std::vector<std::string_view> apart;
  for (const Option& option : kRouterOptions) {
    if (option.why.empty()) apart.push_back(option.name);
  }
  return apart;
}

enum class RouterProgram { kSglang, kVllm, kStack };
struct RouterCommand {
  RouterProgram program;
  CommandWords words;  // behind the command
};

// vllm-router is vLLM's or production-stack's; the latter finds its servers by other options.
RouterProgram ProgramNamed(std::string_view name, const CommandWords& words) {
  if (name == "vllm_router.app" || name == "lmstack-router") return RouterProgram::kStack;
  if (name != "vllm-router") return RouterProgram::kSglang;
  static constexpr std::string_view kOfStack[] = {"--routing-logic", "--static-backends",
                                                  "--service-discovery"};
  const bool stack = std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return std::any_of(std::begin(kOfStack), std::end(kOfStack),
                       [&word](std::string_view option) { return word.rfind(option, 0) == 0; });
  });
  return stack ? RouterProgram::kStack : RouterProgram::kVllm;
}

// Whether the word at `i` is a program, a module or an image that is a router; its name.
std::string_view RouterNameAt(const CommandWords& words, std::size_t i) {
  static constexpr std::string_view kModules[] = {"sglang_router.launch_router", "sglang_router",
                                                  "vllm_router.app"};
  static constexpr std::string_view kPrograms[] = {
      "smg", "sglang-router", "vllm-router", "sgl-router", "sgl-model-gateway", "lmstack-router"};
  const auto among = [](const auto& names, std::string_view name) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  const bool module = i > 0 && words[i - 1] == "-m";
  std::string_view name = module ? std::string_view(words[i]) : BaseName(words[i]);
  name = name.substr(0, name.find(':'));  // without the tag of an image
  return (module ? among(kModules, name) : among(kPrograms, name)) ? name : std::string_view();
}

// nullopt: it starts no router. Behind an image may stand the program.
std::optional<RouterCommand> RouterIn(const CommandWords& words) {
  std::optional<RouterCommand> found;
  const Contained container = ContainedIn(words);
  for (std::size_t i = container.image.empty() ? 0 : container.arguments - 1; i < words.size();
       ++i) {
    const auto behind = words.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    if (words[i] == kRoutedServer && i > 0 && words[i - 1] == "-m") {
      return RouterCommand{RouterProgram::kSglang,
                           RoutedWordsIn(CommandWords(behind, words.end())).router};
    }
    static constexpr std::string_view kNoStart[] = {"install", "pull", "build", "clone"};
    if (std::find(std::begin(kNoStart), std::end(kNoStart), words[i]) != std::end(kNoStart)) break;
    const std::string_view name = RouterNameAt(words, i);
    if (name.empty()) continue;
    const bool launch = behind != words.end() && (*behind == "launch" || *behind == "start");
    CommandWords rest(launch ? behind + 1 : behind, words.end());
    const RouterProgram program = ProgramNamed(name, rest);
    found = RouterCommand{program, std::move(rest)};
  }
  return found;
}

// Numbers of the policy cache_aware, by our names.
constexpr std::pair<std::string_view, std::string_view> kCacheAware[] = {
    {"cache-threshold", "cache_threshold"},
    {"balance-abs-threshold", "balance_abs_threshold"},
    {"balance-rel-threshold", "balance_rel_threshold"},
    {"max-tree-size", "max_tree_size"},
    {"eviction-interval", "eviction_interval_s"},
    {"eviction-interval-secs", "eviction_interval_s"}};

void TakeCacheAware(const std::string& path, const GivenOptions& given, Draft& draft) {
  for (const auto& [theirs, ours] : kCacheAware) {
    const auto number = given.Number(theirs);
    if (number) draft.Take(path + std::string(ours), NumberJson(*number), Format("--{}", theirs));
  }
}

// `of`: "router" or "decode_router".
void TakeSglangPolicy(const std::string& policy, std::string_view of, std::string_view option,
                      bool vllm, const GivenOptions& given, Draft& draft) {
  static constexpr std::string_view kSame[] = {"cache_aware", "round_robin", "random",
                                               "power_of_two"};
  const std::string path = Format("cluster.{}.", of);
  const std::string words = Format("--{} {}", option, ShownText(policy, 40));
  if (vllm && policy == "consistent_hash") {
    return draft.Take(path + "policy", "session_affinity", words);
  }
  if (std::find(std::begin(kSame), std::end(kSame), policy) == std::end(kSame)) {
    return draft.Warn(
        words +
        " is no router that is modelled: the router stays as in the scenario to begin with");
  }
  draft.Take(path + "policy", policy, words);
  if (policy == "cache_aware") TakeCacheAware(path, given, draft);
}

// Servers by an option that is given once for each, or once with all of them behind it.
std::int64_t UrlsOf(std::string_view name, const GivenOptions& given) {
  std::int64_t times = 0, urls = 0;
  for (const GivenOption& each : given.options) {
    if (each.option == nullptr || each.option->name != name) continue;
    ++times;
    urls += std::count_if(each.all.begin(), each.all.end(), [](const std::string& word) {
      return word.find("://") != std::string::npos;
    });
  }
  return std::max(times, urls);  // a word may be the port that a server for prefill listens on
}

void ReadSglangRouter(const GivenOptions& given, bool vllm, Draft& draft) {
  draft.Found(vllm ? "vLLM's router" : "SGLang's router");
  const auto policy_of = [&](std::string_view option, std::string_view of) {
    std::string name(option);
    std::string policy = given.Text(name);
    if (policy.empty()) policy = given.Text(name = "policy");
    if (!policy.empty()) return TakeSglangPolicy(policy, of, name, vllm, given, draft);
    const std::string path = Format("cluster.{}.policy", of);
    const auto* said = draft.Find(path);
    if (said != nullptr && *said == "vllm_dp") draft.Drop(path);
    draft.Assume(path, "cache_aware", "the default of SGLang's router, and of those made from it");
    TakeCacheAware(Format("cluster.{}.", of), given, draft);
  };
  const char* option = vllm ? "vllm-pd-disaggregation" : "pd-disaggregation";
  const GivenOption* apart = given.Find(option);
  if (apart == nullptr && vllm) apart = given.Find(option = "pd-disaggregation");
  policy_of(apart != nullptr ? "prefill-policy" : "policy", "router");
  const std::int64_t ranks = static_cast<std::int64_t>(
      std::clamp(given.Number("intra-node-data-parallel-size").value_or(1), 1.0, 1024.0));
  if (const GivenOption* urls = given.Find("worker-urls"); urls != nullptr) {
    draft.TakeWorkers("", static_cast<std::int64_t>(urls->all.size()), ranks, "--worker-urls");
  }
  if (apart != nullptr) {
    policy_of("decode-policy", "decode_router");
    draft.TakeSplit(Format("--{}", option));
    draft.TakeWorkers("prefill", UrlsOf("prefill", given), ranks, "--prefill");
    draft.TakeWorkers("decode", UrlsOf("decode", given), ranks, "--decode");
  }
}

CommandWords ListOf(const std::string& text) {
  CommandWords list;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    list.emplace_back(Stripped(std::string_view(text).substr(at, end - at)));
    at = end + 1;
  }
  return list;
}

void ReadStackRouter(const GivenOptions& given, Draft& draft) {
  draft.Found("production-stack's router");
  const std::string logic = given.Text("routing-logic");
  TakeStackRouter(logic, given.Number("kv-aware-threshold"), draft);
  const auto servers = static_cast<std::int64_t>(ListOf(given.Text("static-backends")).size());
  if (logic != kStackSplit) {
    draft.TakeWorkers("", servers, 1, "--static-backends");
  }
  const CommandWords labels = ListOf(given.Text("static-model-labels"));
  for (const char* role : {"prefill", "decode"}) {
    const std::string option = Format("{}-model-labels", role);
    const CommandWords own = ListOf(given.Text(option));
    const auto count = std::count_if(labels.begin(), labels.end(), [&own](const auto& label) {
      return std::find(own.begin(), own.end(), label) != own.end();
    });
    if (logic == kStackSplit) {
      draft.TakeWorkers(role, count, 1, Format("--static-model-labels, --{}", option));
    }
  }
}

void ReadRouter(const RouterCommand& command, Draft& draft) {
  ReadNamingIdle(ReadOptions(command.words, kRouterOptions), draft,
                 [&command](GivenOptions given, Draft& into) {
                   given.LeaveUnread(0, false, into);
                   TakeOptions(given, RouterApart(), into);
                   if (command.program == RouterProgram::kStack)
                     return ReadStackRouter(given, into);
                   ReadSglangRouter(given, command.program == RouterProgram::kVllm, into);
                 });
}

}  // namespace

void TakeStackRouter(const std::string& logic, std::optional<double> threshold, Draft& draft) {
  constexpr std::pair<std::string_view, std::string_view> kRouters[] = {
      {"roundrobin", "round_robin"},
      {"session", "session_affinity"},
      {"kvaware", "kv_lookup"},
      {"prefixaware", "prefix_aware"}};
  if (logic.empty()) return;
  if (logic == kStackSplit) return draft.TakeSplit("routing logic " + logic);
  for (const auto& [name, router] : kRouters) {
    if (name != logic) continue;
    draft.Take("cluster.router.policy", router, "routing logic " + logic);
    if (logic == "kvaware" && threshold) {
      draft.Take("cluster.router.kv_aware_threshold", NumberJson(*threshold),
                 "--kv-aware-threshold");
    }
    return;
  }
  draft.Warn(
      Format("routing logic {} is no router that is modelled: the router stays as in the "
             "scenario to begin with",
             ShownText(logic, 40)));
}

std::span<const Option> RouterOptions() { return kRouterOptions; }

RoutedWords RoutedWordsIn(std::span<const std::string> words) {
  RoutedWords found;
  bool of_router = false;
  for (const std::string& word : words) {
    const bool option = word.rfind("--", 0) == 0;
    if (option) of_router = word.rfind("--router-", 0) == 0;
    (of_router ? found.router : found.server)
        .push_back(option && of_router ? "--" + word.substr(9) : word);
  }
  return found;
}

bool StartsRouter(const CommandWords& words) { return RouterIn(words).has_value(); }

void ReadRouterCommand(const ImportSource& source, Draft& draft) {
  for (const CommandWords& words : source.commands) {
    if (std::optional<RouterCommand> command = RouterIn(words)) ReadRouter(*command, draft);
  }
}

}  // namespace servecast
