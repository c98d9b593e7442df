// See next_runs.h. First scouts, one run a place, find about where the targets cease to be met;
// then places with as many runs as each other, on the same seeds, surround it and say how fast
// strain grows there. A middle between them has longer runs on seeds of its own, and says how sure
// the answer is. Of whole places all three curves are followed instead. docs/model.md, "Plans".
#include "plan/next_runs.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include "base/math.h"
#include "plan/strain.h"

namespace servecast {
namespace {

constexpr double kScoutRatio = 1.1;                   // between the two places that scouts end with
constexpr double kFlat = 0.2;                         // growth of log strain, along the line
constexpr std::int64_t kLength = 3000;                // requests of a run, if ours to choose
constexpr double kPlaces = 3, kAtOnce = kPlaces + 4;  // that are asked about, and with a middle
constexpr double kTells = 0.14;          // of log strain, between loads that tell how it grows
constexpr double kGrowthKnown = 0.33;    // half of its interval, of the growth
constexpr std::size_t kMostCommon = 32;  // runs of the places around the middle
constexpr std::int64_t kLengthen = 3;
constexpr double kFewestMore = 1.3, kMostMore = 2;  // times as many runs of a place

// Of a middle. It has a fifth more requests than the one before it says are needed, as what it
// finds is itself unsure.
constexpr double kMiddleRuns = 12;
constexpr double kMargin = 1.2;
constexpr double kFirst = 4;                     // times as many requests as a place, of the first
constexpr double kMostTimes = 8, kFarTimes = 4;  // as the middle before it; as one that was far
constexpr double kAdded = 1.7;                   // up to here more runs do
constexpr int kMostStages = 6;
constexpr double kReach = 0.09;          // of log strain, from the middle to the answer
constexpr double kNear = 0.02;           // of a load
constexpr double kLongestMove = 0.08;    // likewise
constexpr int kMostMoves = 3;            // of a single run
constexpr std::size_t kSeeds = 1 << 16;  // from one middle's to the next one's

double RequestsOf(const PlanPlace& place) {
  return static_cast<double>(place.wanted) * static_cast<double>(place.length);
}

class Choice {
 public:
  explicit Choice(SoFar& plan) : p_(plan) {}

  void Choose() {
    if (p_.scouting) return Scout();
    // The only place could not run: the line ends before it now.
    if (p_.places.empty()) return void(Add(WhereScoutsCross()));
    if (!p_.HasMiddle()) {
      const std::vector<Sample> seen = SamplesOf(p_.places, Curve::kFirst);
      const double straight = std::clamp(kTells / p_.growth, 0.07, 0.25);
      if (const auto at = NextSample(p_.slope, seen, p_.growth, straight)) return void(Add(*at));
      if (Lengthens() || Widens(seen)) return;
    }
    if (p_.Whole()) {
      for (const Curve curve : kCurves) {
        const auto at = NextSample(p_.slope, SamplesOf(p_.places, curve));
        if (at) return void(Add(*at));
      }
      if (!AddsRuns()) p_.finished = true;
    } else if (!LengthensMiddle() && (EndsByCapacity() || (!KnowsGrowth() && !AsksMiddle()))) {
      p_.finished = true;
    }
  }

 private:
  void Scout() {
    const std::vector<Sample> seen = SamplesOf(p_.scouts, Curve::kValue);
    const bool hopeless = p_.options.scouts_only && Hopeless(p_.slope, seen);
    const auto at = NextScout(p_.slope, seen, kScoutRatio, p_.options.first_step);
    const bool chance = !p_.options.scouts_only && IsFlatAndDoubtful();
    if (at && !hopeless && !chance) return void(Add(*at));
    p_.finished = p_.options.scouts_only;
    if (p_.finished) return;
    p_.scouting = false;
    p_.growth = GrowthAround(p_.slope, seen).value_or(p_.growth);
    if (p_.steady && !p_.replays) p_.length = std::max(p_.length, kLength);
    const int last = LastWithin(seen);
    for (int i = std::max(last, 0); i <= last + 1 && i < static_cast<int>(p_.scouts.size()); ++i) {
      p_.length = std::max(p_.length, p_.scouts[static_cast<std::size_t>(i)].length);
    }
    // Of runs that had to be long, one in batches stands for many.
    const bool few = !Affords(static_cast<std::int64_t>(kAtOnce * kPlaceRuns));
    if (p_.length > kLength && few) p_.wanted = 1;
    Add(WhereScoutsCross());
  }

