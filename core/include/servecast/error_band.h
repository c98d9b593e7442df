// The error of the forecast beside that of sampling: where each target's figure lies with 90 %
// probability, and how probable it is that all are met (docs/decisions/069). Resumable like a
// simulation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "servecast/report.h"
#include "servecast/result.h"
#include "servecast/scenario.h"
#include "servecast/trace.h"

namespace servecast {

// From these probabilities on, that all targets are met, a verdict is "meets" or "misses".
struct Sureness {
  double meets = 0.9, misses = 0.1;
};

// "96 %", "more than 99 %".
std::string SureText(double probability);

// Where the figure of a target lies with kBandLevel probability, sampling and the forecast's error
// together: ms, or the share of attainment. No high ms: the latency may grow for as long as
// requests come. `model`: of the forecast's error alone.
inline constexpr double kBandLevel = 0.9;
struct TargetBand {
  double low = 0;
  std::optional<double> high;
  double model_low = 0;
  std::optional<double> model_high;
  double probability = 0;  // that this target is met
};

// What bands rest on.
struct ModelError {
  double bias = 0;            // servers like this one were slower by so much; below 0: faster
  double corrected = 0;       // the part of it that bands are moved by
  double half_width = 0;      // of the time of a step, at kBandLevel
  std::string_view nearness;  // of the nearest measured set-up: "near", "middle", "far"
  std::string sentence;       // one or more whole ones
};

struct Banded {
  std::vector<std::optional<TargetBand>> targets;  // as many as the report's; none: no figure
  std::optional<double> probability;               // that all are met; none: some has no figure
  ModelError error;
};

// With bands, probability and what they rest on; null: without.
std::string ReportJson(const Report& report, const Banded* banded, ReportParts parts);

// Runs a scenario again at a few factors of its step, prompt and host times, with its own seed and
// no more requests than its first run. A pure function of scenario, trace and report.
class ErrorBand {
 public:
  // `report`: of the finished experiment with this scenario and trace. nullopt where there is no
  // error to know: no target, a verdict of nothing, step times that are stated or of another
  // simulator.
  static std::optional<ErrorBand> Create(Scenario scenario, Trace trace, const Report& report);

  // Whether a scenario has such an error to know; else as above.
  static std::optional<ErrorBand> Create(Scenario scenario, Trace trace);

  ErrorBand(ErrorBand&&) noexcept;
  ErrorBand& operator=(ErrorBand&&) noexcept;
  ~ErrorBand();

  // At most about `max_steps` engine steps of one run; true when finished.
  bool Advance(std::int64_t max_steps);

  // Bands and probability of the report's targets; restates its verdict by them. nullopt: some run
  // could not be made, and the report stays as it is. Requires: finished.
  std::optional<Banded> Put(const Sureness& sureness, Report& report) const;

 private:
  struct State;
  explicit ErrorBand(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace servecast
