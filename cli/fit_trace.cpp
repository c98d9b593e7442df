// servecast fit-trace: a trace as a workload.

#include <fmt/format.h>

#include <cmath>

#include "arguments.h"
#include "base/printable.h"
#include "base/text.h"
#include "commands.h"
#include "host/files.h"
#include "host/output_file.h"
#include "io/fit_json.h"
#include "servecast/scenario.h"
#include "servecast/workload_spec.h"

namespace servecast {
namespace {

constexpr const char* kFitTraceHelp =
    "servecast fit-trace FILE [--json OUT [--scenario FILE|PRESET]]\n"
    "\n"
    "Prints a workload that resembles a trace, in a few hundred numbers: the section \"workload\"\n"
    "of a scenario document. Its figures go to stderr, beside those of the trace itself.\n"
    "\n"
    "  --json OUT              a whole scenario with that workload, for servecast run OUT\n"
    "  --scenario FILE|PRESET  source of all other settings; default llama-3.1-8b-h100-chat\n"
    "\n"
    "If the trace has only lengths, arrivals are the scenario's. Formats: servecast run --help.\n"
    "\n"
    "Exit 0: done. 2: bad input, every issue on stderr. 70: a bug of servecast.\n";

// Below it a figure is as good as 0, and nothing is so many per cent of it.
constexpr double kNothing = 1e-3;

std::string ComparisonText(const std::vector<FitComparison>& rows) {
  std::string text =
      fmt::format("{:<22} {:>7} {:>12} {:>12} {:>9}\n", "", "", "trace", "fit", "off");
  for (const FitComparison& row : rows) {
    const std::string off =
        std::fabs(row.trace) < kNothing
            ? ""
            : fmt::format("{:+.1f}%", 100 * (row.fit - row.trace) / std::fabs(row.trace));
    text += fmt::format("{:<22} {:>7} {:>12} {:>12} {:>9}\n", row.name, row.unit,
                        ShortNumber(row.trace), ShortNumber(row.fit), off);
  }
  return text;
}

// `scenario` with the fitted workload in place of its own; its arrivals stay when the trace has
// none.
Result<std::string> ScenarioWith(const std::string& scenario, const Trace& trace,
                                 WorkloadSpec workload) {
  const Result<std::string> text = ScenarioText(scenario);
  if (!text.ok()) return text;
  const std::string label = ScenarioPreset(scenario) ? "" : scenario;
  const Result<Scenario> given = ParseScenario(text.value());
  if (!given.ok()) return Labelled(label, given.issues());
  if (!trace.has_arrivals) workload.arrivals = given.value().workload->arrivals;
  const Result<std::string> changed = ApplyOverrides(
      text.value(),
      {"workload=" + WorkloadJson(workload, true), "name=Fitted to a trace", "description="});
  if (!changed.ok()) return changed;
  const Result<Scenario> scenario_read = ParseScenario(changed.value());
  if (!scenario_read.ok()) return Labelled(label, scenario_read.issues());
  return scenario_read.value().canonical_text;
}

}  // namespace

int FitTraceCommand(const std::vector<std::string>& arguments) {
  std::string file, json, scenario = "llama-3.1-8b-h100-chat";
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& arg = arguments[i];
    if (arg == "--help" || arg == "-h") {
      return PrintHelp(kFitTraceHelp);
    }
    if (arg == "--json" || arg == "--scenario") {
      if (i + 1 == arguments.size()) return Usage(arg + " needs a value", "fit-trace");
      if (arguments[++i].empty()) return Usage(arg + " needs a name, found none", "fit-trace");
      (arg == "--json" ? json : scenario) = arguments[i];
    } else if (arg.size() > 1 && arg[0] == '-') {
      return Usage("unknown option " + arg, "fit-trace");
    } else if (file.empty()) {
      file = arg;
    } else {
      return Usage("more than one trace: " + arg, "fit-trace");
    }
  }
  if (file.empty()) return Usage("no trace given", "fit-trace");
  if (const auto problem = Collision({file, scenario}, {json})) return Usage(*problem);
  const Result<Trace> trace = LoadTrace(file);
  if (!trace.ok()) return PrintIssues(trace.issues());
  const Result<FittedTrace> fitted = FitTrace(trace.value());
  if (!fitted.ok()) return PrintIssues(fitted.issues());
  const WorkloadSpec& workload = fitted.value().workload;
  if (!json.empty()) {
    const Result<std::string> whole = ScenarioWith(scenario, trace.value(), workload);
    if (!whole.ok()) return PrintIssues(whole.issues());
    if (!WriteFile(json, whole.value() + "\n")) return kBadInput;
  }
  fmt::print(stderr, "{}", ComparisonText(CompareFit(trace.value(), fitted.value())));
  fmt::print("{}\n", WorkloadJson(workload, trace.value().has_arrivals));
  return 0;
}

}  // namespace servecast
