// servecast run: one scenario, its summary, and the files that were asked for.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "arguments.h"
#include "band.h"
#include "base/printable.h"
#include "commands.h"
#include "outputs.h"
#include "plan/line.h"
#include "progress.h"
#include "servecast/experiment.h"
#include "servecast/simulation.h"
#include "servecast/workload_spec.h"
#include "text/texts.h"

namespace servecast {
namespace {

constexpr const char* kRunHelp =
    "servecast run FILE|PRESET [options]\n"
    "\n"
    "  --set path=value   change a member of the scenario, e.g. workload.arrivals.rate_per_s=20,\n"
    "                     slo.0.limit_ms=500; may be repeated\n"
    "  --coefficients ID  latency model blackbox with a set that servecast coefficients lists;\n"
    "                     a file: latency model physics with its coefficients\n"
    "  --calibration FILE  parameters of latency model analytic that servecast calibrate fitted\n"
    "  --trace FILE       replay a trace: arrivals and lengths of its requests, plain or .gz.\n"
    "                     The format is recognised, and named on stderr:\n"
    "                       CSV of Azure, of Vidur, arrival_s,input_tokens,output_tokens, or "
    "other\n"
    "                       names for these; BLIS TraceV2; lists of requests as JSON\n"
    "                       Mooncake's JSON lines, with the prefixes that requests share\n"
    "                       a result of vllm bench serve --save-detailed\n"
    "                     With lengths alone, arrivals are the scenario's. A scenario that\n"
    "                     replays a trace itself keeps its own settings for that.\n"
    "  --json FILE        the whole report: summary, resolved scenario, time series, CDFs\n"
    "  --requests FILE    one CSV row per request; servecast catalog explains all columns\n"
    "  --batches FILE     one CSV row per step\n"
    "  --series FILE      CSV of the time series\n"
    "  --chrome-trace FILE  time line of steps and requests, for Perfetto and chrome://tracing\n"
    "  A FILE of - is stdout, instead of the summary.\n"
    "  --names vidur      requests and batches with the names and units of Vidur\n"
    "  --once             one run only: a verdict without an interval\n"
    "  --sampling         intervals of sampling alone, as the page's first answer has them\n"
    "\n"
    "The verdict rests on as many runs with independent seeds as the targets need, in about half\n"
    "a second at most; low and high of a target are its 95 % interval, of sampling alone. band\n"
    "holds what is measured on real servers with 90 % probability: sampling and the error of the\n"
    "forecast, as it was on servers that nothing was fitted to; probability is that all targets\n"
    "are met (docs/fidelity.md). Latencies, rates and cost\n"
    "are pooled over what counts of all these runs: not the warm-up, nor the drain. What is of "
    "the\n"
    "first run alone, from beginning to end, is in first_run; CSV files and the time line are of\n"
    "that run. With --once all is of one run; p99_low and p99_high are then the 95 % interval of\n"
    "p99 if requests were independent: they wait together, so other seeds scatter more.\n"
    "A model that does not fit has the verdict does_not_fit, with the sum, and exit code 2; "
    "servecast\n"
    "catalog explains words such as TTFT and goodput.\n"
    "  -o FORM            of the summary on stdout: text (default on a terminal), json (default "
    "else),\n"
    "                     jsonl (on one line) or csv (a column for each figure)\n"
    "  --fields A,B       some of its figures, for shells: verdict.state,slo.0.value_ms\n"
    "  --color WHEN       auto (default: on a terminal), always or never\n"
    "\n"
    "If stderr is a terminal, it shows progress. Exit 0: done. 2: bad input, or a model that does\n"
    "not fit. 70: a bug of servecast.\n";

// What the prefix cache found, in one line; "" when nothing was looked up.
std::string PrefixCacheLine(const PrefixCacheReport& c) {
  if (c.query_tokens == 0) return "";
  const auto percent = [](std::int64_t hits, std::int64_t queries) {
    return queries > 0 ? 100.0 * static_cast<double>(hits) / static_cast<double>(queries) : 0.0;
  };
  return fmt::format("prefix cache  {:.1f} % of prompt tokens hit ({:.1f} % of blocks)\n",
                     percent(c.hit_tokens, c.query_tokens), percent(c.hit_blocks, c.query_blocks));
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

bool CanPlan(const Scenario& scenario) {
  Issues issues;
  CheckCanPlan(scenario, issues);
  return issues.empty();
}

int PrintReport(std::string json, const Arguments& args, bool plans) {
  const auto text = [&args, plans](View report, const Style& style) {
    return RunText(report, style, args.typed, plans);
  };
  return PrintAnswer(args.form, {.json = std::move(json), .text = text});
}

// Of a simulation, or an experiment.
// `band` gives what belongs beside the report, if anything.
template <class Run, class Band>
int RunToEnd(Result<Run> created, Outputs& outputs, const Arguments& args, bool plans,
             const Band& band) {
  if (!created.ok()) return PrintIssues(created.issues());
  Run& run = created.value();
  Progress progress;
  RunThrough(run, progress);
  Report report = run.Snapshot(outputs.detail());
  const std::optional<Banded> banded = band(report);
  const Banded* beside = banded ? &*banded : nullptr;
  if (isatty(STDERR_FILENO) != 0 && !args.form.ForPeople()) {
    fmt::print(stderr, "{} request{}, {:.1f} s simulated, {} in {:.3f} s\n", report.arrived,
               report.arrived == 1 ? "" : "s", report.simulated_s,
               report.certainty && report.certainty->runs > 1
                   ? fmt::format("the first of {} runs", report.certainty->runs)
                   : "one run",
               progress.Seconds());
    fmt::print(stderr, "{}", PrefixCacheLine(report.prefix_cache));
  }
  // What is printed says that all is done.
  if (!outputs.Write(report, beside)) return kBadInput;
  if (outputs.TakesStdout()) return 0;
  return PrintReport(ReportJson(report, beside, ReportParts::kSummary), args, plans);
}

}  // namespace

int RunCommand(const Words& words) {
  Arguments args;
  OutputPaths files;
  std::string names;
  bool once = false, sampling = false;
  Options options{.help = kRunHelp, .answers = true};
  options.flags = {{"--once", &once}, {"--sampling", &sampling}};
  options.values = {{"--json", &files.json},
                    {"--requests", &files.requests},
                    {"--batches", &files.batches},
                    {"--series", &files.series},
                    {"--chrome-trace", &files.chrome_trace},
                    {"--names", &names}};
  if (const auto done = ReadArguments(words, options, args)) return *done;
  if (!names.empty() && names != "servecast" && names != "vidur") {
    return Usage("--names is servecast or vidur, not " + names);
  }
  if (const auto problem = Collision(
          {args.scenario, args.trace, args.coefficients, args.calibration},
          {files.json, files.requests, files.batches, files.series, files.chrome_trace})) {
    return Usage(*problem);
  }
  Result<Asked> asked = Load(args);
  if (!asked.ok()) return PrintIssues(asked.issues());
  auto& [scenario, trace] = asked.value();
  if (IsBlis(scenario.engine.compat) && names == "vidur") {
    return Usage(
        "--names vidur does not go with BLIS's rules (engine.compat), which do not tell where the "
        "time of a request went");
  }
  const std::string own = OwnParts(*scenario.workload, trace);
  if (!args.trace.empty() && !own.empty()) {
    fmt::print(stderr, "{}: {} are the scenario's own\n", Printable(args.trace), own);
  }
  Outputs outputs(files, names == "vidur" ? Names::kVidur : Names::kServecast);
  if (!outputs.ok()) return kBadInput;
  SimulationHooks hooks;
  hooks.observer = outputs.steps();
  const bool plans = CanPlan(scenario);
  // Beside the issue, which the run below prints: a report with the sum that does not fit.
  if (const std::optional<Report> unfit = UnfitReport(scenario)) {
    PrintReport(ReportJson(*unfit, ReportParts::kSummary), args, plans);
  }
  if (once) {
    return RunToEnd(
        MakeRun<Simulation>(args, std::move(scenario), std::move(trace), std::move(hooks)), outputs,
        args, plans, [](Report&) { return std::optional<Banded>(); });
  }
  return RunToEnd(MakeRun<Experiment>(args, scenario, trace, ExperimentOptions(), std::move(hooks)),
                  outputs, args, plans, [&, &of = scenario, &with = trace](Report& report) {
                    if (sampling) return std::optional<Banded>();
                    return PutBand(of, with, Sureness(), report);
                  });
}

}  // namespace servecast
