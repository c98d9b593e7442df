// Questions of capacity: how much load, how many GPUs, for how long, and what if.
#include <emscripten/bind.h>
#include <emscripten/val.h>

#include <string>
#include <utility>

#include "bound_asked.h"
#include "plan/question.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

class BoundPlan final : public BoundAsked<BoundPlan, Question> {
 public:
  BoundPlan(std::string name, const std::string& text, double percent, double months, double spike,
            double spike_s, double input_price, double output_price, const emscripten::val& hours,
            double days, double windows)
      : name_(std::move(name)), scenario_(ParseScenario(text)) {
    options_.percent = percent;
    options_.months = Steps(months);
    options_.drill.spike = spike;
    options_.drill.spike_s = spike_s;
    options_.api = {input_price, output_price};
    options_.hours = emscripten::convertJSArrayToNumberVector<double>(hours);
    options_.days = Steps(days);
    options_.windows = windows;
    Begin({});
  }

  Result<Question> Make(Trace trace) {
    if (!scenario_.ok()) return scenario_.issues();
    return Question::Create(name_, scenario_.value(), std::move(trace), options_);
  }
  std::string Answer() const { return asked_ ? asked_->Json(/*for_people=*/false) : "null"; }
  std::string Sentence() const { return asked_ ? asked_->Sentence() : ""; }

 private:
  std::string name_;
  Result<Scenario> scenario_;
  QuestionOptions options_;
};

EMSCRIPTEN_BINDINGS(servecast_plan) {
  BindAsked<BoundPlan>("Plan")
      .constructor<std::string, std::string, double, double, double, double, double, double,
                   emscripten::val, double, double>()
      .function("answer", &BoundPlan::Answer)
      .function("sentence", &BoundPlan::Sentence);
}

}  // namespace
}  // namespace servecast
