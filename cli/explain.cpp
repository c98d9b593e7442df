// See explain.h.
#include "explain.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "files.h"
#include "io/json_writer.h"
#include "servecast/experiment.h"
#include "servecast/report.h"

namespace servecast {

const char kExplainHelp[] =
    "servecast explain FILE|PRESET [--set path=value]... [--trace FILE] [--coefficients ID|FILE]\n"
    "\n"
    "Prints as JSON the verdict of servecast run, and why:\n"
    "  limits  what a tenth more of each resource takes off the slowest latencies of the target "
    "that\n"
    "          decides, or of the time of a completion when overloaded: the same requests, run "
    "again\n"
    "  blame   where the time of the slowest 1 % of requests went, and of all, for TTFT, TPOT "
    "(the\n"
    "          time after the first token, over the tokens after it) and E2E: host, queue, own\n"
    "          prefill, decode, interference of others' prefills, preempted, transfer, hand-over. "
    "Parts\n"
    "          of _ns are whole nanoseconds of all these requests together, and add up to "
    "total_ns\n";

namespace {

void WriteSide(std::string_view key, const Blame::Side& side, bool per_token, JsonWriter& out) {
  out.Key(key), out.BeginObject();
  out.Key("requests"), out.Integer(side.requests);
  const std::int64_t of = per_token ? side.tokens : side.requests;
  const auto mean_ms = [of](std::int64_t ns) {
    return of > 0 ? static_cast<double>(ns) / 1e6 / static_cast<double>(of) : 0;
  };
  out.Key("mean_ms"), out.Number(mean_ms(side.total_ns));
  out.Key("parts_ms"), out.BeginObject();
  for (std::size_t p = 0; p < side.parts_ns.size(); ++p) {
    out.Key(TimeSplitReport::kNames[p]), out.Number(mean_ms(side.parts_ns[p]));
  }
  out.EndObject();
  out.Key("total_ns"), out.Integer(side.total_ns);
  out.Key("parts_ns"), out.BeginObject();
  for (std::size_t p = 0; p < side.parts_ns.size(); ++p) {
    out.Key(TimeSplitReport::kNames[p]), out.Integer(side.parts_ns[p]);
  }
  out.EndObject();
  out.EndObject();
}

void WriteBlames(const std::vector<Blame>& blames, JsonWriter& out) {
  out.Key("blame"), out.BeginObject();
  for (const Blame& blame : blames) {
    out.Key(blame.metric), out.BeginObject();
    out.Key("from_ms"), out.Number(blame.from_ms);
    const bool per_token = blame.metric == "tpot";
    WriteSide("slowest", blame.slowest, per_token, out);
    WriteSide("all", blame.all, per_token, out);
    out.EndObject();
  }
  out.EndObject();
}

}  // namespace

int Explain(Scenario scenario, Trace trace) {
  ExperimentOptions options;
  options.names_always = options.blames = true;
  Result<Experiment> created = Experiment::Create(std::move(scenario), std::move(trace), options);
  if (!created.ok()) return PrintIssues(created.issues());
  Experiment& experiment = created.value();
  while (!experiment.Advance(INT64_MAX)) {
  }
  JsonWriter out(true);
  out.BeginObject();
  out.Key("report");
  out.Raw(ReportJson(experiment.Snapshot(ReportDetail::kSummary), ReportParts::kSummary));
  out.Key("limits"), out.BeginArray();
  for (const Relief& relief : experiment.Reliefs()) {
    out.BeginObject();
    out.Key("name"), out.Text(relief.name);
    out.Key("gain"), out.Number(relief.gain);
    out.EndObject();
  }
  out.EndArray();
  WriteBlames(experiment.Blames(), out);
  out.EndObject();
  fmt::print("{}\n", out.Take());
  return 0;
}

}  // namespace servecast
