// Questions of capacity, each answered by many runs: how much load a deployment holds within its
// targets, and how many replicas a load needs. Resumable like a simulation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "servecast/result.h"
#include "servecast/scenario.h"
#include "servecast/trace.h"

namespace servecast {

// What is varied while all else, the seeds among it, stays.
enum class PlanLine {
  kLoad,  // arrivals of all classes in proportion, the speed of a trace, or the clients of a loop
  kReplicas,  // of one pool
};

struct PlanOptions {
  PlanLine line = PlanLine::kLoad;
  std::size_t pool = 0;     // kReplicas: whose
  double precision = 0.03;  // of a load: half the interval's width, of the value; 0.001 to 0.5
  // Where it ends at the latest: engine steps and requests of all runs together.
  std::int64_t most_work = 12'000'000;
  // The same of all questions of a FleetPlan with two pools; 0: as many as it has. Beyond it no
  // exchange is tried, and ends of intervals are those of one pool alone.
  std::int64_t most_work_in_all = 0;
  // For who has many such questions: one run a place, and an answer between two of them, of two
  // pools without exchanges; only the scenario's own place; and how far the first scout goes from
  // there, as a ratio.
  bool scouts_only = false;
  bool fixed = false;
  double first_step = 2;
  std::int64_t most_replicas = 0;  // kReplicas: more are not tried; 0: as many as there may be
};

// One target at one place of the line: pooled over the runs, with its 95 % interval.
struct PlanTarget {
  // Milliseconds; of attainment what the requests take of their limits, at its percentile. None:
  // too few samples.
  std::optional<double> value, low, high;
  double unserved_share = 0;  // of attainment: of the requests that are beyond a limit
};

// What was found at one place. Of a scout, which is one run, the interval is by batch means.
struct PlanPoint {
  double at = 0;  // load or replicas
  std::int64_t runs = 0;
  bool overloaded = false;  // completes less than comes
  // The targets' worst share of what is allowed: within all of them up to 1. With the targets' own
  // values, the ends of their intervals that are good, and those that are bad.
  double strain = 0, low = 0, high = 0;
  double requests_per_s = 0, goodput_per_s = 0, output_tokens_per_s = 0;
  std::vector<PlanTarget> targets;
};

enum class PlanOutcome {
  kFound,
  kNone,       // no place of the line meets the targets
  kUnbounded,  // every place that could be tried meets them
  kUnknown,    // too few samples, or too much work, to say
};

// A target that no load and no number of replicas keeps: the engine never takes so many of its
// requests, as their prompts are too long, that the others cannot make up for them.
struct NeverKept {
  std::size_t target = 0;
  double dropped_share = 0;  // of the target's requests
};

struct PlanAnswer {
  PlanOutcome outcome = PlanOutcome::kUnknown;
  // The highest load, or the fewest replicas, that meet all targets. The interval is what 95 % of
  // the targets' intervals say: below `low` (of load) they are met for certain, above `high`
  // missed.
  double value = 0, low = 0, high = 0;
  std::string_view unit;  // "requests/s", "conversations/s", "times the trace", ...
  std::optional<std::size_t>
      binding;                   // the target that ends it; none: the load is more than is served
  bool monotone = true;          // no place beyond the answer meets what one before it misses
  std::vector<PlanPoint> curve;  // ascending; all places that were tried
  std::optional<double> knee;    // where most requests are within their targets, per second
  std::int64_t runs = 0, requests = 0, work = 0;
  // Of no scout's run a request waited for a seat, nor were half of the KV blocks ever in use: more
  // seats would have changed no step of vLLM's.
  bool seats_to_spare = true;
  double cached_share = 0;  // of the prompt tokens, in one run at the heaviest place within
  // The nearest place that cannot run, with the issue; empty: all that were asked could.
  std::string refused;
  std::optional<NeverKept> never;  // the outcome is kNone, and this is why
};

class Plan {
 public:
  // Issues: those of Simulation::Create, no target, nothing that could be varied.
  static Result<Plan> Create(Scenario scenario, Trace trace = {}, PlanOptions options = {});

