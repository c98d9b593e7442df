// What the load costs by the hour of GPUs, and what its tokens would cost where they are sold.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "experiment/statistics.h"
#include "io/json_writer.h"
#include "servecast/result.h"
#include "servecast/scenario.h"
#include "servecast/trace.h"

namespace servecast {

// $ per million tokens of prompts, and of answers; 0 to 10,000. Both 0: there is none to compare.
struct TokenPrices {
  double input = 0, output = 0;
};
inline constexpr double kMostTokenPrice = 10'000;

Issues IssuesOf(const TokenPrices& prices);

// Intervals of 95 %; of a trace their ends are the value. "A unit" is one of `unit`: a request, a
// conversation with all its turns, a second of the trace as it was recorded.
struct CostAnswer {
  double load = 0;  // units each second
  std::string_view unit;
  double own_per_hour = 0;               // $; whatever the load is
  Interval input_tokens, output_tokens;  // of a unit
  std::optional<Interval> api_per_hour;  // $, at `load`
  std::optional<Interval> equal_at;      // the load at which both cost as much
};

// Nothing is simulated: only requests are drawn, for 16 seeds. Every token of a prompt
// is billed, also what a cache holds, and of an answer what it would be without the engine's limit.
// Issues: a GPU without a price; a load that is not known before it is served (a closed loop), or
// comes at once; those of drawing.
Result<CostAnswer> CostOfLoad(const Scenario& scenario, const Trace& trace,
                              const TokenPrices& prices);

// Members of an open object; a month has 730 hours.
void WriteCost(const CostAnswer& answer, JsonWriter& out);
std::string CostSentence(const CostAnswer& answer);

}  // namespace servecast