  // Within the line, of which scouts may have run where longer runs cannot.
  double WhereScoutsCross() const {
    const std::vector<Sample> seen = SamplesOf(p_.scouts, Curve::kValue);
    const Line& line = p_.slope.line();
    if (seen.empty()) return p_.slope.PlaceAt(p_.slope.Along(line.own));
    return std::clamp(CrossingOf(p_.slope, seen), line.least, line.most);
  }

  // All scouts miss, and the lightest two hardly differ: that may be chance, which lighter loads
  // would not change, and more runs do.
  bool IsFlatAndDoubtful() const {
    if (p_.scouts.size() < 2) return false;
    const PlanPlace &lightest = p_.scouts[0], &next = p_.scouts[1];
    if (lightest.found.strain <= 1 || lightest.found.low > 1) return false;
    if (!std::isfinite(next.found.strain)) return false;
    const double apart = p_.slope.Along(next.at) - p_.slope.Along(lightest.at);
    return LogOf(next.found.strain) - LogOf(lightest.found.strain) < kFlat * apart;
  }

  PlanPlace& Add(double at) {
    std::vector<PlanPlace>& all = p_.Asked();
    const auto after = std::find_if(all.begin(), all.end(), [&](const PlanPlace& place) {
      return p_.slope.Lighter(at, place.at);
    });
    PlanPlace place;
    place.at = at;
    place.length = p_.length;
    place.wanted = p_.scouting ? 1 : p_.wanted;
    return *all.insert(after, std::move(place));
  }

  // ---- What the work allows -------------------------------------------------------------------

  bool Affords(std::int64_t more_runs) const {
    return p_.work + p_.work / std::max<std::int64_t>(p_.runs, 1) * more_runs <=
           p_.options.most_work;
  }
  // Requests, of runs like those so far.
  double Affordable() const {
    return static_cast<double>(p_.options.most_work - p_.work) / static_cast<double>(p_.work) *
           static_cast<double>(p_.requests);
  }

  // ---- Around the answer: loads that need not be whole ---------------------------------------

  // Loads that are too close to tell how fast strain grows have a neighbour further off.
  bool Widens(const std::vector<Sample>& seen) {
    if (p_.Whole() || p_.wanted == 1 || p_.widened) return false;
    p_.widened = true;
    const double crossing = CrossingOf(p_.slope, seen), at = p_.slope.Along(crossing);
    const double apart = std::clamp(kTells / p_.GrowthAt(crossing).value, 0.07, 0.25);
    double lightest = at, heaviest = at;
    bool ends = false;
    for (const Sample& sample : seen) {
      const double along = p_.slope.Along(sample.at);
      if (std::fabs(along - at) > apart) continue;
      ends = ends || !std::isfinite(sample.strain);
      lightest = std::min(lightest, along);
      if (std::isfinite(sample.strain)) heaviest = std::max(heaviest, along);
    }
    if (heaviest - lightest >= apart) return false;
    const bool heavier = !ends && heaviest - at < at - lightest;
    const double place = p_.slope.PlaceAt(heavier ? lightest + apart : heaviest - apart);
    if (std::any_of(seen.begin(), seen.end(), [&](const Sample& s) { return s.at == place; })) {
      return false;
    }
    Add(place);
    return true;
  }

  // Then no line tells where: more runs next to capacity have more of its congestions.
  bool EndsByCapacity() const {
    const PlanPlace* middle = MiddleOf(p_.places);
    return middle != nullptr && p_.wanted > 1 && p_.CrossingBy(*middle).by_capacity;
  }

  // Where the growth is less sure, the places that tell it have as many runs again.
  bool KnowsGrowth() {
    const PlanPlace* middle = MiddleOf(p_.places);
    if (middle == nullptr || p_.wanted == 1 || 2 * p_.wanted > kMostCommon) return false;
    const StrainGrowth by = p_.GrowthAt(middle->at);
    double more = 0;
    for (const PlanPlace& place : p_.places) more += place.stage == 0 ? RequestsOf(place) : 0;
    if (by.half <= kGrowthKnown * by.value || more > Affordable()) return false;
    p_.wanted *= 2;
    for (PlanPlace& place : p_.places) {
      if (place.stage == 0) place.wanted = p_.wanted;
    }
    return true;
  }

  // How far a line may be taken for straight, in logarithms of a load.
  static double Straight(const StrainGrowth& growth) {
    return std::clamp(kReach / growth.value, 0.03, 0.075);
  }

