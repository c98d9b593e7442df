// The command: which subcommand, and its help.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.h"
#include "base/text.h"
#include "commands.h"
#include "host/process.h"
#include "servecast/report.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

constexpr const char* kOverview =
    "servecast - forecast how an LLM serving deployment behaves\n"
    "\n"
    "  servecast run FILE|PRESET [options]   simulate; summary JSON on stdout\n"
    "  servecast compare FILE|PRESET --with path=value   the same requests under other settings\n"
    "  servecast advise FILE|PRESET          one-step changes, each run and ranked\n"
    "  servecast explain FILE|PRESET         why: the limit, and the slowest requests' time\n"
    "  servecast diagnose FILE...            a measured server beside its forecast, and likely "
    "causes\n"
    "  servecast plan QUESTION FILE|PRESET   max-rate, min-gpus, search, growth, drill\n"
    "  servecast check FILE|PRESET           for CI: fails when a target is missed for certain\n"
    "  servecast sweep FILE|PRESET --over path=a,b,c   every combination, a line of JSON each\n"
    "  servecast merge FILE...               the lines of a sweep's shards, in order\n"
    "  servecast show PRESET|FILE            the document, to save and change\n"
    "  servecast init                        a document to begin with\n"
    "  servecast estimate FILE|PRESET        a closed-form answer beside the simulated one\n"
    "  servecast validate FILE|PRESET        check a scenario and list every issue\n"
    "  servecast fit-trace FILE              a workload that resembles a trace, for a link\n"
    "  servecast calibrate FILE...           your own server's numbers: a pack for --calibration\n"
    "  servecast observe URL FILE|PRESET     the scenario's requests to a real server, for "
    "calibrate\n"
    "  servecast step-trace FILE|PRESET      a run as a server's own traces, for calibrate\n"
    "  servecast import FILE...              a scenario of commands, configs, results\n"
    "  servecast export FILE|PRESET --to TARGET   vllm, docker, kubernetes, llm-d, sglang, trtllm, "
    "bench\n"
    "  servecast rewrite FILE --set path=value    what to change in such a text, as a diff\n"
    "  servecast card LINK|FILE|PRESET       a forecast as a picture or badge, SVG\n"
    "  servecast link encode|decode|open     links to the page, and their pinned results\n"
    "  servecast catalog [KIND|field WORD]   presets, policies, every field of a scenario, "
    "columns\n"
    "  servecast fidelity [--data DIR]       predictions against measured servers\n"
    "  servecast coefficients [WORD]         BLIS's fitted step times, for --coefficients\n"
    "  servecast mcp                         a tool server for agents, over stdio\n"
    "  servecast completion bash|zsh|fish    what the shell completes\n"
    "  servecast man                         the manual page\n"
    "  servecast --version\n"
    "\n"
    "Each command explains itself: servecast help COMMAND. FILE is a scenario document; - reads "
    "stdin.\n"
    "A terminal gets text, a pipe JSON; -o text, json, jsonl or csv asks for one of them, "
    "--fields\n"
    "A,B for single figures, --color auto, always or never for colours (NO_COLOR: none).\n"
    "Exit 0: done. 2: bad input, every issue on stderr. 70: a bug of servecast.\n";

struct Command {
  std::string_view name;
  int (*run)(const std::vector<std::string>&);
};

constexpr Command kCommands[] = {
    {"run", RunCommand},
    {"compare", CompareCommand},
    {"estimate", EstimateCommand},
    {"explain", ExplainCommand},
    {"advise", AdviseCommand},
    {"diagnose", DiagnoseCommand},
    {"plan", PlanCommand},
    {"check", CheckCommand},
    {"sweep", SweepCommand},
    {"merge", MergeCommand},
    {"validate", ValidateCommand},
    {"fit-trace", FitTraceCommand},
    {"calibrate", CalibrateCommand},
    {"step-trace", StepTraceCommand},
    {"card", CardCommand},
    {"export", ExportCommand},
    {"rewrite", RewriteCommand},
    {"import", ImportCommand},
    {"link", LinkCommand},
    {"catalog", CatalogCommand},
    {"observe", [](const auto& words) { return BecomeProgramBeside("servecast-observe", words); }},
    {"fidelity",
     [](const auto& words) { return BecomeProgramBeside("servecast-fidelity", words); }},
    {"coefficients", CoefficientsCommand},
    {"mcp", McpCommand},
    {"man", ManCommand},
    {"show", ShowCommand},
    {"init", InitCommand},
    {"completion", CompletionCommand},
};

