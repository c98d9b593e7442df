// Commands that start a router before servers: SGLang's (python -m sglang_router.launch_router, smg
// launch, and sglang_router.launch_server, which starts the servers, too) and production-stack's
// (vllm-router, python -m vllm_router.app). Names as docs.sglang.ai, "SGLang Router", and
// production-stack's src/vllm_router/parsers have them.
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

constexpr Option kRouterOptions[] = {
    {"policy", kText, {}, ""},
    {"prefill-policy", kText, {}, ""},
    {"decode-policy", kText, {}, ""},
    {"pd-disaggregation", kFlag, {}, ""},
    {"worker-urls", kWords, {}, ""},
    {"cache-threshold", kNumber, {}, ""},
    {"balance-abs-threshold", kNumber, {}, ""},
    {"balance-rel-threshold", kNumber, {}, ""},
    {"max-tree-size", kNumber, {}, ""},
    {"eviction-interval-secs", kNumber, {}, ""},
    {"eviction-interval", kNumber, {}, ""},
    {"prefill", kWords, {}, ""},
    {"decode", kWords, {}, ""},
    {"routing-logic", kText, {}, ""},
    {"kv-aware-threshold", kNumber, {}, ""},
    {"static-backends", kText, {}, ""},
    {"session-key", kText, {}, "a session is a conversation of the workload"},
    {"max-concurrent-requests", kCount, {}, kNotModelled},
    {"queue-size", kCount, {}, kNotModelled},
    {"request-timeout-secs", kNumber, {}, kNotModelled},
    {"host", kText, {}, kRouterAlone},
    {"port", kText, {}, kRouterAlone},
};

constexpr std::string_view kRouterApart[] = {
    "policy",        "prefill-policy",    "decode-policy",          "pd-disaggregation",
    "worker-urls",   "cache-threshold",   "balance-abs-threshold",  "balance-rel-threshold",
    "max-tree-size", "eviction-interval", "eviction-interval-secs", "prefill",
    "decode",        "routing-logic",     "kv-aware-threshold",     "static-backends"};

// Words behind the command; nullopt: it starts no router.
std::optional<CommandWords> RouterArguments(const CommandWords& words) {
  static constexpr std::string_view kModules[] = {"sglang_router.launch_router", "sglang_router",
                                                  "vllm_router.app"};
  static constexpr std::string_view kPrograms[] = {"smg", "sglang-router", "vllm-router"};
  const auto among = [](const auto& names, std::string_view name) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool module = i > 0 && words[i - 1] == "-m";
    if (module && words[i] == "sglang_router.launch_server") {
      CommandWords of_router;
      for (std::size_t k = i + 1; k < words.size(); ++k) {
        if (words[k].rfind("--router-", 0) != 0) continue;
        of_router.push_back("--" + words[k].substr(9));
        const bool value = k + 1 < words.size() && words[k + 1].rfind("--", 0) != 0;
        if (value) of_router.push_back(words[k + 1]);
      }
      return of_router;
    }
    if (!among(kPrograms, BaseName(words[i])) && !(module && among(kModules, words[i]))) continue;
    const auto begin = words.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    const bool launch = begin != words.end() && (*begin == "launch" || *begin == "start");
    return CommandWords(launch ? begin + 1 : begin, words.end());
  }
  return std::nullopt;
}

