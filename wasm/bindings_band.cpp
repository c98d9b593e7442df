// Bands of a scenario's targets, and its verdict with them, as `servecast run` has them. Asked for
// once a first verdict stands, so of the whole module.
#include <optional>
#include <string>
#include <utility>

#include "bound_asked.h"
#include "servecast/error_band.h"
#include "servecast/experiment.h"
#include "servecast/report.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

// The experiment, made again in this module, then the runs that its bands take.
class BandedExperiment {
 public:
  static Result<BandedExperiment> Create(const std::string& document, Trace trace) {
    Result<Scenario> scenario = ParseScenario(document);
    if (!scenario.ok()) return scenario.issues();
    Result<Experiment> made = Experiment::Create(scenario.value(), trace, ExperimentOptions());
    if (!made.ok()) return made.issues();
    return BandedExperiment(std::move(scenario.value()), std::move(trace), std::move(made.value()));
  }

  // True when finished.
  bool Advance(std::int64_t max_steps) {
    if (band_) return band_->Advance(max_steps);
    if (report_) return true;
    if (!experiment_.Advance(max_steps)) return false;
    report_ = experiment_.Snapshot(ReportDetail::kSummary);
    band_ = ErrorBand::Create(std::move(scenario_), std::move(trace_), *report_);
    return !band_;
  }

  // The report with its bands; "null": no error is known, or it has not finished.
  std::string Summary() const {
    if (!band_) return "null";
    Report report = *report_;
    const std::optional<Banded> banded = band_->Put(Sureness(), report);
    return banded ? ReportJson(report, &*banded, ReportParts::kWithScenario) : "null";
  }

 private:
  BandedExperiment(Scenario scenario, Trace trace, Experiment experiment)
      : scenario_(std::move(scenario)),
        trace_(std::move(trace)),
        experiment_(std::move(experiment)) {}

  Scenario scenario_;
  Trace trace_;
  Experiment experiment_;
  std::optional<Report> report_;
  std::optional<ErrorBand> band_;
};

// A scenario that replays a trace waits for it.
class BoundBand final : public BoundAsked<BoundBand, BandedExperiment> {
 public:
  explicit BoundBand(const std::string& document) : document_(document) { Begin({}); }

  Result<BandedExperiment> Make(Trace trace) {
    return BandedExperiment::Create(document_, std::move(trace));
  }
  std::string Summary() const { return asked_ ? asked_->Summary() : "null"; }

 private:
  std::string document_;
};

EMSCRIPTEN_BINDINGS(servecast_band) {
  emscripten::class_<BoundBand>("Band")
      .constructor<std::string>()
      .function("error", static_cast<std::string (BoundBand::*)() const>(&BoundBand::Error))
      .function("setTrace",
                static_cast<std::string (BoundBand::*)(const BoundTrace&)>(&BoundBand::SetTrace))
      .function("advance", static_cast<bool (BoundBand::*)(double)>(&BoundBand::Advance))
      .function("summary", &BoundBand::Summary);
}

}  // namespace
}  // namespace servecast
