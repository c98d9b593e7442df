#include "plan/root_finder.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "gtest/gtest.h"
#include "plan/place.h"

namespace servecast::testing {
namespace {

using Curve = std::function<double(double)>;

Line LoadLine() { return {10, 1e-5, 1e7, 0, false, "requests/s"}; }
Line ReplicaLine(double own = 1) { return {own, 1, 4096, 1, true, "replicas"}; }

// Asks for as many places as the search wants, and says where it ends.
struct Found {
  double at = 0;
  std::size_t asked = 0;
};
Found Follow(const Line& line, const Curve& curve) {
  const Slope slope(line);
  std::vector<Sample> scouts, samples;
  const auto add = [&](std::vector<Sample>& to, double at) {
    to.insert(std::find_if(to.begin(), to.end(),
                           [&](const Sample& s) { return slope.Lighter(at, s.at); }),
              {at, curve(at)});
  };
  while (const auto at = NextScout(slope, scouts, 1.1)) add(scouts, *at);
  add(samples, CrossingOf(slope, scouts));
  while (const auto at = NextSample(slope, samples)) add(samples, *at);
  return {CrossingOf(slope, samples), scouts.size() + samples.size()};
}

TEST(PlanSearch, QueueLikeCurves_PassOneWhereTheyShould) {
  for (const double capacity : {0.3, 11.0, 47.0, 3000.0}) {
    // 0.05 / (1 - rate / capacity) reaches 1 at 95 % of the capacity.
    const Found found = Follow(LoadLine(), [&](double rate) {
      return rate >= capacity ? std::numeric_limits<double>::infinity()
                              : 0.05 / (1 - rate / capacity);
    });
    EXPECT_NEAR(found.at, 0.95 * capacity, 0.02 * capacity) << capacity;
    EXPECT_LT(found.asked, 40u) << capacity;
  }
}

TEST(PlanSearch, SmoothCurve_IsFoundInFewPlaces) {
  const Found found = Follow(LoadLine(), [](double rate) { return std::pow(rate / 23, 3); });
  EXPECT_NEAR(found.at, 23, 0.1);
  EXPECT_LE(found.asked, 11u);
}

TEST(PlanSearch, FewestReplicas_IsTheFirstThatIsEnough) {
  for (const double enough : {1.0, 2.0, 7.0, 64.0, 1000.0}) {
    for (const double own : {1.0, 8.0, 500.0}) {
      const Found found = Follow(ReplicaLine(own), [&](double n) { return (enough - 0.5) / n; });
      EXPECT_EQ(found.at, enough) << own;
    }
  }
}

TEST(PlanSearch, ReplicasThatComeInGroups_StayMultiples) {
  Line line = ReplicaLine(8);
  line.least = line.step = 4;
  EXPECT_EQ(Follow(line, [](double n) { return 9.0 / n; }).at, 12);
}

TEST(PlanSearch, NothingIsEnough_EndsAtTheLightEnd) {
  const Found found = Follow(LoadLine(), [](double) { return 2.0; });
  EXPECT_EQ(found.at, LoadLine().least);
  EXPECT_LT(found.asked, 20u);
  EXPECT_EQ(Follow(ReplicaLine(), [](double) { return 2.0; }).at, 4096);
}

TEST(PlanSearch, EverythingIsEnough_EndsAtTheHeavyEnd) {
  EXPECT_EQ(Follow(LoadLine(), [](double) { return 0.5; }).at, LoadLine().most);
  EXPECT_EQ(Follow(ReplicaLine(100), [](double) { return 0.5; }).at, 1);
}

TEST(PlanSearch, ShortFirstStep_GoesNoFurtherThanThatAndFindsTheSame) {
  const Slope slope(ReplicaLine(8));
  EXPECT_EQ(NextScout(slope, {{8, 0.9}}, 1.1, 1.25), 6);
  EXPECT_EQ(NextScout(slope, {{8, 1.1}}, 1.1, 1.25), 10);
  EXPECT_EQ(NextScout(slope, {{8, 0.9}}, 1.1), 4);
  EXPECT_EQ(NextScout(Slope(ReplicaLine(2)), {{2, 0.9}}, 1.1, 1.25), 1);
}

TEST(PlanSearch, Hopeless_IsWhatMoreReplicasHardlyHelp) {
  const Slope slope(ReplicaLine(8));
  const auto of = [&slope](const Curve& curve, double most) {
    std::vector<Sample> samples;
    for (double n = most; n >= 8; n /= 2) samples.push_back({n, curve(n)});
    return Hopeless(slope, samples);
  };
  const Curve flat = [](double n) { return 1.2 + 0.1 / n; };
  EXPECT_FALSE(of(flat, 8));
  EXPECT_TRUE(of(flat, 16));
  const Curve falls = [](double n) { return 100 / n; };
  EXPECT_FALSE(of(falls, 16));
  EXPECT_FALSE(of(falls, 64));
  EXPECT_FALSE(of([](double) { return 0.9; }, 64));
  EXPECT_TRUE(of([](double n) { return 1000 / n; }, 256));  // and has gone far enough
  EXPECT_FALSE(of([](double) { return std::numeric_limits<double>::infinity(); }, 64));
  EXPECT_TRUE(of([](double) { return std::numeric_limits<double>::infinity(); }, 256));
}

PlanPlace Ran(double at, double strain) {
  PlanPlace place;
  place.at = at;
  place.length = 8000;
  place.read = true;
  place.first = strain;
  place.found.at = at;
  place.found.strain = strain;
  place.found.low = 0.95 * strain;
  place.found.high = 1.05 * strain;
  return place;
}

constexpr double kPilesUp = std::numeric_limits<double>::infinity();

// Strain of 0.6 at 12 that grows with the third power is 1 at 14.2.
TEST(PlanSearch, LineThatPassesOneBeforeOverload_GoesStraightToIt) {
  const std::vector<PlanPlace> places = {Ran(10, 0.35), Ran(12, 0.6), Ran(20, kPilesUp)};
  const Crossing at = CrossingFrom(places[1], {3, 0.1}, Slope(LoadLine()), places, 1);
  EXPECT_NEAR(at.value, 14.23, 0.01);
  EXPECT_NEAR(at.low, 13.9, 0.2);
  EXPECT_NEAR(at.high, 14.5, 0.2);
}

TEST(PlanSearch, OverloadBeforeATargetIsMissed_IsBetweenTwoLoads_ByWhatTheyServe) {
  std::vector<PlanPlace> places = {Ran(10, 0.35), Ran(12, 0.6), Ran(13, kPilesUp)};
  places[2].served_high = 0.96;
  const auto by = [&](double cv) {
    return CrossingFrom(places[1], {3, 0.1}, Slope(LoadLine()), places, cv);
  };
  const double untold = std::sqrt(2 / 8000.0);
  EXPECT_TRUE(by(1).by_capacity);
  EXPECT_NEAR(by(1).high, 13 * 0.96 * (1 + untold), 1e-9);
  EXPECT_NEAR(by(1).low, 12 * (1 - 2 * untold), 1e-9);
  EXPECT_NEAR(by(1).value, std::sqrt(by(1).low * by(1).high), 1e-9);
  EXPECT_LT(by(3).low, by(1).low) << "bursts hide more";
  places[1].served_low = 0.9;
  EXPECT_NEAR(by(1).low, 12 * 0.9, 1e-9);
  places[2].served_high = 0.8;
  EXPECT_LE(by(1).low, by(1).high) << "whatever runs say of each other";
  // Of a target of all requests one that is lost is too much, though it may have been chance.
  places[2].found.low = 0.9;
  EXPECT_TRUE(by(1).by_capacity);
}

}  // namespace
}  // namespace servecast::testing
