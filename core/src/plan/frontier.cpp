// See frontier.h.
#include "plan/frontier.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "metrics/words.h"

namespace servecast {
namespace {

constexpr double kEndless = std::numeric_limits<double>::infinity();

std::string CostText(double cost, Cost of) {
  if (of == Cost::kGpus) return Count(static_cast<std::int64_t>(cost), "GPU");
  return Dollars(cost) + " an hour";
}

std::string Named(const std::string& label, const DesignPoint& point) {
  if (point.pools.size() > 1) return Format("{} ({})", label, InPools(point));
  const std::int64_t replicas = point.pools.empty() ? 0 : point.pools[0].replicas;
  return replicas > 1 ? Format("{} x {}", replicas, label) : label;
}

// ", 0.4 J per output token instead of 0.5"; "" where energy is not asked for or neither is known.
std::string EnergyText(const DesignPoint& point, const DesignPoint& by, Least least) {
  if (least == Least::kCost || !by.energy) return "";
  const std::string its = ShortNumber(by.energy->j_per_output_token);
  return point.energy ? Format(", {} J per output token instead of {}", its,
                               ShortNumber(point.energy->j_per_output_token))
                      : Format(", {} J per output token, of this one not known", its);
}

// Of one that holds and that another is not worse than, or not for certain.
std::string Dominated(const DesignPoint& point, const DesignPoint& by, const std::string& label,
                      Cost cost, Least least) {
  const double mine = *CostOf(point, cost), its = *CostOf(by, cost);
  const std::string price =
      its < mine ? CostText(its, cost) + " instead of " + CostText(mine, cost) : "the same price";
  const std::string share =
      *by.strain == *point.strain
          ? std::string("the same share of the limit")
          : Format("{} of the limit {} {}{}", Percent(*by.strain),
                   *by.strain < *point.strain ? "instead of" : "against", Percent(*point.strain),
                   *by.strain < *point.strain ? "" : " in a single run");
  return Format("{} is no worse: {}, {}{}", Named(label, by), price, share,
                EnergyText(point, by, least));
}

std::string WhyNot(const DesignPoint& point, Cost cost) {
  if (!point.reason.empty()) return point.reason;
  if (point.rung == Rung::kBound) {
    const std::optional<double> least = LeastCostOf(point, cost);
    return least ? Format("not run: what it costs at the least, {}, buys a better one",
                          CostText(*least, cost))
                 : "not run: its GPU has no price";
  }
  if (!CostOf(point, cost)) return "its GPU has no price";
  return "";
}

}  // namespace

namespace {

std::int64_t ReplicasOf(const DesignPoint::Pool& pool, End end) {
  return end == End::kLow ? pool.low : end == End::kHigh ? pool.high : pool.replicas;
}

}  // namespace

std::int64_t GpusOf(const DesignPoint& point, End end) {
  std::int64_t gpus = 0;
  for (const DesignPoint::Pool& pool : point.pools) {
    gpus += ReplicasOf(pool, end) * pool.gpus_per_replica;
  }
  return gpus;
}

std::optional<double> DollarsPerHour(const DesignPoint& point, End end) {
  double dollars = 0;
  for (const DesignPoint::Pool& pool : point.pools) {
    if (!pool.price) return std::nullopt;
    dollars += static_cast<double>(ReplicasOf(pool, end) * pool.gpus_per_replica) * *pool.price;
  }
  return dollars;
}

std::string InPools(const DesignPoint& point) {
  std::string text;
  for (const DesignPoint::Pool& pool : point.pools) {
    const char* role = pool.role == PoolRole::kPrefill  ? " prefill"
                       : pool.role == PoolRole::kDecode ? " decode"
                       : pool.role == PoolRole::kEncode ? " encode"
                                                        : "";
    text += Format("{}{}{}", text.empty() ? "" : " + ", pool.replicas, role);
  }
  return text;
}

std::optional<double> WorstStrain(const DesignPoint& point, std::size_t /*target*/) {
  return point.strain;
}
std::optional<double> TargetStrain(const DesignPoint& point, std::size_t target) {
  return target < point.targets.size() ? point.targets[target].strain : std::nullopt;
}
std::optional<double> LostGoodput(const DesignPoint& point, std::size_t /*target*/) {
  return -point.goodput_per_s;
}
std::optional<double> KnownEnergy(const DesignPoint& point, std::size_t /*target*/) {
  return point.energy ? std::optional(point.energy->j_per_output_token) : std::nullopt;
}

Cost CostFor(const std::vector<DesignPoint>& points) {
  const bool priced = std::any_of(points.begin(), points.end(), [](const DesignPoint& point) {
    return point.least_dollars || (!point.pools.empty() && DollarsPerHour(point));
  });
  return priced ? Cost::kDollars : Cost::kGpus;
}

std::optional<double> CostOf(const DesignPoint& point, Cost cost, End end) {
  if (point.pools.empty()) return std::nullopt;
  if (cost == Cost::kDollars) return DollarsPerHour(point, end);
  return static_cast<double>(GpusOf(point, end));
}

std::optional<double> LeastCostOf(const DesignPoint& point, Cost cost) {
  if (cost == Cost::kDollars) return point.least_dollars;
  return point.least_gpus > 0 ? std::optional(point.least_gpus) : std::nullopt;
}

std::optional<double> StartCostOf(const DesignPoint& point, Cost cost) {
  if (cost == Cost::kDollars) return point.start_dollars;
  return point.start_gpus > 0 ? std::optional(point.start_gpus) : std::nullopt;
}

double EnergyOf(const DesignPoint& point, Least least) {
  if (least == Least::kCost) return 0;
  return point.energy ? point.energy->j_per_output_token : kEndless;
}

double LeastEnergyOf(const DesignPoint& point, Least least) {
  return least == Least::kCost ? 0 : point.least_j_per_output_token.value_or(kEndless);
}

std::vector<std::int64_t> FrontierOf(const std::vector<DesignPoint>& points, Rung rung, Cost cost,
                                     Measure measure, std::size_t target, Least least) {
  struct Place {
    double cost = 0, value = 0, energy = 0;
    std::int64_t id = 0;
  };
  std::vector<Place> places;
  for (const DesignPoint& point : points) {
    const std::optional<double> price = CostOf(point, cost), value = measure(point, target);
    if (point.rung < rung || !point.Holds() || !price || !value) continue;
    places.push_back({*price, *value, EnergyOf(point, least), point.id});
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    if (a.cost != b.cost) return a.cost < b.cost;
    if (a.value != b.value) return a.value < b.value;
    return a.energy != b.energy ? a.energy < b.energy : a.id < b.id;
  });
  std::vector<Place> on;
  std::vector<std::int64_t> ids;
  for (const Place& place : places) {
    const bool beaten = std::any_of(on.begin(), on.end(), [&place](const Place& cheaper) {
      return cheaper.value <= place.value && cheaper.energy <= place.energy;
    });
    if (beaten) continue;
    on.push_back(place);
    ids.push_back(place.id);
  }
  return ids;
}

