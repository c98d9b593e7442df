// How many replicas each hour of a day needs, where its load comes and goes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/json_writer.h"
#include "servecast/plan.h"
#include "servecast/result.h"
#include "servecast/scenario.h"
#include "servecast/trace.h"

namespace servecast {

inline constexpr std::size_t kMostHours = 168;  // a week
inline constexpr double kLeastOfDay = 0.001, kMostOfDay = 1000;

struct DayOptions {
  std::vector<double> hours;  // the load of each, times the scenario's own
  PlanOptions plan;           // of every number of replicas; its line is not read
};

Issues IssuesOf(const DayOptions& options);
// Those of the loads of hours alone: too many, or beyond their range.
void CheckHours(const std::vector<double>& hours, Issues& issues);

struct DayHour {
  double load = 0;
  // The fewest that keep the targets, with the ends of the 95 % interval; and the load that so many
  // hold.
  std::int64_t replicas = 0, low = 0, high = 0;
  double held = 0;
};

struct DayAnswer {
  PlanOutcome outcome = PlanOutcome::kUnknown;  // kFound: of every hour
  std::vector<DayHour> hours;
  std::string_view unit;  // of loads
  std::int64_t gpus_per_replica = 1;
  std::optional<double> price_per_gpu_hour;
  std::int64_t runs = 0;
  std::optional<NeverKept> never;  // as of PlanAnswer
};

// Hours are taken for themselves: each is long beside what its requests take, replicas come and go
// at once between them, and requests that wait are not carried over.
class DayPlan {
 public:
  // Issues: those of Plan::Create; options beyond their ranges; several pools.
  static Result<DayPlan> Create(Scenario scenario, Trace trace, DayOptions options);

  DayPlan(DayPlan&&) noexcept;
  DayPlan& operator=(DayPlan&&) noexcept;
  ~DayPlan();

  bool Advance(std::int64_t max_steps);  // as of Plan
  double Progress() const;
  DayAnswer Answer() const;  // kUnknown until finished

 private:
  struct State;
  explicit DayPlan(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Members of an open object.
void WriteDay(const DayAnswer& answer, JsonWriter& out);
std::string DaySentence(const Scenario& scenario, const DayAnswer& answer);

}  // namespace servecast
