// One task of a search: what a design needs to keep its targets, as surely as its rung asks for. A
// pure function of the task and the trace: tasks may run anywhere, in any order.
#pragma once

#include <cstdint>
#include <memory>

#include "servecast/design.h"
#include "servecast/result.h"
#include "servecast/trace.h"

namespace servecast {

class DesignPlan {
 public:
  // What is wrong with the design is in its point. Issues: of kind "missing_file", of files that
  // are not here; then nothing is begun.
  static Result<DesignPlan> Create(const DesignTask& task, Trace trace = {});

  DesignPlan(DesignPlan&&) noexcept;
  DesignPlan& operator=(DesignPlan&&) noexcept;
  ~DesignPlan();

  // At most about `max_steps` engine steps of one run; true when finished. Slices change nothing.
  bool Advance(std::int64_t max_steps);
  double Progress() const;  // 0..1, never falls; 1 only when finished
  DesignPoint Point() const;

 private:
  struct State;
  explicit DesignPlan(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace servecast
