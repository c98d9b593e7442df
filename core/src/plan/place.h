// One place of a plan's line: its runs, and what they come to.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "experiment/observations.h"
#include "plan/root_finder.h"
#include "servecast/plan.h"
#include "servecast/scenario.h"

namespace servecast {

struct PlanPlace {
  double at = 0;
  std::int64_t length = 0;  // requests of a run
  std::size_t wanted = 1;   // runs
  std::vector<Observations> runs;
  PlanPoint found;
  // 0: it has the runs that its neighbours have as well, by which they are compared. Else it is a
  // middle, numbered from 1, with seeds of its own from `first_run` on.
  int stage = 0;
  std::size_t first_run = 0;
  double first = 0;                        // strain by those runs
  std::vector<double> own;                 // of each of them, in logarithms; empty: overloaded
  double served_low = 1, served_high = 1;  // 95 %, of what came while load was offered
  bool read = false, known = true;         // every target has samples
  // Its runs, to tell what would be for ever: load still piles up in them; they are hardly longer
  // than what happens at their beginning is felt.
  bool grows = false, too_short = false, doubtful = false;
  bool young = false;  // they are shorter than a few lives of a conversation (lives.h)
  // Of its first run, for which those after it stand: engine steps and requests, and the share of
  // prompt tokens that were cached.
  std::int64_t work = 0;
  double cached_share = 0;
};

// Finds what the runs of a place come to. `steady`: the load is the same throughout. `long_runs`:
// what still grows in them grows for ever (as an experiment has it, decision 032).
void ReadPlace(const Scenario& scenario, bool steady, bool long_runs, PlanPlace& place);

// A strain of a place: with as many runs as all places have; with all of its own by the targets'
// values, the upper ends of their intervals, and the lower ends.
enum class Curve { kFirst, kValue, kHigh, kLow };
// Those that have it: of kFirst, the ones with common runs.
std::vector<Sample> SamplesOf(const std::vector<PlanPlace>& places, Curve curve);

// The place whose runs say how sure an answer is: the last middle, or, while there is none, the
// nearest to where the targets cease to be met. nullptr: all are overloaded.
const PlanPlace* MiddleOf(const std::vector<PlanPlace>& places);

// Of log strain along the line, with half of its 95 % interval.
struct StrainGrowth {
  double value = 3, half = 0;
};

// By the places with common runs around a place: each run has a growth of its own, and as its
// requests are the same everywhere, those scatter far less than any strain. nullopt: fewer than two
// places.
std::optional<StrainGrowth> GrowthNear(const Slope& slope, const std::vector<PlanPlace>& places,
                                       double at);

// Where strain passes 1, straight from the middle (in logarithms), and the loads at which the 95 %
// interval of what the line predicts holds 1 (Fieller, 1954): neither the middle's strain nor the
// growth is taken for known.
//
// Where runs pile up at a lighter load than that, capacity ends it. From below: the heaviest load
// that surely keeps the targets serves a share of what comes, which may be less than all without
// being clearly so. From above: of the lightest that surely misses them or piles up, that share.
// And a queue near capacity takes longer to grow than a run lasts: in the time of n requests the
// number that come scatters by `cv` sqrt(n), and the number served by about sqrt(n), so that loads
// which differ by less than sqrt((cv^2 + 1) / n) look alike.
struct Crossing {
  double value = 0, low = 0, high = 0;
  bool by_capacity = false;
};
Crossing CrossingFrom(const PlanPlace& middle, const StrainGrowth& growth, const Slope& slope,
                      const std::vector<PlanPlace>& places, double cv);

// How wide that interval would be, in logarithms, if the middle were where strain passes 1: twice
// its narrower side, as the other may end at the largest samples of all.
double WidthThere(const PlanPlace& middle, const StrainGrowth& growth);

}  // namespace servecast
