// A run kept step by step, for who looks at how its batches formed.
#include <emscripten/bind.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bound_trace.h"
#include "experiment/recording.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

class BoundRecording {
 public:
  BoundRecording(const std::string& text, double from_s, double most_steps)
      : window_{from_s, static_cast<std::int64_t>(most_steps)} {
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
    if (!bound.trace().ok()) return IssuesJson(bound.trace().issues());
    if (scenario_) Make(bound.trace().value());
    return Error();
  }
  bool Advance(double max_steps) {
    return !run_ || run_->Advance(static_cast<std::int64_t>(max_steps));
  }
  double Progress() const { return run_ ? run_->Progress() : 1; }
  bool IsFull() const { return run_ && run_->WindowIsFull(); }
  void Choose(const std::string& order, double first, double count) {
    if (run_)
      run_->Choose(order, static_cast<std::int64_t>(first), static_cast<std::int64_t>(count));
  }
  double Complete() const { return run_ ? static_cast<double>(run_->Complete()) : 0; }
  emscripten::val Column(const std::string& name) {
    const std::vector<double>* column = &column_;
    column_.clear();
    if (run_) {
      column = &run_->StepColumn(name);
      if (name.rfind("step_", 0) != 0) column = &(column_ = run_->RequestColumn(name));
    }
    return emscripten::val(emscripten::typed_memory_view(column->size(), column->data()));
  }

 private:
  void Make(Trace trace) {
    issues_.clear();
    run_.reset();
    Result<Recording> made = Recording::Create(*scenario_, std::move(trace), window_);
    if (made.ok()) {
      run_.emplace(std::move(made.value()));
    } else {
      issues_ = made.issues();
    }
  }

  RecordingWindow window_;
  Issues issues_;
  std::optional<Scenario> scenario_;
  std::optional<Recording> run_;
  std::vector<double> column_;  // that the view is of
};

EMSCRIPTEN_BINDINGS(servecast_steps) {
  emscripten::class_<BoundRecording>("Recording")
      .constructor<std::string, double, double>()
      .function("error", &BoundRecording::Error)
      .function("setTrace", &BoundRecording::SetTrace)
      .function("advance", &BoundRecording::Advance)
      .function("progress", &BoundRecording::Progress)
      .function("isFull", &BoundRecording::IsFull)
      .function("choose", &BoundRecording::Choose)
      .function("complete", &BoundRecording::Complete)
      .function("column", &BoundRecording::Column);
}

}  // namespace
}  // namespace servecast
