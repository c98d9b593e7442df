// Which designs are worth a surer answer (frontier.h): successive halving, but by what bounds and
// intervals allow instead of by a fixed share, so that nobody is left who could still win.
#include <algorithm>
#include <utility>

#include "plan/frontier.h"

namespace servecast {
namespace {

// Who may be cheaper than the cheapest by less is not asked.
constexpr double kCheaper = 0.995;

bool IsOpen(const DesignPoint& point) { return point.state == DesignState::kUnknown; }

// Of a measure, the frontier as costs and values.
using Steps = std::vector<std::pair<double, double>>;

Steps StepsOf(const std::vector<DesignPoint>& points, Cost cost, Measure measure, std::size_t k) {
  Steps steps;
  for (const std::int64_t id : FrontierOf(points, Rung::kCoarse, cost, measure, k)) {
    const DesignPoint& point = points[static_cast<std::size_t>(id)];
    steps.emplace_back(*CostOf(point, cost), *measure(point, k));
  }
  return steps;
}

// What is known to hold, by the strain of the worst target and of each.
class Rivals {
 public:
  Rivals(const std::vector<DesignPoint>& points, Cost cost) : cost_(cost) {
    std::size_t targets = 0;
    for (const DesignPoint& point : points) {
      targets = std::max(targets, point.least_strains.size());
    }
    worst_ = StepsOf(points, cost, WorstStrain, 0);
    for (std::size_t k = 0; k < targets; ++k) {
      each_.push_back(StepsOf(points, cost, TargetStrain, k));
    }
  }

  // Whether a design, whatever a run would say of it, is on no frontier: of the worst target and of
  // each there is one that is not dearer than the least that it may cost, and not worse than the
  // least that its strain may be.
  bool Beat(const DesignPoint& point) const {
    const std::optional<double> least = LeastCostOf(point, cost_);
    const std::vector<double>& strains = point.least_strains;
    if (!least || strains.empty()) return false;
    if (!Reaches(worst_, *least, *std::max_element(strains.begin(), strains.end()))) return false;
    for (std::size_t k = 0; k < strains.size(); ++k) {
      if (!Reaches(each_[k], *least, strains[k])) return false;
    }
    return true;
  }

 private:
  static bool Reaches(const Steps& steps, double cost, double strain) {
    return std::any_of(steps.begin(), steps.end(), [&](const auto& step) {
      return step.first <= cost && step.second <= strain;
    });
  }

  Cost cost_;
  Steps worst_;
  std::vector<Steps> each_;
};

// Those that no run was made of, that have a price, and that no other beats: all, or the quarter
// that the closed form has for cheapest, whose answers tell which of the others need none, and what
// is too dear.
std::vector<Wanted> CoarseOf(const std::vector<DesignPoint>& points, Cost cost, bool quarter) {
  const Rivals rivals(points, cost);
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
std::vector<Wanted> FrontierToAsk(const std::vector<DesignPoint>& points, Cost cost) {
  std::vector<Wanted> wanted;
  for (const std::int64_t id : FrontierOf(points, Rung::kCoarse, cost, WorstStrain)) {
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

std::vector<Wanted> CheaperOf(const std::vector<DesignPoint>& points, Cost cost) {
  double cheapest = 1e300;
  for (const std::int64_t id : FrontierOf(points, Rung::kCertain, cost, WorstStrain)) {
    cheapest = std::min(cheapest, *CostOf(points[static_cast<std::size_t>(id)], cost));
  }
  std::vector<Wanted> wanted;
  for (const DesignPoint& point : points) {
    if (point.rung != Rung::kCoarse) continue;
    const std::optional<double> hoped = HopedCost(point, cost);
    if (hoped && *hoped < kCheaper * cheapest) wanted.push_back({point.id, Rung::kCertain});
  }
  return wanted;
}

}  // namespace

std::vector<Wanted> WantedOf(const std::vector<DesignPoint>& points, Stage stage) {
  const Cost cost = CostFor(points);
  switch (stage) {
    case Stage::kCheapest:
      return CoarseOf(points, cost, true);
    case Stage::kOthers:
      return CoarseOf(points, cost, false);
    case Stage::kFrontier:
      return FrontierToAsk(points, cost);
    case Stage::kCheaper:
      break;
  }
  return CheaperOf(points, cost);
}

std::vector<Wanted> AllOf(const std::vector<DesignPoint>& points) {
  std::vector<Wanted> wanted;
  for (const DesignPoint& point : points) {
    if (point.rung == Rung::kBound && IsOpen(point)) wanted.push_back({point.id, Rung::kCertain});
  }
  return wanted;
}

}  // namespace servecast
