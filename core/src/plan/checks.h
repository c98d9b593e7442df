// An answer beside what `servecast run` says of the very scenarios that it is about: whether it
// holds there, and does not hold where it says that it would not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/json_writer.h"
#include "servecast/experiment.h"
#include "servecast/plan.h"
#include "servecast/report.h"
#include "servecast/scenario.h"
#include "servecast/trace.h"

namespace servecast {

struct Check {
  std::string of;  // "9 replicas"
  Scenario scenario;
  bool holds = true;  // as the answer has it
  double at = 0;      // the place of a curve; 0: of none
  // As of ExperimentOptions: as much as a run, or less where only a clear no would be news.
  std::int64_t most_work = ExperimentOptions().most_work;
  // Its report, where that run was made already; it outlives the checks. nullptr: it is made.
  const Report* known = nullptr;
};

// Experiments one after the other, each as long as that of a run. Resumable like one.
class Checks {
 public:
  Checks() = default;
  Checks(std::vector<Check> checks, Trace trace)
      : checks_(std::move(checks)), trace_(std::move(trace)) {}

  bool Advance(std::int64_t max_steps);
  double Progress() const;  // 0..1

  // The member "checked" of an open object: those that are done.
  void Write(JsonWriter& out) const;
  // Those that say otherwise than the answer, and what of the load or the fleet runs like them
  // never see, " " before each; empty: none does.
  std::string Sentence() const;
  // What was run at that place, as a place of the plan's curve.
  std::optional<PlanPoint> PointAt(double at) const;

 private:
  struct Done {
    std::optional<Report> report;  // none: it cannot run
    std::string reason;
  };
  bool Agrees(std::size_t i) const;
  const std::string& SaidOf(std::size_t i) const;

  std::vector<Check> checks_;
  Trace trace_;
  std::vector<Done> done_;
  std::optional<Experiment> current_;
};

// Of the ends of the interval: `low` holds, `high` does not. Where no load does, of the lightest
// that was tried.
std::vector<Check> ChecksOf(const Scenario& scenario, const PlanAnswer& answer);
// Of a single pool, or of a prefill and a decode pool: so many hold, and one replica (or group of
// them) fewer of a pool does not.
std::vector<Check> ChecksOf(const Scenario& scenario, const FleetAnswer& answer);
// With places of the curve that were checked in place of the plan's own.
FleetAnswer WithChecks(FleetAnswer answer, const Checks& checks);

}  // namespace servecast
