// A run kept step by step, for who looks at how its batches formed.
#include <emscripten/bind.h>

#include <string>
#include <utility>
#include <vector>

#include "bound_asked.h"
#include "experiment/recording.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

class BoundRecording final : public BoundAsked<BoundRecording, Recording> {
 public:
  BoundRecording(const std::string& text, double from_s, double most_steps)
      : scenario_(ParseScenario(text)), window_{from_s, Steps(most_steps)} {
    Begin({});
  }

  Result<Recording> Make(Trace trace) {
    if (!scenario_.ok()) return scenario_.issues();
    return Recording::Create(scenario_.value(), std::move(trace), window_);
  }
  bool IsFull() const { return asked_ && asked_->WindowIsFull(); }
  void Choose(const std::string& order, double first, double count) {
    if (asked_)
      asked_->Choose(order, static_cast<std::int64_t>(first), static_cast<std::int64_t>(count));
  }
  void KeepTimeLine() {
    if (asked_) asked_->KeepTimeLine();
  }
  std::string TakeTimeLine(bool ends) {
    return asked_ ? asked_->TakeTimeLine(ends) : std::string();
  }
  double Complete() const { return asked_ ? static_cast<double>(asked_->Complete()) : 0; }
  emscripten::val Column(const std::string& name) {
    const std::vector<double>* column = &column_;
    column_.clear();
    if (asked_) {
      column = &asked_->StepColumn(name);
      if (name.rfind("step_", 0) != 0) column = &(column_ = asked_->RequestColumn(name));
    }
    return emscripten::val(emscripten::typed_memory_view(column->size(), column->data()));
  }

 private:
  Result<Scenario> scenario_;
  RecordingWindow window_;
  std::vector<double> column_;  // that the view is of
};

EMSCRIPTEN_BINDINGS(servecast_steps) {
  BindAsked<BoundRecording>("Recording")
      .constructor<std::string, double, double>()
      .function("isFull", &BoundRecording::IsFull)
      .function("choose", &BoundRecording::Choose)
      .function("keepTimeLine", &BoundRecording::KeepTimeLine)
      .function("takeTimeLine", &BoundRecording::TakeTimeLine)
      .function("complete", &BoundRecording::Complete)
      .function("column", &BoundRecording::Column);
}

}  // namespace
}  // namespace servecast
