// The boundary to JavaScript, as servecast.d.ts states it. No logic: what is worth testing natively
// is in core/. Nothing throws; text is JSON.
#include <emscripten/bind.h>

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "base/printable.h"
#include "bound_asked.h"
#include "bound_trace.h"
#include "experiment/explanation.h"
#include "io/json_writer.h"
#include "io/presets.h"
#include "servecast/experiment.h"
#include "servecast/report.h"
#include "servecast/scenario.h"
#include "servecast/simulation.h"
#include "servecast/trace.h"
#include "servecast/workload_spec.h"
#include "serving/hooks.h"
#include "workload/workload.h"

namespace servecast {

void WriteIssues(const Issues& issues, JsonWriter& out) {
  out.BeginArray();
  for (const Issue& issue : issues) {
    out.BeginObject();
    out.Key("path"), out.Text(Printable(issue.path));
    out.Key("message"), out.Text(Printable(issue.message));
    if (!issue.kind.empty()) out.Key("kind"), out.Text(issue.kind);
    out.EndObject();
  }
  out.EndArray();
}

std::string IssuesJson(const Issues& issues) {
  JsonWriter out(false);
  WriteIssues(issues, out);
  return out.Take();
}

namespace {

using emscripten::val;

std::string CanonicalJson(const Result<Scenario>& scenario) {
  JsonWriter out(false);
  out.BeginObject();
  out.Key("text"), out.Text(scenario.ok() ? scenario.value().canonical_text : "");
  out.Key("id"), out.Text(scenario.ok() ? HashText(scenario.value().id) : "");
  out.Key("issues");
  WriteIssues(scenario.ok() ? Issues{} : scenario.issues(), out);
  out.EndObject();
  return out.Take();
}

std::string Version() {
  JsonWriter out(false);
  out.BeginObject();
  out.Key("engine_version"), out.Text(kEngineVersion);
  out.Key("schema"), out.Integer(kScenarioSchema);
  out.EndObject();
  return out.Take();
}

std::string Validate(const std::string& text) {
  const Result<Scenario> scenario = ParseScenario(text);
  return IssuesJson(scenario.ok() ? Issues{} : scenario.issues());
}

std::string Canonical(const std::string& text) { return CanonicalJson(ParseScenario(text)); }

std::string Parse(const std::string& fragment) {
  const Result<std::string> text = ParseReadableLink(fragment);
  return CanonicalJson(text.ok() ? ParseScenario(text.value()) : Result<Scenario>(text.issues()));
}

std::string Provide(const std::string& file, const std::string& text) {
  return IssuesJson(ProvidePreset(file, text));
}

// Of requests; drawing them takes a few milliseconds.
constexpr std::int64_t kDrawnAtOnce = 20'000;

Result<Simulation> MakeRun(Scenario scenario, Trace trace, bool /*explained*/,
                           SimulationHooks /*hooks*/, const Simulation*) {
  return Simulation::Create(std::move(scenario), std::move(trace));
}
Result<Experiment> MakeRun(Scenario scenario, Trace trace, bool explained, SimulationHooks hooks,
                           const Experiment*) {
  ExperimentOptions options;
  options.names_limit = options.blames = explained;
  return Experiment::Create(std::move(scenario), std::move(trace), options, std::move(hooks));
}

// A scenario, its trace, and the run, or experiment, once it can be made: a traced one waits for
// its trace.
template <class Run>
class BoundRun {
 public:
  explicit BoundRun(const std::string& text) : BoundRun(text, false) {}
  BoundRun(const std::string& text, bool explained) : explained_(explained) {
    Result<Scenario> scenario = ParseScenario(text);
    if (!scenario.ok()) {
      issues_ = scenario.issues();
      return;
    }
    scenario_ = std::move(scenario.value());
    Make({});
  }

  std::string Error() const { return issues_.empty() ? "" : IssuesJson(issues_); }

  std::string SetTrace(const BoundTrace& bound) {
    if (!scenario_) return Error();
    if (!bound.trace().ok()) return IssuesJson(bound.trace().issues());
    Make(bound.trace().value());
    return Error();
  }

  // Requests are drawn first, where they are many; then the run is made, or refused.
  bool Advance(double max_steps) {
    if constexpr (kIsDrawn) {
      if (drawing_) {
        if (drawing_->Draw(Steps(max_steps))) Start();
        return !drawing_ && !run_;
      }
    }
    if (!run_) return true;
    report_.reset();
    return run_->Advance(Steps(max_steps));
  }
  double Drawn() const { return drawing_ ? drawing_->Progress() : 1; }
  double Progress() const { return run_ ? run_->Progress() : drawing_ ? 0 : 1; }

