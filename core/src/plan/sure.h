// How far a plan's answer goes with a stated probability: where on its line all targets are met
// with 90 %, and where at even odds, the forecast's error included (servecast/error_band.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "io/json_writer.h"
#include "plan/line.h"
#include "servecast/error_band.h"
#include "servecast/plan.h"
#include "servecast/scenario.h"
#include "servecast/trace.h"

namespace servecast {

// Places on the line are tried from the plan's answer on. Of a load the highest with the
// probability, of replicas the fewest.
struct SureAnswer {
  std::optional<double> sure, even;  // at 90 %, at 50 %; none: at no place that was tried
  double best_at = 0, best = 0;      // the most probable place, and its probability
};

class SurePlaces {
 public:
  // nullopt: no error is known of the scenario, or it has no such line.
  static std::optional<SurePlaces> Create(Scenario scenario, Trace trace, PlanOptions options,
                                          double answer);

  // At most about `max_steps` engine steps of one run; true when finished.
  bool Advance(std::int64_t max_steps);
  double Progress() const;
  // nullopt: at some place nothing could be told.
  std::optional<SureAnswer> Answer() const;

 private:
  SurePlaces(Scenario scenario, Trace trace, PlanOptions options, Line line, double answer);

  // Where to look next for the place with this probability; nullopt: it is known, or out of reach.
  std::optional<double> NextFor(double probability) const;
  std::optional<double> Next() const;
  double Worse(double at) const;
  double Better(double at) const;

  Scenario scenario_;
  Trace trace_;
  PlanOptions options_;
  Line line_;
  double answer_ = 0;
  std::map<double, double> known_;  // probability by place
  std::optional<double> at_;        // of the run under way
  std::optional<ErrorBand> band_;
  bool failed_ = false, finished_ = false;
};

void WriteSure(const std::optional<SureAnswer>& answer, JsonWriter& out);
// One more sentence, with a space before it; "" where nothing is known. `unit`: of a load.
std::string SureSentence(const std::optional<SureAnswer>& answer, bool load, std::string_view unit);

}  // namespace servecast
