// How far a plan's answer goes with a stated probability: where on its line all targets are met
// with 90 %, and where at even odds, the forecast's error included (servecast/error_band.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "io/json_writer.h"
#include "plan/line.h"
#include "servecast/error_band.h"
#include "servecast/experiment.h"
#include "servecast/plan.h"
#include "servecast/report.h"
#include "servecast/scenario.h"
#include "servecast/trace.h"

namespace servecast {

// Of a load the highest with the probability, of replicas the fewest. No lighter place that was
// tried has less, and none is beyond the answer's interval.
struct SureAnswer {
  std::optional<double> sure, even;  // at 90 %, at 50 %; none: at no place that was tried
  double best_at = 0, best = 0;      // the most probable place, and its probability
};

// An answer on a line: the place that is tried first, and the heaviest that its interval allows.
struct SureRange {
  double first = 0, heaviest = 0;
};

// The probability of a place is what `servecast run` says of its scenario: that of an experiment
// and its band. Few places are tried, as each takes as much work as a run.
class SurePlaces {
 public:
  // nullopt: no error is known of the scenario, or it has no such line.
  static std::optional<SurePlaces> Create(Scenario scenario, Trace trace, PlanOptions options,
                                          const SureRange& range);

  // At most about `max_steps` engine steps of one run; true when finished.
  bool Advance(std::int64_t max_steps);
  double Progress() const;
  // nullopt: at some place nothing could be told.
  std::optional<SureAnswer> Answer() const;
  // What `servecast run --sampling` says of a place; nullptr: it was not asked.
  const Report* ReportAt(double at) const;

 private:
  SurePlaces(Scenario scenario, Trace trace, PlanOptions options, Line line,
             const SureRange& range);

  // Where to look next for the place with this probability; nullopt: it is known, or out of reach.
  std::optional<double> NextFor(double probability) const;
  struct Place {
    double at = 0;
    std::int64_t most_work = 0;  // as of ExperimentOptions
  };
  std::optional<Place> Next() const;
  // What is tried of a place of the line: whole, or with three digits, as it is said.
  double Rounded(double at) const;
  // A place that was not tried and is lighter than `at`, or nullopt.
  std::optional<double> Lighter(double at, double along) const;
  bool BeginExperiment();
  bool TakeProbability();

  Scenario scenario_;
  Trace trace_;
  PlanOptions options_;
  Line line_;
  SureRange range_;
  std::map<double, double> known_;    // probability by place
  std::map<double, Report> reports_;  // likewise
  std::set<double> cut_short_;        // of those whose runs had less work than a run's
  std::optional<Place> under_way_;
  std::optional<Experiment> experiment_;
  std::optional<ErrorBand> band_;
  bool failed_ = false, finished_ = false;
};

void WriteSure(const std::optional<SureAnswer>& answer, JsonWriter& out);
// One more sentence, with a space before it; "" where nothing is known. `unit`: of a load.
std::string SureSentence(const std::optional<SureAnswer>& answer, bool load, std::string_view unit);

}  // namespace servecast