  std::string Summary() {
    if (!run_ && !report_) return "null";
    return ReportJson(Current(ReportDetail::kSummary), ReportParts::kWithScenario);
  }

  // Of an experiment.
  std::string Explanation() const {
    JsonWriter out(false);
    out.BeginObject();
    if (run_) WriteExplanation(*run_, out);
    out.EndObject();
    return out.Take();
  }

  val Column(const std::string& name) {
    if (!run_) return val(emscripten::typed_memory_view<double>(0, nullptr));
    const std::vector<double>* column = &Current(ReportDetail::kSummary).ColumnOf(name);
    // A column of a value per request is made only when it is asked for.
    if (column->empty()) column = &Current(ReportDetail::kRequests).ColumnOf(name);
    return val(emscripten::typed_memory_view(column->size(), column->data()));
  }

 private:
  // A simulation alone is of few requests.
  static constexpr bool kIsDrawn = std::is_same_v<Run, Experiment>;

  // The report lives until the run moves on, and grows when more of it is asked for.
  const Report& Current(ReportDetail detail) {
    if (run_ && (!report_ || detail > detail_)) {
      report_ = run_->Snapshot(detail);
      detail_ = detail;
    }
    return *report_;
  }

  // With a scenario that replays a trace, an issue until there is one.
  void Make(Trace trace) {
    issues_.clear();
    run_.reset();
    report_.reset();
    drawing_.reset();
    if constexpr (kIsDrawn) {
      if (trace.rows.empty() && scenario_->workload->requests > kDrawnAtOnce) return BeginDrawing();
    }
    const Run* kind = nullptr;
    Take(MakeRun(*scenario_, std::move(trace), explained_, SimulationHooks{}, kind));
  }

  void BeginDrawing() {
    issues_ = Simulation::Refusals(*scenario_, no_trace_);
    if (!issues_.empty()) {
      report_ = UnfitReport(*scenario_);
      return;
    }
    Result<RequestDrawing> drawing = RequestDrawing::Begin(*scenario_, no_trace_);
    if (drawing.ok()) {
      drawing_.emplace(std::move(drawing.value()));
    } else {
      issues_ = drawing.issues();
    }
  }

  // All requests are drawn.
  void Start() {
    Result<RequestTable> requests = drawing_->Take();
    drawing_.reset();
    if (!requests.ok()) {
      issues_ = requests.issues();
      return;
    }
    SimulationHooks hooks;
    hooks.requests = std::move(requests.value());
    const Run* kind = nullptr;
    Take(MakeRun(*scenario_, Trace{}, explained_, std::move(hooks), kind));
  }

  void Take(Result<Run> made) {
    if (made.ok()) {
      run_.emplace(std::move(made.value()));
    } else {
      issues_ = made.issues();
      report_ = UnfitReport(*scenario_);
    }
  }

  bool explained_;  // with the limit by relief, and where the time went
  Issues issues_;
  std::optional<Scenario> scenario_;
  Trace no_trace_;
  std::optional<RequestDrawing> drawing_;
  std::optional<Run> run_;
  std::optional<Report> report_;
  ReportDetail detail_ = ReportDetail::kSummary;
};

template <class Run>
emscripten::class_<BoundRun<Run>> BindRun(const char* name) {
  return emscripten::class_<BoundRun<Run>>(name)
      .function("error", &BoundRun<Run>::Error)
      .function("setTrace", &BoundRun<Run>::SetTrace)
      .function("advance", &BoundRun<Run>::Advance)
      .function("progress", &BoundRun<Run>::Progress)
      .function("summary", &BoundRun<Run>::Summary)
      .function("column", &BoundRun<Run>::Column);
}

EMSCRIPTEN_BINDINGS(servecast) {
  emscripten::function("version", &Version);
  emscripten::function("catalog", &CatalogJson);
  emscripten::function("validate", &Validate);
  emscripten::function("canonical", &Canonical);
  emscripten::function("parse", &Parse);
  emscripten::function("provide", &Provide);
  BindRun<Simulation>("Simulation").constructor<std::string>();
  BindRun<Experiment>("Experiment")
      .constructor<std::string, bool>()
      .function("drawn", &BoundRun<Experiment>::Drawn)
      .function("explanation", &BoundRun<Experiment>::Explanation);
}

}  // namespace
}  // namespace servecast
