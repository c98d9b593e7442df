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

#include "advise.h"
#include "base/printable.h"
#include "compare.h"
#include "estimate.h"
#include "explain.h"
#include "fidelity_command.h"
#include "files.h"
#include "fit_trace.h"
#include "io/coefficients.h"
#include "io/physics_coefficients.h"
#include "io/replaying.h"
#include "output_file.h"
#include "outputs.h"
#include "room.h"
#include "servecast/experiment.h"
#include "servecast/report.h"
#include "servecast/scenario.h"
#include "servecast/simulation.h"
#include "servecast/trace.h"

namespace servecast {

namespace {

constexpr const char* kHelp =
    "servecast - forecast how an LLM serving deployment behaves\n"
    "\n"
    "  servecast run FILE|PRESET [options]   simulate; summary JSON on stdout\n"
    "  servecast compare FILE|PRESET --with path=value   the same requests under other settings\n"
    "  servecast advise FILE|PRESET          one-step changes, each run, by what they do\n"
    "  servecast explain FILE|PRESET         why: the slowest requests' time, and the limit\n"
    "  servecast estimate FILE|PRESET        a closed-form answer beside the simulated one\n"
    "  servecast validate FILE|PRESET        say what is wrong with a scenario, or nothing\n"
    "  servecast fit-trace FILE              a workload that resembles a trace, for a link\n"
    "  servecast catalog [--json]            presets, policies, every field of a scenario, "
    "columns\n"
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
    "  --coefficients ID  latency model blackbox with a set that servecast coefficients lists;\n"
    "                     a file: latency model physics with its coefficients\n"
    "  --trace FILE       replay a trace: arrivals and lengths of its requests, plain or .gz. "
    "What\n"
    "                     it was read as, and why, goes to stderr:\n"
    "                       CSV of Azure, of Vidur, arrival_s,input_tokens,output_tokens, or "
    "other\n"
    "                       names for these; BLIS TraceV2; lists of requests as JSON\n"
    "                       Mooncake's JSON lines, with the prefixes that requests share\n"
    "                       a result of vllm bench serve --save-detailed\n"
    "                     Of a file of lengths alone the arrivals are the scenario's. A scenario "
    "that\n"
    "                     replays a trace already says itself how.\n"
    "  --json FILE        the whole report: summary, resolved scenario, time series, CDFs\n"
    "  --requests FILE    one CSV row per request; servecast catalog explains the columns of all\n"
    "  --batches FILE     one CSV row per step\n"
    "  --series FILE      CSV of the time series\n"
    "  --chrome-trace FILE  time line of steps and requests; Perfetto and chrome://tracing open "
    "it\n"
    "  --names vidur      requests and batches under the names and in the units of Vidur\n"
    "  --once             one run only: a verdict without an interval\n"
    "\n"
    "The verdict rests on as many runs as the targets need, of independent seeds, at most about "
    "half\n"
    "a second of them: low and high of a target are its 95 % interval. Files are of the first "
    "run.\n"
    "p99_low and p99_high in it are the 95 % confidence interval of p99 if requests were "
    "independent;\n"
    "those of one run wait together, so other seeds scatter more.\n"
    "The summary goes to stdout; progress, and what the prefix cache found, to stderr when that "
    "is\n"
    "a terminal.\n";

constexpr const char* kCompareHelp =
    "servecast compare FILE|PRESET --with path=value [--and path=value]... [--with ...]...\n"
    "servecast compare FILE|PRESET --backends\n"
    "\n"
    "Runs the scenario as given (with --set, --trace and --coefficients as in run), then once for\n"
    "each --with, changed by it and by every --and behind it, and prints the figures side by "
    "side.\n"
    "What is not changed stays: all runs see the same requests. By other rules than vLLM's it "
    "says\n"
    "how they differ. For example, step-time models:\n"
    "\n"
    "  servecast compare llama-3.1-8b-h100-chat --with latency.backend=roofline\n"
    "\n"
    "--backends: under analytic, operators, roofline, physics, and blackbox with the scenario's\n"
    "coefficients or BLIS's set for its model, GPU and tensor parallelism, where there is one.\n";

constexpr const char* kValidateHelp =
    "servecast validate FILE|PRESET [--set path=value]... [--coefficients ID|FILE]\n"
    "\n"
    "Prints every issue with its place in the document (a JSON pointer), or the scenario's id.\n"
    "Whether the model fits the GPU is part of the answer, and with coefficients whether these can "
    "be\n"
    "true: which signs they have, and whether a step of some batch would be faster than light.\n";

constexpr const char* kCatalogHelp =
    "servecast catalog [--json]\n"
    "\n"
    "Lists presets, policies, every field of a scenario with unit, range, default and help, and "
    "the\n"
    "columns of the files that run writes.\n";

constexpr const char* kCoefficientsHelp =
    "servecast coefficients [WORD]\n"
    "\n"
    "Lists the coefficient sets of the latency model blackbox that BLIS published, those whose id\n"
    "has WORD in it: id, and the time per prefill token as a multiple of what the arithmetic "
    "takes\n"
    "at the GPU's peak. Below 1 no GPU can be so fast: such sets are marked.\n";

int Usage(const std::string& problem) {
  fmt::print(stderr, "servecast: {}; see servecast --help\n", Printable(problem));
  return kBadInput;
}

struct Arguments {
  std::string scenario;
  std::vector<std::string> overrides;
  std::vector<std::vector<std::string>> variants;  // of compare: changes of each --with
  std::string coefficients, trace, names;
  OutputPaths files;      // of run
  std::string label;      // of a run among several, for its issues
  bool backends = false;  // of compare
  bool once = false;      // of run
  bool help = false;
};

enum class Command { kRun, kCompare, kEstimate, kReasons, kValidate };

// Options of run, compare, estimate, explain, advise and validate. Returns an exit code on bad
// ones.
std::optional<int> ReadArguments(const std::vector<std::string>& args, Command command,
                                 Arguments& out) {
  const bool run = command == Command::kRun, compare = command == Command::kCompare;
  const bool simulates = command != Command::kValidate;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string& arg = args[i];
    std::string* value = arg == "--coefficients"          ? &out.coefficients
                         : arg == "--trace" && simulates  ? &out.trace
                         : arg == "--json" && run         ? &out.files.json
                         : arg == "--requests" && run     ? &out.files.requests
                         : arg == "--batches" && run      ? &out.files.batches
                         : arg == "--series" && run       ? &out.files.series
                         : arg == "--chrome-trace" && run ? &out.files.chrome_trace
                         : arg == "--names" && run        ? &out.names
                                                          : nullptr;
    if (arg == "--help" || arg == "-h") {
      out.help = true;
    } else if (run && arg == "--once") {
      out.once = true;
    } else if (compare && arg == "--backends") {
      out.backends = true;
    } else if (arg == "--set" || value != nullptr ||
               (compare && (arg == "--with" || arg == "--and"))) {
      if (i + 1 == args.size()) return Usage(arg + " needs a value");
      ++i;
      if (args[i].empty()) return Usage(arg + " needs a value, found none");
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
  if (!out.names.empty() && out.names != "servecast" && out.names != "vidur") {
    return Usage("--names is servecast or vidur, not " + out.names);
  }
  return std::nullopt;
}

// The section "latency" that --coefficients stands for: a published set, or a file's.
Result<std::string> LoadCoefficients(const std::string& name,
                                     std::optional<PhysicsProvenance>& trained_on) {
  const Result<CoefficientSet> set = FindCoefficientSet(name);
  if (set.ok()) {
    const std::string warning = WarningOf(set.value());
    if (!warning.empty()) fmt::print(stderr, "warning: {}\n", warning);
    return set.value().latency;
  }
  const Result<std::string> text = ReadFile(name, std::size_t{1} << 20);
  if (!text.ok() && text.issues()[0].message == kCannotOpen) return Issues(set.issues());
  if (!text.ok()) return Issues(text.issues());
  const Result<PhysicsCoefficients> read = ReadPhysicsCoefficients(text.value());
  if (read.ok()) {
    trained_on = read.value().trained_on;
    return read.value().latency;
  }
  return Labelled(name, read.issues());
}

// What issues of a scenario are of: its file, and the run among several.
std::string LabelOf(const Arguments& args) {
  const std::string file = ScenarioPreset(args.scenario) ? "" : args.scenario;
  const bool both = !file.empty() && !args.label.empty();
  return (file == "-" ? "stdin" : file) + (both ? ", " : "") + args.label;
}

// The scenario's text with what the arguments change. `lengths_only`: what the trace has; nothing
// without one.
Result<std::string> LoadDocument(const Arguments& args, bool lengths_only,
                                 std::optional<PhysicsProvenance>& trained_on) {
  Result<std::string> text = ScenarioText(args.scenario);
  if (!text.ok()) return text;
  std::vector<std::string> overrides;
  if (!args.trace.empty()) text = ReplayingDocument(text.value(), !lengths_only);
  if (!args.coefficients.empty()) {
    const Result<std::string> latency = LoadCoefficients(args.coefficients, trained_on);
    if (!latency.ok()) return Issues(latency.issues());
    overrides.push_back("latency=" + latency.value());
  }
  overrides.insert(overrides.end(), args.overrides.begin(), args.overrides.end());
  if (overrides.empty()) return text;
  text = ApplyOverrides(text.value(), overrides);
  if (!text.ok()) return Labelled(LabelOf(args), text.issues());
  return text;
}

Result<Scenario> LoadScenario(const Arguments& args, bool lengths_only = false) {
  std::optional<PhysicsProvenance> trained_on;
  const Result<std::string> text = LoadDocument(args, lengths_only, trained_on);
  if (!text.ok()) return Issues(text.issues());
  Result<Scenario> scenario = ParseScenario(text.value());
  if (!scenario.ok()) return Labelled(LabelOf(args), scenario.issues());
  if (trained_on) {
    for (const std::string& line : Mismatches(*trained_on, scenario.value())) {
      fmt::print(stderr, "warning: coefficients {}\n", line);
    }
  }
  return scenario;
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

// A simulation, or an experiment, that fits into what memory there is.
template <class Run, class... More>
Result<Run> MakeRun(const Arguments& args, Scenario scenario, Trace trace, More... more) {
  if (auto beyond = BeyondRoom(MemoryOfRun(scenario, trace), MemoryRoom())) {
    return Labelled(LabelOf(args), {*std::move(beyond)});
  }
  Result<Run> made = Run::Create(std::move(scenario), std::move(trace), std::move(more)...);
  if (!made.ok()) return Labelled(LabelOf(args), made.issues());
  return made;
}

// What of the trace is not replayed, as the scenario has its own.
std::string OwnParts(const WorkloadSpec& w, const Trace& trace) {
  std::string own;
  const auto add = [&own](bool is, const char* name) {
    if (is) own += (own.empty() ? "" : " and ") + std::string(name);
  };
  add(trace.has_arrivals && w.arrivals.process != ArrivalProcess::kTrace, "arrivals");
  add(w.prompt_tokens.distribution != LengthDistribution::kTrace, "prompt lengths");
  add(w.output_tokens.distribution != LengthDistribution::kTrace, "output lengths");
  return own;
}

// Of a simulation, or an experiment.
template <class Run>
int RunToEnd(Result<Run> created, Outputs& outputs) {
  if (!created.ok()) return PrintIssues(created.issues());
  Run& run = created.value();
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  bool shown = false;
  while (!run.Advance(1'000'000)) {
    if (!terminal || elapsed() < 0.3) continue;
    fmt::print(stderr, "\r{:3.0f} %", 100 * run.Progress());
    shown = true;
  }
  const Report report = run.Snapshot(outputs.detail());
  if (terminal) {
    fmt::print(stderr, "{}{} requests, {:.1f} s simulated, {} in {:.3f} s\n", shown ? "\r" : "",
               report.arrived, report.simulated_s,
               report.certainty && report.certainty->runs > 1
                   ? fmt::format("and {} runs more", report.certainty->runs - 1)
                   : "one run",
               elapsed());
    fmt::print(stderr, "{}", PrefixCacheLine(report.prefix_cache));
  }
  // What is printed says that all is done.
  if (!outputs.Write(report)) return kBadInput;
  fmt::print("{}\n", ReportJson(report, ReportParts::kSummary));
  return 0;
}

int RunCommand(const std::vector<std::string>& arguments) {
  Arguments args;
  if (const auto bad = ReadArguments(arguments, Command::kRun, args)) return *bad;
  if (args.help) {
    fmt::print("{}", kRunHelp);
    return 0;
  }
  const OutputPaths& files = args.files;
  if (const auto problem = Collision(
          {args.scenario, args.trace, args.coefficients},
          {files.json, files.requests, files.batches, files.series, files.chrome_trace})) {
    return Usage(*problem);
  }
  Result<Trace> trace = LoadTrace(args.trace);
  Result<Scenario> scenario = LoadScenario(args, trace.ok() && !trace.value().has_arrivals);
  if (!scenario.ok() || !trace.ok()) {
    if (!scenario.ok()) PrintIssues(scenario.issues());
    if (!trace.ok()) PrintIssues(trace.issues());
    return kBadInput;
  }
  if (IsBlis(scenario.value().engine.compat) && args.names == "vidur") {
    return Usage(
        "--names vidur does not go with BLIS's rules (engine.compat), which do not tell where the "
        "time of a request went");
  }
  const std::string own = OwnParts(scenario.value().workload, trace.value());
  if (!args.trace.empty() && !own.empty()) {
    fmt::print(stderr, "{}: {} are the scenario's own\n", Printable(args.trace), own);
  }
  Outputs outputs(files, args.names == "vidur" ? Names::kVidur : Names::kServecast);
  if (!outputs.ok()) return kBadInput;
  SimulationHooks hooks;
  hooks.observer = outputs.steps();
  if (args.once) {
    return RunToEnd(MakeRun<Simulation>(args, std::move(scenario.value()), std::move(trace.value()),
                                        std::move(hooks)),
                    outputs);
  }
  return RunToEnd(MakeRun<Experiment>(args, std::move(scenario.value()), std::move(trace.value()),
                                      ExperimentOptions(), std::move(hooks)),
                  outputs);
}

// nullopt: its issues have been printed.
std::optional<Report> RunVariant(const Arguments& args, const Trace& trace) {
  const auto refuse = [](const Issues& issues) {
    PrintIssues(issues);
    return std::nullopt;
  };
  Result<Scenario> scenario = LoadScenario(args, !trace.has_arrivals);
  if (!scenario.ok()) return refuse(scenario.issues());
  Result<Simulation> simulation = MakeRun<Simulation>(args, std::move(scenario.value()), trace);
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
  if (args.backends) {
    const Result<Scenario> scenario = LoadScenario(args);
    if (!scenario.ok()) return PrintIssues(scenario.issues());
    args.variants = BackendVariants(scenario.value());
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
    variant.label = runs.empty() ? "as given" : name;
    std::optional<Report> report = RunVariant(variant, trace.value());
    if (!report) return kBadInput;
    runs.emplace_back(name, std::move(*report));
  }
  fmt::print("{}", ComparisonText(runs));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].second.departures.empty()) continue;
    fmt::print("\nOther rules than vLLM's, in {}:\n",
               i == 0 ? "the scenario as given" : fmt::format("({})", i));
    for (const std::string_view rule : runs[i].second.departures) {
      fmt::print("  {}\n", rule);
    }
  }
  return 0;
}

int EstimateCommand(const std::vector<std::string>& arguments) {
  Arguments args;
  if (const auto bad = ReadArguments(arguments, Command::kEstimate, args)) return *bad;
  if (args.help) {
    fmt::print("{}", kEstimateHelp);
    return 0;
  }
  const Result<Trace> trace = LoadTrace(args.trace);
  if (!trace.ok()) return PrintIssues(trace.issues());
  const Result<Scenario> loaded = LoadScenario(args, !trace.value().has_arrivals);
  if (!loaded.ok()) return PrintIssues(loaded.issues());
  const Result<Estimate> estimate = EstimateOf(loaded.value(), trace.value());
  if (!estimate.ok()) return PrintIssues(Labelled(LabelOf(args), estimate.issues()));
  const std::optional<Report> report = RunVariant(args, trace.value());
  if (!report) return kBadInput;
  fmt::print("{}", EstimateText(estimate.value(), *report));
  return 0;
}

// Of explain and advise.
int ReasonsCommand(const std::vector<std::string>& arguments, bool advise) {
  Arguments args;
  if (const auto bad = ReadArguments(arguments, Command::kReasons, args)) return *bad;
  if (args.help) {
    fmt::print("{}", advise ? kAdviseHelp : kExplainHelp);
    return 0;
  }
  Result<Trace> trace = LoadTrace(args.trace);
  if (!trace.ok()) return PrintIssues(trace.issues());
  Result<Scenario> scenario = LoadScenario(args, !trace.value().has_arrivals);
  if (!scenario.ok()) return PrintIssues(scenario.issues());
  if (advise) {
    std::optional<PhysicsProvenance> trained_on;
    return Advise(LoadDocument(args, !trace.value().has_arrivals, trained_on).value(),
                  trace.value());
  }
  return Explain(std::move(scenario.value()), std::move(trace.value()));
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
    const Result<Simulation> simulation = MakeRun<Simulation>(args, scenario.value(), Trace());
    if (!simulation.ok()) return PrintIssues(simulation.issues());
  }
  fmt::print("ok {}{}\n", id, traced ? " (needs a trace)" : "");
  fmt::print("{}", PlausibilityText(scenario.value()));
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
  fmt::print("{}\n", json ? CommandCatalogJson() : CatalogText());
  return 0;
}

