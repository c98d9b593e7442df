// Bands of a scenario's targets, and its verdict with them, as `servecast run` has them. Asked for
// once a first verdict stands, so of the whole module.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "bound_asked.h"
#include "servecast/error_band.h"
#include "servecast/experiment.h"
#include "servecast/report.h"
#include "servecast/scenario.h"
#include "servecast/simulation.h"
#include "servecast/workload_spec.h"
#include "serving/hooks.h"
#include "workload/workload.h"

namespace servecast {
namespace {

// Of requests; drawing more of them takes longer than a slice.
constexpr std::int64_t kDrawnAtOnce = 20'000;

// The experiment, made again in this module, then the runs that its bands take.
class BandedExperiment {
 public:
  static Result<BandedExperiment> Create(const std::string& document, Trace trace) {
    Result<Scenario> scenario = ParseScenario(document);
    if (!scenario.ok()) return scenario.issues();
    Issues refused = Simulation::Refusals(scenario.value(), trace);
    if (!refused.empty()) return refused;
    BandedExperiment made(std::move(scenario.value()), std::move(trace));
    if (made.inputs_->trace.rows.empty() &&
        made.inputs_->scenario.workload->requests > kDrawnAtOnce) {
      Result<RequestDrawing> drawing =
          RequestDrawing::Begin(made.inputs_->scenario, made.inputs_->trace);
      if (!drawing.ok()) return drawing.issues();
      made.drawing_.emplace(std::move(drawing.value()));
    } else {
      made.Start(SimulationHooks{});
      if (!made.issues_.empty()) return made.issues_;
    }
    return made;
  }

  // Why it cannot go on.
  const Issues& Problems() const { return issues_; }

  // True when finished, or when there are problems.
  bool Advance(std::int64_t max_steps) {
    if (!issues_.empty()) return true;
    if (drawing_) return Draw(max_steps);
    if (band_) return band_->Advance(max_steps);
    if (report_) return true;
    if (!experiment_->Advance(max_steps)) return false;
    report_ = experiment_->Snapshot(ReportDetail::kSummary);
    experiment_.reset();
    band_ = ErrorBand::Create(inputs_->scenario, inputs_->trace, *report_);
    return !band_;
  }

  // The report with its bands; "null": no error is known. Requires: finished.
  std::string Summary() const {
    if (!band_) return "null";
    Report report = *report_;
    const std::optional<Banded> banded = band_->Put(Sureness(), report);
    return banded ? ReportJson(report, &*banded, ReportParts::kWithScenario) : "null";
  }

 private:
  // What drawing refers to while this moves.
  struct Inputs {
    Scenario scenario;
    Trace trace;
  };

  BandedExperiment(Scenario scenario, Trace trace)
      : inputs_(std::make_unique<Inputs>(Inputs{std::move(scenario), std::move(trace)})) {}

  bool Draw(std::int64_t most) {
    if (!drawing_->Draw(most)) return false;
    Result<RequestTable> requests = drawing_->Take();
    drawing_.reset();
    if (!requests.ok()) {
      issues_ = requests.issues();
      return true;
    }
    SimulationHooks hooks;
    hooks.requests = std::move(requests.value());
    Start(std::move(hooks));
    return !issues_.empty();
  }

  void Start(SimulationHooks hooks) {
    Result<Experiment> made = Experiment::Create(inputs_->scenario, inputs_->trace,
                                                 ExperimentOptions(), std::move(hooks));
    if (made.ok()) {
      experiment_.emplace(std::move(made.value()));
    } else {
      issues_ = made.issues();
    }
  }

  std::unique_ptr<Inputs> inputs_;
  Issues issues_;
  std::optional<RequestDrawing> drawing_;
  std::optional<Experiment> experiment_;
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
