// See band.h.
#include "band.h"

#include <utility>

#include "servecast/experiment.h"
#include "servecast/simulation.h"

namespace servecast {
namespace {

template <class Run>
Result<Judgement> RunToEnd(const Arguments& args, const Scenario& scenario, const Trace& trace,
                           Progress* progress) {
  Result<Run> run = MakeRun<Run>(args, scenario, trace);
  if (!run.ok()) return Issues(run.issues());
  while (!run.value().Advance(1'000'000)) {
    if (progress != nullptr) progress->Show(run.value().Progress());
  }
  if (progress != nullptr) progress->Wipe();
  return Judgement{run.value().Snapshot(ReportDetail::kSummary)};
}

}  // namespace

std::optional<Banded> PutBand(Scenario scenario, Trace trace, const Sureness& sureness,
                              Report& report) {
  std::optional<ErrorBand> band = ErrorBand::Create(std::move(scenario), std::move(trace), report);
  if (!band) return std::nullopt;
  while (!band->Advance(INT64_MAX)) {
  }
  return band->Put(sureness, report);
}

Result<Judgement> Judge(const Arguments& args, const Scenario& scenario, const Trace& trace,
                        Depth depth, Progress* progress) {
  if (depth == Depth::kOnce) return RunToEnd<Simulation>(args, scenario, trace, progress);
  Result<Judgement> judged = RunToEnd<Experiment>(args, scenario, trace, progress);
  if (judged.ok() && depth == Depth::kBands) {
    judged.value().banded = PutBand(scenario, trace, Sureness(), judged.value().report);
  }
  return judged;
}

}  // namespace servecast