  Plan(Plan&&) noexcept;
  Plan& operator=(Plan&&) noexcept;
  ~Plan();

  // At most about `max_steps` engine steps of one run; true when finished. Slices change nothing.
  bool Advance(std::int64_t max_steps);
  double Progress() const;  // 0..1, never falls; 1 only when finished
  PlanAnswer Answer() const;

 private:
  struct State;
  explicit Plan(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The fewest GPUs of a scenario that keep its targets at its own load.
struct FleetAnswer {
  struct Pool {
    std::int64_t replicas = 0, low = 0, high = 0;  // the ends of the 95 % interval
    std::int64_t gpus_per_replica = 1;
    // Replicas that the load keeps busy at the peaks of the data sheet: fewer no system does with.
    double least_by_compute = 0, least_by_bandwidth = 0;
    std::vector<PlanPoint> curve;  // with the other pool as answered
  };
  PlanOutcome outcome = PlanOutcome::kUnknown;
  std::vector<Pool> pools;  // as in the scenario
  // The target that one replica fewer misses, or that all numbers do; none: the load.
  std::optional<std::size_t> binding;
  std::int64_t runs = 0, requests = 0;
  std::string refused;             // as of PlanAnswer
  std::optional<NeverKept> never;  // likewise
  // kUnknown: the place whose targets are closest to being met; none: too little ran.
  std::optional<PlanPoint> closest;
  std::vector<std::int64_t> closest_replicas;  // of each pool there

  // Of all pools: the answer, its ends, and the bound that no system can beat.
  std::int64_t Gpus() const;
  std::int64_t LowGpus() const;
  std::int64_t HighGpus() const;
  double LeastGpus() const;
};

// Varies the replicas of one pool, or of a prefill and a decode pool both: there fewest of each
// given the other, then every exchange of one for the other that does not take more GPUs.
class FleetPlan {
 public:
  // Issues: those of Plan::Create; pools that are neither one nor two with the roles apart.
  static Result<FleetPlan> Create(Scenario scenario, Trace trace = {}, PlanOptions options = {});

  FleetPlan(FleetPlan&&) noexcept;
  FleetPlan& operator=(FleetPlan&&) noexcept;
  ~FleetPlan();

  bool Advance(std::int64_t max_steps);  // as of Plan
  double Progress() const;
  FleetAnswer Answer() const;  // kUnknown until finished

 private:
  struct State;
  explicit FleetPlan(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// How long replicas hold a load that grows by the same share every month, and how many are needed
// when.
struct GrowthStep {
  std::int64_t replicas = 0, gpus = 0;
  std::int64_t from_month = 0;  // needed from then on; 0: now
  PlanAnswer most;              // the load that they hold
  // The last month, counted from now, whose load they hold; by the ends of `most`, too.
  std::int64_t until_month = 0, low_month = 0, high_month = 0;
  // When the load passes `most`, in months from now; below 0: it has.
  double months = 0, low_months = 0, high_months = 0;
};

struct GrowthOptions {
  double growth = 0.1;       // a month; 0.001 to 10
  std::int64_t months = 24;  // to look ahead; 1 to 120
  PlanOptions plan;          // of each step; its line is not read
};

class GrowthPlan {
 public:
  // Issues: those of Plan::Create; options beyond their ranges; several pools.
  static Result<GrowthPlan> Create(Scenario scenario, Trace trace = {}, GrowthOptions options = {});

  GrowthPlan(GrowthPlan&&) noexcept;
  GrowthPlan& operator=(GrowthPlan&&) noexcept;
  ~GrowthPlan();

  bool Advance(std::int64_t max_steps);  // as of Plan
  double Progress() const;
  // Today's, in the unit of the answers, and in so many months.
  double Load() const;
  double LoadIn(std::int64_t month) const;
  // By rising replicas, from the scenario's own; the last one holds `months`, or no number that was
  // tried holds the month after it.
  const std::vector<GrowthStep>& Steps() const;

 private:
  struct State;
  explicit GrowthPlan(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace servecast
