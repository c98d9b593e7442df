// The one deep module: Scenario -> Simulation -> Report, resumable.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "servecast/report.h"
#include "servecast/result.h"
#include "servecast/scenario.h"
#include "servecast/trace.h"

namespace servecast {

// Where a scenario is refused because its model does not fit: a report with that verdict, the sum
// that does not fit, and nothing else. None of what fits.
std::optional<Report> UnfitReport(const Scenario& scenario);

struct RunRecords;       // core/src/metrics/records.h: its requests, for experiments
struct SimulationHooks;  // core/src/serving/hooks.h: tests put their own step time and observer in

// A movable value; any number may coexist. No clock, file, thread, log or global in it: the same
// resolved scenario and trace give the same bits, on any machine, whatever the slices.
class Simulation {
 public:
  // Issues: a model that does not fit, a trace that is missing, a workload that cannot be.
  static Result<Simulation> Create(Scenario scenario, Trace trace = {});
  static Result<Simulation> Create(Scenario scenario, Trace trace, SimulationHooks hooks);
  // What Create refuses without a look at the requests, for who draws them a part at a time.
  static Issues Refusals(Scenario scenario, const Trace& trace);

  Simulation(Simulation&&) noexcept;
  Simulation& operator=(Simulation&&) noexcept;
  ~Simulation();

  // Runs at most `max_steps` engine steps, or one more a replica; true when finished. O(1) per step
  // of unchanged batch. Replicas run apart: how far each has come in an unfinished run of several
  // depends on the slices, what the run ends with does not.
  bool Advance(std::int64_t max_steps);

  // 0..1, never falls; 1 only when finished.
  double Progress() const;

  // What is known so far; final when finished. O(requests).
  Report Snapshot(ReportDetail detail = ReportDetail::kRequests) const;

  // The requests of a report without making one. O(1), or O(attempts) where clients try again.
  RunRecords Records() const;
  // Likewise by attempt, as steps name them: the same where clients do not try again. O(1).
  RunRecords Attempts() const;

 private:
  struct State;
  explicit Simulation(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace servecast
