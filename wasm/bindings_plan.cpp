// Questions of capacity: how much load, how many GPUs, for how long, and what if.
#include <emscripten/bind.h>

#include <optional>
#include <string>
#include <utility>

#include "bound_trace.h"
#include "plan/question.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

// A traced scenario waits for its trace.
class BoundPlan {
 public:
  BoundPlan(std::string name, const std::string& text, double percent, double months, double spike,
            double spike_s)
      : name_(std::move(name)) {
    options_.percent = percent;
    options_.months = static_cast<std::int64_t>(months);
    options_.drill.spike = spike;
    options_.drill.spike_s = spike_s;
    Result<Scenario> scenario = ParseScenario(text);
    if (!scenario.ok()) {
      issues_ = scenario.issues();
      return;
    }
    scenario_ = std::move(scenario.value());
    Make({});
  }

  std::string Error() const {
    const Issues& issues = question_ ? question_->Problems() : issues_;
    return issues.empty() ? "" : IssuesJson(issues);
  }
  std::string SetTrace(const BoundTrace& bound) {
    if (!bound.trace().ok()) return IssuesJson(bound.trace().issues());
    if (scenario_) Make(bound.trace().value());
    return Error();
  }
  bool Advance(double max_steps) {
    return !question_ || question_->Advance(static_cast<std::int64_t>(max_steps));
  }
  double Progress() const { return question_ ? question_->Progress() : 1; }
  std::string Answer() const { return question_ ? question_->Json(/*for_people=*/false) : "null"; }
  std::string Sentence() const { return question_ ? question_->Sentence() : ""; }

 private:
  void Make(Trace trace) {
    issues_.clear();
    question_.reset();
    Result<Question> made = Question::Create(name_, *scenario_, std::move(trace), options_);
    if (made.ok()) {
      question_.emplace(std::move(made.value()));
    } else {
      issues_ = made.issues();
    }
  }

  std::string name_;
  QuestionOptions options_;
  Issues issues_;
  std::optional<Scenario> scenario_;
  std::optional<Question> question_;
};

EMSCRIPTEN_BINDINGS(servecast_plan) {
  emscripten::class_<BoundPlan>("Plan")
      .constructor<std::string, std::string, double, double, double, double>()
      .function("error", &BoundPlan::Error)
      .function("setTrace", &BoundPlan::SetTrace)
      .function("advance", &BoundPlan::Advance)
      .function("progress", &BoundPlan::Progress)
      .function("answer", &BoundPlan::Answer)
      .function("sentence", &BoundPlan::Sentence);
}

}  // namespace
}  // namespace servecast
