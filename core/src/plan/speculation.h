// Until which load speculative decoding pays: pairs of runs of the same requests, with drafts and
// without, along the line of the load. It pays where the mean request is complete sooner.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/json_writer.h"
#include "servecast/plan.h"
#include "servecast/result.h"
#include "servecast/scenario.h"
#include "servecast/trace.h"

namespace servecast {

// What was found at one load.
struct SpeculationPoint {
  double at = 0;
  std::int64_t pairs = 0;
  // The mean request's time with drafts over that without: the mean of the pairs (of logarithms),
  // and its 95 % interval.
  double ratio = 0, low = 0, high = 0;
  double with_ms = 0, without_ms = 0;  // until a mean request is complete
  bool overloaded = false;             // both complete less than comes
};

struct SpeculationAnswer {
  // kNone: it does not even pay at the least load; kUnbounded: it pays at any that is served.
  PlanOutcome outcome = PlanOutcome::kUnknown;
  double value = 0, low = 0, high = 0;
  std::string_view unit;
  std::vector<SpeculationPoint> curve;  // ascending
  std::int64_t runs = 0, requests = 0;
};

class SpeculationPlan {
 public:
  // Issues: those of Simulation::Create; no drafts; nothing that could be varied.
  static Result<SpeculationPlan> Create(Scenario scenario, Trace trace = {});

  SpeculationPlan(SpeculationPlan&&) noexcept;
  SpeculationPlan& operator=(SpeculationPlan&&) noexcept;
  ~SpeculationPlan();

  bool Advance(std::int64_t max_steps);  // as of Plan
  double Progress() const;
  SpeculationAnswer Answer() const;

 private:
  struct State;
  explicit SpeculationPlan(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Members of an open object.
void WriteSpeculation(const Scenario& scenario, const SpeculationAnswer& answer, JsonWriter& out);
std::string SpeculationSentence(const Scenario& scenario, const SpeculationAnswer& answer);

}  // namespace servecast
