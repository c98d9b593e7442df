// Many runs as one answer: a verdict with how sure it is. Resumable like a simulation.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "servecast/report.h"
#include "servecast/result.h"
#include "servecast/scenario.h"
#include "servecast/trace.h"

namespace servecast {

struct SimulationHooks;

struct ExperimentOptions {
  // Where it ends at the latest: engine steps and requests of all runs together, as many of each
  // run as the first would have taken. About half a second.
  std::int64_t most_work = 3'000'000;
  bool names_limit = true;  // by relief, where a target is not clearly met or the load not served
  bool names_always = false;
  bool blames = false;
};

// The share by which a tenth more of a resource lowers the slowest latencies of the deciding
// target, or the time per completion under overload; below 0: it makes things worse.
struct Relief {
  std::string_view name;
  double gain = 0;
  // With several pools, of the greatest gain: what it is in each pool alone.
  std::vector<double> pools;
};

// Where the time of the slowest 1 % of requests went, and of all.
struct Blame {
  struct Side {
    std::int64_t requests = 0, tokens = 0;  // tokens after the first
    std::int64_t total_ns = 0;              // of all of them together: the sum of the parts
    std::array<std::int64_t, TimeSplitReport::kParts> parts_ns{};
  };
  std::string_view metric;  // "ttft", "tpot" (the time after the first token), "e2e"
  double from_ms = 0;       // what the fastest of the slowest took
  Side slowest, all;
};

// Runs a scenario with as many independent seeds as its targets need, the first being its own. A
// pure function of scenario, trace and options: neither clock nor slices matter.
class Experiment {
 public:
  // Issues: those of Simulation::Create.
  static Result<Experiment> Create(Scenario scenario, Trace trace = {},
                                   ExperimentOptions options = {});
  // The hooks are of the first run.
  static Result<Experiment> Create(Scenario scenario, Trace trace, ExperimentOptions options,
                                   SimulationHooks hooks);

  Experiment(Experiment&&) noexcept;
  Experiment& operator=(Experiment&&) noexcept;
  ~Experiment();

  // At most about `max_steps` engine steps of one run; true when finished.
  bool Advance(std::int64_t max_steps);

  // 0..1, never falls; 1 only when finished.
  double Progress() const;

  // Of all runs, but for what servecast/report.h says is of the first. Partial until finished.
  Report Snapshot(ReportDetail detail = ReportDetail::kRequests) const;

  // By falling gain; empty until finished, and where not asked for.
  const std::vector<Relief>& Reliefs() const;
  // Of the complete requests that count, of all runs; empty until finished, if options.blames is
  // not set, and by other rules than vLLM's.
  std::vector<Blame> Blames() const;

 private:
  struct State;
  explicit Experiment(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace servecast
