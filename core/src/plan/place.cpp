// See place.h.
#include "plan/place.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/math.h"
#include "experiment/findings.h"
#include "experiment/statistics.h"
#include "plan/strain.h"

namespace servecast {
namespace {

constexpr std::size_t kBatches = 16;  // of one run
constexpr std::size_t kPieces = 4;    // of each of the middle's, which are long
// Of a middle's interval, which is looked at until it is narrow: at this confidence each of three
// looks holds with 95 % together, whatever stops them (Pocock's constant; docs/model.md, "Plans").
constexpr double kEachLook = 0.9779;
constexpr double kAround = 0.25;   // places that tell the growth at one, in logarithms
constexpr double kNearOne = 0.35;  // of log strain, of those that tell it where it may bend
constexpr double kApart = 0.02;    // from end to end of them, at least
constexpr double kLeastGrowth = 0.01, kMostGrowth = 30;
constexpr double kLeastKnown = 0.25;  // of a growth, for an interval that has ends

double Square(double x) { return x * x; }

double On(Curve curve, const PlanPlace& place) {
  switch (curve) {
    case Curve::kFirst:
      return place.first;
    case Curve::kHigh:
      return place.found.high;
    case Curve::kLow:
      return place.found.low;
    case Curve::kValue:
      break;
  }
  return place.found.strain;
}

// The strain of each run by itself, in logarithms; empty where one has too few samples.
std::vector<double> OwnOf(const Scenario& scenario, const Findings& found) {
  std::vector<double> own(found.targets[0].by_group.size(), 0.0);
  for (std::size_t k = 0; k < scenario.slo.size(); ++k) {
    const auto& groups = found.targets[k].by_group;
    if (groups.size() != own.size()) return {};
    for (std::size_t g = 0; g < own.size(); ++g) {
      if (groups[g].ms < 0) return {};
      own[g] = std::max(own[g], StrainOf(scenario.slo[k], groups[g].ms, groups[g].unserved));
    }
  }
  for (double& strain : own) {
    if (!std::isfinite(strain)) return {};
    strain = LogOf(strain);
  }
  return own;
}

// Gaps are known of whole runs only. Of fewer runs than have an interval (a scout is one) it is
// their mean alone, as `servecast run` has it of one run.
std::optional<Interval> GapsAlone(const std::vector<Observations>& runs, std::size_t k) {
  double sum = 0, count = 0;
  for (const Observations& run : runs) {
    if (run.gap_percentile_ms[k] < 0) continue;
    sum += run.gap_percentile_ms[k];
    count += 1;
  }
  if (count == 0) return std::nullopt;
  return Interval{sum / count, sum / count, sum / count, 0};
}

}  // namespace

void ReadPlace(const Scenario& scenario, bool steady, bool long_runs, PlanPlace& place) {
  place.read = true;
  Reading reading;
  reading.steady = steady;
  reading.batches = place.runs.size() == 1 ? kBatches : place.stage == 0 ? 0 : kPieces;
  reading.by_group = place.stage == 0;
  if (place.stage > 0) reading.confidence = kEachLook;
  const Findings found = FindingsOf(scenario, reading, place.runs);
  PlanPoint& p = place.found;
  p = {};
  p.at = place.at;
  p.runs = static_cast<std::int64_t>(place.runs.size());
  p.overloaded = steady && !found.gives_up && (found.falls_behind || (long_runs && found.grows));
  place.grows = steady && found.grows;
  place.too_short = steady && found.long_warmup && found.long_memory;
  place.young = steady && found.too_short;
  place.doubtful = steady && (found.long_warmup || found.long_memory);
  if (found.rates) {
    p.requests_per_s = found.rates->requests_per_s;
    p.goodput_per_s = found.rates->goodput_per_s;
    p.output_tokens_per_s = found.rates->tokens_per_s;
  }
  place.known = true;
  for (std::size_t k = 0; k < scenario.slo.size(); ++k) {
    const SloSpec& slo = scenario.slo[k];
    TargetFinding target = found.targets[k];
    if (!target.ms && slo.metric == SloMetric::kItl) target.ms = GapsAlone(place.runs, k);
    PlanTarget& out = p.targets.emplace_back();
    out.unserved_share = target.unserved.value;
    if (!target.ms) {
      place.known = p.overloaded;
      continue;
    }
    out = {target.ms->value, target.ms->low, target.ms->high, target.unserved.value};
    p.strain = std::max(p.strain, StrainOf(slo, target.ms->value, target.unserved.value));
    p.high = std::max(p.high, StrainOf(slo, target.ms->high, target.unserved.high));
    p.low = std::max(p.low, StrainOf(slo, target.ms->low, target.unserved.low));
  }
  if (steady && !found.gives_up && found.served_share) {
    place.served_low = std::min(1.0, found.served_share->low);
    place.served_high = std::min(1.0, found.served_share->high);
  }
  if (p.overloaded) p.strain = p.low = p.high = std::numeric_limits<double>::infinity();
  if (place.stage > 0) return;
  place.first = p.strain;
  place.own = p.overloaded ? std::vector<double>() : OwnOf(scenario, found);
}

std::vector<Sample> SamplesOf(const std::vector<PlanPlace>& places, Curve curve) {
  std::vector<Sample> samples;
  for (const PlanPlace& place : places) {
    if (!place.read || (curve == Curve::kFirst && place.stage > 0)) continue;
    samples.push_back({place.at, On(curve, place)});
  }
  return samples;
}

const PlanPlace* MiddleOf(const std::vector<PlanPlace>& places) {
  const auto before = [](const PlanPlace& a, const PlanPlace& b) {
    const auto far = [](const PlanPlace& p) { return std::fabs(LogOf(p.found.strain)); };
    return a.stage != b.stage ? a.stage > b.stage : far(a) < far(b);
  };
  const PlanPlace* best = nullptr;
  for (const PlanPlace& place : places) {
    if (!place.read || !std::isfinite(place.found.strain)) continue;
    if (best == nullptr || before(place, *best)) best = &place;
  }
  return best;
}

std::optional<StrainGrowth> GrowthNear(const Slope& slope, const std::vector<PlanPlace>& places,
                                       double at) {
  const auto around = [&](const PlanPlace& place) {
    return !place.own.empty() && std::fabs(slope.Along(place.at) - slope.Along(at)) <= kAround;
  };
  // Those next to where the targets cease to be met tell it however strained they are.
  const PlanPlace *below = nullptr, *above = nullptr;
  for (const PlanPlace& place : places) {
    if (!around(place)) continue;
    if (place.first <= 1 && above == nullptr) below = &place;
    if (place.first > 1 && above == nullptr) above = &place;
  }
  const auto within = [&](double most) {
    std::vector<const PlanPlace*> near;
    for (const PlanPlace& place : places) {
      const bool next = &place == below || &place == above;
      if (!around(place) || (!next && std::fabs(LogOf(place.first)) > most)) continue;
      if (near.empty() || near.front()->own.size() == place.own.size()) near.push_back(&place);
    }
    return near;
  };
  std::vector<const PlanPlace*> near = within(kNearOne);
  if (near.size() < 2) near = within(std::numeric_limits<double>::max());
  double mean = 0;
  for (const PlanPlace* place : near) mean += slope.Along(place->at);
  if (near.size() < 2 || slope.Along(near.back()->at) - slope.Along(near.front()->at) < kApart) {
    return std::nullopt;
  }
  mean /= static_cast<double>(near.size());
  // Least squares, of each run.
  std::vector<double> growths(near.front()->own.size(), 0.0);
  double squares = 0;
  for (const PlanPlace* place : near) {
    const double off = slope.Along(place->at) - mean;
    squares += off * off;
    for (std::size_t r = 0; r < growths.size(); ++r) growths[r] += off * place->own[r];
  }
  for (double& growth : growths) growth /= squares;
  const Interval interval = MeanInterval(growths, 0.95);
  return StrainGrowth{std::clamp(interval.value, kLeastGrowth, kMostGrowth),
                      interval.high - interval.value};
}

namespace {

// The square of a growth that an interval goes by: less of one that is hardly known.
double KnownSquare(const StrainGrowth& growth) {
  const double g = growth.value, e = growth.half;
  return std::max(g * g - e * e, Square(kLeastKnown * g));
}

// Of a line that passes 1 where runs pile up already; `low`: of the line, where no place is surely
// within.
Crossing BeforeOverload(double low, const std::vector<PlanPlace>& places, double cv) {
  const PlanPlace *last = nullptr, *over = nullptr;  // from light to heavy
  for (const PlanPlace& place : places) {
    if (!place.read || over != nullptr) continue;
    if (place.found.low > 1 || !std::isfinite(place.found.strain)) over = &place;
    if (place.found.high <= 1) last = &place;
  }
  const auto untold = [cv](const PlanPlace& place) {
    return std::min(0.3, std::sqrt((cv * cv + 1) / static_cast<double>(place.length)));
  };
  const double high = over->at * over->served_high * (1 + untold(*over));
  if (last != nullptr) low = last->at * std::min(last->served_low, 1 - 2 * untold(*last));
  low = std::min(low, high);
  return {std::sqrt(low * high), low, high, true};
}

}  // namespace

double WidthThere(const PlanPlace& middle, const StrainGrowth& growth) {
  const double strain = LogOf(middle.found.strain);
  const double side = std::min(LogOf(middle.found.high) - strain, strain - LogOf(middle.found.low));
  return 2 * side / std::sqrt(KnownSquare(growth));
}

Crossing CrossingFrom(const PlanPlace& middle, const StrainGrowth& growth, const Slope& slope,
                      const std::vector<PlanPlace>& places, double cv) {
  const double end_of_line = slope.line().most;
  double most = end_of_line;
  for (const PlanPlace& place : places) {
    if (place.read && !std::isfinite(place.found.strain)) most = std::min(most, place.at);
  }
  const double g = growth.value, e = growth.half;
  const double strain = LogOf(middle.found.strain);
  const double up = LogOf(middle.found.high) - strain, down = strain - LogOf(middle.found.low);
  // Where strain + g x -+ sqrt(half^2 + e^2 x^2) = 0, x from the middle.
  const double known = KnownSquare(growth);
  const auto end = [&](double half, int sign) {
    const double root = std::sqrt(Square(strain * e) + half * half * known);
    return (-strain * g + sign * root) / known;
  };
  const auto place = [&](double x) {
    return std::clamp(Exp(slope.Along(middle.at) + x), slope.line().least, most);
  };
  const double value = place(-strain / g), low = std::min(value, place(end(up, -1)));
  if (value == most && most < end_of_line) return BeforeOverload(low, places, cv);
  return {value, low, std::max(value, place(end(down, 1)))};
}

}  // namespace servecast
