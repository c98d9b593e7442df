// servecast step-trace: a run as the traces that such a server would write.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>

#include "arguments.h"
#include "calibrate/trace_writer.h"
#include "commands.h"
#include "cost/model_cost.h"
#include "host/output_file.h"
#include "metrics/records.h"
#include "servecast/simulation.h"

namespace servecast {
namespace {

constexpr const char* kStepTraceHelp =
    "servecast step-trace FILE|PRESET [options]\n"
    "\n"
    "Simulates, and writes what a server with step and journey tracing would have its collector\n"
    "write: a line of JSON for each batch of spans, with step.BATCH_SUMMARY,\n"
    "step.REQUEST_SNAPSHOT and the events of each request. servecast calibrate reads it.\n"
    "\n"
    "  -o FILE                 where it goes; else to stdout\n"
    "  --rich-subsample-rate R share of the steps with snapshots of their requests, above 0 and\n"
    "                          up to 1; 1 unless said otherwise\n"
    "  --set path=value        change a member of the scenario; may be repeated\n"
    "  --trace FILE            replay a trace, as servecast run does\n"
    "  --coefficients ID, --calibration FILE   as of servecast run\n"
    "\n"
    "Of one replica. docs/how-to/traces.md has the schema.\n"
    "\n"
    "Exit 0: done. 2: bad input, every issue on stderr. 70: a bug of servecast.\n";

// What the trace cannot be of.
std::optional<Issue> NotTraced(const Scenario& s) {
  if (s.cluster.Replicas() != 1 || s.cluster.pools.size() != 1) {
    return Issue{"/cluster", "found several replicas, allowed one: a trace is of one engine"};
  }
  if (IsBlis(s.engine.compat)) {
    return Issue{"/engine/compat", "found BLIS's rules, allowed none: they have no such steps"};
  }
  return std::nullopt;
}

}  // namespace

int StepTraceCommand(const Words& words) {
  Arguments args;
  std::string out, rate_text = "1";
  Options options{.help = kStepTraceHelp};
  options.values = {{"-o", &out}, {"--rich-subsample-rate", &rate_text}};
  if (const auto done = ReadArguments(words, options, args)) return *done;
  char* end = nullptr;
  const double rate = std::strtod(rate_text.c_str(), &end);
  if (*end != '\0' || !(rate > 0) || rate > 1) {
    return Usage("--rich-subsample-rate is above 0 and at most 1, not " + rate_text);
  }
  if (const auto problem =
          Collision({args.scenario, args.trace, args.coefficients, args.calibration}, {out})) {
    return Usage(*problem);
  }
  Result<Asked> asked = Load(args);
  if (!asked.ok()) return PrintIssues(asked.issues());
  const Scenario& scenario = asked.value().scenario;
  if (const auto refused = NotTraced(scenario)) {
    return PrintIssues(Labelled(LabelOf(args), {*refused}));
  }
  const Result<ModelCost> cost = ComputeModelCost(scenario);
  if (!cost.ok()) return PrintIssues(Labelled(LabelOf(args), cost.issues()));
  std::optional<OutputFile> file;
  if (!out.empty()) {
    file.emplace(out);
    if (!file->ok()) return kBadInput;
  }
  StepTraceWriter writer(
      [&file](std::string_view text) {
        if (file) {
          file->Write(text);
        } else {
          std::fwrite(text.data(), 1, text.size(), stdout);
        }
      },
      scenario.canonical_text, cost.value().usable_blocks, scenario.engine.block_size,
      static_cast<std::int64_t>(std::llround(1 / rate)));
  SimulationHooks hooks;
  hooks.observer = &writer;
  Result<Simulation> simulation =
      MakeRun<Simulation>(args, scenario, std::move(asked.value().trace), std::move(hooks));
  if (!simulation.ok()) return PrintIssues(simulation.issues());
  const RunRecords records = simulation.value().Attempts();
  writer.Watch(records.requests, records.results);
  while (!simulation.value().Advance(1'000'000)) {
  }
  writer.Finish();
  if (file && (!file->Close() || !file->Place())) return kBadInput;
  return 0;
}

}  // namespace servecast
