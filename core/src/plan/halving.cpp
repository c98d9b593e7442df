// Which designs are worth a surer answer (frontier.h): successive halving, but by what bounds and
// intervals allow instead of by a fixed share, so that nobody is left who could still win.
#include <algorithm>
#include <utility>

#include "plan/frontier.h"

namespace servecast {
namespace {

// Who may be better than the best by less is not asked.
constexpr double kCheaper = 0.995;

bool IsOpen(const DesignPoint& point) { return point.state == DesignState::kUnknown; }

// What designs are compared by.
struct Ranking {
  Cost cost = Cost::kDollars;
  Least least = Least::kCost;
};

struct HalvingStep {
  double cost = 0, value = 0, energy = 0;
};
// Of a measure, the frontier.
using Steps = std::vector<HalvingStep>;

Steps StepsOf(const std::vector<DesignPoint>& points, const Ranking& by, Measure measure,
              std::size_t k) {
  Steps steps;
  for (const std::int64_t id : FrontierOf(points, Rung::kCoarse, by.cost, measure, k, by.least)) {
    const DesignPoint& point = points[Index(id)];
    steps.push_back({*CostOf(point, by.cost), *measure(point, k), EnergyOf(point, by.least)});
  }
  return steps;
}

// What is known to hold, by the strain of the worst target and of each.
class Rivals {
 public:
  Rivals(const std::vector<DesignPoint>& points, const Ranking& by) : by_(by) {
    std::size_t targets = 0;
    for (const DesignPoint& point : points) {
      targets = std::max(targets, point.least_strains.size());
    }
    worst_ = StepsOf(points, by, WorstStrain, 0);
    for (std::size_t k = 0; k < targets; ++k) {
      each_.push_back(StepsOf(points, by, TargetStrain, k));
    }
  }

  // Whether a design, whatever a run would say of it, is on no frontier: of the worst target and of
  // each there is one that is not dearer than the least that it may cost, and not worse than the
  // least that its strain, and its energy, may be.
  bool Beat(const DesignPoint& point) const {
    const std::optional<double> least = LeastCostOf(point, by_.cost);
    const std::vector<double>& strains = point.least_strains;
    if (!least || strains.empty()) return false;
    const double energy = LeastEnergyOf(point, by_.least);
    const double worst = *std::max_element(strains.begin(), strains.end());
    if (!Reaches(worst_, {*least, worst, energy})) return false;
    for (std::size_t k = 0; k < strains.size(); ++k) {
      if (!Reaches(each_[k], {*least, strains[k], energy})) return false;
    }
    return true;
  }

 private:
  static bool Reaches(const Steps& steps, const HalvingStep& bound) {
    return std::any_of(steps.begin(), steps.end(), [&bound](const HalvingStep& step) {
      return step.cost <= bound.cost && step.value <= bound.value && step.energy <= bound.energy;
    });
  }

  Ranking by_;
  Steps worst_;
  std::vector<Steps> each_;
};

// Those that no run was made of, that have a price, and that no other beats: all, or the quarter
// that the closed form has for cheapest, whose answers tell which of the others need none, and what
// is too dear.
std::vector<Wanted> CoarseOf(const std::vector<DesignPoint>& points, const Ranking& by,
                             bool quarter) {
  const Cost cost = by.cost;
  const Rivals rivals(points, by);
  std::vector<const DesignPoint*> open;
  for (const DesignPoint& point : points) {
    const bool ranked = cost == Cost::kGpus || point.least_dollars;
    if (point.rung != Rung::kBound || !IsOpen(point) || !ranked || rivals.Beat(point)) continue;
    open.push_back(&point);
  }
  std::stable_sort(open.begin(), open.end(), [cost](const DesignPoint* a, const DesignPoint* b) {
    return StartCostOf(*a, cost).value_or(1e300) < StartCostOf(*b, cost).value_or(1e300);
  });
  if (quarter) open.resize((open.size() + 3) / 4);
  std::vector<Wanted> wanted;
  for (const DesignPoint* point : open) wanted.push_back({point->id, Rung::kCoarse});
  return wanted;
}

// One run each, all on the same seeds, so that these are compared with each other only.
std::vector<Wanted> FrontierToAsk(const std::vector<DesignPoint>& points, const Ranking& by) {
  std::vector<Wanted> wanted;
  for (const std::int64_t id :
       FrontierOf(points, Rung::kCoarse, by.cost, WorstStrain, 0, by.least)) {
    wanted.push_back({id, Rung::kCertain});
  }
  return wanted;
}

// What a design may cost at the least, if one run's interval is right; none: it keeps no target.
std::optional<double> HopedCost(const DesignPoint& point, Cost cost) {
  if (point.given_up) return std::nullopt;
  if (IsOpen(point)) return LeastCostOf(point, cost);  // a coarse run did not tell
  const bool may = point.Holds() || (point.strain_low && *point.strain_low <= 1);
  return may ? CostOf(point, cost, End::kLow) : std::nullopt;
}

// Likewise its energy: no design needs less than in proportion to its GPUs. None: not asked for, or
// not known.
std::optional<double> HopedEnergy(const DesignPoint& point, Least least) {
  if (least == Least::kCost || point.given_up) return std::nullopt;
  if (!point.energy) {
    const bool may = IsOpen(point) || (point.strain_low && *point.strain_low <= 1);
    return may ? point.least_j_per_output_token : std::nullopt;
  }
  const auto low = static_cast<double>(GpusOf(point, End::kLow));
  return point.energy->j_per_output_token * low / static_cast<double>(GpusOf(point));
}

std::vector<Wanted> MayBeBetter(const std::vector<DesignPoint>& points, const Ranking& by) {
  double cheapest = 1e300, least = 1e300;
  for (const std::int64_t id :
       FrontierOf(points, Rung::kCertain, by.cost, WorstStrain, 0, by.least)) {
    cheapest = std::min(cheapest, *CostOf(points[Index(id)], by.cost));
    least = std::min(least, EnergyOf(points[Index(id)], by.least));
  }
  std::vector<Wanted> wanted;
  for (const DesignPoint& point : points) {
    if (point.rung != Rung::kCoarse) continue;
    const std::optional<double> hoped = HopedCost(point, by.cost);
    const std::optional<double> energy = HopedEnergy(point, by.least);
    const bool may =
        (hoped && *hoped < kCheaper * cheapest) || (energy && *energy < kCheaper * least);
    if (may) wanted.push_back({point.id, Rung::kCertain});
  }
  return wanted;
}

}  // namespace

std::vector<Wanted> WantedOf(const std::vector<DesignPoint>& points, Stage stage, Least least) {
  const Ranking by{CostFor(points), least};
  switch (stage) {
    case Stage::kCheapest:
      return CoarseOf(points, by, true);
    case Stage::kOthers:
      return CoarseOf(points, by, false);
    case Stage::kFrontier:
      return FrontierToAsk(points, by);
    case Stage::kCheaper:
      break;
  }
  return MayBeBetter(points, by);
}

std::vector<Wanted> AllOf(const std::vector<DesignPoint>& points) {
  std::vector<Wanted> wanted;
  for (const DesignPoint& point : points) {
    if (point.rung == Rung::kBound && IsOpen(point)) wanted.push_back({point.id, Rung::kCertain});
  }
  return wanted;
}

}  // namespace servecast