// What commands that read their words themselves take, beside --help.
struct OwnWords {
  std::string_view command, options;
};
constexpr OwnWords kOwnWords[] = {
    {"calibrate",
     "--scenario --set --backend --alpha-noise-correction --hold-out -o --rows --advise"},
    {"catalog", "--json -o"},
    {"fit-trace", "--json --scenario"},
    {"diagnose", "--scenario --set -o --fields --color"},
    {"import", "--scenario"},
    {"observe", ""},
    {"fidelity", ""},
    {"merge", ""},
    {"link", "--pin --site --once --set"},
    {"coefficients", ""},
    {"mcp", ""},
    {"man", ""},
    {"completion", ""},
};

// Whether "-o json" or "-o jsonl" is among the words, in any spelling: then issues are JSON, too.
bool AsksForJson(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool apart = words[i] == "-o" || words[i] == "--output";
    const std::string next = apart && i + 1 < words.size() ? words[i + 1] : words[i];
    if (apart && (next == "json" || next == "jsonl")) return true;
    if (next == "--output=json" || next == "--output=jsonl") return true;
  }
  return false;
}

// ", commit 0123456789ab" of a release; "" of what was built otherwise.
#ifdef SERVECAST_COMMIT
constexpr const char* kCommit = ", commit " SERVECAST_COMMIT;
#else
constexpr const char* kCommit = "";
#endif

int Main(std::vector<std::string> args) {
  if (args.empty() || args[0] == "--help" || args[0] == "-h") {
    fmt::print("{}", kOverview);
    return args.empty() ? kBadInput : 0;
  }
  if (args[0] == "help") {
    args.erase(args.begin());
    if (args.empty()) return Main({"--help"});
    args.emplace_back("--help");
  }
  if (args[0] == "--version") {
    fmt::print("servecast {} (scenario schema {}{})\n", kEngineVersion, kScenarioSchema, kCommit);
    return 0;
  }
  if (AsksForJson(args)) PrintIssuesAsJson();
  const std::string command = args[0];
  args.erase(args.begin());
  for (const Command& each : kCommands) {
    if (each.name != command) continue;
    NameCommand(command);
    return each.run(args);
  }
  const std::string near = NearestWord(command, CommandNames());
  return Usage("unknown command " + command + (near.empty() ? "" : "; did you mean " + near + "?"));
}

}  // namespace

#ifdef __EMSCRIPTEN__
// It needs processes, which the command for node has not.
int McpCommand(const std::vector<std::string>& words) {
  return BecomeProgramBeside("servecast-mcp", words);
}
#endif

std::vector<std::string> CommandNames() {
  std::vector<std::string> names;
  for (const Command& each : kCommands) names.emplace_back(each.name);
  return names;
}

std::string HelpOf(const std::vector<std::string>& words) {
  if (words.empty()) return kOverview;
  if (words[0] == "observe" || words[0] == "fidelity") return "";
  std::string help;
  CollectHelp(&help);
  for (const Command& each : kCommands) {
    if (each.name != words[0]) continue;
    std::vector<std::string> rest(words.begin() + 1, words.end());
    rest.emplace_back("--help");
    each.run(rest);
  }
  CollectHelp(nullptr);
  return help;
}

std::vector<std::string> OptionsOfCommand(const std::vector<std::string>& words) {
  std::vector<std::string> names{"--help"};
  for (const auto& [command, options] : kOwnWords) {
    if (words[0] != command) continue;
    std::string_view left = options;
    while (!left.empty()) {
      const std::size_t end = std::min(left.find(' '), left.size());
      names.emplace_back(left.substr(0, end));
      left.remove_prefix(std::min(end + 1, left.size()));
    }
    return names;
  }
  for (const Command& each : kCommands) {
    if (each.name != words[0]) continue;
    names.clear();
    CollectOptions(&names);
    each.run({words.begin() + 1, words.end()});
    CollectOptions(nullptr);
  }
  return names;
}

}  // namespace servecast

int main(int argc, char** argv) { return servecast::RunProgram(argc, argv, servecast::Main); }
