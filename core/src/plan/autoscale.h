// Which scaler keeps the targets over a load that changes, for the least GPU time: beside the
// fewest replicas that keep them throughout, and beside replicas by a schedule that knows the load.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/json_writer.h"
#include "plan/autoscale_policies.h"
#include "servecast/plan.h"
#include "servecast/report.h"
#include "servecast/result.h"
#include "servecast/scenario.h"
#include "servecast/trace.h"

namespace servecast {

inline constexpr double kAutoscaleWindowS = 300;

struct AutoscaleOptions {
  // The load of each hour, times the scenario's own rate; empty: the load as the scenario has it.
  std::vector<double> hours = {};
  // Runs of a policy, each with arrivals of its own; 4 to 30. A trace is one.
  std::int64_t days = 5;
  // Of windows_kept: a target beside the scenario's; 0 to 1.
  double windows = 0;
};

// One run of a policy.
struct AutoscaleDay {
  // By target: ms, or the share of attainment; none: too many requests had no answer.
  std::vector<std::optional<double>> values;
  bool met = false;  // all of them
  double gpu_hours = 0;
  std::int64_t peak_up = 0;
  // Of the windows of 300 s in which requests came: in which every target is kept.
  double windows_kept = 1;
};

struct AutoscaleRow {
  AutoscalePolicy policy;
  std::vector<AutoscaleDay> days;
  std::vector<ScalingReport::Step> steps;  // of the first; of fixed replicas none

  // Of a figure over the days, with a 95 % interval of the mean by Student's t; of fewer than four
  // days without one.
  struct Figure {
    double value = 0, low = 0, high = 0;
    bool sure = true;  // there is an interval
  };
  Figure GpuHours() const;
  // nullopt: no value on some day.
  std::optional<Figure> Value(std::size_t target) const;
  Figure WindowsKept() const;
  std::int64_t DaysMet() const;
  std::int64_t PeakUp() const;  // most
};

struct AutoscaleAnswer {
  // kNone: no scaler keeps the targets for certain for clearly less than fixed replicas take.
  PlanOutcome outcome = PlanOutcome::kUnknown;
  std::int64_t days = 0;  // of a row that was run to the end
  double windows = 0;     // of the options
  double span_s = 0, cold_start_s = 0;
  std::vector<AutoscaleRow> rows;  // all that were run, by kind and GPU-hours
  // Places in rows.
  std::optional<std::size_t> fixed, schedule, chosen;
  std::optional<double> price_per_gpu_hour;
  std::int64_t runs = 0, requests = 0;
};

// Whether a policy keeps all targets: kMeets and kMisses beyond its intervals, else kNear;
// kPartial: of fewer runs than asked for, none of which missed any.
VerdictState StateOf(const AutoscaleRow& row, const AutoscaleAnswer& answer,
                     const Scenario& scenario);

class AutoscalePlan {
 public:
  // Issues: those of Simulation::Create; options beyond their ranges; a load that does not change;
  // no target; what a scaler cannot go with.
  static Result<AutoscalePlan> Create(Scenario scenario, Trace trace, AutoscaleOptions options);

  AutoscalePlan(AutoscalePlan&&) noexcept;
  AutoscalePlan& operator=(AutoscalePlan&&) noexcept;
  ~AutoscalePlan();

  bool Advance(std::int64_t max_steps);  // as of Plan
  double Progress() const;
  AutoscaleAnswer Answer() const;    // rows on the way, the rest when finished
  const Scenario& scenario() const;  // with the hours' load
  const Issues& Problems() const;    // what stopped it on the way

 private:
  struct State;
  explicit AutoscalePlan(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Members of an open object.
void WriteAutoscale(const Scenario& scenario, const AutoscaleAnswer& answer, JsonWriter& out);
std::string AutoscaleSentence(const Scenario& scenario, const AutoscaleAnswer& answer);

}  // namespace servecast
