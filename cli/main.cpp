// The command: the only C++ of the project that touches files, arguments, output and exit codes.
// Exit 0: done; 2: bad input, all issues printed; 70: our bug.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compare.h"
#include "fidelity_command.h"
#include "files.h"
#include "io/coefficients.h"
#include "servecast/report.h"
#include "servecast/scenario.h"
#include "servecast/simulation.h"
#include "servecast/trace.h"

namespace servecast {

extern const char kBlackboxCoefficients[];  // presets/coefficients, embedded by the build

namespace {

constexpr int kBadInput = 2;
constexpr std::size_t kMostTraceBytes = std::size_t{1} << 30;

constexpr const char* kHelp =
    "servecast - forecast how an LLM serving deployment behaves\n"
    "\n"
    "  servecast run FILE|PRESET [options]   simulate; summary JSON on stdout\n"
    "  servecast compare FILE|PRESET --with path=value   the same requests under other settings\n"
    "  servecast validate FILE|PRESET        say what is wrong with a scenario, or nothing\n"
    "  servecast catalog [--json]            presets, policies and every field of a scenario\n"
    "  servecast fidelity [--data DIR]       predictions scored on measured servers\n"
    "  servecast coefficients [WORD]         BLIS's fitted step times, for --coefficients\n"
    "  servecast --version\n"
    "\n"
    "Each command explains itself with --help. FILE is a scenario document; - reads stdin.\n"
    "Exit 0: done. 2: bad input, every issue on stderr. 70: a bug of servecast.\n";

constexpr const char* kRunHelp =
    "servecast run FILE|PRESET [options]\n"
    "\n"
    "  --set path=value   change a member of the scenario, e.g. workload.arrivals.rate_per_s=20,\n"
    "                     slo.0.limit_ms=500; may be repeated\n"
    "  --coefficients ID  latency model blackbox with a set that servecast coefficients lists\n"
    "  --trace FILE       replay a trace: arrivals and lengths of its requests (.csv or .jsonl,\n"
    "                     plain or .gz). CSV by its header:\n"
    "                       arrival_s,input_tokens,output_tokens\n"
    "                       TIMESTAMP,ContextTokens,GeneratedTokens (Azure)\n"
    "                       arrived_at,num_prefill_tokens,num_decode_tokens (Vidur)\n"
    "                     JSON, one request a line, with the prefixes that requests share:\n"
    "                       timestamp,input_length,output_length,hash_ids (Mooncake)\n"
    "  --json FILE        the whole report: summary, resolved scenario, time series, CDFs\n"
    "  --requests FILE    one CSV row per request\n"
    "\n"
    "The summary goes to stdout; progress, and what the prefix cache found, to stderr when that "
    "is\n"
    "a terminal.\n";

constexpr const char* kCompareHelp =
    "servecast compare FILE|PRESET --with path=value [--and path=value]... [--with ...]...\n"
    "\n"
    "Runs the scenario as given (with --set, --trace and --coefficients as in run), then once for\n"
    "each --with, changed by it and by every --and behind it, and prints the figures side by "
    "side.\n"
    "What is not changed stays: all runs see the same requests. With engine.compat it says by "
    "which\n"
    "rules BLIS differs. For example, step-time models:\n"
    "\n"
    "  servecast compare llama-3.1-8b-h100-chat --with latency.backend=roofline\n";

constexpr const char* kValidateHelp =
    "servecast validate FILE|PRESET [--set path=value]... [--coefficients ID]\n"
    "\n"
    "Prints every issue with its place in the document (a JSON pointer), or the scenario's id.\n"
    "Whether the model fits the GPU is part of the answer.\n";

constexpr const char* kCatalogHelp =
    "servecast catalog [--json]\n"
    "\n"
    "Lists presets, policies, and every field of a scenario with unit, range, default and help.\n";

constexpr const char* kCoefficientsHelp =
    "servecast coefficients [WORD]\n"
    "\n"
    "Lists the coefficient sets of the latency model blackbox that BLIS published, those whose id\n"
    "has WORD in it: id, and the time per prefill token as a multiple of what the arithmetic "
    "takes\n"
    "at the GPU's peak. Below 1 no GPU can be so fast: such sets are marked.\n";

int PrintIssues(const Issues& issues) {
  for (const Issue& issue : issues) {
    fmt::print(stderr, "{}{}{}\n", issue.path, issue.path.empty() ? "" : ": ", issue.message);
  }
  return kBadInput;
}

int Usage(const std::string& problem) {
  fmt::print(stderr, "servecast: {}; see servecast --help\n", problem);
  return kBadInput;
}

struct Arguments {
  std::string scenario;
  std::vector<std::string> overrides;
  std::vector<std::vector<std::string>> variants;  // of compare: changes of each --with
  std::string coefficients, trace, json, requests;
  bool help = false;
};

enum class Command { kRun, kCompare, kValidate };

// Options of run, compare and validate. Returns an exit code on bad ones.
std::optional<int> ReadArguments(const std::vector<std::string>& args, Command command,
                                 Arguments& out) {
  const bool run = command == Command::kRun, compare = command == Command::kCompare;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string& arg = args[i];
    std::string* value = arg == "--coefficients"                ? &out.coefficients
                         : arg == "--trace" && (run || compare) ? &out.trace
                         : arg == "--json" && run               ? &out.json
                         : arg == "--requests" && run           ? &out.requests
                                                                : nullptr;
    if (arg == "--help" || arg == "-h") {
      out.help = true;
    } else if (arg == "--set" || value != nullptr ||
               (compare && (arg == "--with" || arg == "--and"))) {
      if (i + 1 == args.size()) return Usage(arg + " needs a value");
      ++i;
      if (value != nullptr) {
        *value = args[i];
      } else if (arg == "--with") {
        out.variants.push_back({args[i]});
      } else if (arg == "--and") {
        if (out.variants.empty()) return Usage("--and before any --with");
        out.variants.back().push_back(args[i]);
      } else {
        out.overrides.push_back(args[i]);
      }
    } else if (arg.size() > 1 && arg[0] == '-') {
      return Usage("unknown option " + arg);
    } else if (out.scenario.empty()) {
      out.scenario = arg;
    } else {
      return Usage("more than one scenario: " + arg);
    }
  }
  if (!out.help && out.scenario.empty()) return Usage("no scenario given");
  return std::nullopt;
}

// A preset by name, else a file.
Result<std::string> ScenarioText(const std::string& name) {
  const auto preset = ScenarioPreset(name);
  if (preset) return std::string(*preset);
  Result<std::string> text = ReadFile(name, std::size_t{4} << 20);
  if (!text.ok() && text.issues()[0].message == kCannotOpen) {
    const std::string near = NearestScenarioPreset(name);
    return Issue{name, "is neither a preset (see servecast catalog) nor a file that can be opened" +
                           (near.empty() ? "" : "; did you mean " + near + "?")};
  }
  return text;
}

Result<Scenario> LoadScenario(const Arguments& args) {
  Result<std::string> text = ScenarioText(args.scenario);
  if (!text.ok()) return Issues(text.issues());
  std::vector<std::string> overrides;
  if (!args.trace.empty()) {
    overrides = {R"(workload.arrivals={"process":"trace"})",
                 R"(workload.prompt_tokens={"distribution":"trace"})",
                 R"(workload.output_tokens={"distribution":"trace"})", "workload.sessions=null",
                 "workload.prefix=null"};
  }
  if (!args.coefficients.empty()) {
    const Result<CoefficientSet> set = FindCoefficientSet(kBlackboxCoefficients, args.coefficients);
    if (!set.ok()) return Issues(set.issues());
    overrides.push_back("latency=" + set.value().latency);
  }
  overrides.insert(overrides.end(), args.overrides.begin(), args.overrides.end());
  if (!overrides.empty()) {
    text = ApplyOverrides(text.value(), overrides);
    if (!text.ok()) return Issues(text.issues());
  }
  return ParseScenario(text.value());
}

Result<Trace> LoadTrace(const std::string& path) {
  if (path.empty()) return Trace{};
  Result<std::string> text = ReadFile(path, kMostTraceBytes);
  if (!text.ok()) return Issues(text.issues());
  const std::size_t slash = path.find_last_of('/');
  Result<Trace> trace =
      ParseTrace(text.value(), slash == std::string::npos ? path : path.substr(slash + 1));
  if (trace.ok()) return trace;
  Issues issues = trace.issues();
  for (Issue& issue : issues) issue.path = path + (issue.path.empty() ? "" : ", ") + issue.path;
  return issues;
}

// What the prefix cache found, in one line; "" when nothing was looked up.
std::string PrefixCacheLine(const PrefixCacheReport& c) {
  if (c.query_tokens == 0) return "";
  const auto percent = [](std::int64_t hits, std::int64_t queries) {
    return queries > 0 ? 100.0 * static_cast<double>(hits) / static_cast<double>(queries) : 0.0;
  };
  return fmt::format("prefix cache  {:.1f} % of prompt tokens hit ({:.1f} % of blocks)\n",
                     percent(c.hit_tokens, c.query_tokens), percent(c.hit_blocks, c.query_blocks));
}

int RunCommand(const std::vector<std::string>& arguments) {
  Arguments args;
  if (const auto bad = ReadArguments(arguments, Command::kRun, args)) return *bad;
  if (args.help) {
    fmt::print("{}", kRunHelp);
    return 0;
  }
  Result<Scenario> scenario = LoadScenario(args);
  Result<Trace> trace = LoadTrace(args.trace);
  if (!scenario.ok() || !trace.ok()) {
    if (!scenario.ok()) PrintIssues(scenario.issues());
    if (!trace.ok()) PrintIssues(trace.issues());
    return kBadInput;
  }
  Result<Simulation> created =
      Simulation::Create(std::move(scenario.value()), std::move(trace.value()));
  if (!created.ok()) return PrintIssues(created.issues());
  Simulation& simulation = created.value();
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  bool shown = false;
  while (!simulation.Advance(1'000'000)) {
    if (!terminal || elapsed() < 0.3) continue;
    fmt::print(stderr, "\r{:3.0f} %", 100 * simulation.Progress());
    shown = true;
  }
  const Report report = simulation.Snapshot();
  if (terminal) {
    fmt::print(stderr, "{}{} requests, {:.1f} s simulated in {:.3f} s\n", shown ? "\r" : "",
               report.arrived, report.simulated_s, elapsed());
    fmt::print(stderr, "{}", PrefixCacheLine(report.prefix_cache));
  }
  fmt::print("{}\n", ReportJson(report, ReportParts::kSummary));
  bool written = true;
  if (!args.json.empty())
    written &= WriteFile(args.json, ReportJson(report, ReportParts::kWithSeries) + "\n");
  if (!args.requests.empty()) written &= WriteFile(args.requests, RequestsCsv(report));
  return written ? 0 : kBadInput;
}

// Issues of a variant are printed with its number.
std::optional<Report> RunVariant(const Arguments& args, const Trace& trace,
                                 const std::string& name) {
  const auto refuse = [&name](Issues issues) {
    for (Issue& issue : issues) issue.path = name + (issue.path.empty() ? "" : ", ") + issue.path;
    PrintIssues(issues);
    return std::nullopt;
  };
  Result<Scenario> scenario = LoadScenario(args);
  if (!scenario.ok()) return refuse(scenario.issues());
  Result<Simulation> simulation = Simulation::Create(std::move(scenario.value()), trace);
  if (!simulation.ok()) return refuse(simulation.issues());
  while (!simulation.value().Advance(INT64_MAX)) {
  }
  return simulation.value().Snapshot(ReportDetail::kSummary);
}

int CompareCommand(const std::vector<std::string>& arguments) {
  Arguments args;
  if (const auto bad = ReadArguments(arguments, Command::kCompare, args)) return *bad;
  if (args.help) {
    fmt::print("{}", kCompareHelp);
    return 0;
  }
  if (args.variants.empty()) return Usage("compare needs --with path=value");
  const Result<Trace> trace = LoadTrace(args.trace);
  if (!trace.ok()) return PrintIssues(trace.issues());
  args.variants.insert(args.variants.begin(), std::vector<std::string>());
  std::vector<std::pair<std::string, Report>> runs;
  for (const std::vector<std::string>& changes : args.variants) {
    Arguments variant = args;
    variant.overrides.insert(variant.overrides.end(), changes.begin(), changes.end());
    const std::string name = fmt::format("{}", fmt::join(changes, " "));
    std::optional<Report> report = RunVariant(variant, trace.value(), name);
    if (!report) return kBadInput;
    runs.emplace_back(name, std::move(*report));
  }
  fmt::print("{}", ComparisonText(runs));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].second.departures.empty()) continue;
    fmt::print("\nBLIS's rules, in {}:\n",
               i == 0 ? "the scenario as given" : fmt::format("({})", i));
    for (const std::string_view rule : runs[i].second.departures) {
      fmt::print("  {}\n", rule);
    }
  }
  return 0;
}

