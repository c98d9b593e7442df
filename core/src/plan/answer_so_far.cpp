// See answer_so_far.h.
#include "plan/answer_so_far.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "plan/strain.h"

namespace servecast {
namespace {

class Answering {
 public:
  explicit Answering(const SoFar& plan) : p_(plan) {}

  PlanAnswer Answer() {
    PlanAnswer answer;
    answer.unit = p_.slope.line().unit;
    answer.runs = p_.runs;
    answer.requests = p_.requests;
    answer.work = p_.work;
    answer.seats_to_spare = p_.seats_to_spare;
    answer.refused = p_.refused;
    for (const std::vector<PlanPlace>* of : {&p_.scouts, &p_.places}) {
      for (const PlanPlace& place : *of) {
        if (place.read) answer.curve.push_back(place.found);
      }
    }
    answer.curve.insert(answer.curve.end(), p_.left.begin(), p_.left.end());
    KeepBest(answer.curve);
    double most = 0;
    for (const PlanPoint& point : answer.curve) {
      if (point.goodput_per_s <= most) continue;
      most = point.goodput_per_s;
      answer.knee = point.at;
    }
    if (p_.never) {
      answer.never = p_.never;
      answer.outcome = PlanOutcome::kNone;
      answer.binding = p_.never->target;
      return answer;
    }
    // What all places have in common says between which two it is.
    std::vector<Sample> seen = SamplesOf(Known(), p_.Whole() ? Curve::kValue : Curve::kFirst);
    const bool known = std::all_of(Known().begin(), Known().end(),
                                   [](const PlanPlace& place) { return place.known; });
    if (seen.empty() || !known) return answer;
    ends_by_scout_ = AddScoutThatMisses(seen);
    Find(seen, answer);
    return answer;
  }

 private:
  const std::vector<PlanPlace>& Known() const {
    const bool some =
        std::any_of(p_.places.begin(), p_.places.end(), [](const auto& p) { return p.read; });
    return some ? p_.places : p_.scouts;
  }

  // Where work ran out before a place was seen that misses, a scout may have been.
  bool AddScoutThatMisses(std::vector<Sample>& seen) const {
    if (LastWithin(seen) + 1 < static_cast<int>(seen.size())) return false;
    for (const PlanPlace& scout : p_.scouts) {
      const bool heavier = p_.slope.Lighter(seen.back().at, scout.at);
      if (!scout.read || !heavier || scout.found.strain <= 1) continue;
      seen.push_back({scout.at, scout.found.strain});
      return true;
    }
    return false;
  }

  void Find(const std::vector<Sample>& seen, PlanAnswer& answer) const {
    const int last = LastWithin(seen);
    const auto count = static_cast<int>(seen.size());
    const bool middle = p_.HasMiddle() && MiddleOf(p_.places) != nullptr;
    if (middle && !ends_by_scout_) return FindByMiddle(answer);
    if (last < 0) {
      // Places that miss a target where a scout kept all are too few to tell, and so is one that
      // may keep them by its interval.
      const auto young = [](const PlanPlace& place) { return place.young; };
      const bool none = std::none_of(Known().begin(), Known().end(), young) &&
                        LastWithin(SamplesOf(p_.scouts, Curve::kValue)) < 0 &&
                        LastWithin(SamplesOf(Known(), Curve::kLow)) < 0;
      if (p_.finished) answer.outcome = none ? PlanOutcome::kNone : PlanOutcome::kUnknown;
      return Bind(seen.front().at, answer);
    }
    // Replicas that are enough are an answer, if not the fewest; the most load that a line has is
    // none.
    const bool relieves = p_.slope.line().relieves, none_misses = last + 1 == count;
    const bool all = none_misses && !relieves;
    answer.outcome = all ? PlanOutcome::kUnbounded : PlanOutcome::kFound;
    for (const PlanPlace& place : Known()) {
      if (place.at == seen[static_cast<std::size_t>(last)].at) {
        answer.cached_share = place.cached_share;
      }
    }
    const bool ends = !none_misses || seen.back().at == p_.slope.heaviest();
    if (&Known() == &p_.places && !ends_by_scout_ && (ends || all)) {
      const Crossing crossing = p_.Ends();
      answer.value = crossing.value;
      answer.low = crossing.low;
      answer.high = crossing.high;
    } else {
      // One run each: between the last that keeps the targets and the first that does not.
      answer.value = CrossingOf(p_.slope, seen);
      double beyond = seen[static_cast<std::size_t>(std::min(last + 1, count - 1))].at;
      // So few replicas miss, one more may do; or who knows how many do.
      if (relieves) beyond = none_misses ? p_.slope.heaviest() : beyond + p_.slope.line().step;
      const double within = seen[static_cast<std::size_t>(last)].at;
      answer.low = std::min({answer.value, within, beyond});
      answer.high = std::max({answer.value, within, beyond});
    }
    Bind(seen[static_cast<std::size_t>(std::min(last + 1, count - 1))].at, answer);
    FindBreaks(answer);
  }

  // The loads around it were found to surround the answer; how much each of them is strained, more
  // runs may say otherwise.
  void FindByMiddle(PlanAnswer& answer) const {
    answer.outcome = PlanOutcome::kFound;
    const Crossing ends = p_.Ends();
    answer.value = ends.value;
    answer.low = ends.low;
    answer.high = ends.high;
    const PlanPlace& middle = *MiddleOf(p_.places);
    answer.cached_share = middle.cached_share;
    const bool ended = std::any_of(p_.places.begin(), p_.places.end(), [&](const PlanPlace& place) {
      return place.found.overloaded && place.at <= ends.value * (1 + p_.options.precision);
    });
    if (!ended) Bind(middle.at, answer);
    FindBreaks(answer);
  }

  void FindBreaks(PlanAnswer& answer) const {
    for (std::size_t i = 0; i < answer.curve.size(); ++i) {
      for (std::size_t j = 0; j < answer.curve.size(); ++j) {
        const PlanPoint &light = answer.curve[i], &heavy = answer.curve[j];
        // Of runs that are over before load piles up, the heavier may seem to keep the targets.
        const bool misses = light.low > 1 && std::isfinite(light.low);
        if (p_.slope.Lighter(light.at, heavy.at) && misses && heavy.high <= 1) {
          answer.monotone = false;
        }
      }
    }
  }

  // The target that is strained most at a place.
  void Bind(double at, PlanAnswer& answer) const {
    for (const PlanPoint& point : answer.curve) {
      if (point.at != at || point.overloaded) continue;
      double most = -1;
      for (std::size_t k = 0; k < point.targets.size(); ++k) {
        const PlanTarget& target = point.targets[k];
        if (!target.value) continue;
        const double strain = StrainOf(p_.scenario.slo[k], *target.value, target.unserved_share);
        if (strain <= most) continue;
        most = strain;
        answer.binding = k;
      }
    }
  }

  // In order, and of several at one place the one with most runs.
  static void KeepBest(std::vector<PlanPoint>& points) {
    std::stable_sort(points.begin(), points.end(), [](const PlanPoint& a, const PlanPoint& b) {
      return a.at != b.at ? a.at < b.at : a.runs > b.runs;
    });
    points.erase(std::unique(points.begin(), points.end(),
                             [](const auto& a, const auto& b) { return a.at == b.at; }),
                 points.end());
  }

  const SoFar& p_;
  bool ends_by_scout_ = false;
};

}  // namespace

PlanAnswer AnswerSoFar(const SoFar& plan) { return Answering(plan).Answer(); }

}  // namespace servecast