int CoefficientsCommand(const std::vector<std::string>& arguments) {
  if (arguments.size() > 1) return Usage("more than one word: " + arguments[1]);
  const std::string word = arguments.empty() ? "" : arguments[0];
  if (word == "--help" || word == "-h") {
    fmt::print("{}", kCoefficientsHelp);
    return 0;
  }
  const Result<std::vector<CoefficientSet>> sets = PublishedCoefficientSets();
  if (!sets.ok()) return PrintIssues(sets.issues());
  bool found = false;
  for (const CoefficientSet& set : sets.value()) {
    if (set.id.find(word) == std::string::npos) continue;
    found = true;
    const double multiple = set.prefill_time_over_peak;
    fmt::print("{:<70} {:>7}{}\n", set.id, multiple > 0 ? fmt::format("{:.3g}", multiple) : "",
               set.FasterThanLight() ? "  faster than light" : "");
  }
  if (!found) return PrintIssues({{word, "is in the name of no set"}});
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
  if (command == "estimate") return EstimateCommand(args);
  if (command == "explain" || command == "advise") return ReasonsCommand(args, command == "advise");
  if (command == "validate") return ValidateCommand(args);
  if (command == "fit-trace") return FitTraceCommand(args);
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
    std::signal(bug, [](int) {
      servecast::RemoveUnfinishedFiles();
      std::_Exit(70);
    });
  }
  for (const int end : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    const auto before = std::signal(end, [](int signal) {
      servecast::RemoveUnfinishedFiles();
      std::signal(signal, SIG_DFL);
      std::raise(signal);
    });
    if (before == SIG_IGN) std::signal(end, SIG_IGN);  // as with nohup
  }
  std::signal(SIGXFSZ, SIG_IGN);  // a file that is too large cannot be written, and says so
  servecast::AnswerOutOfMemory();
  const int code = servecast::Main(std::vector<std::string>(argv + 1, argv + argc));
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  fmt::print(stderr, "standard output cannot be written\n");
  return servecast::kBadInput;
}
