// The command: which subcommand, and its help.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "arguments.h"
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
    "  servecast plan QUESTION FILE|PRESET   max-rate, min-gpus, search, growth, drill\n"
    "  servecast check FILE|PRESET           for CI: fails when a target is missed for certain\n"
    "  servecast sweep FILE|PRESET --over path=a,b,c   every combination, a line of JSON each\n"
    "  servecast merge FILE...               the lines of a sweep's shards, in order\n"
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
    "  servecast card LINK|FILE|PRESET       a forecast as a picture or badge, SVG\n"
    "  servecast link encode|decode|open     links to the page, and their pinned results\n"
    "  servecast catalog [--json]            presets, policies, every field of a scenario, "
    "columns\n"
    "  servecast fidelity [--data DIR]       predictions against measured servers\n"
    "  servecast coefficients [WORD]         BLIS's fitted step times, for --coefficients\n"
    "  servecast --version\n"
    "\n"
    "Each command explains itself with --help. FILE is a scenario document; - reads stdin.\n"
    "Exit 0: done. 2: bad input, every issue on stderr. 70: a bug of servecast.\n";

int Main(std::vector<std::string> args) {
  if (args.empty() || args[0] == "--help" || args[0] == "-h" || args[0] == "help") {
    fmt::print("{}", kOverview);
    return args.empty() ? kBadInput : 0;
  }
  if (args[0] == "--version") {
    fmt::print("servecast {} (scenario schema {})\n", kEngineVersion, kScenarioSchema);
    return 0;
  }
  const std::string command = args[0];
  args.erase(args.begin());
  if (command == "run") return RunCommand(args);
  if (command == "compare") return CompareCommand(args);
  if (command == "estimate") return EstimateCommand(args);
  if (command == "explain") return ExplainCommand(args);
  if (command == "advise") return AdviseCommand(args);
  if (command == "plan") return PlanCommand(args);
  if (command == "check") return CheckCommand(args);
  if (command == "sweep") return SweepCommand(args);
  if (command == "merge") return MergeCommand(args);
  if (command == "validate") return ValidateCommand(args);
  if (command == "fit-trace") return FitTraceCommand(args);
  if (command == "calibrate") return CalibrateCommand(args);
  if (command == "step-trace") return StepTraceCommand(args);
  if (command == "card") return CardCommand(args);
  if (command == "export") return ExportCommand(args);
  if (command == "import") return ImportCommand(args);
  if (command == "link") return LinkCommand(args);
  if (command == "catalog") return CatalogCommand(args);
  if (command == "observe") return BecomeProgramBeside("servecast-observe", args);
  if (command == "fidelity") return BecomeProgramBeside("servecast-fidelity", args);
  if (command == "coefficients") return CoefficientsCommand(args);
  return Usage("unknown command " + command);
}

}  // namespace
}  // namespace servecast

int main(int argc, char** argv) { return servecast::RunProgram(argc, argv, servecast::Main); }
