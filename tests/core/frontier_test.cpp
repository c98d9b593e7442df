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

// ---- Energy -------------------------------------------------------------------------------------

// Of every fifth design no power is known.
void GiveEnergy(std::mt19937& random, std::vector<DesignPoint>& points) {
  for (DesignPoint& point : points) {
    const auto joules = static_cast<double>(1 + random() % 12);
    if (random() % 5 > 0) point.energy = DesignPoint::Energy{300, joules, {}, {}};
  }
}

TEST(FrontierOfEnergy, KeepsWhoNeedsLessAndIsDearer_AndNobodyElse) {
  std::mt19937 random(3);
  int dearer = 0;
  for (int i = 0; i < 500; ++i) {
    std::vector<DesignPoint> points = PointsOf(Drawn(random), Rung::kCertain);
    GiveEnergy(random, points);
    const std::vector<std::string> labels(points.size(), "x");
    const Conclusion found = Conclude(points, labels, Least::kEnergy);
    const auto energy = [](const DesignPoint& p) { return EnergyOf(p, Least::kEnergy); };
    const auto no_worse = [&](const DesignPoint& a, const DesignPoint& b) {
      return GpusOf(a) <= GpusOf(b) && *a.strain <= *b.strain && energy(a) <= energy(b);
    };
    for (const DesignPoint& a : points) {
      const bool on = std::count(found.frontier.begin(), found.frontier.end(), a.id) == 1;
      EXPECT_EQ(found.reasons[At(a.id)].empty(), on || !a.Holds());
      if (!on && a.Holds()) {
        ASSERT_TRUE(found.dominated_by[At(a.id)]);
        EXPECT_TRUE(no_worse(points[At(*found.dominated_by[At(a.id)])], a));
      }
      for (const DesignPoint& b : points) {
        EXPECT_TRUE(!on || !b.Holds() || !no_worse(b, a) || no_worse(a, b));
      }
      if (a.Holds() && a.energy) {
        ASSERT_TRUE(found.least_energy);
        EXPECT_LE(energy(points[At(*found.least_energy)]), energy(a));
      }
    }
    EXPECT_EQ(found.Answer(), found.least_energy);
    const Conclusion by_cost = Conclude(points, labels);
    EXPECT_FALSE(by_cost.least_energy);
    EXPECT_EQ(by_cost.Answer(), by_cost.cheapest);
    for (const std::int64_t id : by_cost.frontier) {
      dearer -= std::count(found.frontier.begin(), found.frontier.end(), id) == 1;
    }
    dearer += static_cast<int>(found.frontier.size());
  }
  EXPECT_GT(dearer, 500);
}

TEST(FrontierOfEnergy, ReasonsSayIt) {
  std::vector<DesignPoint> points = {Made(0, Rung::kCertain, 3, 2.5, 0.6),
                                     Made(1, Rung::kCertain, 4, 2.5, 0.66),
                                     Made(2, Rung::kCertain, 4, 2.5, 0.66)};
  points[0].energy = DesignPoint::Energy{300, 0.4, {}, {}};
  points[1].energy = DesignPoint::Energy{300, 0.5, {}, {}};
  const Conclusion found = Conclude(points, {"A", "B", "C"}, Least::kEnergy);
  const std::string same =
      "3 x A is no worse: $7.50 an hour instead of $10.00 an hour, 60 % of the limit instead of 66 "
      "%";
  EXPECT_EQ(found.reasons[1], same + ", 0.4 J per output token instead of 0.5");
  EXPECT_EQ(found.reasons[2], same + ", 0.4 J per output token, of this one not known");
}

// No bound of energy leaves out who needs the least, and who has none is asked as for cost.
TEST(HalvingByEnergy, EndsWithTheLeastOfAll) {
  std::mt19937 random(4);
  int left = 0;
  for (int i = 0; i < 500; ++i) {
    const std::vector<Truth> truths = Drawn(random);
    std::vector<DesignPoint> all = PointsOf(truths, Rung::kCertain);
    GiveEnergy(random, all);
    std::vector<DesignPoint> points;
    const auto bounded = [&](DesignPoint point) {
      const std::size_t k = At(point.id);
      point.least_gpus = truths[k].least_gpus;
      point.least_dollars = 2 * truths[k].least_gpus;
      point.least_strains = {truths[k].least_strain};
      if (all[k].energy) {
        point.least_j_per_output_token =
            all[k].energy->j_per_output_token * static_cast<double>(k % 11) / 10;
      }
      return point;
    };
    for (const DesignPoint& each : all) {
      DesignPoint& point = points.emplace_back();
      point.id = each.id;
      point = bounded(point);
    }
    const auto answer = [&](Stage stage) {
      const std::vector<Wanted> wanted = WantedOf(points, stage, Least::kEnergy);
      for (const auto& [id, rung] : wanted) {
        DesignPoint point = all[At(id)];
        point.rung = rung;
        if (!point.Holds()) point.energy.reset();
        points[At(id)] = bounded(std::move(point));
      }
      return !wanted.empty();
    };
    for (const Stage stage : {Stage::kCheapest, Stage::kOthers, Stage::kFrontier}) answer(stage);
    int rounds = 0;
    while (answer(Stage::kCheaper)) ASSERT_LT(++rounds, 100);
    const std::vector<std::string> labels(points.size());
    EXPECT_EQ(Conclude(points, labels, Least::kEnergy).frontier,
              Conclude(all, labels, Least::kEnergy).frontier);
    for (const DesignPoint& point : points) left += point.rung == Rung::kBound;
  }
  EXPECT_GT(left, 500);
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
