// What a plan has found so far, for those who choose what is asked next and who put it together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "experiment/replications.h"
#include "plan/place.h"
#include "plan/root_finder.h"
#include "servecast/plan.h"
#include "servecast/scenario.h"

namespace servecast {

constexpr std::size_t kPlaceRuns = 8;                                    // of a place at first
constexpr Curve kCurves[] = {Curve::kValue, Curve::kHigh, Curve::kLow};  // that say how sure

struct SoFar {
  SoFar(Scenario s, const PlanOptions& o, const Line& line)
      : scenario(std::move(s)),
        options(o),
        slope(line),
        replays(ReplaysTrace(scenario)),
        steady(IsSteady(scenario)) {}

  Scenario scenario;
  PlanOptions options;
  Slope slope;
  bool replays = false, steady = true;

  // Scouts come first, then places; `left`: places, and runs, that decide nothing any more.
  bool scouting = true, finished = false;
  std::vector<PlanPlace> scouts, places;  // from light to heavy
  std::vector<PlanPoint> left;
  std::int64_t length = 0;          // requests of a run, of a place to come
  std::size_t wanted = kPlaceRuns;  // runs of each place that is no middle
  std::int64_t work = 0, runs = 0, requests = 0;
  bool seats_to_spare = true;  // see PlanAnswer
  std::string refused;         // likewise
  std::optional<NeverKept> never;

  // How the choice went: see next_runs.cpp.
  double growth = StrainGrowth{}.value;  // by the scouts
  int lengthened = 0, moves = 0;
  int stages = 0;  // middles so far
  bool widened = false, added = false;

  // Places are whole numbers, as clients and replicas are.
  bool Whole() const { return slope.line().step > 0; }
  bool HasMiddle() const { return stages > 0; }
  std::vector<PlanPlace>& Asked();  // scouts, or places
  StrainGrowth GrowthAt(double at) const;
  Crossing CrossingBy(const PlanPlace& middle) const;
  // Where the targets cease to be met. Requires: places with runs.
  Crossing Ends() const;
};

}  // namespace servecast
