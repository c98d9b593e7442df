// Answers of plans as JSON and as sentences.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/json_writer.h"
#include "plan/drill.h"
#include "servecast/plan.h"
#include "servecast/report.h"
#include "servecast/scenario.h"

namespace servecast {

// The sentence where a run ended before enough requests had.
inline constexpr const char* kTooFew = "Too little ran to judge the targets.";

// The sentence where runs differ so much that no place is sure to keep the targets or to miss one.
// `closest`: the place closest to keeping them, by its words ("3 replicas", "46 requests/s");
// nullptr: kTooFew.
std::string UnsureSentence(const Scenario& scenario, const PlanPoint* closest,
                           std::string_view place);

// "3 replicas for prefill and 1 replica for decode".
std::string ReplicasInWords(const std::vector<PoolSpec>& pools);

// That nothing keeps the targets; `nothing`: "No load". With the reason, or the target that
// is `missed`, where these are known.
std::string NeverSentence(const Scenario& scenario, const std::optional<NeverKept>& never,
                          std::string_view nothing, const std::optional<std::size_t>& missed = {});

// "found".
const char* OutcomeName(PlanOutcome outcome);

// The member "answer" of an open object.
void WriteAnswer(double value, double low, double high, std::string_view unit, JsonWriter& out);

// The member "targets": what the values of each place or policy are of.
void WriteTargets(const Scenario& scenario, JsonWriter& out);

// Members of an open object. `answer` is null where the outcome is not "found".
void WriteMaxRate(const Scenario& scenario, const PlanAnswer& answer, JsonWriter& out);
std::string MaxRateSentence(const Scenario& scenario, const PlanAnswer& answer);

void WriteMinGpus(const Scenario& scenario, const FleetAnswer& answer, JsonWriter& out);
std::string MinGpusSentence(const Scenario& scenario, const FleetAnswer& answer);

// `from`: the month of the calendar that is now, 12 times the year and 0 to 11.
struct GrowthAsked {
  double load = 0;    // today's
  double growth = 0;  // a month
  std::int64_t months = 0;
  std::optional<std::int64_t> from;
};
void WriteGrowth(const std::vector<GrowthStep>& steps, const GrowthAsked& asked, JsonWriter& out);
std::string GrowthSentence(const Scenario& scenario, const std::vector<GrowthStep>& steps,
                           const GrowthAsked& asked);

// Each drill by its name, with the report of its runs; of `all`, also those that cannot be tried.
using DrillReports = std::vector<std::pair<std::string, Report>>;
void WriteDrills(const DrillReports& drills, const std::vector<Drill>& all, JsonWriter& out);
std::string DrillsSentence(const DrillReports& drills,
                           const std::vector<Drill>& all);  // a line each

}  // namespace servecast
