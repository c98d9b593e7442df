// What designs come to, and which are asked again: on points that no run made.
#include "plan/frontier.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace servecast::testing {
namespace {

DesignPoint Made(std::int64_t id, Rung rung, std::int64_t gpus, double price, double strain) {
  DesignPoint point;
  point.id = id;
  point.rung = rung;
  point.state = strain <= 1 ? DesignState::kMeets : DesignState::kMisses;
  DesignPoint::Pool pool;
  pool.replicas = pool.low = pool.high = gpus;
  pool.price = price;
  point.pools = {pool};
  DesignPoint::Target target;
  target.strain = strain;
  point.targets = {target};
  point.strain = point.strain_low = point.strain_high = strain;
  return point;
}

std::size_t At(std::int64_t id) { return static_cast<std::size_t>(id); }

// What is true of designs, and bounds below it.
struct Truth {
  std::int64_t gpus = 1;
  double strain = 0, least_gpus = 1, least_strain = 0;
};

std::vector<Truth> Drawn(std::mt19937& random) {
  std::vector<Truth> all(1 + random() % 40);
  for (Truth& t : all) {
    t.gpus = 1 + static_cast<std::int64_t>(random() % 12);
    t.strain = static_cast<double>(1 + random() % 24) / 20;  // ties are frequent
    t.least_gpus = std::max(1.0, static_cast<double>(t.gpus) - static_cast<double>(random() % 6));
    t.least_strain = t.strain * static_cast<double>(random() % 11) / 10;
  }
  return all;
}

std::vector<DesignPoint> PointsOf(const std::vector<Truth>& truths, Rung rung) {
  std::vector<DesignPoint> points;
  for (const Truth& t : truths) {
    points.push_back(Made(static_cast<std::int64_t>(points.size()), rung, t.gpus, 2, t.strain));
  }
  return points;
}

TEST(Frontier, NobodyOnItIsBeaten_AndEverybodyElseIs) {
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    const auto points = PointsOf(Drawn(random), Rung::kCertain);
    const Conclusion found = Conclude(points, std::vector<std::string>(points.size(), "x"));
    const auto no_worse = [&](std::size_t a, std::size_t b) {
      return GpusOf(points[a]) <= GpusOf(points[b]) && *points[a].strain <= *points[b].strain;
    };
    const auto on = [&](std::size_t at) {
      return std::count(found.frontier.begin(), found.frontier.end(), points[at].id) == 1;
    };
    for (std::size_t a = 0; a < points.size(); ++a) {
      EXPECT_EQ(found.reasons[a].empty(), on(a) || !points[a].Holds());
      if (!points[a].Holds()) {
        EXPECT_FALSE(on(a));
      } else if (on(a)) {
        EXPECT_FALSE(found.dominated_by[a]);
        for (std::size_t b = 0; b < points.size(); ++b) {
          const bool rival = points[b].Holds() && no_worse(b, a);
          EXPECT_TRUE(!rival || no_worse(a, b));
        }
      } else {
        ASSERT_TRUE(found.dominated_by[a]);
        EXPECT_TRUE(on(At(*found.dominated_by[a])));
        EXPECT_TRUE(no_worse(At(*found.dominated_by[a]), a));
      }
    }
    EXPECT_TRUE(std::is_sorted(found.frontier.begin(), found.frontier.end(), [&](auto a, auto b) {
      return GpusOf(points[At(a)]) < GpusOf(points[At(b)]);
    }));
    EXPECT_EQ(found.cheapest.has_value(), !found.frontier.empty());
    if (found.cheapest) {
      for (const DesignPoint& point : points) {
        EXPECT_TRUE(!point.Holds() || GpusOf(points[At(*found.cheapest)]) <= GpusOf(point));
      }
    }
  }
}

// If runs told the truth, what is left at its bound or at one run is on no frontier.
TEST(Halving, EndsWithTheFrontierOfAll) {
  std::mt19937 random(2);
  int left = 0, single = 0;
  for (int i = 0; i < 500; ++i) {
    const std::vector<Truth> truths = Drawn(random);
    std::vector<DesignPoint> points;
    for (const Truth& t : truths) {
      DesignPoint& point = points.emplace_back();
      point.id = static_cast<std::int64_t>(points.size()) - 1;
      point.least_gpus = t.least_gpus;
      point.least_dollars = 2 * t.least_gpus;
      point.least_strains = {t.least_strain};
    }
    const auto answer = [&](Stage stage) {
      const std::vector<Wanted> wanted = WantedOf(points, stage);
      for (const auto& [id, rung] : wanted) {
        DesignPoint& point = points[At(id)];
        EXPECT_LT(point.rung, rung);
        const DesignPoint before = point;
        point = Made(id, rung, truths[At(id)].gpus, 2, truths[At(id)].strain);
        point.least_gpus = before.least_gpus;
        point.least_dollars = before.least_dollars;
        point.least_strains = before.least_strains;
      }
      return !wanted.empty();
    };
    for (const Stage stage : {Stage::kCheapest, Stage::kOthers, Stage::kFrontier}) answer(stage);
    int rounds = 0;
    while (answer(Stage::kCheaper)) ASSERT_LT(++rounds, 100);
    const std::vector<std::string> labels(points.size());
    const Conclusion all = Conclude(PointsOf(truths, Rung::kCertain), labels);
    const Conclusion found = Conclude(points, labels);
    EXPECT_EQ(found.frontier.size(), all.frontier.size());
    for (std::size_t k = 0; k < std::min(found.frontier.size(), all.frontier.size()); ++k) {
      const Truth &a = truths[At(found.frontier[k])], &b = truths[At(all.frontier[k])];
      EXPECT_EQ(std::make_pair(a.gpus, a.strain), std::make_pair(b.gpus, b.strain));
    }
    for (const DesignPoint& point : points) {
      left += point.rung == Rung::kBound;
      single += point.rung == Rung::kCoarse;
    }
  }
  EXPECT_GT(left, 500);
  EXPECT_GT(single, 500);
}

TEST(Frontier, NoPrice_IsSaidAndNotRanked) {
  std::vector<DesignPoint> points = {Made(0, Rung::kCertain, 1, 2, 0.5),
                                     Made(1, Rung::kCertain, 1, 2, 0.4)};
  points[1].pools[0].price.reset();
  const Conclusion found = Conclude(points, {"a", "b"});
  EXPECT_EQ(found.cost, Cost::kDollars);
  EXPECT_EQ(found.frontier, std::vector<std::int64_t>{0});
  EXPECT_EQ(found.reasons[1], "its GPU has no price");
}

TEST(Frontier, ReasonsSayWhatIsBetter) {
  const Conclusion found =
      Conclude({Made(0, Rung::kCertain, 3, 2.5, 0.6), Made(1, Rung::kCoarse, 4, 2.5, 0.66),
                Made(2, Rung::kCoarse, 4, 2.5, 0.5)},
               {"A", "B", "C"});
  EXPECT_EQ(
      found.reasons[1],
      "3 x A is no worse: $7.50 an hour instead of $10.00 an hour, 60 % of the limit instead of "
      "66 %");
  EXPECT_EQ(
      found.reasons[2],
      "3 x A is no worse: $7.50 an hour instead of $10.00 an hour, 60 % of the limit against 50 % "
      "in a single run");
}

}  // namespace
}  // namespace servecast::testing
