// servecast explain: where the slowest requests' time goes, and which limit is the limit.
#include <utility>

#include "arguments.h"
#include "band.h"
#include "commands.h"
#include "experiment/explanation.h"
#include "io/json_writer.h"
#include "progress.h"
#include "servecast/experiment.h"
#include "servecast/report.h"
#include "text/texts.h"

namespace servecast {
namespace {

constexpr const char* kExplainHelp =
    "servecast explain FILE|PRESET [--set path=value]... [--trace FILE] [--coefficients ID|FILE]\n"
    "                  [--sampling]\n"
    "\n"
    "Prints, as JSON in a pipe, the verdict of servecast run, and why:\n"
    "  limits  by which share a tenth more of each resource lowers the slowest latencies of the\n"
    "          deciding target, or the time per completion when overloaded; the same requests are\n"
    "          run again. pools: where there are several, the first of these in each pool alone\n"
    "  blame   where the time of the slowest 1 % of requests went, and of all requests, for TTFT,\n"
    "          TPOT (time after the first token / tokens after it) and E2E: host, queue, own\n"
    "          prefill, decode, interference of other prefills, preempted, transfer, hand-over.\n"
    "          The _ns figures are sums over these requests and add up to total_ns\n"
    "\n"
    "--sampling: the verdict by sampling alone, without the forecast's own error.\n"
    "-o text, json, jsonl or csv; --fields A,B; --color WHEN: as in run, text on a terminal.\n"
    "Exit 0: done. 2: bad input. 70: a bug of servecast.\n";

}  // namespace

int ExplainCommand(const Words& words) {
  Arguments args;
  bool sampling = false;
  Options known{.help = kExplainHelp, .answers = true};
  known.flags = {{"--sampling", &sampling}};
  if (const auto done = ReadArguments(words, known, args)) return *done;
  Result<Asked> asked = Load(args);
  if (!asked.ok()) return PrintIssues(asked.issues());
  ExperimentOptions options;
  options.names_always = options.blames = true;
  auto& [scenario, trace] = asked.value();
  Result<Experiment> created = Experiment::Create(scenario, trace, options);
  if (!created.ok()) return PrintIssues(created.issues());
  Experiment& experiment = created.value();
  RunThrough(experiment);
  Judgement judgement{experiment.Snapshot(ReportDetail::kSummary)};
  if (!sampling) {
    judgement.banded = PutBand(std::move(scenario), std::move(trace), Sureness(), judgement.report);
  }
  JsonWriter out(true);
  out.BeginObject();
  out.Key("report");
  out.Raw(judgement.Json(ReportParts::kSummary));
  WriteExplanation(experiment, out);
  out.EndObject();
  return PrintAnswer(args.form,
                     {.json = out.Take(), .text = [&args](View answer, const Style& style) {
                        return ExplainText(answer, style, args.typed);
                      }});
}

}  // namespace servecast
