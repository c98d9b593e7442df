// The boundary to JavaScript, as servecast.d.ts states it. No logic: what is worth testing natively
// is in core/. Nothing throws; text is JSON.
#include <emscripten/bind.h>

#include <optional>
#include <string>
#include <utility>

#include "base/printable.h"
#include "io/coefficients.h"
#include "io/json_writer.h"
#include "io/presets.h"
#include "io/replaying.h"
#include "servecast/report.h"
#include "servecast/scenario.h"
#include "servecast/simulation.h"
#include "servecast/trace.h"

namespace servecast {
namespace {

using emscripten::val;

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

std::string Coefficients(const std::string& document, const std::string& file) {
  return CoefficientsJson(document, file);
}

// A trace file as it comes in, then its rows, which any number of runs replay.
class BoundTrace {
 public:
  explicit BoundTrace(const std::string& name) : reader_(TraceReader(name)) {}

  bool Add(const std::string& bytes) { return reader_ && reader_->Add(bytes); }

  std::string Finish() {
    if (reader_) trace_ = reader_->Finish();
    reader_.reset();
    const bool good = trace_.ok();
    JsonWriter out(false);
    out.BeginObject();
    out.Key("format"), out.Text(good ? trace_.value().format : "");
    out.Key("reading"), out.Text(good ? trace_.value().reading : "");
    const std::size_t rows = good ? trace_.value().rows.size() : 0;
    out.Key("requests"), out.Integer(static_cast<std::int64_t>(rows));
    out.Key("has_arrivals"), out.Boolean(good && trace_.value().has_arrivals);
    out.Key("issues");
    WriteIssues(good ? Issues{} : trace_.issues(), out);
    out.EndObject();
    return out.Take();
  }

  // Of a bad one, as if it had arrivals: a run is then refused for the trace.
  std::string Replaying(const std::string& document) const {
    return ReplayingDocument(document, !trace_.ok() || trace_.value().has_arrivals);
  }

  std::string Fit() const {
    if (!trace_.ok()) return IssuesJson(trace_.issues());
    const Result<std::string> fit = FitTraceJson(trace_.value());
    return fit.ok() ? fit.value() : IssuesJson(fit.issues());
  }

  const Result<Trace>& trace() const { return trace_; }

 private:
  std::optional<TraceReader> reader_;  // until the file has ended
  Result<Trace> trace_ = Issue{"", "the trace has not been read to its end"};
};

// A scenario, its trace, and the run once it can be made: a traced one waits for its trace.
class BoundSimulation {
 public:
  explicit BoundSimulation(const std::string& text) {
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

  bool Advance(double max_steps) {
    report_.reset();
    const bool countable = max_steps >= 1 && max_steps < 0x1p53;  // false for NaN too
    const double steps = countable ? max_steps : max_steps >= 0x1p53 ? 0x1p53 : 1;
    return !simulation_ || simulation_->Advance(static_cast<std::int64_t>(steps));
  }
  double Progress() const { return simulation_ ? simulation_->Progress() : 1; }

  std::string Summary() {
    return simulation_ ? ReportJson(Current(ReportDetail::kSummary), ReportParts::kWithScenario)
                       : "null";
  }

  val Column(const std::string& name) {
    if (!simulation_) return val(emscripten::typed_memory_view<double>(0, nullptr));
    const std::vector<double>* column = &Current(ReportDetail::kSummary).ColumnOf(name);
    // A column of a value per request is made only when it is asked for.
    if (column->empty()) column = &Current(ReportDetail::kRequests).ColumnOf(name);
    return val(emscripten::typed_memory_view(column->size(), column->data()));
  }

 private:
  // The report lives until the run moves on, and grows when more of it is asked for.
  const Report& Current(ReportDetail detail) {
    if (!report_ || detail > detail_) {
      report_ = simulation_->Snapshot(detail);
      detail_ = detail;
    }
    return *report_;
  }

  // With a scenario that replays a trace, an issue until there is one.
  void Make(Trace trace) {
    issues_.clear();
    simulation_.reset();
    report_.reset();
    Result<Simulation> made = Simulation::Create(*scenario_, std::move(trace));
    if (made.ok()) {
      simulation_.emplace(std::move(made.value()));
    } else {
      issues_ = made.issues();
    }
  }

  Issues issues_;
  std::optional<Scenario> scenario_;
  std::optional<Simulation> simulation_;
  std::optional<Report> report_;
  ReportDetail detail_ = ReportDetail::kSummary;
};

EMSCRIPTEN_BINDINGS(servecast) {
  emscripten::function("version", &Version);
  emscripten::function("catalog", &CatalogJson);
  emscripten::function("validate", &Validate);
  emscripten::function("canonical", &Canonical);
  emscripten::function("parse", &Parse);
  emscripten::function("provide", &Provide);
  emscripten::function("coefficients", &Coefficients);
  emscripten::class_<BoundTrace>("Trace")
      .constructor<std::string>()
      .function("add", &BoundTrace::Add)
      .function("finish", &BoundTrace::Finish)
      .function("replaying", &BoundTrace::Replaying)
      .function("fit", &BoundTrace::Fit);
  emscripten::class_<BoundSimulation>("Simulation")
      .constructor<std::string>()
      .function("error", &BoundSimulation::Error)
      .function("setTrace", &BoundSimulation::SetTrace)
      .function("advance", &BoundSimulation::Advance)
      .function("progress", &BoundSimulation::Progress)
      .function("summary", &BoundSimulation::Summary)
      .function("column", &BoundSimulation::Column);
}

}  // namespace
}  // namespace servecast