  // A middle where the answer is by what is known so far, with as many requests as the one before
  // it says are needed; its own seeds do not depend on what that one found.
  bool AsksMiddle() {
    const PlanPlace* middle = MiddleOf(p_.places);
    if (middle == nullptr) return false;
    if (p_.wanted == 1) return MovesAlone(*middle);
    const StrainGrowth growth = p_.GrowthAt(middle->at);
    const double there = WidthThere(*middle, growth) / (2 * p_.options.precision);
    const double needed = kMargin * there * there, requests = RequestsOf(*middle);
    const Crossing found = p_.CrossingBy(*middle);
    const double excess = (found.high - found.low) / (2 * p_.options.precision * found.value);
    if (!p_.HasMiddle()) {
      // Where strain is steep; eight runs do not know well enough how wide their interval is.
      if (excess <= 0.5) return false;
      return SetsMiddle(CrossingOf(p_.slope, SamplesOf(p_.places, Curve::kFirst)),
                        kFirst * static_cast<double>(kPlaceRuns) * static_cast<double>(p_.length));
    }
    const double at = NextAt(*middle, found.value), far = std::fabs(Log(at / middle->at));
    const bool straight = far <= Straight(growth);
    if (straight && excess <= 1) return false;
    if (far <= kNear && needed <= kAdded && !p_.added) {
      p_.added = true;
      return AddsToMiddle(*middle, needed);
    }
    const double most = far > kNear ? kFarTimes : kMostTimes;
    const double times = std::clamp(needed, straight ? kFewestMore : 1.0, most);
    if (p_.stages < kMostStages && SetsMiddle(at, requests * times)) return true;
    return excess > 1 && AddsToMiddle(*middle, needed);
  }

  // Of a curve that bends no step is long, none to heavier loads goes beyond a place that was
  // strained too much, nor to where less is completed than comes, and none to lighter ones beyond a
  // place that surely was not: strain bends upwards, so that a line goes too far up more easily.
  double NextAt(const PlanPlace& middle, double found) const {
    double at = std::clamp(found, middle.at * (1 - kLongestMove), middle.at * (1 + kLongestMove));
    const bool beyond = middle.found.strain > 1;
    for (const PlanPlace& place : p_.places) {
      const bool other = beyond ? place.found.high <= 1 : place.found.strain > 1;
      if (!place.read || &place == &middle || !other) continue;
      const bool between =
          beyond ? at < place.at && place.at < middle.at : middle.at < place.at && place.at < at;
      if (between) at = std::sqrt(middle.at * place.at);
    }
    return at;
  }

  // Runs that are longer rather than more (decision 032), where their length is ours to choose.
  bool SetsMiddle(double at, double total) {
    const double least = static_cast<double>(kPlaceRuns) * static_cast<double>(p_.length);
    if (!p_.HasMiddle()) total = std::min(total, std::max(least, 0.9 * Affordable()));
    const bool ours = p_.steady && !p_.replays;
    const double runs = ours ? kMiddleRuns : std::ceil(total / static_cast<double>(p_.length));
    const double length = ours ? std::min(total / kMiddleRuns, static_cast<double>(kMaxRequests))
                               : static_cast<double>(p_.length);
    if (runs * length > Affordable()) return false;
    PlanPlace& middle = Add(at);
    middle.stage = ++p_.stages;
    middle.first_run = kSeeds * static_cast<std::size_t>(middle.stage);
    middle.length = static_cast<std::int64_t>(length);
    middle.wanted = static_cast<std::size_t>(runs);
    p_.added = false;
    return true;
  }

  // The width of an interval falls with the root of the requests.
  bool AddsToMiddle(const PlanPlace& middle, double times) {
    const auto now = static_cast<double>(middle.wanted);
    const double affords = Affordable() / static_cast<double>(middle.length);
    const double more = std::min(now * (std::clamp(times, kFewestMore, kMostMore) - 1), affords);
    if (more < now * (kFewestMore - 1) - 1) return false;
    p_.places[static_cast<std::size_t>(&middle - p_.places.data())].wanted +=
        static_cast<std::size_t>(std::ceil(more));
    return true;
  }

  // One run in batches: others beside it, as near as the work allows.
  bool MovesAlone(const PlanPlace& middle) {
    const double at = NextAt(middle, p_.CrossingBy(middle).value);
    const bool straight = std::fabs(Log(at / middle.at)) <= Straight(p_.GrowthAt(middle.at));
    const bool known = std::any_of(p_.places.begin(), p_.places.end(),
                                   [at](const PlanPlace& place) { return place.at == at; });
    if (straight || known || p_.moves == kMostMoves || RequestsOf(middle) > Affordable()) {
      return false;
    }
    ++p_.moves;
    Add(at);
    return true;
  }