namespace {

// Of the frontier: not dearer, of no more energy, and of these the least strained.
std::optional<std::int64_t> BetterOf(const DesignPoint& point,
                                     const std::vector<DesignPoint>& points,
                                     const Conclusion& found) {
  std::optional<std::int64_t> best;
  for (const std::int64_t id : found.frontier) {
    const DesignPoint& other = points[Index(id)];
    const bool no_worse = *CostOf(other, found.cost) <= *CostOf(point, found.cost) &&
                          EnergyOf(other, found.least) <= EnergyOf(point, found.least);
    if (no_worse && (!best || *other.strain <= *points[Index(*best)].strain)) best = id;
  }
  return best;
}

std::optional<std::int64_t> LeastEnergyAmong(const std::vector<std::int64_t>& ids,
                                             const std::vector<DesignPoint>& points) {
  std::optional<std::int64_t> least;
  for (const std::int64_t id : ids) {
    const auto& energy = points[Index(id)].energy;
    if (energy &&
        (!least || energy->j_per_output_token < points[Index(*least)].energy->j_per_output_token)) {
      least = id;
    }
  }
  return least;
}

}  // namespace

Conclusion Conclude(const std::vector<DesignPoint>& points, const std::vector<std::string>& labels,
                    Least least) {
  Conclusion found;
  found.least = least;
  found.cost = CostFor(points);
  found.rung = Rung::kCertain;
  found.frontier = FrontierOf(points, found.rung, found.cost, WorstStrain, 0, least);
  if (found.frontier.empty()) {
    found.rung = Rung::kCoarse;
    found.frontier = FrontierOf(points, found.rung, found.cost, WorstStrain, 0, least);
  }
  found.dominated_by.resize(points.size());
  found.reasons.resize(points.size());
  std::vector<bool> on(points.size(), false);
  for (const std::int64_t id : found.frontier) on[Index(id)] = true;
  if (!found.frontier.empty()) found.cheapest = found.frontier.front();
  if (least == Least::kEnergy) found.least_energy = LeastEnergyAmong(found.frontier, points);
  for (const DesignPoint& point : points) {
    const std::size_t i = Index(point.id);
    if (on[i]) continue;
    const std::optional<double> mine = CostOf(point, found.cost);
    if (!point.Holds() || !mine) {
      found.reasons[i] = WhyNot(point, found.cost);
      continue;
    }
    found.dominated_by[i] = BetterOf(point, points, found);
    if (!found.dominated_by[i]) {  // by one run; many were made of others
      found.reasons[i] = "known from a single run only";
      continue;
    }
    const std::size_t by = Index(*found.dominated_by[i]);
    found.reasons[i] = Dominated(point, points[by], labels[by], found.cost, least);
  }
  const auto first = std::find_if(points.begin(), points.end(),
                                  [](const DesignPoint& point) { return !point.targets.empty(); });
  for (std::size_t k = 0; first != points.end() && k < first->targets.size(); ++k) {
    const SloMetric metric = first->targets[k].metric;
    if (metric != SloMetric::kTtft && metric != SloMetric::kTpot) continue;
    found.others.push_back({metric == SloMetric::kTtft ? "ttft" : "tpot",
                            FrontierOf(points, Rung::kCoarse, found.cost, TargetStrain, k)});
  }
  found.others.push_back({"goodput", FrontierOf(points, Rung::kCoarse, found.cost, LostGoodput)});
  if (least == Least::kEnergy) {
    found.others.push_back({"energy", FrontierOf(points, Rung::kCoarse, found.cost, KnownEnergy)});
  }
  return found;
}

}  // namespace servecast
