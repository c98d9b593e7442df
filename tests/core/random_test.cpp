// Keyed draws: known answers, independence of streams, and the uniform's statistics.
#include "base/random.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "base/hash.h"
#include "gtest/gtest.h"

namespace servecast {
namespace {

constexpr Stream kStreams[] = {Stream::kArrival,     Stream::kPromptTokens, Stream::kOutputTokens,
                               Stream::kPrefixGroup, Stream::kThinkTime,    Stream::kClass};

TEST(RandomBits, KnownKeys_GiveKnownWords) {
  // Computed apart, with unbounded integers reduced mod 2^64. Renumbering a stream or reordering
  // the key changes every result that anybody has ever quoted.
  EXPECT_EQ(Mix64(0x9E3779B97F4A7C15ULL), 0xE220A8397B1DCDAFULL);  // SplitMix64's first from seed 0
  EXPECT_EQ(RandomBits(1, Stream::kArrival, 0), 0x4926CF7E6BC52229ULL);
  EXPECT_EQ(RandomBits(1, Stream::kArrival, 1), 0x02564968F617D6D6ULL);
  EXPECT_EQ(RandomBits(1, Stream::kPromptTokens, 0), 0x02CFE0507D45DDE0ULL);
  EXPECT_EQ(RandomBits(1, Stream::kOutputTokens, 0), 0xF402ECDC6294FDEDULL);
  EXPECT_EQ(RandomBits(1, Stream::kPrefixGroup, 0), 0x54C684B5C4C2012EULL);
  EXPECT_EQ(RandomBits(1, Stream::kThinkTime, 0), 0x5E813D84DFCE7200ULL);
  EXPECT_EQ(RandomBits(1, Stream::kClass, 0), 0x716122F9D20D8776ULL);
  EXPECT_EQ(RandomBits(2, Stream::kArrival, 0), 0xC57AED888F6CDF20ULL);
  EXPECT_EQ(RandomBits(1, Stream::kArrival, 0, 1), 0x90879EBAE2F343FCULL);
  EXPECT_EQ(RandomBits(9007199254740991, Stream::kOutputTokens, 4999999, 7), 0xCBB3E1CD96237850ULL);
  EXPECT_EQ(Uniform(1, Stream::kArrival, 0), 0.285748451580521);
}

TEST(RandomBits, NeighbouringKeys_ShareNoWord) {
  std::set<std::uint64_t> seen;
  for (std::int64_t seed = 0; seed < 5; ++seed) {
    for (const Stream stream : kStreams) {
      for (std::int64_t entity = 0; entity < 200; ++entity) {
        for (std::int64_t index = 0; index < 5; ++index) {
          EXPECT_TRUE(seen.insert(RandomBits(seed, stream, entity, index)).second);
        }
      }
    }
  }
}

TEST(Uniform, ManyDraws_HaveTheUniformsMoments) {
  for (const Stream stream : kStreams) {
    constexpr int kN = 100000;
    std::vector<double> draws;
    double sum = 0, squares = 0, lagged = 0, before = 0.5;
    for (int i = 0; i < kN; ++i) {
      const double u = Uniform(3, stream, i);
      ASSERT_GT(u, 0.0);
      ASSERT_LT(u, 1.0);
      sum += u - 0.5;
      squares += (u - 0.5) * (u - 0.5);
      lagged += (u - 0.5) * (before - 0.5);
      before = u;
      draws.push_back(u);
    }
    // Four standard deviations of each statistic.
    EXPECT_NEAR(sum / kN, 0, 4 / std::sqrt(12.0 * kN));
    EXPECT_NEAR(squares / kN, 1.0 / 12, 4 / std::sqrt(180.0 * kN));
    EXPECT_NEAR(lagged / kN, 0, 4.0 / 12 / std::sqrt(kN));
    // Kolmogorov-Smirnov at 1 in 10,000.
    std::sort(draws.begin(), draws.end());
    double distance = 0;
    for (int i = 0; i < kN; ++i) {
      const double u = draws[static_cast<std::size_t>(i)];
      distance = std::max({distance, u - i / double{kN}, (i + 1) / double{kN} - u});
    }
    EXPECT_LT(distance, 2.23 / std::sqrt(kN));
  }
}

TEST(Uniform, TwoStreamsOfOneEntity_AreUncorrelated) {
  constexpr int kN = 100000;
  double product = 0;
  for (int i = 0; i < kN; ++i) {
    product +=
        (Uniform(1, Stream::kPromptTokens, i) - 0.5) * (Uniform(1, Stream::kOutputTokens, i) - 0.5);
  }
  EXPECT_NEAR(product / kN, 0, 4.0 / 12 / std::sqrt(kN));
}

TEST(Hasher, OrderAndBoundaries_Matter) {
  const auto hash = [](auto... parts) {
    Hasher h;
    (h.Add(parts), ...);
    return h.Finish();
  };
  using Word = std::uint64_t;
  EXPECT_EQ(hash(Word{1}, Word{2}), hash(Word{1}, Word{2}));
  EXPECT_NE(hash(Word{1}, Word{2}), hash(Word{2}, Word{1}));
  EXPECT_NE(hash(Word{0}), hash(Word{0}, Word{0}));
  EXPECT_NE(hash(std::string_view("ab"), std::string_view("c")),
            hash(std::string_view("a"), std::string_view("bc")));
  EXPECT_NE(hash(std::int64_t{-1}), hash(std::int64_t{1}));
  for (int bit = 0; bit < 64; ++bit) EXPECT_NE(hash(Word{1} << bit), hash(Word{0})) << bit;
}

}  // namespace
}  // namespace servecast
