// One run of a scenario, kept step by step: what a person looks at who asks how batches formed. A
// run has more steps than memory: those of a window are kept, and of its requests those that are
// asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "servecast/report.h"
#include "servecast/result.h"
#include "servecast/simulation.h"

namespace servecast {

struct RecordingWindow {
  double from_s = 0;            // steps that begin earlier are not kept
  std::int64_t most_steps = 0;  // of all replicas together; later ones are not kept
};

// Of each step that is kept, in the order in which their output came; kind "step".
const std::vector<Column>& StepColumns();

class Recording {
 public:
  // Issues: those of Simulation::Create.
  static Result<Recording> Create(Scenario scenario, Trace trace, RecordingWindow window);

  Recording(Recording&&) noexcept;
  Recording& operator=(Recording&&) noexcept;
  ~Recording();

  bool Advance(std::int64_t max_steps);
  double Progress() const;
  // From now on the steps of the window are written as a time line, too (io/time_line.h).
  void KeepTimeLine();
  // What came since it was last taken; with `ends`, which is once, requests that arrived before the
  // last kept step ended.
  std::string TakeTimeLine(bool ends);
  // All that the window asked for is there: more steps of the run change no step column.
  bool WindowIsFull() const;

  // Empty when the name is none of StepColumns.
  const std::vector<double>& StepColumn(std::string_view name) const;

  // Complete requests, `first` of them passed over: by "ttft" or "e2e" those that took longest
  // first, else by arrival. O(requests).
  void Choose(std::string_view order, std::int64_t first, std::int64_t count);
  std::int64_t Complete() const;  // among which it chose
  // Of the chosen: "request", its number from 0, or a name of Columns() as far as a timeline needs
  // it.
  std::vector<double> RequestColumn(std::string_view name) const;

 private:
  struct State;
  explicit Recording(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace servecast
