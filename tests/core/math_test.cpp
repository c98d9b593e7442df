// Log, Exp and NormalQuantile: right to the last digit or two, and the same bits everywhere. The
// same binary runs native and as wasm, so a literal bit pattern is a comparison of the two.
#include "base/math.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/hash.h"
#include "base/random.h"
#include "gtest/gtest.h"

namespace servecast {
namespace {

std::uint64_t Bits(double x) {
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

// How many doubles lie between two of the same sign.
std::int64_t UlpsBetween(double a, std::uint64_t b_bits) {
  const auto difference = static_cast<std::int64_t>(Bits(a) - b_bits);
  return difference < 0 ? -difference : difference;
}

// The nearest double of the true value, from 60-digit arithmetic.
struct Known {
  double x;
  std::uint64_t bits;
};

TEST(Log, KnownValues_AreWithinOneUlp) {
  const Known known[] = {
      {2.0, 0x3FE62E42FEFA39EF},
      {10.0, 0x40026BB1BBB55516},
      {0.5, 0xBFE62E42FEFA39EF},
      {1.0000000000000002, 0x3CAFFFFFFFFFFFFF},
      {0.9999999999999999, 0xBCA0000000000000},
      {1e-300, 0xC085963447F87FB5},
      {1e300, 0x4085963447F87FB5},
      {0.1, 0xC0026BB1BBB55515},
      {3.141592653589793, 0x3FF250D048E7A1BD},
      {1.4142135623730951, 0x3FD62E42FEFA39F0},
      {0.7071067811865476, 0xBFD62E42FEFA39EE},
      {123456.789, 0x40277281CAD8A844},
      {2.2250738585072014e-308, 0xC086232BDD7ABCD2},
      {1.7976931348623157e308, 0x40862E42FEFA39EF},
      {5e-17, 0xC042C46AC7B13DFD},
      {0.999, 0xBF5064670D979B73},
      {1.001, 0x3F5060354F8C3CC4},
  };
  for (const Known& k : known) EXPECT_LE(UlpsBetween(Log(k.x), k.bits), 1) << k.x;
  EXPECT_EQ(Log(1.0), 0.0);
}

TEST(Exp, KnownValues_AreWithinOneUlp) {
  const Known known[] = {
      {1.0, 0x4005BF0A8B145769},    {-1.0, 0x3FD78B56362CEF38},
      {0.5, 0x3FFA61298E1E069C},    {1e-10, 0x3FF000000006DF38},
      {-1e-10, 0x3FEFFFFFFFF24190}, {10.0, 0x40D5829DCF950560},
      {-10.0, 0x3F07CD79B5647C9B},  {700.0, 0x7F0D945DF4F8EC8E},
      {-700.0, 0x00D14F2B0FB9307F}, {0.34657359027997264, 0x3FF6A09E667F3BCC},
      {3.3, 0x403B1CD5E7807B7B},    {-0.001, 0x3FEFF7CFE56F1A9E},
      {100.5, 0x48FFCC37A76F9E76},  {1e-300, 0x3FF0000000000000},
      {50.0, 0x44719103E4080B45},   {-50.0, 0x3B6D257D547E083F},
  };
  for (const Known& k : known) EXPECT_LE(UlpsBetween(Exp(k.x), k.bits), 1) << k.x;
  EXPECT_EQ(Exp(0.0), 1.0);
}

TEST(LogAndExp, AgainstTheLibrary_DifferByAnUlpOrTwoAtMost) {
  for (std::int64_t i = 0; i < 20000; ++i) {
    const double u = Uniform(7, Stream::kArrival, i);
    const double wide = std::ldexp(0.5 + u, static_cast<int>(i % 1000) - 500);
    EXPECT_LE(UlpsBetween(Log(wide), Bits(std::log(wide))), 2) << wide;
    const double exponent = (u - 0.5) * 1380;
    EXPECT_LE(UlpsBetween(Exp(exponent), Bits(std::exp(exponent))), 2) << exponent;
  }
}

TEST(RoundHalfEven, AnyNumber_IsTheLibrarys) {
  for (const double x : {0.0, 0.25, 0.5, 0.75, 1.5, 2.5, 3.4999999999999996, 1e12 + 0.5, 1e12 - 0.5,
                         123456789.49999999, 2251799813685247.5, -0.5, -1.5, -7.25}) {
    EXPECT_EQ(RoundHalfEven(x), std::nearbyint(x)) << x;
  }
}

TEST(NormalQuantile, KnownValues_AreNear) {
  const struct {
    double p, x;
  } known[] = {
      {0.75, 0.6744897501960817432},
      {0.9, 1.2815515655446005935},
      {0.95, 1.6448536269514722843},
      {0.99, 2.3263478740408407676},
      {0.999, 3.0902323061678132778},
      {0.9999, 3.7190164854557083867},
      {0.025, -1.9599639845400542118},
      {1e-3, -3.0902323061678135354},
      {1e-10, -6.3613409024040561991},
      {1e-16, -8.2220822161304356152},
      {1e-100, -21.273453560965324294},
      {1e-300, -37.047096299361199237},
      {0.0625, -1.5341205443525463117},
      {0.075, -1.4395314709384559349},  // the central formula's edge
      {0.0749999, -1.4395321773759005864},
  };
  for (const auto& k : known) EXPECT_NEAR(NormalQuantile(k.p), k.x, 3e-15 * std::fabs(k.x)) << k.p;
  EXPECT_EQ(NormalQuantile(0.5), 0.0);
}

TEST(NormalCdf, OfAQuantile_IsItsProbability) {
  EXPECT_EQ(NormalCdf(0), 0.5);
  for (int i = 1; i < 1000; ++i) {
    const double p = i / 1000.0;
    EXPECT_NEAR(NormalCdf(NormalQuantile(p)), p, 1e-15);
  }
  // erfc(-x / sqrt 2) / 2 of a C library.
  EXPECT_NEAR(NormalCdf(-3), 1.3498980316300957e-3, 1e-16);
  EXPECT_NEAR(NormalCdf(-8), 6.220960574271819e-16, 1e-22);
  EXPECT_EQ(NormalCdf(-40), 0);
  EXPECT_EQ(NormalCdf(40), 1);
}

TEST(NormalQuantile, OfPAndOneMinusP_AreOpposite) {
  for (int i = 1; i < 2048; ++i) {
    const double p = i / 4096.0;  // 1 - p is exact
    EXPECT_EQ(NormalQuantile(1 - p), -NormalQuantile(p)) << p;
  }
}

TEST(NormalQuantile, OverAscendingP_NeverFalls) {
  double before = NormalQuantile(1e-9);
  for (int i = 1; i < 100000; ++i) {
    const double x = NormalQuantile(i / 100000.0);
    ASSERT_GT(x, before) << i;
    before = x;
  }
}

TEST(Math, ManyValues_HaveTheSameBitsOnEveryPlatform) {
  Hasher log_hash, exp_hash, quantile_hash;
  for (std::int64_t i = 0; i < 100000; ++i) {
    const double u = Uniform(11, Stream::kPromptTokens, i);
    log_hash.Add(Bits(Log(u)));
    log_hash.Add(Bits(Log(1 + u * 1e9)));
    exp_hash.Add(Bits(Exp((u - 0.5) * 1400)));
    quantile_hash.Add(Bits(NormalQuantile(u)));
  }
  EXPECT_EQ(log_hash.Finish(), 0x54E62B36C9D983C8ULL);
  EXPECT_EQ(exp_hash.Finish(), 0x9F3ED69D05B70DF9ULL);
  EXPECT_EQ(quantile_hash.Finish(), 0x9F868E588B68BD49ULL);
}

TEST(SinOfTurns, Everywhere_IsTheSine) {
  for (int i = -2000; i <= 2000; ++i) {
    const double turns = i / 512.0;  // exact, so is the argument within the turn
    const double expected = std::sin((turns - std::nearbyint(turns)) * 6.283185307179586);
    EXPECT_NEAR(SinOfTurns(turns), expected, 4e-16) << turns;
  }
  EXPECT_EQ(SinOfTurns(0), 0);
  EXPECT_NEAR(SinOfTurns(1e9 + 0.25), 1, 3e-16);
}

TEST(LogGamma, FactorialsAndHalves_AreRight) {
  double factorial = 1;
  for (int n = 1; n <= 60; factorial *= n++) {
    EXPECT_NEAR(LogGamma(n), std::log(factorial), 1e-13 * std::max(1.0, std::log(factorial))) << n;
  }
  EXPECT_NEAR(LogGamma(0.5), 0.5723649429247001, 1e-13);
  EXPECT_NEAR(LogGamma(1e-3), 6.907178885383854, 1e-12);
  EXPECT_NEAR(LogGamma(1000.5), 5908.674175848678, 1e-9);
}

}  // namespace
}  // namespace servecast