// `of`: "router" or "decode_router".
void TakeSglangPolicy(const std::string& policy, std::string_view of, std::string_view option,
                      const GivenOptions& given, Draft& draft) {
  static constexpr std::string_view kSame[] = {"cache_aware", "round_robin", "random",
                                               "power_of_two"};
  const std::string path = Format("cluster.{}.", of);
  const std::string words = Format("--{} {}", option, ShownText(policy, 40));
  if (std::find(std::begin(kSame), std::end(kSame), policy) == std::end(kSame)) {
    return draft.Warn(
        words +
        " is no router that is modelled: the router stays as in the scenario to begin with");
  }
  draft.Take(path + "policy", policy, words);
  if (policy != "cache_aware") return;
  static constexpr std::pair<std::string_view, std::string_view> kNumbers[] = {
      {"cache-threshold", "cache_threshold"},
      {"balance-abs-threshold", "balance_abs_threshold"},
      {"balance-rel-threshold", "balance_rel_threshold"},
      {"max-tree-size", "max_tree_size"},
      {"eviction-interval", "eviction_interval_s"},
      {"eviction-interval-secs", "eviction_interval_s"}};
  for (const auto& [theirs, ours] : kNumbers) {
    const auto number = given.Number(theirs);
    if (number) draft.Take(path + std::string(ours), NumberJson(*number), Format("--{}", theirs));
  }
}

// A router before one server that several workers are started as.
void TakeWorkers(std::int64_t workers, std::string_view option, Draft& draft) {
  const auto* said = draft.Find("cluster.pools.0.replicas");
  const bool one = draft.servers() == 1 && (said == nullptr || *said == 1);
  if (workers > 1 && workers <= 1024 && one) {
    draft.Take("cluster.pools.0.replicas", workers, Format("{} of --{}", workers, option));
  }
}

void ReadSglangRouter(const GivenOptions& given, Draft& draft) {
  draft.Found("SGLang's router");
  const auto policy_of = [&](std::string_view option, std::string_view of) {
    std::string name(option);
    std::string policy = given.Text(name);
    if (policy.empty()) policy = given.Text(name = "policy");
    if (policy.empty()) {
      return draft.Assume(Format("cluster.{}.policy", of), "cache_aware",
                          "the default of SGLang's router");
    }
    TakeSglangPolicy(policy, of, name, given, draft);
  };
  const bool apart = given.Find("pd-disaggregation") != nullptr;
  policy_of(apart ? "prefill-policy" : "policy", "router");
  if (apart) policy_of("decode-policy", "decode_router");
  if (const GivenOption* workers = given.Find("worker-urls"); workers != nullptr) {
    TakeWorkers(static_cast<std::int64_t>(workers->all.size()), "worker-urls", draft);
  }
}

void ReadStackRouter(const GivenOptions& given, Draft& draft) {
  draft.Found("production-stack's router");
  TakeStackRouter(given.Text("routing-logic"), given.Number("kv-aware-threshold"), draft);
  const std::string urls = given.Text("static-backends");
  if (!urls.empty()) {
    TakeWorkers(1 + std::count(urls.begin(), urls.end(), ','), "static-backends", draft);
  }
}

}  // namespace

void TakeStackRouter(const std::string& logic, std::optional<double> threshold, Draft& draft) {
  constexpr std::pair<std::string_view, std::string_view> kRouters[] = {
      {"roundrobin", "round_robin"},
      {"session", "session_affinity"},
      {"kvaware", "kv_lookup"},
      {"prefixaware", "prefix_aware"}};
  if (logic.empty() || logic == "disaggregated_prefill") return;
  for (const auto& [name, router] : kRouters) {
    if (name != logic) continue;
    draft.Take("cluster.router.policy", router, "routing logic " + logic);
    if (logic == "kvaware" && threshold) {
      draft.Take("cluster.router.kv_aware_threshold", NumberJson(*threshold),
                 "--kv-aware-threshold");
    }
    return;
  }
  draft.Ignore("routing logic " + ShownText(logic, 40), "is no router that is modelled");
}

void ReadRouterCommand(const ImportSource& source, Draft& draft) {
  for (const CommandWords& words : source.commands) {
    const std::optional<CommandWords> arguments = RouterArguments(words);
    if (!arguments) continue;
    const GivenOptions given = ReadOptions(*arguments, kRouterOptions);
    TakeOptions(given, kRouterApart, draft);
    if (given.Find("routing-logic") != nullptr) {
      ReadStackRouter(given, draft);
    } else {
      ReadSglangRouter(given, draft);
    }
  }
}

}  // namespace servecast
