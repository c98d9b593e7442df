// What designs come to together: which are worth their price, and why the others are not. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "servecast/design.h"

namespace servecast {

inline std::size_t Index(std::int64_t id) { return static_cast<std::size_t>(id); }

// What designs are ranked by: dollars, or GPUs where no design has a price.
enum class Cost { kDollars, kGpus };
Cost CostFor(const std::vector<DesignPoint>& points);
// "3 prefill + 5 decode".
std::string InPools(const DesignPoint& point);

// None: not known, or no price.
std::optional<double> CostOf(const DesignPoint& point, Cost cost, End end = End::kValue);
// That no number of replicas and no scheduling goes below.
std::optional<double> LeastCostOf(const DesignPoint& point, Cost cost);

// Of the replicas that the closed form has for enough.
std::optional<double> StartCostOf(const DesignPoint& point, Cost cost);

// J per output token; endless: not known. 0 where energy is not asked for, so that all are alike.
double EnergyOf(const DesignPoint& point, Least least);
// That no run of it goes below.
double LeastEnergyOf(const DesignPoint& point, Least least);

// A quantity of a design that holds, the less the better; none: it is not known.
using Measure = std::optional<double> (*)(const DesignPoint& point, std::size_t target);
std::optional<double> WorstStrain(const DesignPoint& point, std::size_t target);
std::optional<double> TargetStrain(const DesignPoint& point, std::size_t target);
std::optional<double> LostGoodput(const DesignPoint& point, std::size_t target);
std::optional<double> KnownEnergy(const DesignPoint& point, std::size_t target);

// Designs that hold, found as surely as that or more so, of which none is as cheap and better, or
// cheaper and as good: by rising cost, and so by falling measure. Where energy is asked for, one
// that needs less of it than all as cheap and as good is among them. Of two that are equal the one
// with the lower id.
std::vector<std::int64_t> FrontierOf(const std::vector<DesignPoint>& points, Rung rung, Cost cost,
                                     Measure measure, std::size_t target = 0,
                                     Least least = Least::kCost);

struct Conclusion {
  Cost cost = Cost::kDollars;
  Rung rung = Rung::kCoarse;           // of the frontier: certain once some design is
  std::vector<std::int64_t> frontier;  // cost against the worst target's share of its limit
  struct Other {
    std::string of;  // "ttft", "tpot", "goodput"
    std::vector<std::int64_t> ids;
  };
  std::vector<Other> others;
  // By id. Of one that holds and is not on the frontier: the best of it that is not dearer; none:
  // all are. It is no worse, but for what one run of a coarse design says against many of it.
  std::vector<std::optional<std::int64_t>> dominated_by;
  // Of each that is not on the frontier: why.
  std::vector<std::string> reasons;
  std::optional<std::int64_t> cheapest;
  Least least = Least::kCost;
  std::optional<std::int64_t> least_energy;  // of the frontier; none: not asked for, or not known

  // What was asked for.
  std::optional<std::int64_t> Answer() const {
    return least == Least::kEnergy ? least_energy : cheapest;
  }
};

// Requires: points[i].id == i, as many labels.
Conclusion Conclude(const std::vector<DesignPoint>& points, const std::vector<std::string>& labels,
                    Least least = Least::kCost);

// What is still to be found out, by the rules of docs/model.md: designs and the rung that each is
// to be asked at next. Empty: nothing. Stages begin with what no run was made for, and end with who
// may be cheaper than the cheapest, or need less energy than the least.
struct Wanted {
  std::int64_t id = 0;
  Rung rung = Rung::kBound;
};
enum class Stage {
  kCheapest,  // coarse answers of the quarter that the closed form has for cheapest
  kOthers,    // and of those of the others that these do not beat
  kFrontier,  // certain answers of the coarse frontier
  kCheaper,   // and of who may be better than the best, until nobody is
};
std::vector<Wanted> WantedOf(const std::vector<DesignPoint>& points, Stage stage,
                             Least least = Least::kCost);
// Certain answers of every design that could run.
std::vector<Wanted> AllOf(const std::vector<DesignPoint>& points);

}  // namespace servecast
