// What the bindings of everything that is asked of a scenario, and advanced to its end, share.
#pragma once

#include <emscripten/bind.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "bound_trace.h"
#include "servecast/result.h"
#include "servecast/trace.h"

namespace servecast {

// A number of steps as JavaScript says it; at least one, whatever it is.
inline std::int64_t Steps(double asked) {
  const bool countable = asked >= 1 && asked < 0x1p53;  // false for NaN too
  return static_cast<std::int64_t>(countable ? asked : asked >= 0x1p53 ? 0x1p53 : 1);
}

// `Derived::Make(Trace)` makes it, or says why it cannot be: what replays a trace waits for one.
// Derived's constructor ends with Begin({}).
template <class Derived, class Asked>
class BoundAsked {
 public:
  std::string Error() const {
    const Issues* issues = &issues_;
    if constexpr (requires(const Asked& asked) { asked.Problems(); }) {
      if (asked_) issues = &asked_->Problems();
    }
    return issues->empty() ? "" : IssuesJson(*issues);
  }
  std::string SetTrace(const BoundTrace& bound) {
    if (!bound.trace().ok()) return IssuesJson(bound.trace().issues());
    Begin(bound.trace().value());
    return Error();
  }
  bool Advance(double max_steps) { return !asked_ || asked_->Advance(Steps(max_steps)); }
  double Progress() const { return asked_ ? asked_->Progress() : 1; }

 protected:
  void Begin(Trace trace) {
    issues_.clear();
    asked_.reset();
    Result<Asked> made = static_cast<Derived*>(this)->Make(std::move(trace));
    if (made.ok()) {
      asked_.emplace(std::move(made.value()));
    } else {
      issues_ = made.issues();
    }
  }

  std::optional<Asked> asked_;

 private:
  Issues issues_;
};

// With those of its functions that all have; embind wants them as its own, not as inherited.
template <class Bound>
emscripten::class_<Bound> BindAsked(const char* name) {
  return emscripten::class_<Bound>(name)
      .function("error", static_cast<std::string (Bound::*)() const>(&Bound::Error))
      .function("setTrace",
                static_cast<std::string (Bound::*)(const BoundTrace&)>(&Bound::SetTrace))
      .function("advance", static_cast<bool (Bound::*)(double)>(&Bound::Advance))
      .function("progress", static_cast<double (Bound::*)() const>(&Bound::Progress));
}

}  // namespace servecast
