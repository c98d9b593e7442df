// Constants from a person's measurements: files in, a fit in slices, and a pack.
#include <emscripten/bind.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "bound_asked.h"
#include "bound_trace.h"
#include "calibrate/answer.h"
#include "calibrate/calibrate.h"
#include "calibrate/design.h"
#include "calibrate/pack.h"
#include "calibrate/server.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 28;

class BoundCalibration final {
 public:
  // `document`: of the open scenario, which is the server where the files do not name one; `date`:
  // of today.
  BoundCalibration(std::string document, std::string date)
      : document_(std::move(document)), date_(std::move(date)) {}

  void Begin(const std::string& name, double bytes) {
    name_ = Printable(name);
    text_.clear();
    if (bytes > 0 && bytes < static_cast<double>(kMostBytes)) {
      text_.reserve(static_cast<std::size_t>(bytes));
    }
  }
  bool Add(const std::string& bytes) {
    if (text_.size() + bytes.size() > kMostBytes) return false;
    text_ += bytes;
    return true;
  }
  std::string End(bool held_out) {
    Result<Measurements> read = ReadMeasurements(text_, name_);
    std::string().swap(text_);
    JsonWriter out(false);
    out.BeginObject();
    out.Key("found"), out.Text(read.ok() ? Printable(read.value().found[0]) : "");
    out.Key("issues"), WriteIssues(read.ok() ? Issues{} : read.issues(), out);
    out.EndObject();
    if (read.ok()) {
      for (CalibrationPoint& point : read.value().points) point.held_out |= held_out;
      for (MeasuredPower& power : read.value().power) power.held_out |= held_out;
      AddMeasurements(std::move(read.value()), all_);
    }
    return out.Take();
  }

  // All files are read: JSON Issue[]. Asked again once files that these name are provided.
  std::string Fit() {
    run_.reset();
    design_.reset();
    scenario_.reset();
    Measurements measured = all_;
    // The answer's document needs them, too.
    const Result<Scenario> open = ParseScenario(document_);
    if (!open.ok() && open.issues()[0].kind == "missing_file") return IssuesJson(open.issues());
    Result<std::string> named = ServerDocument(measured.server);
    const bool own = !named.ok();
    Result<Scenario> scenario = ParseScenario(own ? document_ : named.value());
    if (!scenario.ok()) return IssuesJson(scenario.issues());
    if (own) {
      for (const std::string& line : ServerMismatches(measured.server, scenario.value())) {
        measured.warnings.push_back(line);
      }
    }
    scenario_ = std::move(scenario.value());
    if (measured.points.empty()) {  // advice alone
      design_.emplace(*scenario_, Measurements{}, "");
    } else {
      run_.emplace(*scenario_, std::move(measured));
    }
    return "[]";
  }
  // "" or JSON Issue[].
  std::string Error() const {
    if (run_ && finished_run_ && !run_->answer().ok()) return IssuesJson(run_->answer().issues());
    if (design_ && finished_ && !design_->answer().ok()) {
      return IssuesJson(design_->answer().issues());
    }
    return "";
  }
  bool Advance(double requests) {
    if (!scenario_) return true;
    if (run_ && !finished_run_) {
      finished_run_ = run_->Advance(Steps(requests));
      if (!finished_run_ || !run_->answer().ok()) return finished_run_;
      Scenario fitted = *scenario_;
      for (const FittedParameter& p : run_->answer().value().fitted) {
        p.parameter->write(fitted, p.value);
      }
      design_.emplace(fitted, run_->measurements(), run_->measurements().server.model);
      return false;
    }
    finished_ = !design_ || design_->Advance(Steps(requests));
    return finished_;
  }
  double Progress() const {
    constexpr double kFit = 0.9;  // the rest is advice
    if (!run_) return finished_ ? 1 : 0;
    return finished_run_ ? (finished_ ? 1 : kFit) : kFit * run_->Progress();
  }
  double Tried() const { return run_ ? static_cast<double>(run_->Servers()) : 0; }
  std::string Answer() const {
    if (!run_) return AdviceJson(design_->answer().value());
    return CalibrationJson(run_->answer().value(), run_->measurements(), *scenario_, document_,
                           design_->answer().value(), date_);
  }

 private:
  std::string document_, date_, name_, text_;
  Measurements all_;
  std::optional<Scenario> scenario_;
  std::optional<CalibrationRun> run_;
  std::optional<MeasurementDesign> design_;
  bool finished_run_ = false, finished_ = false;
};

// A pack put into a document: JSON {document, issues}.
std::string UsePack(const std::string& document, const std::string& text) {
  const Result<CalibrationPack> pack = ReadPack(text);
  const Result<std::string> used =
      pack.ok() ? CalibratedDocument(document, pack.value()) : Result<std::string>(pack.issues());
  JsonWriter out(false);
  out.BeginObject();
  out.Key("document"), out.Text(used.ok() ? used.value() : "");
  out.Key("issues"), WriteIssues(used.ok() ? Issues{} : used.issues(), out);
  out.EndObject();
  return out.Take();
}

EMSCRIPTEN_BINDINGS(servecast_calibrate) {
  emscripten::function("usePack", &UsePack);
  emscripten::class_<BoundCalibration>("Calibration")
      .constructor<std::string, std::string>()
      .function("begin", &BoundCalibration::Begin)
      .function("add", &BoundCalibration::Add)
      .function("end", &BoundCalibration::End)
      .function("fit", &BoundCalibration::Fit)
      .function("error", &BoundCalibration::Error)
      .function("advance", &BoundCalibration::Advance)
      .function("progress", &BoundCalibration::Progress)
      .function("tried", &BoundCalibration::Tried)
      .function("answer", &BoundCalibration::Answer);
}

}  // namespace
}  // namespace servecast