int ValidateCommand(const std::vector<std::string>& arguments) {
  Arguments args;
  if (const auto bad = ReadArguments(arguments, Command::kValidate, args)) return *bad;
  if (args.help) {
    fmt::print("{}", kValidateHelp);
    return 0;
  }
  Result<Scenario> scenario = LoadScenario(args);
  if (!scenario.ok()) return PrintIssues(scenario.issues());
  const std::string id = HashText(scenario.value().id);
  const bool traced = scenario.value().workload.arrivals.process == ArrivalProcess::kTrace;
  if (!traced) {
    const Result<Simulation> simulation = Simulation::Create(std::move(scenario.value()));
    if (!simulation.ok()) return PrintIssues(simulation.issues());
  }
  fmt::print("ok {}{}\n", id, traced ? " (needs a trace)" : "");
  return 0;
}

int CatalogCommand(const std::vector<std::string>& arguments) {
  bool json = false;
  for (const std::string& arg : arguments) {
    if (arg == "--help" || arg == "-h") {
      fmt::print("{}", kCatalogHelp);
      return 0;
    }
    if (arg != "--json") return Usage("unknown option " + arg);
    json = true;
  }
  fmt::print("{}\n", json ? CatalogJson() : CatalogText());
  return 0;
}

int CoefficientsCommand(const std::vector<std::string>& arguments) {
  if (arguments.size() > 1) return Usage("more than one word: " + arguments[1]);
  const std::string word = arguments.empty() ? "" : arguments[0];
  if (word == "--help" || word == "-h") {
    fmt::print("{}", kCoefficientsHelp);
    return 0;
  }
  const Result<std::vector<CoefficientSet>> sets = ReadCoefficientSets(kBlackboxCoefficients);
  if (!sets.ok()) return PrintIssues(sets.issues());
  for (const CoefficientSet& set : sets.value()) {
    if (set.id.find(word) == std::string::npos) continue;
    const double multiple = set.prefill_time_over_peak;
    fmt::print("{:<70} {:>7}{}\n", set.id, multiple > 0 ? fmt::format("{:.3g}", multiple) : "",
               multiple > 0 && multiple < 1 ? "  faster than light" : "");
  }
  return 0;
}

int Main(std::vector<std::string> args) {
  if (args.empty() || args[0] == "--help" || args[0] == "-h" || args[0] == "help") {
    fmt::print("{}", kHelp);
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
  if (command == "validate") return ValidateCommand(args);
  if (command == "catalog") return CatalogCommand(args);
  if (command == "fidelity") return FidelityCommand(args);
  if (command == "coefficients") return CoefficientsCommand(args);
  return Usage("unknown command " + command);
}

}  // namespace
}  // namespace servecast

int main(int argc, char** argv) {
  // A broken invariant aborts with its rule on stderr; the shell sees our exit code for a bug.
  for (const int bug : {SIGABRT, SIGSEGV, SIGFPE, SIGILL}) {
    std::signal(bug, [](int) { std::_Exit(70); });
  }
  const int code = servecast::Main(std::vector<std::string>(argv + 1, argv + argc));
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  fmt::print(stderr, "standard output cannot be written\n");
  return servecast::kBadInput;
}