  // Runs that say little of what would be for ever: more of them would not help (decision 032).
  bool LengthensMiddle() {
    if (p_.replays || !p_.steady || p_.lengthened >= 2) return false;
    for (PlanPlace& middle : p_.places) {
      if (middle.stage == 0 || middle.stage < p_.stages || middle.found.overloaded) continue;
      if (!middle.grows && !middle.too_short) continue;
      const std::int64_t longer = middle.length * kLengthen;
      if (longer > kMaxRequests || kMiddleRuns * static_cast<double>(longer) > Affordable()) {
        continue;
      }
      ++p_.lengthened;
      middle.runs.clear();
      middle.read = false;
      middle.length = longer;
      middle.wanted = static_cast<std::size_t>(kMiddleRuns);
      return true;
    }
    return false;
  }

  // ---- Places that are whole, and all before there is a middle ---------------------------------

  // The places next to where one of these curves passes 1.
  std::vector<bool> Deciding(const std::vector<Curve>& curves) const {
    std::vector<bool> decides(p_.places.size(), false);
    for (const Curve curve : curves) {
      const int last = LastWithin(SamplesOf(p_.places, curve));
      for (const int i : {last, last + 1}) {
        if (i < 0 || i >= static_cast<int>(p_.places.size())) continue;
        decides[static_cast<std::size_t>(i)] = true;
      }
    }
    return decides;
  }

  void Keep(const std::vector<bool>& keeps) {
    std::vector<PlanPlace> kept;
    for (std::size_t i = 0; i < p_.places.size(); ++i) {
      if (keeps[i]) {
        kept.push_back(std::move(p_.places[i]));
      } else {
        p_.left.push_back(p_.places[i].found);
      }
    }
    p_.places = std::move(kept);
  }

  // Runs that say little of what would be for ever, where the targets cease to be met, are made
  // longer: more of them would not help (decision 032).
  bool Lengthens() {
    if (p_.replays || !p_.steady || p_.lengthened == 2 || p_.wanted == 1) return false;
    const std::vector<bool> decides = Deciding({Curve::kFirst});
    // Between two loads short runs differ as long ones do; what they lack is the middle's to say.
    // Of whole places there is none, and the rare congestions of a long run may be in no short one.
    const bool looks = p_.lengthened == 0 && p_.Whole();
    bool grows = false, short_runs = false;
    for (std::size_t i = 0; i < p_.places.size(); ++i) {
      if (!decides[i] || p_.places[i].found.overloaded) continue;
      grows = grows || p_.places[i].grows;
      short_runs = short_runs || (looks && p_.places[i].doubtful);
    }
    const bool enough = !grows && !short_runs;
    if (enough || p_.length * kLengthen > kMaxRequests) return false;
    if (!Affords(kLengthen * static_cast<std::int64_t>(2 * kPlaceRuns))) return false;
    Keep(decides);
    ++p_.lengthened;
    p_.length *= kLengthen;
    p_.wanted = kPlaceRuns;
    for (PlanPlace& place : p_.places) {
      place.runs.clear();
      place.read = false;
      place.length = p_.length;
      place.wanted = p_.wanted;
    }
    return true;
  }

  // A wide interval has more runs, of all places: its width falls with their root.
  bool AddsRuns() {
    if (p_.wanted == 1) return false;
    const Crossing ends = p_.Ends();
    const double width = ends.high - ends.low;
    const Line& line = p_.slope.line();
    const double allowed =
        std::max(line.step / 2, line.relieves ? 0 : 2 * p_.options.precision * ends.value);
    if (width <= allowed) return false;
    Keep(Deciding({std::begin(kCurves), std::end(kCurves)}));
    const auto now = static_cast<double>(p_.wanted);
    const double times = (width / allowed) * (width / allowed);
    const double affords = static_cast<double>(p_.options.most_work - p_.work) /
                           static_cast<double>(p_.work) * static_cast<double>(p_.runs) /
                           static_cast<double>(p_.places.size());
    const double more = std::min(now * (std::clamp(times, kFewestMore, kMostMore) - 1), affords);
    if (more < now * (kFewestMore - 1) - 1) return false;
    p_.wanted += static_cast<std::size_t>(std::ceil(more));
    for (PlanPlace& place : p_.places) place.wanted = p_.wanted;
    return true;
  }

  SoFar& p_;
};

}  // namespace

void ChooseNext(SoFar& plan) { Choice(plan).Choose(); }

}  // namespace servecast
