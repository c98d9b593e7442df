// servecast explain: where the slowest requests' time goes, and which limit is the limit.
#include <fmt/format.h>

#include <utility>

#include "arguments.h"
#include "commands.h"
#include "experiment/explanation.h"
#include "io/json_writer.h"
#include "servecast/experiment.h"
#include "servecast/report.h"

namespace servecast {
namespace {

constexpr const char* kExplainHelp =
    "servecast explain FILE|PRESET [--set path=value]... [--trace FILE] [--coefficients ID|FILE]\n"
    "\n"
    "Prints as JSON the verdict of servecast run, and why:\n"
    "  limits  by which share a tenth more of each resource lowers the slowest latencies of the\n"
    "          deciding target, or the time per completion when overloaded; the same requests are\n"
    "          run again\n"
    "  blame   where the time of the slowest 1 % of requests went, and of all requests, for TTFT,\n"
    "          TPOT (time after the first token / tokens after it) and E2E: host, queue, own\n"
    "          prefill, decode, interference of other prefills, preempted, transfer, hand-over.\n"
    "          The _ns figures are sums over these requests and add up to total_ns\n";

}  // namespace

int ExplainCommand(const Words& words) {
  Arguments args;
  if (const auto done = ReadArguments(words, {.help = kExplainHelp}, args)) return *done;
  Result<Asked> asked = Load(args);
  if (!asked.ok()) return PrintIssues(asked.issues());
  ExperimentOptions options;
  options.names_always = options.blames = true;
  Result<Experiment> created = Experiment::Create(std::move(asked.value().scenario),
                                                  std::move(asked.value().trace), options);
  if (!created.ok()) return PrintIssues(created.issues());
  Experiment& experiment = created.value();
  while (!experiment.Advance(INT64_MAX)) {
  }
  JsonWriter out(true);
  out.BeginObject();
  out.Key("report");
  out.Raw(ReportJson(experiment.Snapshot(ReportDetail::kSummary), ReportParts::kSummary));
  WriteExplanation(experiment, out);
  out.EndObject();
  fmt::print("{}\n", out.Take());
  return 0;
}

}  // namespace servecast
